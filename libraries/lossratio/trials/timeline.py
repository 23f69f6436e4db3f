"""Losses located in time: bursts, schedules of steps, and outages, in the order in which frames were sent.

A frame has a sequence number, and its sender knows when each number left. So a lost frame has a send time although it
never came back (RFC 2544, section 26.5), and frames that came back before and after it have times of receipt (RFC 6201,
section 1.3).
"""

import math
from dataclasses import dataclass

from lossratio.errors import SearchError, TrafficError
from lossratio.trials.record import Observed
from lossratio.values import checked

MOST_OUTAGES = 1000
"""The maximum number of outages that a timeline lists: the longest ones."""


class BurstRateError(TrafficError):
    """The generator cannot send a burst at the rate.

    Args:
        message: What happened, and the way out.
        rate: Frames per second per interface that the generator kept.
    """

    def __init__(self, message: str, rate: float) -> None:
        super().__init__(message)
        self.rate = rate


def check_traffic(what: str, duration: float, load: float) -> None:
    """Checks the duration of traffic and its load.

    Args:
        what: What has this duration and load, for the message.
        duration: Seconds.
        load: Frames per second.

    Raises:
        SearchError: If one is not a positive, finite number.
    """
    for name, value in (("duration", duration), ("load", load)):
        is_number = isinstance(value, int | float) or hasattr(value, "__float__")
        if not (is_number and math.isfinite(value) and value > 0):
            raise SearchError(f"{what}'s {name} must be a positive, finite number, not {value!r}.")


@checked(SearchError)
@dataclass(frozen=True)
class Step(Observed):
    """A part of a trial with a constant load.

    Raises:
        SearchError: If a value is not a positive, finite number.
    """

    duration: float
    """Seconds."""
    load: float
    """Frames per second per transmitting interface."""

    def __post_init__(self) -> None:
        check_traffic("A step", self.duration, self.load)


@dataclass(frozen=True)
class StepCounters(Observed):
    """The counters of one direction in one step."""

    start: float
    """When the step began, in seconds since the first frame of the trial."""
    elapsed: float
    """Seconds from the step's beginning to its end."""
    intended: int
    """Frames that the load and the duration require."""
    sent: int
    """Frames that left the generator."""
    lost: int
    """Frames sent that did not come back."""
    last_lost: float | None = None
    """Send time of its last lost frame; None: no frame of this step was lost, or it is the first step, and the
    generator only keeps the times of its latest frames."""


@dataclass(frozen=True)
class Outage(Observed):
    """A run of successive frames that were all lost; times are seconds since the first frame of the trial."""

    frames: int
    """Frames lost. RFC 6201's frame loss method divides them by the rate."""
    first_sent: float
    """Send time of the first lost frame."""
    last_sent: float
    """Send time of the last lost frame."""
    start: float | None
    """Receipt of the last frame before (RFC 6201: time stamp A); None: no frame came before."""
    end: float | None
    """Receipt of the first frame after (time stamp B); None: no frame came after."""

    @property
    def duration(self) -> float | None:
        """Seconds by RFC 6201's time stamp method, B - A; None: a time stamp is missing."""
        if self.start is None or self.end is None:
            return None
        return self.end - self.start


@dataclass(frozen=True)
class Silence(Observed):
    """A time in which no frame came back; times are seconds since the first frame of the trial.

    A device may keep some frames while it does not forward, and send them when it resumes. The number of lost frames
    then says less than the silence (RFC 6201, section 1.3).
    """

    start: float
    """Receipt of the last frame before."""
    end: float
    """Receipt of the first frame after."""

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end - self.start


@dataclass(frozen=True)
class Timeline(Observed):
    """The course of one direction's traffic in time. All times but `began` are seconds since `began`.

    The losses of a burst are only counted by real generators: they are in its step, and have no times.
    """

    name: str
    """The direction, e.g. ``port0>port1``."""
    began: float
    """When the first frame left, in seconds of the controller's monotonic clock (`time.monotonic`); on a simulated
    testbed, of the virtual clock."""
    clock_error: float
    """Seconds by which `began` may be wrong because the generator has another clock."""
    resolution: float
    """Seconds by which the send time of a frame may be wrong."""
    rate: float | None
    """Frames per second from the first frame to the last; None: fewer than two frames were sent, or the generator only
    reports that it kept the rate."""
    steps: tuple[StepCounters, ...]
    """The counters of each step; a burst, or traffic of one load, has one step."""
    outages: tuple[Outage, ...] = ()
    """The longest outages, `MOST_OUTAGES` at most, in the order of time."""
    outage_count: int = 0
    """The number of all outages, including outages of single frames."""
    silences: tuple[Silence, ...] = ()
    """The longest times without any frame, `MOST_OUTAGES` at most, in their order; none shorter than a millisecond or a
    few frames. A burst has none, because its losses are only counted."""

    @property
    def lost(self) -> int:
        """Frames sent that did not come back."""
        return sum(step.lost for step in self.steps)

    @property
    def last_lost(self) -> float | None:
        """Send time of the last lost frame; None: no frame was lost."""
        return max(
            (step.last_lost for step in self.steps if step.last_lost is not None), default=None
        )

    def recovery_time(self, step: int = 1) -> float:
        """Seconds from the beginning of a step to the send time of the last lost frame (RFC 2544, section 26.5)."""
        change = self.steps[step].start
        lost = [part.last_lost for part in self.steps[step:] if part.last_lost is not None]
        return max(0.0, max(lost, default=change) - change)
