"""What a suite's user makes of a device that duplicates frames."""

import pytest
from robot_runs import SIMULATED, run_suite, write_suite

from lossratio.exit_status import FailureKind
from lossratio.runs.verdicts import failure_kind
from lossratio.trials.counters import IntegrityError

SUITE = """
Doubted
    Measure MRR    64B    trials=1    max_load=20 kfps

Failed
    Measure MRR    64B    trials=1    max_load=20 kfps    integrity=fail

Not Looked At
    Measure MRR    64B    trials=1    max_load=20 kfps    integrity=off

Misspelt
    Measure MRR    64B    trials=1    max_load=20 kfps    integrity=strict
"""
SETTINGS = """
Suite Setup       Set Up Testbed    ${TOPOLOGY}
Suite Teardown    Tear Down Testbed
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("robot")
    lab = directory / "lab.yaml"
    lab.write_text(SIMULATED.read_text().replace("sut: {", "sut: {faults: {duplicated: 1 %}, "))
    return run_suite(write_suite(directory, SUITE, SETTINGS), TOPOLOGY=lab)


def test_such_a_device_passes_with_a_warning_and_its_size_unless_the_test_says_otherwise(run):
    assert run.tests["Doubted"].passed
    assert "none of these count as received" in " ".join(run.tests["Doubted"].message.split())
    assert any("Suite.Doubted: doubt: frame integrity: of " in message for message in run.errors)
    assert run.tests["Not Looked At"].passed
    assert "duplicated" not in run.tests["Not Looked At"].message


def test_it_fails_the_test_as_a_fault_of_the_device_where_that_is_asked_for(run):
    failed = run.tests["Failed"]
    assert failed.message.startswith("IntegrityError: Frames came back more than once, at 20.000 kfps for 1 s")
    assert failure_kind(IntegrityError("changed")) is FailureKind.TEST


def test_a_misspelt_value_is_refused_with_those_that_there_are(run):
    message = run.tests["Misspelt"].message
    assert all(value in message for value in ("'strict'", "doubt", "fail", "off"))
