from __future__ import annotations

import pytest
from click.testing import CliRunner
from runner_examples import SIMULATED

from lossratio.commands.run import run
from lossratio.results.run_directory import RunDirectory

SUITE = """*** Settings ***
Metadata         Frame Sizes    64B 1518B
Resource         lossratio/resources/performance.resource
Suite Setup      Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
Suite Teardown   Tear Down Testbed
Test Tags        ${FRAME_SIZE}

*** Test Cases ***
${FRAME_SIZE}-mrr
    [Tags]    mrr
    Measure MRR    ${FRAME_SIZE}    trials=1
${FRAME_SIZE}-ndrpdr
    [Tags]    ndrpdr
    Find NDR And PDR    ${FRAME_SIZE}
"""
JOB = """format: lossratio-job/1
name: nightly
topologies: [lab.yaml]
variables: {GOALS: quick}
tests:
- {suites: [bridge.robot], include: [mrr], frame_sizes: [64B, IMIX]}
- {suites: [bridge.robot], include: [ndrpdrAND64b]}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a job, its suite and its simulated testbed; state and cache of the user are in there, too."""
    (tmp_path / "bridge.robot").write_text(SUITE)
    (tmp_path / "lab.yaml").write_text(SIMULATED.read_text())
    (tmp_path / "nightly.yaml").write_text(JOB)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def invoke(place, *arguments):
    given = [*arguments, "--", "--outputdir", str(place / "out"), "--console", "quiet"]
    return CliRunner().invoke(run, given, catch_exceptions=False)


def names(place):
    return [result.test.name for result in RunDirectory(place / "out").results()]


@pytest.mark.whole
def test_a_job_is_run_with_its_suites_sizes_tags_and_variables(place):
    result = invoke(place, "--job", str(place / "nightly.yaml"))
    assert result.exit_code == 0, result.output
    assert names(place) == ["64B-mrr", "IMIX-mrr", "64B-ndrpdr"]
    search = RunDirectory(place / "out").results()[-1]
    assert [report.goal.name for report in search.goals] == ["QUICK_NDR", "QUICK_PDR"]


@pytest.mark.whole
def test_suites_are_expanded_without_a_job_too(place):
    result = invoke(place, "--topology", str(place / "lab.yaml"), "--include", "mrr", str(place / "bridge.robot"))
    assert result.exit_code == 0, result.output
    assert names(place) == ["64B-mrr", "1518B-mrr"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--job", "nightly.yaml", "bridge.robot"], "leave out other suites"),
        (["--job", "missing.yaml"], "Cannot read"),
        (["--job", "typo.yaml"], "selects no test"),
        (["bridge.robot"], "Name the testbed"),
        (["--topology", "lab.yaml"], "Name the suites to run"),
    ],
)
def test_options_that_make_no_sense_are_bad_input(place, arguments, message):
    (place / "typo.yaml").write_text(JOB.replace("[mrr]", "[mmr]"))
    files = [str(place / argument) if argument.endswith((".yaml", ".robot")) else argument for argument in arguments]
    result = invoke(place, *files)
    assert result.exit_code == 2
    assert message in result.output
