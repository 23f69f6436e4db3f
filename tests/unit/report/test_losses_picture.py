"""The picture of lost frames: flows by time; and the lines on the console."""

from __future__ import annotations

import re

from lossy_devices import Lab, none, of_flows, spec
from report_examples import mrr

from lossratio.report.losses import TITLE, losses_pictures
from lossratio.results import TestResult, loss_places_in


def result_of(lab: Lab) -> TestResult:
    """An MRR with the trials of a lab."""
    places = loss_places_in(lab.trials)
    return mrr().model_copy(update={"trials": tuple(lab.trials), "loss_places": places})


def lab_of(device, flows: int = 254, loads: tuple[float, ...] = (40e3, 10e3, 20e3)) -> Lab:
    lab = Lab(spec(flows), seed=1)
    for load in loads:
        lab.trial(load, 0.5, device(lab.order))
    return lab


def test_the_picture_has_a_row_of_cells_for_each_lossy_flow():
    (picture,) = losses_pictures(result_of(lab_of(of_flows({0, 100, 101, 200}))))
    assert picture.title == TITLE
    assert "port0>port1" in picture.about
    bands = re.findall(r'<path d="([^"]*)" fill="#B3261E" fill-opacity="([^"]*)"', picture.svg)
    assert sum(path.count("M") for path, _ in bands) == 4 * 16
    assert {opacity for _, opacity in bands} == {"1"}
    assert "Each row is a flow, in" in picture.about


def test_rows_of_several_flows_are_called_so():
    (picture,) = losses_pictures(result_of(lab_of(of_flows({0, 100}), flows=1000)))
    assert "Each row is 3.91 flows on average, in" in picture.about


def test_the_picture_is_of_a_small_load_but_not_of_few_frames():
    def device(order):
        # Half of all frames above 30,000 per second, and before that a dead flow.
        dead = of_flows({100})(order)
        return lambda numbers, load, random: dead(numbers, load, random) | (numbers % 2 < (load > 30e3))

    (picture,) = losses_pictures(result_of(lab_of(device, loads=(40e3, 20e3, 200.0))))
    assert picture.about.startswith("Trial 2 at 20.000 kfps per interface lost 0.39 % of its frames. ")


def test_a_single_flow_is_one_row_by_time():
    device = lambda order: lambda numbers, load, random: numbers - numbers[0] < 100  # noqa: E731
    (picture,) = losses_pictures(result_of(lab_of(device, flows=1)))
    assert picture.svg.count('fill="#B3261E"') > 0


def test_without_located_losses_there_is_no_picture():
    assert list(losses_pictures(result_of(lab_of(lambda order: none)))) == []
    assert loss_places_in(lab_of(lambda order: none).trials) is None


def test_the_console_says_where_losses_sit():
    text = str(result_of(lab_of(of_flows({0, 100, 101, 200}))))
    assert "Where losses sit: All lost frames are of 4 of 254 flows" in " ".join(text.split())
