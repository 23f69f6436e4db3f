"""A trial at a smaller load after a search in which no load passed: what it shows, and when it is made."""

from __future__ import annotations

import re

import pytest

from lossratio.measurements.open_testbed import open_testbed
from lossratio.measurements.throughput import SearchRequest, require_lower_bounds
from lossratio.measurements.throughput.extra_trials import SmallerLoad, measure_smaller_load
from lossratio.measurements.throughput.goals import PRESETS
from lossratio.results import message
from lossratio.shipped import TOPOLOGIES
from lossratio.traffic import load_profile


@pytest.mark.parametrize(
    ("load", "written"), [(900.1, "900"), (3000.0, "3000"), (12_345.6, "12300"), (4.5e6, "4500000"), (0.25, "0.25")]
)
def test_a_smaller_load_is_written_without_a_power_of_ten(load, written):
    trial = SmallerLoad(goal="NDR", load_per_interface_fps=load, duration_s=1.0, loss_ratio=0.0, passed=True)
    assert trial.sentence.endswith(f'min_load={written} fps, or for the whole run --variable "MIN_LOAD:{written} fps"')


def failed_search(tmp_path, model, **arguments):
    """The result of a search in which no load passes, and its error."""
    model_before = "model: sharp_knee, capacity: 150 kfps"
    topology = tmp_path / "slow.yaml"
    text = TOPOLOGIES.path("simulated").read_text()
    assert model_before in text
    topology.write_text(text.replace(model_before, model))
    with open_testbed(topology, results=tmp_path) as testbed:
        result = testbed.ndr_pdr(64, goals="quick", **arguments)
        with pytest.raises(AssertionError) as caught:
            require_lower_bounds(result)
    return result, str(caught.value)


def test_a_smaller_load_is_advised_after_it_was_tried(tmp_path):
    result, error = failed_search(tmp_path, "model: sharp_knee, capacity: 5 kfps")
    assert result.smaller_load.passed
    assert result.smaller_load.duration_s == max(report.goal.final_trial_duration_s for report in result.goals)
    tried = "trial of 0.5 s at 900.1 fps per interface lost no frames and met QUICK_PDR. Search from a smaller load: "
    way_out = 'min_load=900 fps, or for the whole run --variable "MIN_LOAD:900 fps"'
    assert f"A {tried}{way_out}. If a search may end" in error
    assert f"Tried after the search: a {tried}{way_out}." in message(result, ())


def test_a_smaller_load_is_tried_if_the_loads_of_the_search_are_close_together(tmp_path):
    result, error = failed_search(tmp_path, "model: sharp_knee, capacity: 2 kfps", max_load="10 kfps")
    assert result.smaller_load.passed
    assert "Search from a smaller load: min_load=900 fps" in error


def test_a_smaller_load_that_lost_frames_is_no_advice(tmp_path):
    result, error = failed_search(tmp_path, "model: sharp_knee, capacity: 500 fps")
    assert not result.smaller_load.passed
    assert re.search(
        r"A trial of 0.5 s at 900.* lost 72.28 % of the frames and did not meet QUICK_PDR either\. If", error
    )
    assert "min_load" not in error


def test_no_smaller_load_is_tried_where_the_load_is_not_the_cause(tmp_path):
    result, error = failed_search(tmp_path, "model: background_loss, capacity: 150 kfps, loss_ratio: 0.1")
    assert result.smaller_load is None
    assert "min_load" not in error


@pytest.mark.parametrize(("fastest", "passes"), [("2 kfps", True), ("800 fps", False)])
def test_a_smaller_load_that_was_not_sent_did_not_meet_the_goal(tmp_path, fastest, passes):
    topology = tmp_path / "starved.yaml"
    topology.write_text(TOPOLOGIES.path("simulated").read_text().replace("max_rate: 400 kfps", f"max_rate: {fastest}"))
    request = SearchRequest(profile=load_profile("ethip4-ip4base", frame_size=64))
    with open_testbed(topology, results=tmp_path) as testbed:
        smaller = measure_smaller_load(testbed, request, PRESETS["QUICK_NDR"], 9000.0)
    assert smaller.load_per_interface_fps == pytest.approx(900.0, rel=0.01)
    # The device lost nothing: what was not sent says nothing of it, and is no proof either.
    assert (smaller.loss_ratio, smaller.passed) == (0.0, passes)
    assert ("min_load=" in smaller.sentence) is passes
    unsent = "% were unsent, late or dropped by the generator, so it did not meet QUICK_NDR either"
    assert (unsent in smaller.sentence) is not passes
