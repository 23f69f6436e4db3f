"""Telemetry and reconfiguration need DUTs of ours, and a search that found a load."""

from __future__ import annotations

import pytest
from bench_examples import PROFILE, SIMULATED, place

from lossratio.bench.opening import open_testbed
from lossratio.bench.reconfiguration import (
    RECONFIGURATION_GOAL,
    ReconfigurationRequest,
    measure_reconfiguration_loss,
    reconfigure_duts,
)
from lossratio.bench.search import SearchRequest, find_conditional_throughput
from lossratio.bench.telemetry import TelemetryRequest, add_telemetry, relevant_load
from lossratio.errors import DutError, SearchError, TrafficError
from lossratio.mlrsearch import SearchGoal
from lossratio.report.model import Outcome
from lossratio.report.run_directory import read_result

NDR = SearchGoal(0.0, 0.5, 1.0, 2.0, 0.1, name="NDR")
PDR = SearchGoal(0.005, 0.5, 1.0, 2.0, 0.1, name="PDR")


@pytest.fixture
def testbed():
    testbed = open_testbed(SIMULATED)
    yield testbed
    testbed.close()


@pytest.fixture
def found(testbed, tmp_path):
    return find_conditional_throughput(testbed, SearchRequest((NDR, PDR), PROFILE), place(tmp_path))


def test_the_load_is_that_of_pdr_unless_another_goal_is_named(found):
    assert relevant_load(found, None)[0] == "PDR"
    name, load = relevant_load(found, "ndr")
    assert (name, load) == ("NDR", found.goals[0].result.relevant_lower_bound.per_interface_fps)
    with pytest.raises(SearchError, match="no goal 'MRR'; it had NDR, PDR"):
        relevant_load(found, "MRR")


def test_a_search_that_found_nothing_has_no_load_to_ask_at(testbed, tmp_path):
    request = SearchRequest((NDR,), PROFILE, min_load=390e3, max_load=400e3)
    nothing = find_conditional_throughput(testbed, request, place(tmp_path))
    with pytest.raises(SearchError, match="NDR has no relevant lower bound"):
        relevant_load(nothing, None)


def test_without_duts_there_is_nobody_to_ask_or_to_reconfigure(testbed, found, tmp_path):
    with pytest.raises(DutError, match="no DUT of ours to ask"):
        add_telemetry(testbed, TelemetryRequest(PROFILE, 1e4), place(tmp_path), found)
    with pytest.raises(DutError, match="no DUT of ours to reconfigure"):
        reconfigure_duts(testbed, 5)


def test_a_reconfiguration_that_cannot_be_measured_is_a_failed_result_beside_that_of_its_search(testbed, tmp_path):
    request = ReconfigurationRequest(SearchRequest((RECONFIGURATION_GOAL,), PROFILE), lambda: None)
    with pytest.raises(TrafficError, match="no time passes between trials"):
        measure_reconfiguration_loss(testbed, request, place(tmp_path, "reconf"))
    failed = read_result(tmp_path / "results" / "a_suite.reconf.json")
    assert (failed.outcome, failed.loss) == (Outcome.FAILED, None)
    assert len(failed.trials) > 1
    assert read_result(tmp_path / "results" / "a_suite.reconf_search.json").outcome is not Outcome.FAILED


def test_the_goal_before_a_reconfiguration_is_csits():
    goal = RECONFIGURATION_GOAL
    assert (goal.loss_ratio, goal.exceed_ratio, goal.duration_sum, goal.width) == (0.0, 0.0, 11.0, 0.001)
