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
BY_DEFAULT = ("devices", "errors", "faults", "policer", "tester", "topologies")
"""Suites that `make test` runs; `make whole` runs all of them."""
QUIET = ("own_limits",)
"""Suites in which the generator itself is the limit, so that other work decides what they find."""
LONGEST_SUITE = 1800
"""Seconds that a suite may take on a busy machine."""


def cases() -> Iterator[pytest.ParameterSet]:
    """All tests of all suites; those of a suite stay together."""
    for file in sorted(HERE.glob("*.robot")):
        marks = [pytest.mark.quiet] if file.stem in QUIET else [pytest.mark.xdist_group(file.name)]
        marks += [] if file.stem in (*SIMULATED, *QUIET) else [pytest.mark.netns]
        marks += [pytest.mark.smoke] if file.stem in BY_DEFAULT else []
        for test in robot.api.TestSuite.from_file_system(file).tests:
            yield pytest.param(file, test.name, id=f"{file.stem}: {test.name}", marks=marks)


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Callable[[Path], Mapping[str, robot.result.TestCase]]:
    """Runs the chosen tests of a suite when the first of them is asked for; what became of each, by name."""
    chosen: dict[Path, list[str]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.path == request.path:
            case = item.callspec.params
            chosen.setdefault(case["suite"], []).append(case["name"])

    def outcome(suite: Path) -> Mapping[str, robot.result.TestCase]:
        options = [option for name in chosen[suite] for option in ("--test", name)]
        return run(suite, RESULTS / suite.stem, *options)

    return cache(outcome)


def run(suite: Path, output: Path, *options: str) -> Mapping[str, robot.result.TestCase]:
    """Runs tests of a suite; what became of each, by name."""
    command = [sys.executable, "-m", "robot", "--outputdir", str(output), "--consolewidth", "110", *options, str(suite)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    assert done.returncode < 250, done.stdout
    return {test.name: test for test in robot.api.ExecutionResult(output / "output.xml").suite.all_tests}


@pytest.mark.whole
@pytest.mark.acceptance
@pytest.mark.timeout(LONGEST_SUITE)
@pytest.mark.parametrize(("suite", "name"), list(cases()))
def test_the_suite_s_test_passes(outcomes, request, suite, name):
    attempt, output = getattr(request.node, "execution_count", 1), RESULTS / suite.stem
    if attempt > 1:
        # Alone; what the first attempt wrote stays.
        output = RESULTS / f"{suite.stem}-{attempt}"
        test = run(suite, output, "--test", name)[name]
    else:
        test = outcomes(suite)[name]
    if test.skipped:
        pytest.skip(test.message)
    assert test.passed, f"{test.message}\nSee {output / 'log.html'}."
