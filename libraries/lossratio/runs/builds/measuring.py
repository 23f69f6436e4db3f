"""A build on a testbed: a command of the user sets it up, and suites or trials measure it.

If builds are exchanged in place, the testbed stays: a trial of one build costs little more than its duration.
"""

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from lossratio import results
from lossratio.errors import BuildError
from lossratio.runs import RunOutcome, RunRequest, run
from lossratio.testbed import Ready, Testbed, load_limits, load_range, open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput, TrialResult, known_missing
from lossratio.values import FRAMES_PER_SECOND, ExitStatus, format_frame_rate, format_ratio

SKIP = 125
"""Exit status of a set-up command whose revision cannot be measured, as with ``git bisect run``."""
_LINES = 20
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


NOTHING = Measured({})
"""No value."""
_SAYS_WHAT_WAS_MEASURED = (
    ExitStatus.PASSED,
    ExitStatus.FAILED,
    ExitStatus.REGRESSION,
    ExitStatus.NOTHING_MEASURED,
)
"""Exit statuses of runs whose results are read. After others, the run is repeated."""

Measure = Callable[[str, Path], Measured | None]
"""Sets up a build and measures it, with files in a directory; None: it cannot be measured."""


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

    def measure(self, directory: Path) -> Measured:
        """Measures the build that is set up: throughput per interface, by ``<full name> <quantity>`` of tests.

        It is in frames per second, and 0 if even the minimum load was too high. Quantities without a single value, such
        as latencies, and quantities in other units are left out.

        Raises:
            BuildError: If the run or a measurement failed, a search was not finished, or nothing was measured; it has
                the exit status.
            KeyboardInterrupt: If the user stopped the run, which has ended properly.
        """
        options = (*self.request.robot_options, "--outputdir", str(directory), "--console", "none")
        outcome = self.run_suites(replace(self.request, robot_options=options))
        if outcome.status is ExitStatus.INTERRUPTED:
            raise KeyboardInterrupt
        # An unmet demand is a verdict about the build, whose throughput was measured.
        if outcome.status not in _SAYS_WHAT_WAS_MEASURED:
            reason = f"exit status {int(outcome.status)}: {(outcome.error or f'see {directory}').rstrip('.')}"
            raise BuildError(
                f"The run ended with {reason}. To continue, repeat the command.", outcome.status
            )

        rates = self._rates(directory)
        if not rates:
            called = "" if self.quantity is None else f" called {self.quantity}"
            raise BuildError(
                f"The run measured nothing{called}. Look at {directory}, or choose other tests or "
                "quantities.",
                ExitStatus.FAILED,
            )

        values = {_name(finding): self._value(finding, directory) for finding in rates}
        devices = {
            _name(finding): device
            for finding in rates
            if (device := finding.result.conditions.measured_on) is not None
        }
        return Measured(values, devices)

    def _rates(self, directory: Path) -> list[results.Finding]:
        files = results.RunDirectory(directory)
        findings = results.findings_of(files.results() if files.has_files else ())

        return [
            finding
            for finding in findings
            if finding.has_value
            and finding.unit == FRAMES_PER_SECOND
            and self.quantity in (None, finding.quantity)
        ]

    def _value(self, finding: results.Finding, directory: Path) -> results.Ends:
        name = _name(finding)
        share = results.unsent_share(
            results.view_of(finding.result).offered(finding.result, finding)
        )
        if share:
            raise BuildError(
                f"{name} says nothing about the build: the generator left {format_ratio(share)} of the frames "
                f"unsent; see {directory}. Measure at a load that it can send.",
                ExitStatus.INFRASTRUCTURE,
            )
        if finding.is_too_slow:
            return results.Ends(0.0, 0.0, 0.0)

        ends = results.ends_of(finding)
        if ends is None or not (finding.outcome is results.Outcome.MEASURED or finding.is_at_limit):
            raise BuildError(
                f"{name} has no value to compare: {finding.outcome_in_words}; see {directory}.",
                ExitStatus.FAILED,
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
        self._request = request
        self._warn = warn
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

    def measure(self, directory: Path) -> Measured:
        """Measures the build that is set up, by trials.

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
            missing = known_missing(output)
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
