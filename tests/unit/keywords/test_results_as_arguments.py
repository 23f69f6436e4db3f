"""A check takes the result that a keyword returned, and a run says what doubts mean."""

from __future__ import annotations

import pytest
from robot_runs import run_suite, write_suite

SETTINGS = """
Suite Setup       Set Up Testbed    simulated    dut=linux_bridge    police=50 kfps
Suite Teardown    Tear Down Testbed
"""
CHECKS = """First Of Two
    ${small} =    Find NDR And PDR    64B    goals=quick    max_load=20 kfps
    ${large} =    Find NDR And PDR    64B    goals=quick
    Throughput Should Be At Least    30 kpps
    Throughput Should Be At Least    30 kpps    result=${large}
    Throughput Should Be At Least    15 kpps    goal=QUICK_PDR    result=${small}
    Throughput Should Be At Least    30 kpps    result=${small}
No Result
    Throughput Should Be At Least    30 kpps    result=NDR
Result Of Something Else
    ${mrr} =    Measure MRR    64B    trials=1
    Throughput Should Be At Least    30 kpps    result=${mrr}
Demands Of An MRR
    ${low} =    Measure MRR    64B    trials=1    max_load=20 kpps
    Measure MRR    64B    trials=1    max_load=200 kpps
    Find NDR And PDR    64B    goals=quick
    MRR Should Be At Least    50 kpps
    MRR Should Be At Least    20 kpps    result=${low}
    MRR Should Be At Least    60 kpps
"""
DOUBTED = "Doubted\n    Measure MRR    64B    trials=1    max_load=500 kfps\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_suite(write_suite(tmp_path_factory.mktemp("checks"), CHECKS, SETTINGS))


def test_a_check_is_of_the_result_that_it_is_given(run):
    failed = run.tests["First Of Two"].message
    assert "QUICK_NDR is 20,000 fps per interface" in failed
    assert "it should be at least 30,000 fps" in failed


def test_what_is_no_result_is_refused_with_the_way_to_get_one(run):
    message = run.tests["No Result"].message
    assert "'NDR' is not a result. Give what a keyword returned: ${ndr} =" in message
    assert "has no conditional throughput" in run.tests["Result Of Something Else"].message


def test_an_mrr_has_a_demand_of_its_own(run):
    assert (
        run.tests["Demands Of An MRR"].message
        == "MRR is 51,000 fps per interface; it should be at least 60,000 fps per interface."
    )


@pytest.mark.whole
@pytest.mark.parametrize(("policy", "status"), [("warn", 0), ("fail", 1)])
def test_a_run_says_what_doubts_mean_to_a_suite_of_any_import(lossratio, tmp_path, policy, status):
    suite = tmp_path / "own.robot"
    suite.write_text(f"*** Settings ***\nLibrary    LossRatio{SETTINGS}\n*** Test Cases ***\n{DOUBTED}")
    done = lossratio("run", "--topology", "simulated", "--doubts", policy, suite)
    assert done.status == status, done
    assert ("DoubtError: There is a doubt about what was measured: unsent frames" in done.out) is (status == 1)
