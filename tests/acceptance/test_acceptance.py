"""Runs the suites of this directory, each in a process of its own; their logs are in `results/acceptance`.

``robot tests/acceptance`` runs them, too, one after the other.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import robot.api
import robot.result

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "results" / "acceptance"
SIMULATED = ("errors",)
"""Suites that need no network namespaces."""
LONGEST_SUITE = 1800
"""Seconds that a suite may take on a busy machine."""


def cases() -> Iterator[pytest.ParameterSet]:
    """All tests of all suites; those of a suite stay together."""
    for file in sorted(HERE.glob("*.robot")):
        marks = [pytest.mark.xdist_group(file.name), *([] if file.stem in SIMULATED else [pytest.mark.netns])]
        for test in robot.api.TestSuite.from_file_system(file).tests:
            yield pytest.param(file, test.name, id=f"{file.stem}: {test.name}", marks=marks)


@pytest.fixture(scope="module")
def outcomes() -> Callable[[Path], Mapping[str, robot.result.TestCase]]:
    """Runs a suite when the first of its tests is asked for; what became of each test, by name."""

    @cache
    def run(suite: Path) -> Mapping[str, robot.result.TestCase]:
        output = RESULTS / suite.stem
        command = [sys.executable, "-m", "robot", "--outputdir", str(output), "--consolewidth", "110", str(suite)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout)
        assert done.returncode < 250, done.stdout
        return {test.name: test for test in robot.api.ExecutionResult(output / "output.xml").suite.all_tests}

    return run


@pytest.mark.acceptance
@pytest.mark.timeout(LONGEST_SUITE)
@pytest.mark.parametrize(("suite", "name"), cases())
def test_the_suite_s_test_passes(outcomes, suite, name):
    test = outcomes(suite)[name]
    if test.skipped:
        pytest.skip(test.message)
    assert test.passed, f"{test.message}\nSee {RESULTS / suite.stem / 'log.html'}."
