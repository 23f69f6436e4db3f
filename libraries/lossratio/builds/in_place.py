"""Builds that are exchanged while the testbed stays: a trial of one build costs little more than its duration."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from lossratio.builds.measuring import Values, set_up_build
from lossratio.errors import BuildError
from lossratio.exit_status import ExitStatus
from lossratio.testbed import Ready, Testbed, load_limits, load_range, open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput, TrialResult
from lossratio.units import format_frame_rate

_ATTEMPTS = 10
_TRIALS, _BEST = 10, 5
"""Trials of a measurement, and how many of them count: the best, as other work only ever takes from a trial."""


@dataclass(frozen=True)
class InPlace:
    """What is measured of builds that are exchanged in place: what they forward of the largest load."""

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
    """The load, frames per second per interface; None: the largest that generator and links can do."""
    duration: float
    """Seconds of a trial."""


class TrialBench:
    """Measures builds by trials on a testbed that stays open. Close it in the end."""

    def __init__(self, request: InPlace, warn: Callable[[str], None]) -> None:
        self._request, self._warn = request, warn
        self._profile = load_profile(request.profile, frame_size=request.frame_size)
        self._present: str | None = None
        self._is_warned = False
        self._testbed: Testbed | None = None
        self._opened = ExitStack()

    def set_up(self, command: str, build: str, variable: str = "LOSSRATIO_BUILD") -> bool:
        """Exchanges the build, unless it is there; see `set_up_build`.

        Raises:
            LossRatioError: If the command, the DUT or the testbed fails.
        """
        if build == self._present:
            return True
        if not set_up_build(command, build, variable):
            return False
        if self._testbed is None:
            self._open()
        else:
            self._testbed.exchange()
        self._present = build
        return True

    def measure(self, directory: Path) -> Values:
        """Measures the build that is set up, by some trials; no file is written.

        Raises:
            BuildError: If the trials show the generator's limit, and not the build's.
            LossRatioError: If the trial failed.
        """
        name = f"{self._profile.name} {self._profile.frame_size} forwarding rate"
        rates = sorted(self._forwarding_rate(name) for _ in range(_TRIALS))
        return {name: fmean(rates[-_BEST:]) * self._profile.load_factor}

    def _forwarding_rate(self, name: str) -> float:
        for _ in range(_ATTEMPTS):
            output = self._ready.measurer.measure(self._trial)
            # Beyond what the build can do, frames that could not be sent change nothing; and where it runs on the CPUs
            # of the generator, they are its cost.
            if output.lost_frames or not output.unsent_frames or self._shares_cpus:
                break
        else:
            rate = format_frame_rate(self._trial.load)
            raise BuildError(
                f"The generator could not send {rate}, and the build lost nothing of what it got: this says nothing of "
                "the build. Give a --max-load that the generator can send.",
                ExitStatus.INFRASTRUCTURE,
            )
        if not (output.lost_frames or output.unsent_frames or self._is_warned):
            self._is_warned = True
            self._warn(f"{name}: the build forwards all of the maximum load; a faster one would not show")
        return TrialResult(self._trial, output).forwarding_rate

    def close(self) -> None:
        """Puts the testbed back."""
        self._opened.close()

    def _open(self) -> None:
        request = self._request
        testbed = open_testbed(request.topology, dut=request.dut, options=request.options)
        self._opened.callback(testbed.close)
        self._shares_cpus = testbed.request.topology.testbed == "local"
        step = testbed.load_step(self._profile)
        loads = load_range(load_limits(testbed, self._profile), min_load=None, max_load=request.max_load, step=step)
        self._trial = TrialInput(request.duration, loads.max_load)
        self._ready: Ready = self._opened.enter_context(testbed.ready_for(self._profile))
        self._testbed = testbed
