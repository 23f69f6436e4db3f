"""Experiments after a search in which no load passed: only what always helps, and with its control, is named."""

from __future__ import annotations

import random
import re

import pytest

from lossratio.errors import TrafficError
from lossratio.measurements.open_testbed import open_testbed
from lossratio.measurements.throughput import SearchRequest, require_lower_bounds
from lossratio.measurements.throughput.experiments import (
    NO_CHANGE,
    AfterSearch,
    Change,
    SmallerLoad,
    changes_of,
    run_experiments,
)
from lossratio.measurements.throughput.goals import PRESETS
from lossratio.results import message
from lossratio.shipped import TOPOLOGIES
from lossratio.traffic import load_profile

REST = Change("after a rest", {"rest": 3.0}, remedy="rest=3 s")
RAMP = Change("behind a ramp", {"ramp": 1.0}, remedy="ramp=1 s")


def run(passes, changes=(REST, RAMP), trials=1000):
    """The experiments, which may take so many trials."""
    done = []

    def counted(change):
        done.append(change)
        return passes(change)

    found = run_experiments(counted, iter(changes), 9000.0, 0.0, lambda: len(done) >= trials)
    return found, done


def test_what_helps_each_time_is_named_with_its_remedy():
    found, done = run(lambda change: change is RAMP)
    assert [one.change for one in found.helpful] == ["behind a ramp"]
    assert list(found.sentences) == [
        "behind a ramp, 9.0000 kfps per interface passes in 5 of 5 trials, and in none of 5 without this change. "
        "Remedy: ramp=1 s"
    ]
    # In turns with its control.
    assert done[2:6] == [RAMP, NO_CHANGE, RAMP, NO_CHANGE]


def test_what_helps_once_is_no_remedy():
    answers = iter([True])
    found, _ = run(lambda change: change is REST and next(answers, False))
    assert found.helpful == ()
    assert list(found.sentences) == [
        "no change that was tried lets 9.0000 kfps per interface pass: after a rest, behind a ramp"
    ]


def test_a_loss_that_is_gone_needs_no_remedy():
    found, done = run(lambda change: True)
    assert done == [NO_CHANGE]
    assert found.helpful == ()
    assert list(found.sentences) == [
        "the loss comes and goes: after the search, 1 of 1 trial at 9.0000 kfps per interface passed without any change"
    ]


def test_a_control_that_passes_takes_the_remedy_back():
    controls = iter([False, False, True])
    found, _ = run(lambda change: next(controls) if change is NO_CHANGE else change is REST)
    assert found.helpful == ()
    assert "without any change" in next(found.sentences)


def test_time_ends_the_experiments():
    found, done = run(lambda change: change is REST, trials=4)
    assert len(done) <= 5
    assert found.helpful == ()


def test_traffic_that_the_testbed_cannot_carry_shows_nothing():
    def passes(change):
        if change is REST:
            raise TrafficError("no such traffic")
        return change is RAMP

    found, _ = run(passes)
    assert [one.change for one in found.tried] == ["behind a ramp"]


def test_a_device_that_loses_now_and_then_is_rarely_healed():
    """Each trial passes with probability one half: five of five with a change, and none of five without it."""
    chance = random.Random(1)
    healed = sum(bool(run(lambda change: chance.random() < 0.5)[0].helpful) for _ in range(2000))
    assert healed <= 20


def test_the_changes_of_a_mix_of_flows():
    profile = load_profile("ethip4-ip4base", frame_size="IMIX_v4_1")
    changes = {change.in_words: change for change in changes_of(profile)}
    assert list(changes) == [
        "after a rest of 3 s",
        "behind a ramp of 1 s",
        "with traffic in one direction only",
        "with frames of 759 B instead of 1,518 B",
        "with a single flow",
    ]
    assert not changes["with traffic in one direction only"].profile.bidirectional
    assert changes["with a single flow"].profile.directions[0].headers.flows == 1
    assert changes["with a single flow"].profile.frame_size == "IMIX_v4_1"
    assert changes["with frames of 759 B instead of 1,518 B"].profile.directions[0].size_weights == {759: 1}


@pytest.mark.parametrize(("name", "size"), [("ethip4-udp", 64), ("ethip6-ip6base", 78), ("ethip4vxlan-l2bdbase", 96)])
def test_the_smallest_frames_have_no_smaller_ones(name, size):
    profile = load_profile(name, frame_size=size, bidirectional=False)
    words = [change.in_words for change in changes_of(profile)]
    assert words == ["after a rest of 3 s", "behind a ramp of 1 s", "with a single flow"]
    larger = [change.in_words for change in changes_of(load_profile(name, frame_size=size + 1))]
    assert f"with frames of {size} B instead of {size + 1} B" in larger


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
        smaller = AfterSearch(testbed, request, PRESETS["QUICK_NDR"], 9000.0).smaller_load()
    assert smaller.load_per_interface_fps == pytest.approx(900.0, rel=0.01)
    # The device lost nothing: what was not sent says nothing of it, and is no proof either.
    assert (smaller.loss_ratio, smaller.passed) == (0.0, passes)
    assert ("min_load=" in smaller.sentence) is passes
    unsent = "% were unsent, late or dropped by the generator, so it did not meet QUICK_NDR either"
    assert (unsent in smaller.sentence) is not passes


def test_experiments_with_frames_that_were_not_sent_help_nothing(tmp_path):
    topology = tmp_path / "starved.yaml"
    topology.write_text(TOPOLOGIES.path("simulated").read_text().replace("max_rate: 400 kfps", "max_rate: 8 kfps"))
    request = SearchRequest(profile=load_profile("ethip4-ip4base", frame_size=64))
    with open_testbed(topology, results=tmp_path) as testbed:
        found = AfterSearch(testbed, request, PRESETS["QUICK_NDR"], 9000.0).experiments()
    assert (found.unchanged_passed, found.helpful) == (0, ())
