"""Doubts about results as Robot Framework's users meet them: a warning and a tag each, or a failed test.

Among them is what a user makes of a device that duplicates frames.
"""

from __future__ import annotations

import pytest
from robot_runs import SIMULATED, run_suite, write_suite

from lossratio.report import read_run
from lossratio.runs.verdicts import failure_kind
from lossratio.trials.counters import IntegrityError
from lossratio.values.exit_status import FailureKind

SUITE = """
Doubted
    Measure MRR    64B    trials=1    max_load=500 kfps
    Measure MRR    64B    trials=1    max_load=500 kfps

Certain
    Measure MRR    64B    trials=1    max_load=300 kfps    integrity=off

Failed
    Measure MRR    64B    trials=1    max_load=500 kfps    doubts=fail

Certain Enough
    Measure MRR    64B    trials=1    max_load=300 kfps    integrity=off    doubts=fail

Searched
    Find NDR And PDR    64B    max_load=100 kfps    latency=on    doubts=fail

Misspelt
    Measure MRR    64B    doubts=strict

Copies Fail
    Measure MRR    64B    trials=1    max_load=20 kfps    integrity=fail

Misspelt Integrity
    Measure MRR    64B    trials=1    max_load=20 kfps    integrity=strict
"""
SETTINGS = """
Suite Setup       Set Up Testbed    ${TOPOLOGY}
Suite Teardown    Tear Down Testbed
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """On a generator that sends 400 kfps, and a device that duplicates frames."""
    directory = tmp_path_factory.mktemp("robot")
    lab = directory / "lab.yaml"
    lab.write_text(SIMULATED.read_text().replace("sut: {", "sut: {faults: {duplicated: 1 %}, "))
    return run_suite(write_suite(directory, SUITE, SETTINGS), TOPOLOGY=lab, GOALS="quick")


def warnings_of(run, test):
    beginnings = (f"Suite.{test}: doubt: ", f"Suite.{test} (2): doubt: ")
    return [message for message in run.errors if message.startswith(beginnings)]


def tags_of(run, test):
    return sorted(tag for tag in run.tests[test].tags if tag.startswith("doubt"))


def test_each_doubt_is_one_warning_and_one_tag_and_the_test_passes(run):
    assert run.tests["Doubted"].passed
    assert "none of these count as received" in " ".join(run.tests["Doubted"].message.split())
    assert tags_of(run, "Doubted") == ["doubt-frame-integrity", "doubt-unsent-frames"]
    warnings = [message.partition(" of ")[0] for message in warnings_of(run, "Doubted")]
    assert sorted(message.partition(" the generator left")[0] for message in warnings) == [
        "Suite.Doubted (2): doubt: frame integrity:",
        "Suite.Doubted (2): doubt: unsent frames:",
        "Suite.Doubted: doubt: frame integrity:",
        "Suite.Doubted: doubt: unsent frames:",
    ]


def test_the_tag_of_a_doubt_is_no_part_of_what_the_test_is(run):
    tags = {result.test.name: result.test.tags for result in read_run(run.directory).results}
    assert (tags["Doubted"], tags["Doubted (2)"]) == ((), ())


def test_without_a_doubt_there_is_nothing(run):
    assert run.tests["Certain"].passed
    assert run.tests["Certain Enough"].passed
    assert "duplicated" not in run.tests["Certain"].message
    assert warnings_of(run, "Certain") == tags_of(run, "Certain") == tags_of(run, "Certain Enough") == []


def test_doubts_fail_the_test_where_that_is_asked_for_and_the_result_is_kept(run):
    failed = run.tests["Failed"]
    assert failed.failed
    assert failed.message.startswith("DoubtError: There are 2 doubts about what was measured: unsent frames: ")
    assert tags_of(run, "Failed") == ["doubt-frame-integrity", "doubt-unsent-frames"]
    assert "Failed" in [result.test.name for result in read_run(run.directory).results]


def test_doubts_about_a_search_are_said_once_and_judged_when_all_is_measured(run):
    searched = run.tests["Searched"]
    assert searched.message.startswith("DoubtError: There is a doubt about what was measured: frame integrity: ")
    assert len(warnings_of(run, "Searched")) == 1
    (result,) = (result for result in read_run(run.directory).results if result.test.name == "Searched")
    assert result.latency


def test_a_misspelt_policy_is_refused_with_those_that_there_are(run):
    assert all(value in run.tests["Misspelt"].message for value in ("'strict'", "fail", "warn"))


def test_copies_fail_the_test_as_a_fault_of_the_device_where_that_is_asked_for(run):
    message = run.tests["Copies Fail"].message
    assert message.startswith("IntegrityError: Frames came back more than once, at 20.000 kfps for 1 s")
    assert failure_kind(IntegrityError("changed")) is FailureKind.TEST


def test_a_misspelt_integrity_is_refused_with_the_values_that_there_are(run):
    message = run.tests["Misspelt Integrity"].message
    assert all(value in message for value in ("'strict'", "doubt", "fail", "off"))


@pytest.mark.whole
def test_a_variable_is_the_policy_of_all_tests(tmp_path):
    suite = write_suite(tmp_path, "Doubted\n    Measure MRR    64B    trials=1    max_load=500 kfps\n", SETTINGS)
    failed = run_suite(suite, "fail", DOUBTS="fail").tests["Doubted"]
    assert failed.message.startswith("DoubtError: There is a doubt about what was measured: unsent frames: ")
    misspelt = run_suite(suite, "misspelt", DOUBTS="fial").tests["Doubted"]
    assert "The policy for doubts: must be warn or fail, not 'fial'. Did you mean 'fail'?" in misspelt.message
