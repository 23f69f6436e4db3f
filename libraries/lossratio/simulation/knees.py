"""SUTs with a knee: the forwarding rate follows the load up to a capacity, then bends, sharply or smoothly."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import numpy as np
from pydantic.dataclasses import dataclass
from scipy import special, stats

from lossratio.simulation.sut import (
    GRACEFUL,
    STRICT,
    FrameRate,
    Overload,
    RunningSut,
    Traffic,
    random_rounding,
    smallest_exceeding_load,
)


@dataclass(frozen=True, config=STRICT)
class SharpKnee:
    """Forwards everything up to its capacity.

    Attributes:
        capacity: Greatest forwarding rate, in frames per second.
        overload: The behaviour at loads above the capacity.
    """

    capacity: FrameRate
    overload: Overload = GRACEFUL

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return partial(self._lost_frames, rng=rng)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """The capacity for a goal without loss, or ``capacity / (1 - loss_ratio)`` if overload costs nothing."""
        return self.overload.lossy_load(self.capacity, loss_ratio)

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        return random_rounding(traffic.frames * self.overload.loss_ratio(traffic.load, self.capacity), rng)


@dataclass(frozen=True, config=STRICT)
class SmoothKnee:
    """Loses some frames far below its largest forwarding rate: a fitting function of PLRsearch, with Poisson counts.

    Source: draft-vpolak-bmwg-plrsearch-02, section 5.3, in a form without cancellation.

    Attributes:
        mrr: Forwarding rate that it approaches in overload, in frames per second.
        spread: Width of the knee, in frames per second.
        function: Shape of the knee.
    """

    mrr: FrameRate
    spread: FrameRate
    function: Literal["stretch", "erf"] = "stretch"

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return partial(self._lost_frames, rng=rng)

    def loss_rate(self, load: float) -> float:
        """Mean frames lost per second at a load in frames per second."""
        rate = self._stretch(load) if self.function == "stretch" else self._erf(load)
        return min(load, max(0.0, rate))

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """By bisection of the Poisson distribution of lost frames; None for an exceed ratio of 0."""
        if exceed_ratio == 0.0:
            return None
        return smallest_exceeding_load(
            lambda load: float(
                stats.poisson.sf(math.floor(loss_ratio * load * duration), self.loss_rate(load) * duration)
            ),
            exceed_ratio,
        )

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        return min(traffic.frames, int(rng.poisson(self.loss_rate(traffic.load) * traffic.duration)))

    def _stretch(self, load: float) -> float:
        ratio = math.exp(-self.mrr / self.spread)
        shifted = (load - self.mrr) / self.spread + math.log(-math.expm1(-load / self.spread)) - math.log1p(ratio)
        return self.spread * (1.0 + ratio) * float(np.logaddexp(0.0, shifted))

    def _erf(self, load: float) -> float:
        origin = self.mrr / self.spread
        lost = _erfc_integral((self.mrr - load) / self.spread) - _erfc_integral(origin)
        return self.spread * lost / float(special.erfc(-origin))


def _erfc_integral(lower: float) -> float:
    if lower <= 0.0:
        return math.exp(-lower * lower) / math.sqrt(math.pi) - lower * float(special.erfc(lower))
    return math.exp(-lower * lower) * (1.0 / math.sqrt(math.pi) - lower * float(special.erfcx(lower)))
