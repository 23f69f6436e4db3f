"""SUTs that lose each frame with the same small or large probability, at all loads or in a band of them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from pydantic import model_validator
from pydantic.dataclasses import dataclass
from scipy import stats

from lossratio.simulation.sut import (
    GRACEFUL,
    STRICT,
    FrameRate,
    Overload,
    ProperRatio,
    Ratio,
    RunningSut,
    Traffic,
    random_rounding,
    smallest_exceeding_load,
)


@dataclass(frozen=True, config=STRICT)
class ConstantLoss:
    """Loses each frame with the same probability, at any load: 0 is a perfect SUT, 1 a black hole.

    Attributes:
        loss_ratio: The probability.
    """

    loss_ratio: Ratio = 0.0

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return lambda traffic: int(rng.binomial(traffic.frames, self.loss_ratio))

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Infinite or 0. For a goal without loss, the load with so few frames that enough trials lose none."""
        if self.loss_ratio in (0.0, 1.0):
            return math.inf if self.loss_ratio <= loss_ratio else 0.0
        return _truth(self.loss_ratio, math.inf, GRACEFUL, loss_ratio, duration, exceed_ratio)


@dataclass(frozen=True, config=STRICT)
class BackgroundLoss:
    """A sharp knee that also loses each other frame with the same small probability.

    Attributes:
        capacity: Greatest forwarding rate, in frames per second.
        loss_ratio: The probability.
        overload: The behaviour at loads above the capacity.
    """

    capacity: FrameRate
    loss_ratio: ProperRatio
    overload: Overload = GRACEFUL

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return partial(self._lost_frames, rng=rng)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """By bisection of the binomial distribution of lost frames; None for an exceed ratio of 0."""
        return _truth(self.loss_ratio, self.capacity, self.overload, loss_ratio, duration, exceed_ratio)

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        dropped = random_rounding(traffic.frames * self.overload.loss_ratio(traffic.load, self.capacity), rng)
        return dropped + int(rng.binomial(traffic.frames - dropped, self.loss_ratio))


@dataclass(frozen=True, config=STRICT)
class LossInversion:
    """A sharp knee with a band of loads below it that loses frames: a higher load may lose less than a lower one.

    Attributes:
        capacity: Greatest forwarding rate, in frames per second.
        band_start: Smallest load of the band, in frames per second.
        band_end: Smallest load above the band, in frames per second; at most the capacity.
        loss_ratio: Probability to lose a frame in the band.
        overload: The behaviour at loads above the capacity.
    """

    capacity: FrameRate
    band_start: FrameRate
    band_end: FrameRate
    loss_ratio: Ratio
    overload: Overload = GRACEFUL

    @model_validator(mode="after")
    def _in_order(self) -> LossInversion:
        if not self.band_start < self.band_end <= self.capacity:
            raise ValueError("band_start must be below band_end, and band_end at most the capacity")
        return self

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return partial(self._lost_frames, rng=rng)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """The start of the band if the band exceeds the goal (the conservative side of the inversion), or the knee."""
        if _binomial_exceeds(self.band_start * duration, self.loss_ratio, loss_ratio) > exceed_ratio:
            return self.band_start
        return self.overload.lossy_load(self.capacity, loss_ratio)

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        if self.band_start <= traffic.load < self.band_end:
            return int(rng.binomial(traffic.frames, self.loss_ratio))
        return random_rounding(traffic.frames * self.overload.loss_ratio(traffic.load, self.capacity), rng)


def _truth(
    probability: float, capacity: float, overload: Overload, loss_ratio: float, duration: float, exceed_ratio: float
) -> float | None:
    knee = overload.lossy_load(capacity, loss_ratio)
    if probability == 0.0:
        return knee
    if exceed_ratio == 0.0:
        return None
    if loss_ratio == 0.0:
        return min(knee, math.log1p(-exceed_ratio) / math.log1p(-probability) / duration)

    def exceed_probability(load: float) -> float:
        dropped = overload.loss_ratio(load, capacity)
        if dropped > loss_ratio:
            return 1.0
        allowed = (loss_ratio - dropped) / (1.0 - dropped)
        return _binomial_exceeds(load * (1.0 - dropped) * duration, probability, allowed)

    return smallest_exceeding_load(exceed_probability, exceed_ratio)


def _binomial_exceeds(frames: float, probability: float, loss_ratio: float) -> float:
    return float(stats.binom.sf(math.floor(loss_ratio * frames), math.ceil(frames), probability))
