"""Pauses that overflow a ring: how long they are, how often they come, and what the ring holds.

While a device does not read for a time *x*, its ring fills. At a load *L*, a pause loses L x - r frames if the ring
holds only r, which is fewer than L x. The sizes and the number of the losses at several loads show length, ring and
frequency. The lengths may differ. They have a gamma distribution, whose shape is 1 if they are exponential.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy

from lossratio.plrsearch.model import Array, CriticalLoadQuestion, TrialCounts
from lossratio.plrsearch.variation.pause_losses import EQUAL, STEP, Fit, PauseLosses, moments
from lossratio.units import format_about

_SHAPES = (1.0, 6.0, 36.0, 216.0, 1e8)
"""The shapes of the lengths' distribution that are compared, from exponential to equal lengths."""
_NEARLY_EQUAL, _MANY_LOSSES = (1296.0, 7776.0), 30
"""Further shapes, if there are at least so many losses. Fewer do not show how little the lengths differ."""
_COMPARABLE = 30.0
"""Longer pauses are not tried for shapes that are less likely than the best one by more nats."""
_UNUSUAL = 2.0
"""Lengths that are neither exponential nor equal must be likelier than these by this many nats, because few devices
have such lengths."""
_PLAUSIBLE = 6.0
"""A plausible shape is less likely than the best shape by at most this many nats."""
_LENGTH, _RING = 0.15, 0.25
"""Length and ring are stated if the standard deviations of their logarithms are at most these values."""
_LARGEST_RING = 32768.0
"""No ring holds more frames. If the losses fit a larger one, they do not come from pauses."""
_ALIKE = 1.2
"""Largest factor between the lengths by plausible shapes."""
_KNOWN = 8.0
"""The load that pauses allow is stated if the factor between the smallest and the largest plausible load is at most
this."""
_SURE = 1.1
"""The same factor for a sure verified load."""
_MOST_STDEV = 5.0
"""Largest standard deviation of the logarithm of the load that is distinguished."""


@dataclass(frozen=True)
class Allowed:
    """The load at which pauses lose the target ratio, in frames per second, as far as it is known."""

    likeliest: float
    """The load by the likeliest pauses."""
    least: float
    """The smallest load by any plausible pauses, minus twice its standard deviation."""
    most: float
    """The largest load by any plausible pauses, plus twice its standard deviation."""

    @property
    def is_known(self) -> bool:
        """Whether losses show the load well enough for it to be stated."""
        return self.most < _KNOWN * self.least

    @property
    def is_sure(self) -> bool:
        """Whether losses show the load so well that they do not speak against a verified load below it."""
        return self.most < _SURE * self.least


@dataclass(frozen=True)
class Pauses:
    """Pauses of a device, as far as its losses show them."""

    every_s: float
    """Mean seconds between pauses."""
    length_s: float
    """Mean length in seconds."""
    shape: float
    """Shape of the lengths' gamma distribution."""
    ring_frames: float
    """Frames that the ring holds."""
    log_likelihood: float
    """Log likelihood of the counts."""
    covariance: Array = field(default_factory=lambda: np.diag(np.full(3, np.inf)), compare=False)
    """Covariance of the logarithms of the pauses per second, the length and the ring; infinite if the losses do not
    show them."""
    plausible: tuple[Pauses, ...] = ()
    """Pauses of all shapes that explain the counts nearly as well, including these pauses."""

    @classmethod
    def of(cls, counts: TrialCounts, *, has_batches: bool = False) -> Pauses | None:
        """The likeliest pauses; None if the losses are too few, or do not come from pauses.

        If frames are lost in batches, only losses far below overload come from pauses.
        """
        losses = PauseLosses.of(counts, has_batches=has_batches)
        if losses is None:
            return None
        shapes: tuple[float, ...] = _SHAPES
        if len(losses.lost) >= _MANY_LOSSES:
            shapes = (*_SHAPES, *_NEARLY_EQUAL)
        fits = [losses.fitted(shape) for shape in shapes]
        comparable = max(map(_weight, fits)) - _COMPARABLE
        for fit in tuple(fits):
            if fit.shape >= EQUAL and _weight(fit) > comparable:
                fits += losses.longer(fit)

        fits = [fit for fit in fits if _are_apart(fit)]
        if not fits:
            return None
        fits.sort(key=_weight, reverse=True)
        least = _weight(fits[0]) - _PLAUSIBLE
        plausible = [
            cls._of_fit(fit, losses.covariance(fit)) for fit in fits if _weight(fit) > least
        ]
        return replace(plausible[0], plausible=tuple(plausible))

    @classmethod
    def _of_fit(cls, fit: Fit, covariance: Array) -> Pauses:
        often, length, ring = np.exp(fit.parameters).tolist()
        return cls(1.0 / often, length, fit.shape, ring, fit.log_likelihood, covariance)

    @cached_property
    def stdevs(self) -> tuple[float, float]:
        """Standard deviations of the logarithms of length and ring; infinite if the losses do not show them."""
        stdevs = np.sqrt(np.diag(self.covariance))
        return float(stdevs[1]), float(stdevs[2])

    @property
    def _parameters(self) -> Array:
        """Logarithms of the pauses per second, the length, and the ring; see `moments`."""
        return np.log([1.0 / self.every_s, self.length_s, self.ring_frames])

    @property
    def is_sure(self) -> bool:
        """Whether lengths are about equal, and losses show them well enough for them to be stated.

        Lengths that differ a lot cannot be distinguished from other losses that do not come from the load.
        """
        lengths = [fit.length_s for fit in self.plausible]
        is_usual = self.ring_frames < _LARGEST_RING
        is_alike = bool(lengths) and max(lengths) < _ALIKE * min(lengths)
        has_equal = self.shape >= EQUAL
        return has_equal and is_usual and is_alike and self.stdevs[0] < _LENGTH

    def loss_ratio(self, load: float) -> float:
        """Share of the frames that are lost to pauses at a load in frames per second."""
        return float(moments(np.array([load]), self._parameters, self.shape)[3][0])

    def least_losses(self, loads: Array) -> Array:
        """Pauses per second that lose frames at loads in frames per second, by the plausible pauses that lose least."""
        often = [moments(loads, fit._parameters, fit.shape)[0] for fit in self.plausible]
        return np.asarray(np.min(often, axis=0))

    def critical_load(self, question: CriticalLoadQuestion) -> float:
        """The load in frames per second at which the target ratio is lost to pauses, within the limits."""
        target = question.target_loss_ratio
        low = question.min_load
        high = question.max_load
        if self.loss_ratio(low) >= target:
            return low
        if self.loss_ratio(high) <= target:
            return high
        return float(scipy.optimize.brentq(lambda load: self.loss_ratio(load) - target, low, high))

    def allowed(self, question: CriticalLoadQuestion) -> Allowed:
        """The load at which the target ratio is lost to pauses, and what is plausible."""
        ranges = [fit._range(question) for fit in self.plausible or (self,)]
        least = min(low for low, _ in ranges)
        most = max(high for _, high in ranges)
        return Allowed(self.critical_load(question), least, most)

    def _range(self, question: CriticalLoadQuestion) -> tuple[float, float]:
        """Twice the standard deviation below and above the load with the target ratio, within the limits."""
        if not np.all(np.isfinite(self.covariance)):
            return question.min_load, question.max_load

        load = self.critical_load(question)
        more = 1.0 + STEP
        moved = (
            replace(self, every_s=self.every_s / more),
            replace(self, length_s=self.length_s * more),
            replace(self, ring_frames=self.ring_frames * more),
        )
        loads = np.array([pauses.critical_load(question) for pauses in moved])
        slopes = np.log(loads / load) / np.log1p(STEP)

        variance = float(slopes @ self.covariance @ slopes)
        stdev = min(math.sqrt(max(variance, 0.0)), _MOST_STDEV)
        low = load * math.exp(-2.0 * stdev)
        high = load * math.exp(2.0 * stdev)
        return max(low, question.min_load), min(high, question.max_load)

    @property
    def known_ring_frames(self) -> float | None:
        """Frames that the ring holds; None if the losses do not show it."""
        return self.ring_frames if self.stdevs[1] < _RING else None

    def __str__(self) -> str:
        """The pauses, in one line. It does not say who pauses: the frames may also have come too late."""
        ring = "a ring"
        if self.known_ring_frames is not None:
            ring = f"a ring of about {format_about(self.ring_frames)} frames, if all frames go through one ring"
        return (
            f"Frames are lost in pauses, about {format_about(3600.0 / self.every_s)} times an hour. Pauses are about "
            f"{format_about(1e6 * self.length_s)} us long, and overflow {ring}"
        )


def _weight(fit: Fit) -> float:
    """The log likelihood of a fit, which is less if its lengths are neither exponential nor equal."""
    is_usual = fit.shape in (_SHAPES[0], _SHAPES[-1])
    return fit.log_likelihood - (0.0 if is_usual else _UNUSUAL)


def _are_apart(fit: Fit) -> bool:
    """Whether pauses are shorter than the time between them, as they do not overlap."""
    often, length, _ = fit.parameters
    return bool(often + length < 0.0)
