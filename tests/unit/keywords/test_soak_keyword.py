from __future__ import annotations

import re
from itertools import count

import pytest
from robot_runs import run_suite, write_suite

from lossratio.results.run_directory import RunDirectory
from lossratio.simulation import SimulatedMeasurer

ON_THE_MODEL = """
Suite Setup       Set Up Testbed    ${TOPOLOGY}
Suite Teardown    Tear Down Testbed
"""
SOAK_TESTS = """
Soak
    ${found}    Find Critical Load    64B    bidirectional=False    timeout=60 s    target_loss_ratio=0.001 %
    Should Be Equal As Numbers    ${found.target_loss_ratio}    0.00001
After A Search
    Find Conditional Throughput    QUICK_NDR    frame_size=64B
    Find Critical Load    64B    timeout=10 s    warm_start=True
At Least
    Find Critical Load    64B    bidirectional=False    timeout=10 s    max_load=60 kpps
Wrong Ratio
    Find Critical Load    64B    target_loss_ratio=lots
Confirmed
    ${found}    Confirm Critical Load    50 kfps    loss_ratio=1e-5    trial_duration=1 s    batch=1
    Should Be Equal    ${found.statement.verdict}    verified
No Search Before
    Find Critical Load    1518B    warm_start=True
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_suite(write_suite(tmp_path_factory.mktemp("soak"), SOAK_TESTS, ON_THE_MODEL))


def test_the_log_has_the_verified_and_the_contradicted_load(run):
    assert run.tests["Soak"].status == "PASS"
    logged = run.logged["Soak"]
    assert "critical load (loss ratio 1e-5 in trials of 2 s and 5 s): regular, verified also in" in logged
    assert re.search(r"highest verified load +1[45]\d,\d{3} fps per interface", logged)
    assert re.search(r"contradicted load +15\d,\d{3} fps per interface", logged)
    assert "the search ended" in logged


def test_the_log_has_the_picture(run):
    assert any("load of the trials over time" in message for message in run.messages)


def test_a_soak_after_a_search_begins_where_that_ended(run):
    assert run.tests["After A Search"].status == "PASS"
    results = {result.test.name: result for result in RunDirectory(run.directory).results()}
    assert results["After A Search (2)"].settings["warm_start_per_interface_fps"]


def test_an_irregular_result_is_a_warning_and_no_failure(run):
    assert run.tests["At Least"].status == "PASS"
    warning = "At Least: critical load is irregular: the maximum load does not lose the target"
    assert any(warning in error for error in run.errors)


def test_a_load_is_confirmed_and_how_many_frames_that_takes_is_said_before(run):
    assert run.tests["Confirmed"].status == "PASS"
    assert any("1e-5 at 50.000 kfps, if frames are lost one by one, takes" in message for message in run.messages)


def test_a_wrong_argument_is_refused_before_anything_is_measured(run):
    assert run.tests["Wrong Ratio"].status == "FAIL"
    assert "'lots' is not a ratio" in run.tests["Wrong Ratio"].message


def test_a_warm_start_from_other_traffic_is_refused(run):
    assert "cannot start from it" in run.tests["No Search Before"].message


@pytest.mark.whole
@pytest.mark.parametrize(
    ("slow", "status", "aside"), [({5}, "PASS", [3]), (range(1, 99), "FAIL", [1, 2, 3, 4])], ids=["once", "always"]
)
def test_trials_of_a_confirmation_that_were_not_sent_are_replaced_or_an_error(
    tmp_path, monkeypatch, slow, status, aside
):
    counters, calls = SimulatedMeasurer._counters, count(1)

    def slowed(self, number, intended, sent, lost, elapsed):
        return counters(self, number, intended, sent - sent // 20 * (next(calls) in slow), lost, elapsed)

    monkeypatch.setattr(SimulatedMeasurer, "_counters", slowed)
    tests = "Confirmed\n    Confirm Critical Load    50 kfps    loss_ratio=1e-5    trial_duration=1 s    batch=1\n"
    run = run_suite(write_suite(tmp_path, tests, ON_THE_MODEL))
    test, result = run.tests["Confirmed"], RunDirectory(run.directory).results()[0]
    assert (test.status, [trial.number for trial in result.trials if trial.set_aside]) == (status, aside)
    assert len(result.trials) == (25 if status == "PASS" else 4)
    said = "verified: 0 of 2,400,000" if status == "PASS" else "the generator could not send 5,000 of 100,000 frames"
    assert said in " ".join((test.message if test.failed else run.logged["Confirmed"]).split())
