"""Whether a testbed is fit tonight, with real frames over a cable."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from runner_examples import ROOT, SIMULATED

from lossratio.commands.run import run
from lossratio.errors import JobError, NodeError
from lossratio.runs import assignments
from lossratio.runs.job import load_job
from lossratio.testbed.inspection import NodeReport
from lossratio.trials.trial_output import TrialOutput

SUITE = """*** Settings ***
Library    lossratio.keywords.LossRatio
Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
Suite Teardown    Tear Down Testbed
*** Test Cases ***
Receive Rate
    Measure MRR    64B    trials=1
"""


def write_job(directory, load, cable):
    (directory / "suite.robot").write_text(SUITE)
    (directory / "lab.yaml").write_text(SIMULATED.read_text())
    text = (ROOT / "topologies" / "local-cable.yaml").read_text().replace("name: local-cable", "name: fitness-cable")
    (directory / "cable.yaml").write_text(text)
    job = directory / "job.yaml"
    job.write_text(
        "format: lossratio-job/1\nname: nightly\ntopologies: [lab.yaml]\ntests: [{suites: [suite.robot]}]\n"
        f"self_test: {{load: {load}, trials: 1, topologies: {{simulated: {cable}}}}}\n"
    )
    return job


def invoke(job):
    options = ["--", "--outputdir", str(job.parent / "out"), "--console", "quiet"]
    return CliRunner().invoke(run, ["--job", str(job), *options], catch_exceptions=False)


@pytest.mark.netns
@pytest.mark.usefixtures("netns_lab")
def test_a_fit_tester_lets_the_night_begin(tmp_path):
    result = invoke(write_job(tmp_path, "100 fps", "cable.yaml"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "results").is_dir()


@pytest.mark.netns
@pytest.mark.usefixtures("netns_lab")
def test_an_unfit_tester_is_infrastructure_that_failed_before_anything_was_measured(tmp_path, monkeypatch):
    # It sends as fast as it can, and keeps the machine from other tests.
    monkeypatch.setattr(assignments, "_TRIAL_SECONDS", 0.1)
    result = invoke(write_job(tmp_path, "100 Mfps", "cable.yaml"))
    assert result.exit_code == 69
    assert (
        "The traffic generator of testbed simulated is too slow: at 100.00 Mfps per interface over a cable"
        in result.output
    )
    assert not (tmp_path / "out" / "results").exists()


@pytest.mark.whole
def test_a_simulated_tester_needs_no_test(tmp_path):
    result = invoke(write_job(tmp_path, "100 Gfps", "lab.yaml"))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("load", "cable", "place"), [("fast", "cable.yaml", "load"), ("1 kfps", "no.yaml", "no file")])
def test_a_demand_that_makes_no_sense_is_an_error_with_its_place(tmp_path, load, cable, place):
    with pytest.raises(JobError, match=rf"job\.yaml:5.*{place}"):
        load_job(write_job(tmp_path, load, cable))


@pytest.mark.parametrize(
    ("unsent", "lost", "fault"), [(99, 0, "other work on its machine"), (0, 1, "faults of the cable")]
)
def test_a_tester_that_is_not_fit_is_looked_at_where_the_fault_is(tmp_path, monkeypatch, unsent, lost, fault):
    output = TrialOutput(0.5, sent_frames=100, lost_frames=lost, unsent_frames=unsent)
    ready = SimpleNamespace(measurer=SimpleNamespace(measure=lambda trial: output))
    opened = SimpleNamespace(ready_for=lambda profile: nullcontext(ready), load_step=lambda profile: 0.0)
    monkeypatch.setattr(assignments, "open_testbed", lambda *args, **kwargs: nullcontext(opened))
    job = load_job(write_job(tmp_path, "100 fps", "cable.yaml"))
    (testbed,) = job.testbeds
    with pytest.raises(assignments.UnfitTesterError, match=rf"Look for {fault}\.$"):
        assignments.check_tester(job, testbed, job.file.self_test)


LAB = """format: lossratio-topology/1
name: lab
reservation: null
nodes:
  TG:
    type: TG
    host: 192.0.2.1
    generator: {kind: afpacket}
    interfaces: {west: {name: eth1, link: west}, east: {name: eth2, link: east}}
  DUT1:
    type: DUT
    host: 192.0.2.2
    interfaces: {west: {name: eth1, link: west}, east: {name: eth9, link: east}}
"""


def test_a_problem_that_keeps_a_run_from_its_testbed_names_the_node(tmp_path, monkeypatch):
    (tmp_path / "suite.robot").write_text(SUITE)
    (tmp_path / "lab.yaml").write_text(LAB)
    reports = (
        NodeReport("TG", None, {}, (str(NodeError("Node TG: it does not answer")),)),
        NodeReport("DUT1", None, {}, ("port east: there is no interface 'eth9'",)),
    )
    monkeypatch.setattr(sys.modules["lossratio.runs.run"], "inspect_nodes", lambda topology: reports)
    arguments = ["--topology", str(tmp_path / "lab.yaml"), str(tmp_path / "suite.robot")]
    result = CliRunner().invoke(run, arguments, catch_exceptions=False)
    assert "TG: it does not answer\nDUT1: port east: there is no interface 'eth9'\n" in result.output
    assert result.exit_code == 69
