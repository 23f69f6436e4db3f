"""A build on a testbed: a command of the user sets it up, suites or trials measure it, and a record keeps the values.

A measurement is on disk before the next build is set up, so that an interrupted comparison can continue. If builds are
exchanged in place, the testbed stays: a trial of one build costs little more than its duration.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lossratio import results
from lossratio.builds.asking import WHOLE, AsBefore, Wanted, why_not_asked
from lossratio.checked_arguments import shown_value
from lossratio.errors import BuildError, JobError
from lossratio.exit_status import ExitStatus
from lossratio.input_file import MOST_RECORDED_BYTES, parse_json, read_input_file
from lossratio.measurements.throughput import Nightly
from lossratio.runs import RunOutcome, RunRequest, run
from lossratio.testbed import Ready, Testbed, load_limits, load_range, open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import MissingFrames, TrialInput, TrialResult, missing_frames
from lossratio.units import FRAMES_PER_SECOND, format_frame_rate, format_ratio
from lossratio.wrong_values import in_words

SKIP = 125
"""Exit status of a set-up command whose revision cannot be measured, as with ``git bisect run``."""
_LINES = 20
_NEVER = 1_000_000
Values = Mapping[str, results.Ends]
"""What each test measured, by test and quantity (``<full name> <quantity>``), in frames per second per interface.
A value has two ends, because the SUT may not have lost the missing frames."""


@dataclass(frozen=True)
class Measured:
    """The result of measuring a build."""

    values: Values
    """The values."""
    devices: Mapping[str, str] = field(default_factory=dict)
    """The device of each value with its options, in words; values without one are not checked."""
    as_before: Mapping[str, AsBefore] = field(default_factory=dict)
    """Answers of the question whether a build is as before, by test and quantity; such a test has no values."""
    tests: Mapping[str, str] = field(default_factory=dict)
    """The full name of the test of each value and answer, if the build was asked."""


Measure = Callable[[str, Path, Wanted], Measured | None]
"""Sets up a build and measures it, with files in a directory; None: it cannot be measured."""
FORMAT = "lossratio-builds/2"
_FILE = "measurements.jsonl"


class Bench:
    """Sets builds up."""

    def set_up(self, command: str, build: str, variable: str = "LOSSRATIO_BUILD") -> bool:
        """Runs the command that sets a build up.

        Returns:
            Whether the build can be measured; False if the command ends with `SKIP`.

        Raises:
            BuildError: If the command fails.
        """
        environment = {**os.environ, variable: build}
        shell = ["sh", "-c", command]
        done = subprocess.run(
            shell,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode not in (0, SKIP):
            last = "\n".join(done.stdout.splitlines()[-_LINES:])
            how = f"failed with exit status {done.returncode}"
            if done.returncode < 0:
                how = f"was ended by signal {-done.returncode}"
            raise BuildError(f"The set-up of {build} {how}: {command}\n{last}", ExitStatus.FAILED)

        return done.returncode == 0

    def close(self) -> None:
        """Restores the testbed, if it is open."""


@dataclass(frozen=True)
class BuildBench(Bench):
    """Measures builds by suites: each run opens and closes the testbed."""

    request: RunRequest
    """The run of one measurement; each has its own output directory."""
    quantity: str | None = None
    """The only quantity to measure (e.g. ``NDR``); None: all."""
    warn: Callable[[str], None] = lambda caveat: None
    """Called with a line of text for each doubt about a value."""
    run_suites: Callable[[RunRequest], RunOutcome] = run
    """Runs suites."""
    earlier: Path | None = None
    """A folder with earlier runs, for the question whether the build is as before; None: it is not asked."""

    def measure(self, directory: Path, wanted: Wanted = WHOLE) -> Measured:
        """Measures the build that is set up: throughput per interface, by ``<full name> <quantity>`` of tests.

        It is in frames per second, and 0 if even the minimum load was too high. Quantities without a single value, such
        as latencies, and quantities in other units are left out.

        Raises:
            BuildError: If the run or a measurement failed, a search was not finished, or nothing was measured; it has
                the exit status.
            KeyboardInterrupt: If the user stopped the run, which has ended properly.
        """
        options = (*self.request.robot_options, "--outputdir", str(directory), "--console", "none")
        if wanted.asks:
            options += self._asking()
        tests = wanted.tests or self.request.tests
        outcome = self.run_suites(replace(self.request, robot_options=options, tests=tests))
        if outcome.status is ExitStatus.INTERRUPTED:
            raise KeyboardInterrupt
        # An unmet demand is a verdict about the build, whose throughput was measured.
        if outcome.status not in (ExitStatus.PASSED, ExitStatus.FAILED, ExitStatus.REGRESSION):
            reason = f"exit status {int(outcome.status)}: {(outcome.error or f'see {directory}').rstrip('.')}"
            raise BuildError(
                f"The run ended with {reason}. The same command continues from here.",
                outcome.status,
            )

        rates = self._rates(directory, tests)
        if not rates:
            called = "" if self.quantity is None else f" called {self.quantity}"
            raise BuildError(
                f"The run measured nothing{called}: see {directory}.", ExitStatus.FAILED
            )

        answers = {_name(finding): AsBefore.of(finding) for finding in rates}
        as_before = {name: answer for name, answer in answers.items() if answer is not None}
        values = {
            _name(finding): self._value(finding, directory)
            for finding in rates
            if _name(finding) not in as_before
        }
        devices = {
            _name(finding): device
            for finding in rates
            if (device := finding.result.conditions.measured_on) is not None
        }
        if not wanted.asks:
            return Measured(values, devices)

        for test, why in why_not_asked(rates).items():
            self.warn(f"{test} was searched without asking first: {why}")
        in_tests = {_name(finding): finding.result.test.full_name for finding in rates}
        return Measured(values, devices, as_before, in_tests)

    def _asking(self) -> tuple[str, ...]:
        """Robot Framework's options for searches that ask first."""
        # Record: the variables of `performance.resource`.
        variables = {
            "HINTS": self.earlier,
            "NIGHTLY": Nightly.AS_BEFORE.value,
            # No build is searched just because it is due.
            "SEARCH_EVERY": _NEVER,
        }
        given = ((f"{name}:{value}") for name, value in variables.items())
        return tuple(part for variable in given for part in ("--variable", variable))

    def _rates(self, directory: Path, tests: Sequence[str]) -> list[results.Finding]:
        files = results.RunDirectory(directory)
        findings = results.findings_of(files.results() if files.has_files else ())
        rates = [
            finding
            for finding in findings
            if finding.has_value
            and finding.unit == FRAMES_PER_SECOND
            and (
                not tests
                or finding.result.test.full_name in tests
                or finding.result.test.long_name in tests
            )
        ]
        return [finding for finding in rates if self.quantity in (None, finding.quantity)]

    def _value(self, finding: results.Finding, directory: Path) -> results.Ends:
        name = _name(finding)
        share = results.unsent_share(
            results.view_of(finding.result).offered(finding.result, finding)
        )
        if share:
            raise BuildError(
                f"{name} says nothing about the build: the generator left {format_ratio(share)} of the frames "
                f"unsent; see {directory}. Stop other work on its machine, or measure at a load that it can send.",
                ExitStatus.INFRASTRUCTURE,
            )
        if finding.is_too_slow:
            return results.Ends(0.0, 0.0, 0.0)

        ends = results.ends_of(finding)
        if ends is None or not (finding.outcome is results.Outcome.MEASURED or finding.is_at_limit):
            reason = f"{finding.outcome.value}: {finding.reason}"
            raise BuildError(
                f"{name} has no value to compare: {reason}; see {directory}.", ExitStatus.FAILED
            )

        for caveat in results.caveats_of(finding):
            self.warn(f"{name}: {caveat}")
        # If a limit made the value only a lower bound, the value has a caveat, and the limit is the same for both
        # builds.
        if ends.share < 1.0:
            return ends
        return results.Ends(ends.least, ends.least, 0.0)


def _name(finding: results.Finding) -> str:
    return f"{finding.result.test.full_name} {finding.quantity}"


_ATTEMPTS = 10
_TRIALS, _BEST = 10, 5
"""Trials of a measurement, and how many count: the best ones, because other work can only lower a trial's value."""


@dataclass(frozen=True)
class InPlace:
    """The measurement of builds that are exchanged in place: how much of the largest load they forward."""

    topology: Path
    """The topology file."""
    frame_size: str
    """Bytes of a frame with FCS, or a mix."""
    profile: str
    """Name or file of the traffic profile."""
    dut: str | None
    """Kind of the DUTs, which are restarted for each exchange; None: the set-up command alone exchanges the build."""
    options: Mapping[str, str]
    """The kind's options."""
    max_load: float | None
    """The load, frames per second per interface; None: the largest that generator and links can carry."""
    duration: float
    """Seconds of a trial."""


class TrialBench(Bench):
    """Measures builds by trials on a testbed that stays open. Close it at the end."""

    def __init__(self, request: InPlace, warn: Callable[[str], None]) -> None:
        self._request, self._warn = request, warn
        self._profile = load_profile(request.profile, frame_size=request.frame_size)
        self._present: str | None = None
        self._is_warned = False
        self._testbed: Testbed | None = None
        self._opened = ExitStack()

    def set_up(self, command: str, build: str, variable: str = "LOSSRATIO_BUILD") -> bool:
        """Exchanges the build, unless it is already in place.

        Raises:
            LossRatioError: If the command, DUT or testbed fails.
        """
        if build == self._present:
            return True
        if not super().set_up(command, build, variable):
            return False
        if self._testbed is None:
            self._open()
        else:
            self._testbed.exchange()
        self._present = build
        return True

    def measure(self, directory: Path, wanted: Wanted = WHOLE) -> Measured:
        """Measures the build that is set up, by trials; the trials do not ask whether the build is as before.

        Raises:
            BuildError: If the trials show the limit of the generator instead of the limit of the build.
        """
        name = f"{self._profile.name} {self._profile.frame_size} forwarding rate"
        best = sorted(self._forwarding_rate(name) for _ in range(_TRIALS))[-_BEST:]
        least, most, shares = zip(*best, strict=True)
        factor = self._profile.load_factor
        ends = results.Ends(fmean(least) * factor, fmean(most) * factor, max(shares))
        return Measured({name: ends})

    def _forwarding_rate(self, name: str) -> results.Ends:
        for _ in range(_ATTEMPTS):
            output = self._ready.measurer.measure(self._trial)
            # Unsent frames change nothing if the build is at its limit anyway. If the build runs on the generator's
            # CPUs, unsent frames are its cost.
            missing = missing_frames(output) or MissingFrames()
            if missing.without_tester or not missing.by_tester or self._shares_cpus:
                break
        else:
            rate = format_frame_rate(self._trial.load)
            raise BuildError(
                f"The generator could not send and receive {rate}, and the build lost nothing of what it received: "
                "this says nothing about the build. Set a --max-load that the generator can send and receive.",
                ExitStatus.INFRASTRUCTURE,
            )

        if not (missing.total or self._is_warned):
            self._is_warned = True
            self._warn(
                f"{name}: the build forwards the whole maximum load; a faster build would look the same"
            )

        return results.ends_of_trial(
            TrialResult(self._trial, output), unsent_is_cost=self._shares_cpus
        )

    def close(self) -> None:
        """Puts the testbed back."""
        self._opened.close()

    def _open(self) -> None:
        request = self._request
        testbed = open_testbed(
            request.topology, dut=request.dut, options=request.options, traffics=[self._profile]
        )
        self._opened.callback(testbed.close)
        self._shares_cpus = testbed.request.topology.testbed == "local"
        step = testbed.load_step(self._profile)
        loads = load_range(
            load_limits(testbed, self._profile), min_load=None, max_load=request.max_load, step=step
        )
        self._trial = TrialInput(request.duration, loads.max_load)
        self._ready: Ready = self._opened.enter_context(testbed.ready_for(self._profile))
        self._testbed = testbed


@dataclass(frozen=True)
class BuildMeasurement:
    """One build, measured once."""

    build: str
    """The build: ``A``, ``B`` or a revision."""
    values: Mapping[str, float] | None
    """Throughput per interface in frames per second, by test and quantity (``<full name> <quantity>``); None: the build
    could not be set up, and is left out."""
    directory: str
    """The directory of its run, relative to the directory of the record."""
    most: Mapping[str, float] | None = None
    """The values if the missing frames that the SUT did not lose had passed; None: there are no such frames."""
    shares: Mapping[str, float] | None = None
    """The shares of these frames; None: there are no such frames."""
    devices: Mapping[str, str] | None = None
    """The device of each value, in words; None: it is not known."""
    as_before: Mapping[str, AsBefore] | None = None
    """Answers instead of values; None: there are none."""
    tests: Mapping[str, str] | None = None
    """The full name of the test of each value and answer; None: the build was not asked."""

    @classmethod
    def of(cls, build: str, measured: Measured | None, directory: str) -> "BuildMeasurement":
        """The measurement of a build, from its result."""
        if measured is None:
            return cls(build, None, directory)
        ends = measured.values
        values = {name: one.least for name, one in ends.items()}
        # Record: the measurement, without missing fields.
        plain = cls(
            build,
            values,
            directory,
            devices=measured.devices,
            as_before=measured.as_before or None,
            tests=measured.tests or None,
        )
        if all(one.least == one.most and not one.share for one in ends.values()):
            return plain
        most = {name: one.most for name, one in ends.items()}
        shares = {name: one.share for name, one in ends.items()}
        return replace(plain, most=most, shares=shares)

    @classmethod
    def read(cls, line: object) -> "BuildMeasurement":
        """The measurement of a line of the record.

        Raises:
            ValueError: If it is not a measurement.
        """
        try:
            return TypeAdapter(cls).validate_python(line)
        except ValidationError as error:
            first, *_ = error.errors()
            where = ".".join(map(str, first["loc"]))
            raise ValueError(f"{where}: {in_words(first)}".removeprefix(": ")) from error

    @property
    def answers(self) -> Mapping[str, AsBefore]:
        """Answers instead of values, by test and quantity."""
        return self.as_before or {}

    @property
    def ends(self) -> Values | None:
        """The range of each value; None: the build could not be set up."""
        if self.values is None:
            return None
        most = self.most or self.values
        shares = self.shares or {}
        return {
            name: results.Ends(value, most[name], shares.get(name, 0.0))
            for name, value in self.values.items()
        }


def _differences(then: object, now: Mapping[str, Any]) -> str:
    """How a request differs from the one that a record was begun for."""
    if not isinstance(then, Mapping):
        return "it does not say which one"
    names = [name for name in {**now, **then} if then.get(name) != now.get(name)]
    return "; ".join(
        f"{name} was {shown_value(then.get(name))}, and is now {shown_value(now.get(name))}"
        for name in names
    )


class BuildRecord:
    """The measurements in a directory, one JSON object per line, after a header with the request."""

    def __init__(
        self, directory: Path, asked: Mapping[str, Any], device: str | None = None
    ) -> None:
        """Begins a record, or continues it.

        Args:
            directory: The directory.
            asked: The request.
            device: The device of an alarm, in words; None: all builds must have the device of the first build.

        Raises:
            JobError: If it has another request, or cannot be read.
        """
        self.directory = directory
        self._device = device
        self._path = directory / _FILE
        header = {"format": FORMAT, "asked": json.loads(json.dumps(asked))}
        directory.mkdir(parents=True, exist_ok=True)
        self.measurements: list[BuildMeasurement] = []
        if self._path.exists():
            self._read(header)
        else:
            self._append(header)

    def measurement(
        self, step: int, build: str, measure: Measure, wanted: Wanted = WHOLE
    ) -> BuildMeasurement:
        """The measurement of a step of a comparison; if it is not in the record, it is measured and written to disk.

        Raises:
            BuildError: If it was measured on a different device from the earlier ones. The record does not accept it.
            JobError: If the record has another build for this step.
        """
        if step == len(self.measurements):
            directory = f"{step + 1:03}-{build[:12].replace('/', '_')}"
            measurement = BuildMeasurement.of(
                build, measure(build, self.directory / directory, wanted), directory
            )
            self._require_one_device(measurement)
            self._append(
                {
                    name: value
                    for name, value in asdict(measurement).items()
                    if value or name == "values"
                }
            )
            self.measurements.append(measurement)

        known = self.measurements[step]
        if known.build != build:
            raise JobError(
                f"{self._path}, line {step + 2}, is of build {shown_value(known.build)}, but {shown_value(build)} was "
                "to be measured there. The file was changed. To begin again, use another --output."
            )
        return known

    def _require_one_device(self, measurement: BuildMeasurement) -> None:
        for name, device in (measurement.devices or {}).items():
            others = (one for one in self.measurements if name in (one.devices or {}))
            first = next(others, None)
            wanted = self._device
            whose = "the alarm is of"
            if wanted is None and first is not None and first.devices is not None:
                wanted = first.devices[name]
                whose = f"{first.build[:12]} on"

            if wanted not in (None, device):
                raise BuildError(
                    f"{name} has two devices: {whose} {wanted}, and {measurement.build[:12]} was measured on "
                    f"{device}. Only builds of one device can be compared. Keep the options of the device, and let "
                    "the set-up command change only the build.",
                    ExitStatus.BAD_INPUT,
                )

    def _read(self, header: Mapping[str, Any]) -> None:
        whole, _, _ = read_input_file(self._path, JobError, MOST_RECORDED_BYTES).rpartition(b"\n")
        lines = whole.splitlines() or [b"null"]
        read: list[Any] = []
        for number, line in enumerate(lines, start=1):
            try:
                parsed = parse_json(line)
                read.append(BuildMeasurement.read(parsed) if read else parsed)
            except ValueError as error:
                raise JobError(
                    f"{self._path}, line {number}, cannot be read: {error}. To begin again, use another --output."
                ) from error

        first, *self.measurements = read
        if not isinstance(first, dict):
            raise JobError(
                f"{self._path} is not a record of measurements. To begin again, use another --output."
            )
        if first.get("format") != FORMAT:
            raise JobError(
                f"{self._path} was begun by another version of lossratio and cannot be continued. To begin again, "
                "use another --output."
            )
        if first != header:
            raise JobError(
                f"{self._path} belongs to another request: {_differences(first.get('asked'), header['asked'])}. Use "
                "another --output, or repeat the earlier request to continue it."
            )

    def _append(self, line: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            # A line that an interrupted write left unfinished is cut off.
            file.truncate(self._path.read_bytes().rfind(b"\n") + 1)
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
