from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from report_examples import counted_trial, throughput, throughput_of, throughput_results

from lossratio.drawing.plot import Axis
from lossratio.measurements.throughput.bounds import bounds_history
from lossratio.measurements.throughput.search_picture import draw_loss

SVG = "{http://www.w3.org/2000/svg}"
ANY = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def hints(picture):
    root = ElementTree.fromstring(picture)  # noqa: S314 (our own)
    return [title.text for title in root.iter(f"{SVG}title")]


def texts(picture):
    root = ElementTree.fromstring(picture)  # noqa: S314 (our own)
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


@pytest.mark.whole
@ANY
@given(throughput_results())
def test_any_result_has_pictures(result):
    picture = draw_loss(result, bounds_history(result))
    assert ElementTree.fromstring(picture).tag == f"{SVG}svg"  # noqa: S314 (our own)


def test_trials_of_equal_load_and_loss_are_one_mark_with_their_number():
    result = throughput_of([counted_trial(50_000.0)] * 21 + [counted_trial(60_000.0, lost=6)])
    hint = hints(draw_loss(result, bounds_history(result)))
    assert [progress for progress in hint if "no" not in progress][1:] == [
        "21 trials like trial 1: 50.000 kfps for 1 s, loss 0 %",
        "trial 22: 60.000 kfps for 1 s, loss 0.01 %",
    ]


def test_the_losses_that_goals_allow_are_in_the_picture():
    labels = texts(draw_loss(throughput(), bounds_history(throughput())))
    assert {"NDR: allowed loss, bounds", "PDR: allowed loss, bounds", "none", "100 %"} <= set(labels)


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis(0.0, 1.0, 0, 100), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (Axis(149_000.0, 151_000.0, 0, 100), [149_000.0, 149_500.0, 150_000.0, 150_500.0, 151_000.0]),
        (Axis(9.0, 1100.0, 0, 100, is_logarithmic=True), [10.0, 30.0, 100.0, 300.0, 1000.0]),
    ],
)
def test_ticks_are_round_numbers(axis, ticks):
    assert axis.ticks(5) == pytest.approx(ticks)


def test_places_on_an_axis():
    linear, logarithmic = Axis(10.0, 20.0, 0, 100), Axis(1.0, 100.0, 100, 0, is_logarithmic=True)
    assert [linear.place(value) for value in (5, 10, 15, 20, 25)] == [0, 0, 50, 100, 100]
    assert [logarithmic.place(value) for value in (1, 10, 100)] == [100, 50, 0]
