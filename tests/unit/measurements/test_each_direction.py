"""Devices that pass more one way than the other: which direction makes a bound, and the highest load of each."""

from __future__ import annotations

import pytest
from measurement_examples import PROFILE, SIMULATED, InFrontOfTestbed, place

from lossratio.errors import SearchError
from lossratio.measurements.throughput import NdrPdrGoals, SearchRequest, find_conditional_throughput
from lossratio.mlrsearch import NDR
from lossratio.simulation import SimulatedMeasurer
from lossratio.simulation.constant_capacity import ConstantLoss, SharpKnee
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import DirectionCounters, TrialInput, TrialOutput, TrialResult

WAYS = ("port0>port1", "port1>port0")
QUICK = SearchRequest(profile=PROFILE, goals=NdrPdrGoals.quick.value, min_load=100.0)


class OneSutEachWay(InFrontOfTestbed):
    """The simulated testbed with a SUT of its own in each direction, or one for both."""

    def __init__(self, *suts, seed=1):
        super().__init__(open_testbed(SIMULATED))
        models = list(suts) if len(suts) > 1 else suts[0]
        self.suts = SimulatedMeasurer(models, seed=seed, max_rate=400_000.0, directions=2)

    def measure(self, trial):
        return self.suts.measure(trial)


def searched(tmp_path, *suts, seed=1, **fields):
    return find_conditional_throughput(OneSutEachWay(*suts, seed=seed), QUICK.but(**fields), place(tmp_path))


def rates(result):
    return {report.goal.name: report.throughput and report.throughput.per_interface_fps for report in result.goals}


@pytest.mark.whole
def test_one_search_finds_the_highest_load_of_each_direction(tmp_path):
    result = searched(tmp_path, SharpKnee(6000.0), SharpKnee(1500.0), per_direction=True)
    found = rates(result)
    truth = {"": 1500.0, " port0>port1": 6000.0, " port1>port0": 1500.0}
    for part, limit in truth.items():
        assert found[f"QUICK_NDR{part}"] == pytest.approx(limit, rel=0.012)
        assert found[f"QUICK_PDR{part}"] == pytest.approx(limit, rel=0.012)
    said = " ".join(str(result).split())
    assert "by port1>port0 alone" in said
    assert "by port0>port1 alone" not in said
    assert "QUICK_NDR port0>port1: port0>port1 loses no frame when offered" in said
    # The other direction loses most of what is offered at that load, so nobody says how much passes in all.
    assert "conditional throughput 5,954.77 fps per interface QUICK_NDR" in said


@pytest.mark.whole
def test_a_direction_that_passes_nothing_hides_nothing_of_the_other_one(tmp_path):
    result = searched(tmp_path, SharpKnee(6000.0), ConstantLoss(1.0), per_direction=True)
    found = rates(result)
    assert found["QUICK_NDR"] is None
    assert found["QUICK_NDR port0>port1"] == pytest.approx(6000.0, rel=0.012)
    assert found["QUICK_NDR port1>port0"] is None


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(4))
def test_the_slower_direction_is_named_and_of_a_shared_limit_none(tmp_path, seed):
    for number, ratio in enumerate((0.25, 0.9)):
        said = str(searched(tmp_path / str(number), SharpKnee(9000.0), SharpKnee(9000.0 * ratio), seed=seed))
        assert "by port1>port0 alone" in said
    assert " alone" not in str(searched(tmp_path / "shared", SharpKnee(9000.0), seed=seed))


@pytest.mark.whole
def test_what_one_direction_alone_would_not_forward_is_forwarded_on_average(tmp_path):
    """0.8 % are lost one way and none the other way, so 0.4 % of both."""
    uneven = str(searched(tmp_path / "uneven", SharpKnee(9000.0), ConstantLoss(0.008), max_load=5000.0))
    assert "each way on average when offered" in " ".join(uneven.split())
    assert "on average" not in str(searched(tmp_path / "even", SharpKnee(9000.0)))


def test_traffic_one_way_has_no_other_direction(tmp_path):
    profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    result = searched(tmp_path, SharpKnee(6000.0), profile=profile, per_direction=True, max_load=400.0)
    assert [report.goal.name for report in result.goals] == ["QUICK_NDR", "QUICK_PDR"]


def test_a_direction_of_a_trial_has_its_own_losses_and_unsent_frames():
    ways = [DirectionCounters(WAYS[0], 100, 90, 90, unsent_frames=10), DirectionCounters(WAYS[1], 100, 100, 75)]
    output = TrialOutput(0.175, sent_frames=190, lost_frames=25, unsent_frames=10, directions=tuple(ways))
    trial = TrialResult(TrialInput(1.0, 100.0), output)
    assert [trial.of_stream(name).loss_ratio for name in WAYS] == [pytest.approx(0.1), pytest.approx(0.25)]
    assert [trial.of_stream(name).output.lost_frames for name in WAYS] == [0, 25]
    assert trial.of_stream(WAYS[0]).forwarding_rate == pytest.approx(90.0)


def test_a_direction_that_the_traffic_does_not_have_is_an_error():
    trial = TrialResult(TrialInput(1.0, 100.0), TrialOutput(0.0))
    with pytest.raises(SearchError, match="port8>port9"):
        trial.of_stream("port8>port9")
    with pytest.raises(SearchError, match="no such stream"):
        QUICK.but(goals=[{"loss_ratio": 0, "name": "a", "stream": "voice"}, NDR])
