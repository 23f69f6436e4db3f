"""A build on a testbed: a command of the user sets it up, and suites measure it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lossratio.errors import BuildError
from lossratio.exit_status import ExitStatus
from lossratio.results import (
    Finding,
    Outcome,
    RunDirectory,
    caveats_of,
    findings_of,
    is_at_limit,
    is_too_slow,
    number_of,
)
from lossratio.runs import RunOutcome, RunRequest, run
from lossratio.units import FRAMES_PER_SECOND

SKIP = 125
"""Exit status of a set-up command whose revision cannot be measured, as with ``git bisect run``."""

_LINES = 20

Values = Mapping[str, float]
RunSuites = Callable[[RunRequest], RunOutcome]


@dataclass(frozen=True)
class BuildBench:
    """Measures builds.

    Attributes:
        request: The run of one measurement; each has its own output directory.
        quantity: Only this quantity (e.g. ``NDR``); None: all.
        warn: Called with a line of text for each doubt about a value.
        run_suites: Runs suites.
    """

    request: RunRequest
    quantity: str | None = None
    warn: Callable[[str], None] = lambda caveat: None
    run_suites: RunSuites = run

    def measure(self, directory: Path) -> Values:
        """Measures the build that is set up.

        Returns:
            Aggregate throughput in frames per second, by ``<full name> <quantity>`` of tests; 0 where the minimum
            load was too much. Quantities without a single value (latencies) and in other units are left out.

        Raises:
            BuildError: If the run or a measurement failed, a search was not finished, or nothing was measured; with the
                exit status for it.
        """
        options = (*self.request.robot_options, "--outputdir", str(directory), "--console", "dotted")
        outcome = self.run_suites(replace(self.request, robot_options=options))
        # A demand that was not met is a verdict about the build, whose throughput was measured.
        if outcome.status not in (ExitStatus.PASSED, ExitStatus.FAILED, ExitStatus.REGRESSION):
            reason = outcome.error or f"see {directory}"
            raise BuildError(f"The run failed with exit status {int(outcome.status)}: {reason}.", outcome.status)
        values = self._values(directory)
        if not values:
            raise BuildError(f"The run measured nothing{self._asked}: see {directory}.", ExitStatus.FAILED)
        return values

    @property
    def _asked(self) -> str:
        return "" if self.quantity is None else f" called {self.quantity}"

    def _values(self, directory: Path) -> Values:
        results = RunDirectory(directory)
        findings = findings_of(results.results() if results.has_files else ())
        rates = [finding for finding in findings if finding.has_value and finding.unit == FRAMES_PER_SECOND]
        chosen = [finding for finding in rates if self.quantity in (None, finding.quantity)]
        return {_name(finding): self._value(finding, directory) for finding in chosen}

    def _value(self, finding: Finding, directory: Path) -> float:
        """The value of a finding: how fast the build is."""
        name = _name(finding)
        if is_too_slow(finding):
            return 0.0
        value = number_of(finding.value)
        if value is None or not (finding.outcome is Outcome.MEASURED or is_at_limit(finding)):
            reason = f"{finding.outcome.value}: {finding.reason}"
            raise BuildError(f"{name} has no value to compare: {reason}; see {directory}.", ExitStatus.FAILED)
        for caveat in caveats_of(finding):
            self.warn(f"{name}: {caveat}")
        return value


def _name(finding: Finding) -> str:
    return f"{finding.result.test.full_name} {finding.quantity}"


def set_up_build(command: str, build: str, variable: str = "LOSSRATIO_BUILD") -> bool:
    """Runs the command that sets a build up.

    Args:
        command: A command of the shell.
        build: The build to set up; the command reads it from the environment.
        variable: Name of the environment variable.

    Returns:
        Whether the build can be measured; False if the command's exit status is `SKIP`.

    Raises:
        BuildError: If the command failed otherwise; with the last lines of its output.
    """
    environment = {**os.environ, variable: build}
    done = subprocess.run(
        ["sh", "-c", command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode == SKIP:
        return False
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-_LINES:])
        raise BuildError(
            f"The set-up of {build} failed with exit status {done.returncode}: {command}\n{last}", ExitStatus.FAILED
        )
    return True
