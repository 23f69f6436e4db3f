"""SUTs whose capacity differs from trial to trial, or fails for moments."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from pydantic.dataclasses import dataclass
from scipy import stats

from lossratio.simulation.overload import GRACEFUL, Overload
from lossratio.simulation.quantities import STRICT, FrameRate, Frames, PositiveRatio, ProperRatio, Seconds
from lossratio.simulation.sut import RunningSut, Traffic, random_rounding, smallest_exceeding_load


@dataclass(frozen=True, config=STRICT)
class PerformanceSpectrum:
    """Each trial finds another capacity: normal noise, and now and then a slow trial (the spectrum's tail).

    Attributes:
        capacity: Greatest forwarding rate without noise, in frames per second.
        jitter: Standard deviation of the noise, as a share of the capacity.
        tail_share: Share of trials that are slow.
        tail_size: Mean loss of capacity of a slow trial (exponentially distributed), as a share of the capacity.
        overload: What is forwarded of more load than the capacity.
    """

    capacity: FrameRate
    jitter: PositiveRatio
    tail_share: ProperRatio = 0.0
    tail_size: PositiveRatio = 0.05
    overload: Overload = GRACEFUL

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return partial(self._lost_frames, rng=rng)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """The capacity's quantile, by bisection of its distribution; None where no trial may exceed."""
        if exceed_ratio == 0.0:
            return None
        quantile = smallest_exceeding_load(self._slower_probability, exceed_ratio)
        return self.overload.lossy_load(quantile, loss_ratio)

    def _slower_probability(self, rate: float) -> float:
        below = rate / self.capacity - 1.0
        usual = float(stats.norm.cdf(below, scale=self.jitter))
        slow = float(stats.exponnorm.sf(-below, self.tail_size / self.jitter, scale=self.jitter))
        return (1.0 - self.tail_share) * usual + self.tail_share * slow

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        noise = rng.normal(scale=self.jitter)
        if rng.random() < self.tail_share:
            noise -= rng.exponential(self.tail_size)
        capacity = self.capacity * max(0.0, 1.0 + noise)
        return random_rounding(traffic.frames * self.overload.loss_ratio(traffic.load, capacity), rng)


@dataclass(frozen=True, config=STRICT)
class RareStalls:
    """A sharp knee that stops now and then: the longer the trial, the likelier that it sees a stall.

    Stalls come independently of each other, of exponentially distributed length; a stalled SUT loses what its queue
    does not hold.

    Attributes:
        capacity: Greatest forwarding rate, in frames per second.
        interval: Mean time between stalls, in seconds.
        stall: Mean length of a stall, in seconds.
        queue: Frames that are held during a stall.
        overload: What is forwarded of more load than the capacity.
    """

    capacity: FrameRate
    interval: Seconds
    stall: Seconds
    queue: Frames = 0.0
    overload: Overload = GRACEFUL

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return partial(self._lost_frames, rng=rng)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """By bisection of the compound Poisson distribution of stalled time; None where no trial may exceed."""
        if exceed_ratio == 0.0:
            return None
        return smallest_exceeding_load(lambda load: self._exceed_probability(load, duration, loss_ratio), exceed_ratio)

    def _lossy_stalls(self, load: float, duration: float) -> float:
        """Mean number of stalls that lose frames: what an exponential length has beyond any limit is exponential."""
        return duration / self.interval * math.exp(-self.queue / (load * self.stall))

    def _exceed_probability(self, load: float, duration: float, loss_ratio: float) -> float:
        dropped = self.overload.loss_ratio(load, self.capacity)
        if dropped > loss_ratio:
            return 1.0
        allowed = duration * (loss_ratio - dropped) / (1.0 - dropped)
        stalls = self._lossy_stalls(load, duration)
        counts = np.arange(1, int(stats.poisson.isf(1e-15, stalls)) + 2)
        return float(np.sum(stats.poisson.pmf(counts, stalls) * stats.gamma.sf(allowed, counts, scale=self.stall)))

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        dropped = random_rounding(traffic.frames * self.overload.loss_ratio(traffic.load, self.capacity), rng)
        stalls = rng.poisson(self._lossy_stalls(traffic.load, traffic.duration))
        stalled = min(traffic.duration, float(np.sum(rng.exponential(self.stall, stalls))))
        return dropped + random_rounding((traffic.frames - dropped) * stalled / traffic.duration, rng)
