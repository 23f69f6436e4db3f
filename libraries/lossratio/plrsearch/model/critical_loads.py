"""Mean loss as a function of load if the capacity varies, and the load at which the mean loss ratio is the target.

If every trial has its own capacity m + s z, with z standard normal, then the mean loss of infinitely many trials is the
fitting function's mean over z. The critical load is defined by this mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.checked_arguments import checked
from lossratio.errors import SearchError
from lossratio.plrsearch.model.functions import ERF, STRETCH, Array, FittingFunction, LogLoss

Indices = NDArray[np.intp]

_CAPACITIES = np.arange(-14, 15) * 0.6
_CAPACITY_WEIGHTS = np.exp(-0.5 * _CAPACITIES**2) / np.exp(-0.5 * _CAPACITIES**2).sum()
_KNEES = np.arange(-13, 37) * 1.25
_KNEE_WEIGHTS = 1.25 / (4.0 * np.cosh(0.5 * _KNEES) ** 2)
_NARROW = 1.5

_ITERATIONS = 100


@dataclass(frozen=True)
class CurvePoint(LogLoss):
    """Mean loss at some loads."""

    load_slope: Array
    """Derivative of `log_rate` with respect to the load, per frame per second."""


@dataclass(frozen=True)
class Curves:
    """Curves of mean loss of one fitting function, one per entry of the arrays, in frames per second."""

    function: FittingFunction
    """The fitting function."""
    mrr: Array
    """Limiting forwarding rates."""
    spread: Array
    """Widths of the knee."""
    deviation: Array
    """Standard deviations of the capacity between trials."""

    def at(self, which: Indices | np.intp) -> Curves:
        """Some of the curves, or one."""
        return Curves(self.function, self.mrr[which], self.spread[which], self.deviation[which])

    def loss(self, load: Array) -> CurvePoint:
        """Mean loss of each curve at its load."""
        if self.function is ERF or not self.deviation.any():
            return _plain(self.function, load, self.mrr, self._widened)
        narrow = self.deviation < _NARROW * self.spread
        parts = np.empty((3, len(load)))
        for chosen, compute in ((narrow, _narrow_stretch), (~narrow, _wide_stretch)):
            if chosen.any():
                parts[:, chosen] = compute(
                    load[chosen], self.mrr[chosen], self.spread[chosen], self.deviation[chosen]
                )
        return CurvePoint(*parts)

    def log_loss_rate(self, load: Array) -> Array:
        """Logarithms of mean lost frames per second if the capacity is `mrr`."""
        return self.function.log_loss_rate(load, self.mrr, self.spread)

    def explaining_mrr(self, load: Array, log_loss_rate: Array) -> Array:
        """The approximate mrr at which each curve has the given mean loss rate at the load."""
        plain = self.function.explaining_mrr(load, log_loss_rate, self._widened)
        if self.function is ERF or not self.deviation.any():
            return plain
        lifted = log_loss_rate - 0.5 * (self.deviation / self.spread) ** 2
        steep = self.function.explaining_mrr(load, lifted, self.spread)
        like_erf = ERF.explaining_mrr(
            load, log_loss_rate, np.hypot(2.5 * self.spread, np.sqrt(2.0) * self.deviation)
        )
        return np.where(self.deviation < _NARROW * self.spread, steep, like_erf)

    @property
    def _widened(self) -> Array:
        """Spreads.

        For an erf function, they include the deviation: a Gaussian convolved with a Gaussian is a Gaussian.
        """
        is_erf = self.function is ERF
        return np.hypot(self.spread, np.sqrt(2.0) * self.deviation) if is_erf else self.spread


def _plain(function: FittingFunction, load: Array, mrr: Array, spread: Array) -> CurvePoint:
    loss = function.log_loss(load, mrr, spread)
    return CurvePoint(loss.log_rate, loss.slope, function.load_slope(load, mrr, spread))


def _narrow_stretch(load: Array, mrr: Array, spread: Array, deviation: Array) -> Array:
    """Sums over capacities: the trapezoid rule, which is nearly exact if the curve is smooth on their scale."""
    capacity = np.maximum(mrr[:, None] + deviation[:, None] * _CAPACITIES, spread[:, None])
    point = _plain(STRETCH, load[:, None], capacity, spread[:, None])
    top = point.log_rate.max(axis=1)
    shares = np.exp(point.log_rate - top[:, None]) * _CAPACITY_WEIGHTS
    total = shares.sum(axis=1)
    slopes = [np.sum(shares * slope, axis=1) / total for slope in (point.slope, point.load_slope)]
    return np.stack([top + np.log(total), *slopes])


def _wide_stretch(load: Array, mrr: Array, spread: Array, deviation: Array) -> Array:
    """Sums over the knee: a stretch function is a sharp knee at a logistically distributed place.

    So its mean over normal capacities is a sum of the means of sharp knees, which are known.
    """
    distance = -((load - mrr)[:, None] + spread[:, None] * _KNEES) / deviation[:, None]
    scaled = scipy.special.erfcx(np.abs(distance) / np.sqrt(2.0))
    bell = np.exp(-0.5 * distance**2)
    tail = 0.5 * bell * scaled
    below = np.where(distance > 0, tail, 1.0 - tail) @ _KNEE_WEIGHTS
    excess = bell * (1.0 / np.sqrt(2.0 * np.pi) - 0.5 * np.abs(distance) * scaled)
    excess += np.maximum(-distance, 0.0)
    rate = np.maximum(excess @ _KNEE_WEIGHTS, 1e-300)
    slope = np.maximum(below, 1e-300) / (rate * deviation)
    return np.stack([np.log(rate * deviation), -slope, slope])


@checked(SearchError)
@dataclass(frozen=True)
class CriticalLoadQuestion:
    """The question that a search answers: at which load is the mean loss ratio the target?

    Raises:
        SearchError: If a value makes no sense.
    """

    target_loss_ratio: float
    """Between 0 and 1, exclusive."""
    min_load: float
    """Smallest possible answer, in frames per second."""
    max_load: float
    """Largest possible answer, in frames per second."""

    def __post_init__(self) -> None:
        if not 0.0 < self.target_loss_ratio < 1.0:
            raise SearchError(
                f"The target loss ratio must be between 0 and 1, exclusive, not {self.target_loss_ratio!r}."
            )
        if not (0.0 < self.min_load < self.max_load < np.inf):
            raise SearchError(
                f"The loads must be 0 < minimum < maximum < infinity, not {self.min_load!r} and {self.max_load!r}."
            )


def critical_load(
    curves: Curves, question: CriticalLoadQuestion, targets: Array | None = None
) -> Array:
    """The load in frames per second at which the mean loss ratio is the target, clamped to the limits.

    The excess of log r - log b over log t increases with the load. With `targets`, each curve has its own target.
    """
    mrr = curves.mrr
    log_target = np.log(
        np.full(mrr.shape, question.target_loss_ratio) if targets is None else targets
    )

    def excess(load: Array, which: Indices) -> tuple[Array, Array]:
        point = curves.at(which).loss(load)
        slope = np.maximum(point.load_slope - 1.0 / load, 1e-12 / load)
        return point.log_rate - np.log(load) - log_target[which], slope

    start = mrr - curves.explaining_mrr(np.zeros(()), log_target + np.log(mrr))
    low = np.full(mrr.shape, question.min_load)
    # If the capacity varies by a large share of itself, the loss is above the target even at the smallest loads.
    high = np.where(excess(low, np.arange(len(mrr)))[0] < 0.0, question.max_load, low)
    return root(excess, start, low, high, np.minimum(curves.spread, question.min_load))


def mrr_of_critical_load(
    curves: Curves, question: CriticalLoadQuestion, load: Array, ceiling: float
) -> Array:
    """The mrr with the given critical load, between the mrr of the curves and `ceiling`, or the nearer end."""
    wanted = np.log(question.target_loss_ratio) + np.log(load)

    def lack(mrr: Array, which: Indices) -> tuple[Array, Array]:
        point = replace(curves.at(which), mrr=mrr).loss(load[which])
        return wanted[which] - point.log_rate, np.maximum(-point.slope, 1e-300)

    start = curves.explaining_mrr(load, wanted)
    return root(lack, start, curves.mrr, np.maximum(curves.mrr, ceiling), curves.spread)


def root(
    function: Callable[[Array, Indices], tuple[Array, Array]],
    start: Array,
    low: Array,
    high: Array,
    scale: Array,
) -> Array:
    """Roots of increasing functions, or the nearer end, by Newton's method within brackets.

    A step beyond an end first leads onto it. Newton's method squares its error, so no step is needed after a step of
    1e-5 of the scale on which the function bends.
    """
    active = np.arange(len(start))
    x = np.clip(start, low, high)
    below = np.nextafter(low, -np.inf)
    above = np.nextafter(high, np.inf)

    for _ in range(_ITERATIONS):
        if not len(active):
            break

        here = x[active]
        value, slope = function(here, active)
        below[active] = np.where(value < 0, here, below[active])
        above[active] = np.where(value < 0, above[active], here)
        moved = np.clip(here - value / slope, low[active], high[active])
        inside = (moved > below[active]) & (moved < above[active]) | (moved == here)
        x[active] = np.where(inside, moved, 0.5 * (below[active] + above[active]))
        active = active[np.abs(x[active] - here) > 1e-5 * scale[active]]

    return np.asarray(np.clip(x, low, high))
