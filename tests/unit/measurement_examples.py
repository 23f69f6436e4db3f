"""Testbeds and requests that the tests of measurements share."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lossratio.measurements.measurement import TestPlace
from lossratio.mlrsearch import SearchGoal
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials.counters import output_from_counters

ROOT = Path(__file__).parents[2]
SIMULATED = ROOT / "topologies" / "simulated.yaml"
NO_LOSS = SearchGoal(0.0, 0.5, 1.0, 1.0, 0.01, name="no loss")
PROFILE = load_profile("ethip4-udp", frame_size=64)


def place(directory: Path, name: str = "a test", resume: Path | None = None) -> TestPlace:
    earlier = None if resume is None else RunDirectory(resume)
    return TestPlace(TestIdentity(name=name, suite="a suite"), RunDirectory(directory), earlier)


def policed(**options):
    return open_testbed(SIMULATED, dut="linux_bridge", options=options)


class InFrontOfTestbed:
    """Stands in front of another testbed: it has what that testbed has, and performs the trials itself.

    Attributes:
        testbed: The other testbed.
        measurer: What performs trials on the other testbed, once that is ready for traffic.
    """

    def __init__(self, testbed):
        self.testbed = testbed

    def __getattr__(self, name):
        return getattr(self.testbed, name)

    @contextmanager
    def ready_for(self, profile, *settings):
        with self.testbed.ready_for(profile, *settings) as ready:
            self.measurer = ready.measurer
            yield self.in_front_of(ready)

    def in_front_of(self, ready):
        """The other testbed while it is ready, with this one as its measurer."""
        return replace(ready, measurer=self)

    def measure(self, trial):
        return self.measurer.measure(trial)


class StallingTestbed(InFrontOfTestbed):
    """The simulated testbed, whose generator is stalled for the last 9 % of some trials, given by their numbers."""

    def __init__(self, *stalled, makes_up_for_them=False):
        super().__init__(open_testbed(SIMULATED))
        self._stalled = stalled
        self._makes_up_for_them = makes_up_for_them
        self.measured = 0

    def measure(self, trial):
        output = super().measure(trial)
        self.measured += 1
        if self.measured not in self._stalled:
            return output
        counters = [self._as_stalled(direction, trial.duration) for direction in output.directions]
        return output_from_counters(trial, counters, elapsed=output.elapsed)

    def _as_stalled(self, counters, duration):
        late = replace(counters, lateness_s=0.09 * duration)
        if self._makes_up_for_them:
            return late
        unsent = int(0.09 * counters.sent_frames)
        sent = counters.sent_frames - unsent
        return replace(
            late, sent_frames=sent, received_frames=min(counters.received_frames, sent), unsent_frames=unsent
        )
