"""SUTs whose capacity changes with time: once, steadily, or to and fro between two states."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from pydantic.dataclasses import dataclass

from lossratio.simulation.overload import GRACEFUL, Overload
from lossratio.simulation.quantities import STRICT, FrameRate, RelativeChange, Seconds
from lossratio.simulation.sut import RunningSut, Traffic, random_rounding


@dataclass(frozen=True, config=STRICT)
class CapacityStep:
    """A sharp knee whose capacity changes once. It has no truth that would hold for a whole search.

    Attributes:
        before: Capacity up to the change, in frames per second.
        after: Capacity from then on, in frames per second.
        at: When it changes, in seconds on the virtual clock.
        overload: What is forwarded of more load than the capacity.
    """

    before: FrameRate
    after: FrameRate
    at: Seconds
    overload: Overload = GRACEFUL

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory of its own: the clock tells its capacity."""
        return partial(self._lost_frames, rng=rng)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> None:
        """None: what holds before does not hold after."""
        return

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        early = min(1.0, max(0.0, (self.at - traffic.start) / traffic.duration))
        lost = early * self.overload.loss_ratio(traffic.load, self.before)
        lost += (1.0 - early) * self.overload.loss_ratio(traffic.load, self.after)
        return random_rounding(traffic.frames * lost, rng)


@dataclass(frozen=True, config=STRICT)
class CapacityDrift:
    """A sharp knee whose capacity grows or shrinks exponentially. It has no truth that would hold for a whole search.

    Attributes:
        capacity: Capacity at the beginning, in frames per second.
        per_second: Relative change in a second; -0.0001 loses about 0.6 % a minute.
        overload: What is forwarded of more load than the capacity.
    """

    capacity: FrameRate
    per_second: RelativeChange
    overload: Overload = GRACEFUL

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory of its own: the clock tells its capacity."""
        return partial(self._lost_frames, rng=rng)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> None:
        """None: what holds now does not hold later."""
        return

    def capacity_at(self, time: float) -> float:
        """The capacity in frames per second at a time in seconds on the virtual clock."""
        return self.capacity * math.exp(time * math.log1p(self.per_second))

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        first, last = self.capacity_at(traffic.start), self.capacity_at(traffic.start + traffic.duration)
        low, high = min(first, last), max(first, last)
        if traffic.load <= low:
            return 0
        if low == high:
            share, mean = 1.0, low
        else:
            until = min(high, traffic.load)
            growth = math.log1p((until - low) / low)
            share = growth / math.log1p((high - low) / low)
            # The loss ratio is linear in the capacity, so the overloaded part's mean capacity stands for it.
            mean = (until - low) / growth
        return random_rounding(traffic.frames * share * self.overload.loss_ratio(traffic.load, mean), rng)
