"""The suites that users run: short, and clean for every topology."""

from __future__ import annotations

import io

import pytest
import robot
from robot_runs import ROOT

SUITES = sorted((ROOT / "tests" / "performance").glob("*.robot"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.stem)
def test_a_suite_takes_thirty_lines_at_most(suite):
    assert sum(bool(line.strip()) for line in suite.read_text().splitlines()) <= 30


@pytest.mark.parametrize("topology", ["local", "simulated"])
def test_every_suite_is_clean_for_every_topology(topology):
    console = io.StringIO()
    status = robot.run(
        *map(str, SUITES),
        dryrun=True,
        output=None,
        variable=[f"TOPOLOGY:{ROOT}/topologies/{topology}.yaml"],
        pythonpath=[str(ROOT / "libraries")],
        stdout=console,
        stderr=console,
    )
    assert status == 0, console.getvalue()
    assert "[ WARN ]" not in console.getvalue()
