"""The how-to's suite, executed as it stands: a real firewall in a namespace, and real frames."""

from __future__ import annotations

import re

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from robot_runs import ROOT, run_suite

from lossratio.results import findings_of
from lossratio.results.run_directory import RunDirectory

TEXT = (ROOT / "docs" / "how-to" / "measure-a-firewall.md").read_text()


@pytest.mark.netns
@needs_testbed
def test_its_suite_finds_the_rate_of_the_firewall_that_it_sets_up(tmp_path):
    (suite,) = re.findall(r"^```robotframework\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    file = tmp_path / "firewall.robot"
    file.write_text(suite)
    with own_state():
        run = run_suite(file, TOPOLOGY=local_topology(tmp_path, "firewall"))
    assert {test.status for test in run.tests.values()} == {"PASS"}, [test.message for test in run.tests.values()]
    results = {result.test.name: result for result in RunDirectory(run.directory).results()}
    (finding,) = findings_of([results["Connection Rate"]])
    (stated,) = re.findall(r"finds (\d+) connections/s", TEXT)
    assert finding.value == pytest.approx(float(stated), rel=0.04)
    assert "connections/s" in run.tests["Connection Rate"].message
    generator = results["Rate With Connections"].conditions.generator
    assert f"{generator['connections']['established_before_each_trial']} connections, all of them" in TEXT
    page = (run.directory / "lossratio.html").read_text()
    assert "connections/s" in page
