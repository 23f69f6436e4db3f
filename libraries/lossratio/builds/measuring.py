"""A build on a testbed: a command of the user sets it up, suites measure it, and a record keeps its measurements.

A measurement is on disk before the next build is set up, so that a comparison that was cut off continues.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lossratio.errors import BuildError, JobError
from lossratio.exit_status import ExitStatus
from lossratio.input_file import MOST_RECORDED_BYTES, parse_json, read_input_file
from lossratio.results import (
    Finding,
    Outcome,
    RunDirectory,
    caveats_of,
    findings_of,
    is_at_limit,
    is_too_slow,
    number_of,
    unsent_share,
    view_of,
)
from lossratio.runs import RunOutcome, RunRequest, run
from lossratio.units import FRAMES_PER_SECOND, format_ratio

SKIP = 125
"""Exit status of a set-up command whose revision cannot be measured, as with ``git bisect run``."""

_LINES = 20

Values = Mapping[str, float]

FORMAT = "lossratio-builds/1"
_FILE = "measurements.jsonl"


@dataclass(frozen=True)
class BuildBench:
    """Measures builds."""

    request: RunRequest
    """The run of one measurement; each has its own output directory."""
    quantity: str | None = None
    """Only this quantity (e.g. ``NDR``); None: all."""
    warn: Callable[[str], None] = lambda caveat: None
    """Called with a line of text for each doubt about a value."""
    run_suites: Callable[[RunRequest], RunOutcome] = run
    """Runs suites."""

    def set_up(self, command: str, build: str, variable: str = "LOSSRATIO_BUILD") -> bool:
        """Sets a build up; see `set_up_build`."""
        return set_up_build(command, build, variable)

    def close(self) -> None:
        """Does nothing: each run closes its testbed."""

    def measure(self, directory: Path) -> Values:
        """Measures the build that is set up.

        Returns:
            Aggregate throughput in frames per second, by ``<full name> <quantity>`` of tests; 0 where the minimum
            load was too much. Quantities without a single value (latencies) and in other units are left out.

        Raises:
            BuildError: If the run or a measurement failed, a search was not finished, or nothing was measured; with the
                exit status for it.
        """
        options = (*self.request.robot_options, "--outputdir", str(directory), "--console", "none")
        outcome = self.run_suites(replace(self.request, robot_options=options))
        # A demand that was not met is a verdict about the build, whose throughput was measured.
        if outcome.status not in (ExitStatus.PASSED, ExitStatus.FAILED, ExitStatus.REGRESSION):
            reason = outcome.error or f"see {directory}"
            raise BuildError(f"The run failed with exit status {int(outcome.status)}: {reason}.", outcome.status)
        values = self._values(directory)
        if not values:
            called = "" if self.quantity is None else f" called {self.quantity}"
            raise BuildError(f"The run measured nothing{called}: see {directory}.", ExitStatus.FAILED)
        return values

    def _values(self, directory: Path) -> Values:
        results = RunDirectory(directory)
        findings = findings_of(results.results() if results.has_files else ())
        rates = [finding for finding in findings if finding.has_value and finding.unit == FRAMES_PER_SECOND]
        chosen = [finding for finding in rates if self.quantity in (None, finding.quantity)]
        return {_name(finding): self._value(finding, directory) for finding in chosen}

    def _value(self, finding: Finding, directory: Path) -> float:
        """The value of a finding: how fast the build is."""
        name = _name(finding)
        share = unsent_share(view_of(finding.result).offered(finding.result, finding))
        if share:
            raise BuildError(
                f"{name} says nothing about the build: the generator left {format_ratio(share)} of the frames unsent; "
                f"see {directory}. Leave its machine alone, or measure at a load that it can send.",
                ExitStatus.INFRASTRUCTURE,
            )
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


@dataclass(frozen=True)
class BuildMeasurement:
    """One build, measured once."""

    build: str
    """Which build: ``A``, ``B`` or a revision."""
    values: Mapping[str, float] | None
    """Aggregate throughput in frames per second, by test and quantity (``<full name> <quantity>``); None: the build
    could not be set up, and is left out."""
    directory: str
    """The directory of its run, relative to the directory of the record."""


class BuildRecord:
    """The measurements in a directory, one JSON object per line, behind a header with the request."""

    def __init__(self, directory: Path, asked: Mapping[str, Any]) -> None:
        """Begins a record, or continues the record in the directory.

        Raises:
            JobError: If the record there has another request, or cannot be read.
        """
        self.directory = directory
        self._path = directory / _FILE
        header = {"format": FORMAT, "asked": json.loads(json.dumps(asked))}
        directory.mkdir(parents=True, exist_ok=True)
        self.measurements: list[BuildMeasurement] = []
        if self._path.exists():
            self._read(header)
        else:
            self._append(header)

    def next_directory(self, build: str) -> Path:
        """The directory for the run of the next measurement."""
        return self.directory / f"{len(self.measurements) + 1:03}-{build[:12].replace('/', '_')}"

    def add(self, build: str, values: Mapping[str, float] | None, directory: Path) -> BuildMeasurement:
        """Adds a measurement, and waits until it is on disk."""
        measurement = BuildMeasurement(build, values, directory.name)
        self._append({"build": build, "values": values, "directory": directory.name})
        self.measurements.append(measurement)
        return measurement

    def _read(self, header: Mapping[str, Any]) -> None:
        whole, _, _ = read_input_file(self._path, JobError, MOST_RECORDED_BYTES).rpartition(b"\n")
        try:
            first, *lines = [parse_json(line) for line in whole.splitlines()]
            self.measurements = [BuildMeasurement(**line) for line in lines]
        except (ValueError, TypeError) as error:
            raise JobError(f"{self._path} cannot be read ({error}). Give another --output to begin anew.") from error
        if not isinstance(first, dict):
            raise JobError(f"{self._path} is no record of measurements. Give another --output to begin anew.")
        if first != header:
            raise JobError(
                f"{self._path} has another request: it was {first.get('asked')}, and now is {header['asked']}. "
                f"Give another --output, or repeat the earlier request to continue it."
            )

    def _append(self, line: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            # A line that an interrupted write left unfinished is cut off.
            file.truncate(self._path.read_bytes().rfind(b"\n") + 1)
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
