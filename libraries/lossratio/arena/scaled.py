"""A SUT that has become faster or slower as a whole, as a new version of its software may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lossratio.simulation import RunningSut, Sut, Traffic


@dataclass(frozen=True)
class Scaled:
    """A SUT that does with `factor` times the load what another one does.

    Attributes:
        part: The other SUT.
        factor: How much faster this one is; above 0.
    """

    part: Sut
    factor: float

    def start(self, rng: np.random.Generator) -> RunningSut:
        """The other SUT, fed with fewer or more frames."""
        running = self.part.start(rng)

        def lost_frames(traffic: Traffic) -> int:
            frames = max(1, round(traffic.frames / self.factor))
            lost = running(Traffic(traffic.start, traffic.duration, frames))
            return min(traffic.frames, math.ceil(lost * self.factor))

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """The other SUT's, times the factor."""
        truth = self.part.truth(loss_ratio=loss_ratio, duration=duration, exceed_ratio=exceed_ratio)
        return None if truth is None else truth * self.factor
