"""The how-to's suite, executed as it stands: a real firewall in a namespace, and real frames."""

from __future__ import annotations

import re

import pytest
from examples import examples_in
from local_testbeds import local_topology, needs_testbed, own_state
from robot_runs import ROOT, run_suite

from lossratio.results import findings_of
from lossratio.results.run_directory import RunDirectory

TEXT = (ROOT / "docs" / "how-to" / "measure-a-firewall.md").read_text()

GOALS = """format: lossratio-goals/1
goals:
  brief: {loss_ratio: 0, final_trial_duration: 0.5 s, duration_sum: 0.5 s, width: 2 %}
"""
WITH_GOALS_OF_THE_RUN = """
Goals Of The Run
    Find Connection Rate    frame_size=100B    max_load=20 kcps    goals=${GOALS}
"""


@pytest.mark.netns
@pytest.mark.quiet
@needs_testbed
def test_its_suite_finds_the_rate_of_the_firewall_that_it_sets_up(tmp_path):
    (suite,) = examples_in(TEXT, "robotframework")
    file = tmp_path / "firewall.robot"
    file.write_text(suite + WITH_GOALS_OF_THE_RUN)
    goals = tmp_path / "goals.yaml"
    goals.write_text(GOALS)
    with own_state():
        run = run_suite(file, TOPOLOGY=local_topology(tmp_path, "firewall"), GOALS=goals)
    assert {test.status for test in run.tests.values()} == {"PASS"}, [test.message for test in run.tests.values()]
    results = {result.test.name: result for result in RunDirectory(run.directory).results()}
    (finding,) = findings_of([results["Connection Rate"]])
    (stated,) = re.findall(r"finds (\d+) connections/s", TEXT)
    assert finding.value == pytest.approx(float(stated), rel=0.04)
    assert "connections/s" in run.tests["Connection Rate"].message
    (finding,) = findings_of([results["Goals Of The Run"]])
    assert (finding.quantity, finding.value) == ("brief", pytest.approx(float(stated), rel=0.04))
    generator = results["Rate With Connections"].conditions.generator
    assert f"frames of {generator['connections']['established_before_each_trial']} connections." in TEXT
    page = (run.directory / "lossratio.html").read_text()
    assert "connections/s" in page
