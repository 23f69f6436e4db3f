"""SUTs that `lossratio.simulation` does not have, for `soak_cases.py`: capacities that vary, stalls, memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lossratio.simulation import SmoothKnee, Sut
from lossratio.simulation.sut import RunningSut, Traffic, random_rounding

CAPACITY = 18e6
"""The capacity of all SUTs, in frames per second."""


@dataclass(frozen=True)
class DrawnCapacity:
    """A sharp knee whose place is drawn for each trial."""

    draw: Callable[[np.random.Generator], float]
    """Draws a capacity, as a share of `CAPACITY`."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""

        def lost_frames(traffic: Traffic) -> int:
            capacity = CAPACITY * max(self.draw(rng), 0.0)
            return random_rounding(traffic.frames * max(0.0, 1.0 - capacity / traffic.load), rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None


@dataclass(frozen=True)
class WithStalls:
    """A smooth knee that also stalls at times, at any load."""

    knee: SmoothKnee
    """The knee."""
    share: float
    """Mean share of the frames that stalls lose."""
    interval: float = 60.0
    """Mean time between stalls, in seconds; their lengths have an exponential distribution."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory between trials."""
        knee = self.knee.start(rng)

        def lost_frames(traffic: Traffic) -> int:
            stalls = rng.poisson(traffic.duration / self.interval)
            stalled = float(np.sum(rng.exponential(self.share * self.interval, stalls)))
            lost = knee(traffic)
            return lost + random_rounding((traffic.frames - lost) * min(stalled / traffic.duration, 1.0), rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None


@dataclass(frozen=True)
class ByRatio:
    """A SUT that loses each frame with the same probability, by the load."""

    ratio: Callable[[float], float]
    """The mean loss ratio at a load in frames per second."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return lambda traffic: int(rng.binomial(traffic.frames, min(self.ratio(traffic.load), 1.0)))

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None


@dataclass(frozen=True)
class SineCapacity:
    """A sharp knee whose place follows a sine."""

    amplitude: float
    """As a share of `CAPACITY`."""
    period: float
    """In seconds."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT that begins anywhere in its period."""
        phase = rng.uniform(0.0, 2.0 * math.pi)

        def lost_frames(traffic: Traffic) -> int:
            angle = phase + 2.0 * math.pi * (traffic.start + 0.5 * traffic.duration) / self.period
            capacity = CAPACITY * (1.0 + self.amplitude * math.sin(angle))
            return random_rounding(traffic.frames * max(0.0, 1.0 - capacity / traffic.load), rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None


@dataclass(frozen=True)
class WanderingCapacity:
    """A sharp knee whose place wanders from trial to trial: a first-order autoregressive process."""

    deviation: float
    """Standard deviation of the capacity in the long run, as a share of `CAPACITY`."""
    correlation: float
    """Correlation of the capacities of successive trials."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT that begins anywhere in its range."""
        place = rng.standard_normal()

        def lost_frames(traffic: Traffic) -> int:
            nonlocal place
            place = self.correlation * place + math.sqrt(1.0 - self.correlation**2) * rng.standard_normal()
            capacity = CAPACITY * (1.0 + self.deviation * place)
            return random_rounding(traffic.frames * max(0.0, 1.0 - capacity / traffic.load), rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None


@dataclass(frozen=True)
class WalkingCapacity:
    """A sharp knee whose place walks in time, and is drawn back (Ornstein and Uhlenbeck): longer trials see it move."""

    deviation: float
    """Standard deviation of the capacity in the long run, as a share of `CAPACITY`."""
    seconds: float
    """Time after which capacities are alike to 1/e."""
    step: float = 0.1
    """Seconds for which the capacity stays where it is."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT that begins anywhere in its range."""
        place, now = float(rng.standard_normal()), 0.0

        def after(seconds: float) -> float:
            nonlocal place
            likeness = math.exp(-seconds / self.seconds)
            place = likeness * place + math.sqrt(1.0 - likeness**2) * float(rng.standard_normal())
            return CAPACITY * (1.0 + self.deviation * place)

        def lost_frames(traffic: Traffic) -> int:
            nonlocal now
            steps = max(1, round(traffic.duration / self.step))
            rest, now = max(traffic.start - now, 0.0), traffic.start + traffic.duration
            capacities = [after(rest), *(after(traffic.duration / steps) for _ in range(steps - 1))]
            shares = np.maximum(0.0, 1.0 - np.array(capacities) / traffic.load)
            return random_rounding(traffic.frames * float(shares.mean()), rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None


@dataclass(frozen=True)
class SlowerAfterOverload:
    """A stretch-shaped knee that is lower after a trial with much loss, until some time has passed."""

    share: float
    """By which share of `CAPACITY`."""
    seconds: float
    """For how long."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT that was idle."""
        usual, slow = (SmoothKnee(CAPACITY * scale, 5e4).start(rng) for scale in (1.0, 1.0 - self.share))
        until = -math.inf

        def lost_frames(traffic: Traffic) -> int:
            nonlocal until
            lost = (slow if traffic.start < until else usual)(traffic)
            if lost > 0.01 * traffic.frames:
                until = traffic.start + traffic.duration + self.seconds
            return lost

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None


@dataclass(frozen=True)
class Changing:
    """A SUT that becomes slower and faster, in all of its loads."""

    sut: Sut
    """The SUT at the scale 1; without memory of time."""
    drawn: Callable[[np.random.Generator], Callable[[float], float]]
    """Draws its scale, as a function of the seconds from the beginning."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without other memory, which sees more load where it is slower."""
        steady, scale_at = self.sut.start(rng), self.drawn(rng)

        def lost_frames(traffic: Traffic) -> int:
            frames = random_rounding(traffic.frames / scale_at(traffic.start + 0.5 * traffic.duration), rng)
            lost = steady(replace(traffic, frames=frames)) * traffic.frames / max(frames, 1)
            return min(random_rounding(lost, rng), traffic.frames)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None
