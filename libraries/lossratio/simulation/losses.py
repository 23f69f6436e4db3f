"""The losses of a simulated SUT, located in time, and timelines made of these losses.

Most models only say how many frames of a trial are lost, and the losses are assumed to be spread evenly. A
`LocatingSut` says which frames are lost.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.simulation.sut import RunningSut, Traffic
from lossratio.trials import MOST_OUTAGES, Outage, Silence, StepCounters, Timeline

BASE_DELAY = 10e-6
"""Seconds that a frame takes through an idle simulated SUT."""


@dataclass(frozen=True)
class Loss:
    """Lost frames of a part of the traffic, evenly spread over this part."""

    first: int
    """Number of the first lost frame, from 0 on."""
    last: int
    """Number of the last lost frame."""
    frames: int
    """How many frames from the first to the last one are lost."""


class LocatingSut(ABC):
    """A SUT that was started and knows which frames it loses; a `RunningSut`."""

    @abstractmethod
    def losses(self, traffic: Traffic) -> Sequence[Loss]:
        """Takes the traffic of a trial or a step, as a `RunningSut` does, and returns the losses in their order."""

    def reset(self, time: float) -> None:
        """Resets the SUT at a time in seconds on the virtual clock. Most models are not affected."""
        return

    def __call__(self, traffic: Traffic) -> int:
        """The number of lost frames."""
        return sum(loss.frames for loss in self.losses(traffic))


def losses_of(sut: RunningSut, traffic: Traffic) -> list[Loss]:
    """The losses of any SUT. If a SUT only counts its losses, they are spread evenly over the traffic."""
    if isinstance(sut, LocatingSut):
        return [loss for loss in sut.losses(traffic) if loss.frames]
    return spread(sut(traffic), 0, traffic.frames - 1)


def spread(lost: int, first: int, last: int) -> list[Loss]:
    """This many lost frames, evenly spread from one frame to another; no loss if the number is 0."""
    if not lost:
        return []
    gap = (last - first + 1) // lost
    return [Loss(first + gap // 2, last - (gap - 1) // 2, lost)]


class Course:
    """The traffic of one direction through a simulated SUT: steps with their losses, which become a timeline.

    The arguments are the direction's name, and the time at which the course began, in seconds on the virtual clock.
    """

    def __init__(self, name: str, began: float) -> None:
        self._name = name
        self._began = began
        self._steps: list[StepCounters] = []
        self.sent = 0
        """Frames sent so far."""
        self._totals: list[tuple[int, int]] = []
        self._scattered = 0
        self._rates: list[tuple[int, float, float]] = []

    def add(self, traffic: Traffic, intended: int, losses: Sequence[Loss]) -> None:
        """Adds a step of this many `intended` frames after the earlier steps. In its losses, numbers begin at 0."""
        start = traffic.start - self._began
        self._rates.append((self.sent, start, traffic.load))
        for loss in losses:
            if loss.frames <= loss.last - loss.first:
                self._scattered += min(loss.frames, loss.last - loss.first + 2 - loss.frames)
            elif self._totals and self._totals[-1][1] == self.sent + loss.first - 1:
                self._totals[-1] = (self._totals[-1][0], self.sent + loss.last)
            else:
                self._totals.append((self.sent + loss.first, self.sent + loss.last))

        last_lost = None
        if losses:
            last_lost = self._time(self.sent + losses[-1].last)

        self.sent += traffic.frames
        step = StepCounters(
            start=start,
            elapsed=traffic.duration,
            intended=intended,
            sent=traffic.frames,
            lost=sum(loss.frames for loss in losses),
            last_lost=last_lost,
        )
        self._steps.append(step)

    def timeline(self) -> Timeline:
        """The timeline so far. Only outages without any received frame are listed. Other outages are counted."""
        longest = sorted(self._totals, key=lambda ends: ends[0] - ends[1])[:MOST_OUTAGES]
        last = self._time(self.sent - 1) if self.sent > 1 else None
        outages = tuple(self._outage(first, last) for first, last in sorted(longest))
        silences = []
        for outage in outages:
            if outage.start is not None and outage.end is not None:
                silences.append(Silence(outage.start, outage.end))

        rate = (self.sent - 1) / last if last else None
        return Timeline(
            name=self._name,
            began=self._began,
            clock_error=0.0,
            resolution=0.0,
            rate=rate,
            steps=tuple(self._steps),
            outages=outages,
            outage_count=len(self._totals) + self._scattered,
            silences=tuple(silences),
        )

    def as_one_step(self) -> Timeline:
        """The timeline of traffic with one load. Its steps only show when the counters were read."""
        timeline = self.timeline()
        step = StepCounters(
            start=0.0,
            elapsed=sum(step.elapsed for step in timeline.steps),
            intended=sum(step.intended for step in timeline.steps),
            sent=self.sent,
            lost=timeline.lost,
            last_lost=timeline.last_lost,
        )
        return Timeline(**{**vars(timeline), "steps": (step,)})

    def _outage(self, first: int, last: int) -> Outage:
        start = None
        if first:
            start = self._time(first - 1) + BASE_DELAY

        end = None
        if last + 1 < self.sent:
            end = self._time(last + 1) + BASE_DELAY

        return Outage(
            frames=last - first + 1,
            first_sent=self._time(first),
            last_sent=self._time(last),
            start=start,
            end=end,
        )

    def _time(self, number: int) -> float:
        """Send time of a frame, in seconds since the first one."""
        before, start, load = next(rate for rate in reversed(self._rates) if rate[0] <= number)
        return start + (number - before) / load
