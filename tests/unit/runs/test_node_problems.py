"""A run whose nodes cannot be used says so before its first test."""

from __future__ import annotations

import sys

from click.testing import CliRunner

from lossratio.commands.run import run
from lossratio.errors import NodeError
from lossratio.testbed.inspection import NodeReport

SUITE = """*** Settings ***
Library    lossratio.keywords.LossRatio
Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
Suite Teardown    Tear Down Testbed
*** Test Cases ***
Receive Rate
    Measure MRR    64B    trials=1
"""
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
