"""Telemetry and reconfiguration need DUTs of ours, and a search that found a load."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from measurement_examples import PROFILE, SIMULATED, place

from lossratio.dut import DutCounters, DutOptions
from lossratio.errors import DutError, SearchError, TrafficError
from lossratio.measurements import measurement
from lossratio.measurements.latency.measure import LatencyPoint, LatencyRequest, add_latency, measure_latency, points_of
from lossratio.measurements.latency.result import latency_points, name_load
from lossratio.measurements.reconfiguration import (
    RECONFIGURATION_GOAL,
    ReconfigurationRequest,
    measure_reconfiguration_loss,
    reconfigure_duts,
)
from lossratio.measurements.telemetry import TelemetryRequest
from lossratio.measurements.throughput import add_telemetry
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import SearchGoal
from lossratio.results.model import Outcome
from lossratio.results.run_directory import read_result
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.testbed import Ready
from lossratio.topology import Hop, Interface, Port
from lossratio.traffic import Answer
from lossratio.trials.trial_output import DirectionCounters, TrialOutput
from lossratio.values.units import format_frame_rate

NDR = SearchGoal(0.0, 0.5, 1.0, 2.0, 0.1, name="NDR")
PDR = SearchGoal(0.005, 0.5, 1.0, 2.0, 0.1, name="PDR")


class Clock:
    """In the place of the module `time`: the time passes where a test says so."""

    def __init__(self):
        self._now = 0.0

    def monotonic(self):
        return self._now

    def passes(self, seconds):
        self._now += seconds


@pytest.fixture
def testbed():
    testbed = open_testbed(SIMULATED)
    yield testbed
    testbed.close()


@pytest.fixture
def search_result(testbed, tmp_path):
    return find_conditional_throughput(testbed, SearchRequest(goals=(NDR, PDR), profile=PROFILE), place(tmp_path))


def test_the_load_is_that_of_pdr_unless_another_goal_is_named(search_result):
    assert search_result.relevant_load(None)[0] == "PDR"
    name, load = search_result.relevant_load("ndr")
    assert (name, load) == ("NDR", search_result.goals[0].result.relevant_lower_bound.per_interface_fps)
    with pytest.raises(SearchError, match=r"no goal 'MRR'\. Its goals were NDR, PDR"):
        search_result.relevant_load("MRR")


def test_latency_and_telemetry_are_measured_at_the_same_goal(search_result):
    ndr, pdr = search_result.goals
    mine = pdr.model_copy(update={"goal": pdr.goal.model_copy(update={"name": "my pdr"})})
    result = search_result.model_copy(update={"goals": (mine, ndr)})
    assert result.relevant_load(None)[0] == points_of(result)[0].goal == "my pdr"


def test_latency_and_telemetry_belong_to_the_time_of_a_measurement_and_a_pause_before_them_does_not(
    testbed, search_result, tmp_path, monkeypatch
):
    clock = Clock()
    monkeypatch.setattr(measurement, "time", clock)
    points = points_of(search_result, shares=[1.0])
    request = LatencyRequest(profile=PROFILE, points=points, duration=0.1)
    result = add_latency(testbed, request, place(tmp_path), search_result, lambda _: clock.passes(7.0))
    clock.passes(600.0)
    counted = CountedTestbed(search_result, attempts=[1], while_it_measures=lambda: clock.passes(3.0))
    result = add_telemetry(counted, TelemetryRequest(profile=PROFILE, load=1e4), place(tmp_path), result)
    assert result.took_s - search_result.took_s == pytest.approx(2 * 7.0 + 3.0)


def test_a_share_below_the_minimum_load_is_not_called_the_load_that_was_measured(testbed, search_result, tmp_path):
    least, bound = search_result.min_load, search_result.goals[1].result.relevant_lower_bound
    share = round(0.5 * least.per_interface_fps / bound.per_interface_fps, 3)
    points = points_of(search_result, goal="PDR", shares=[1.0, share])
    request = LatencyRequest(profile=PROFILE, points=points, duration=0.1)
    latency = add_latency(testbed, request, place(tmp_path), search_result).latency
    assert [(at_load.load == least, at_load.is_raised) for at_load in latency] == [
        (False, False),
        (True, True),
        (True, False),
    ]
    load = format_frame_rate(least.per_interface_fps)
    assert name_load(latency[1]) == f"{100 * share:g} % of PDR, raised to the minimum load, {load} per interface"
    assert {point.load for point in latency_points(latency[1:])} == {f"{100 * share:g} % of PDR", "minimum load"}


def test_a_trial_of_latency_takes_its_overhead_too(tmp_path):
    request = LatencyRequest(profile=PROFILE, points=(LatencyPoint(5e3),), duration=0.5)
    result = measure_latency(open_testbed(SIMULATED), request, place(tmp_path))
    # The overhead of the topology's generator is 20 ms.
    assert [trial.elapsed_s for trial in result.trials] == [pytest.approx(0.52)]


def test_a_search_that_found_nothing_has_no_load_to_ask_at(testbed, tmp_path):
    request = SearchRequest(goals=(NDR,), profile=PROFILE, min_load=390e3, max_load=400e3)
    nothing = find_conditional_throughput(testbed, request, place(tmp_path))
    with pytest.raises(SearchError, match="NDR has no relevant lower bound"):
        nothing.relevant_load(None)


def test_without_duts_there_is_nobody_to_ask_or_to_reconfigure(testbed, search_result, tmp_path):
    with pytest.raises(DutError, match="no DUT that lossratio can ask"):
        add_telemetry(testbed, TelemetryRequest(profile=PROFILE, load=1e4), place(tmp_path), search_result)
    with pytest.raises(DutError, match="no DUT that lossratio can reconfigure"):
        reconfigure_duts(testbed, 5)


def test_a_reconfiguration_that_cannot_be_measured_is_a_failed_result_beside_that_of_its_search(testbed, tmp_path):
    request = ReconfigurationRequest(profile=PROFILE, reconfigure=lambda: None)
    with pytest.raises(TrafficError, match="no time passes between trials"):
        measure_reconfiguration_loss(testbed, request, place(tmp_path, "reconf"))
    failed = read_result(tmp_path / "results" / "a_suite.reconf.json")
    assert (failed.outcome, failed.loss) == (Outcome.FAILED, None)
    assert len(failed.trials) > 1
    assert read_result(tmp_path / "results" / "a_suite.reconf_search.json").outcome is not Outcome.FAILED


def test_the_goal_before_a_reconfiguration_is_csits():
    goal = RECONFIGURATION_GOAL
    assert (goal.loss_ratio, goal.exceed_ratio, goal.duration_sum, goal.width) == (0.0, 0.0, 11.0, 0.001)


SENT = 1000
LOST = 50
PORT = Port("DUT1", "port0", Interface(link="a-link"))


@dataclass(eq=False)
class CountingDut:
    """A DUT that counts whatever passes it, of whichever attempt."""

    kind = "counting"
    options = DutOptions()
    resets = False
    hop = Hop("DUT1", PORT, PORT)
    passed: int = 0

    def probes(self):
        return ()

    @contextmanager
    def telemetry(self):
        yield {}

    def read_counters(self):
        return DutCounters({"west": self.passed}, {"east": self.passed}, {})


@dataclass
class CountedTestbed:
    """A testbed whose generator needs so many attempts for each trial, and leaves so many frames of other traffic."""

    search_result: object
    attempts: list[int] = field(default_factory=list)
    unsent: int = 0
    dropped: int = 0
    while_it_measures: Callable[[], None] = lambda: None
    dut: CountingDut = field(default_factory=CountingDut)

    @property
    def duts(self):
        return (self.dut,)

    def load_step(self, profile):
        return 0.0

    @contextmanager
    def ready_for(self, profile, settings):
        yield Ready(self, self, self.search_result.conditions)

    def measure(self, trial):
        self.while_it_measures()
        attempts = self.attempts.pop(0)
        self.dut.passed += attempts * SENT
        directions = (DirectionCounters("port0>port1", intended_frames=SENT, sent_frames=SENT, received_frames=SENT),)
        return TrialOutput(0.0, repeats=attempts - 1, directions=directions)

    def start_traffic(self, load):
        pass

    def stop_traffic(self, late_wait):
        sent = SENT - self.unsent
        counters = DirectionCounters(
            "port0>port1", SENT, sent, sent - LOST, unsent_frames=self.unsent, generator_drop_frames=self.dropped
        )
        return Answer((counters,), late_by_direction={"port0>port1": (0,)})


def test_counts_of_discarded_attempts_are_not_taken_for_those_of_the_trial(search_result, tmp_path):
    testbed = CountedTestbed(search_result, attempts=[2, 3, 1])
    result = add_telemetry(
        testbed, TelemetryRequest(profile=PROFILE, load=1e4, duration=0.1), place(tmp_path), search_result
    )
    (trial,) = result.telemetry
    assert (trial.sent_frames, trial.duts[0].received_frames) == (SENT, {"west": SENT})


def test_telemetry_of_a_generator_that_always_falters_is_an_error(search_result, tmp_path):
    testbed = CountedTestbed(search_result, attempts=[2] * 5)
    with pytest.raises(TrafficError, match="In each of 5 attempts, the trial had to be repeated"):
        add_telemetry(testbed, TelemetryRequest(profile=PROFILE, load=1e4), place(tmp_path), search_result)


@pytest.fixture
def reconfigured(testbed, search_result, tmp_path, monkeypatch):
    """Measures a reconfiguration during which a generator leaves frames unsent, or drops them."""
    monkeypatch.setattr("lossratio.measurements.reconfiguration.LEAD", 0.0)

    def measure(max_load=None, **of_the_generator):
        request = ReconfigurationRequest(profile=PROFILE, max_load=max_load, reconfigure=lambda: None)
        searched = find_conditional_throughput(testbed, request, place(tmp_path, "reconf search"))
        monkeypatch.setattr("lossratio.measurements.reconfiguration.find_conditional_throughput", lambda *_: searched)
        counted = CountedTestbed(search_result, **of_the_generator)
        return measure_reconfiguration_loss(counted, request, place(tmp_path, "reconf"))

    return measure


def test_a_reconfiguration_loses_what_was_sent_and_did_not_come_back(reconfigured):
    result = reconfigured()
    assert result.loss.lost_frames == LOST
    assert not any("generator" in remark.text or "irregular" in remark.text for remark in result.remarks)


def test_a_reconfiguration_at_a_load_that_is_no_limit_says_so(reconfigured):
    remarks = [note.text for note in reconfigured(max_load=50e3).remarks]
    assert "the load comes from an irregular search: the maximum load is a lower bound" in remarks


def test_frames_unsent_during_a_reconfiguration_are_reported_beside_its_loss(reconfigured):
    result = reconfigured(unsent=10)
    assert result.loss.lost_frames == LOST
    assert any("left 10 frames unsent during the reconfiguration (1 %)" in remark.text for remark in result.remarks)


def test_frames_that_the_generator_dropped_during_a_reconfiguration_are_reported_beside_its_loss(reconfigured):
    result = reconfigured(dropped=3)
    assert any("dropped 3 frames that came back" in remark.text for remark in result.remarks)


def test_a_reconfiguration_whose_traffic_was_not_sent_is_a_failure(reconfigured, tmp_path):
    with pytest.raises(TrafficError, match=r"could not send 51\. It is not known how many"):
        reconfigured(unsent=51)
    assert read_result(tmp_path / "results" / "a_suite.reconf.json").outcome is Outcome.FAILED
