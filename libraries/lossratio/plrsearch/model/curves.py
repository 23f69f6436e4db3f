"""Mean loss as a function of load, averaged over a capacity that varies from trial to trial.

If every trial has its own capacity m + s z, with z standard normal, then the mean loss of infinitely many trials is the
fitting function's mean over z. The critical load is about that mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from lossratio.plrsearch.model.functions import ERF, STRETCH, Array, FittingFunction

Indices = NDArray[np.intp]

_CAPACITIES = np.arange(-14, 15) * 0.6
_CAPACITY_WEIGHTS = np.exp(-0.5 * _CAPACITIES**2) / np.exp(-0.5 * _CAPACITIES**2).sum()
_KNEES = np.arange(-13, 37) * 1.25
_KNEE_WEIGHTS = 1.25 / (4.0 * np.cosh(0.5 * _KNEES) ** 2)
_NARROW = 1.5


@dataclass(frozen=True)
class CurvePoint:
    """Mean loss at some loads.

    Attributes:
        log_rate: Natural logarithm of the mean loss rate in frames per second.
        load_slope: Its derivative with respect to the load, per frame per second.
        mrr_slope: Its derivative with respect to the mrr, per frame per second.
    """

    log_rate: Array
    load_slope: Array
    mrr_slope: Array


@dataclass(frozen=True)
class Curves:
    """Curves of mean loss of one fitting function, one per entry of the arrays.

    Attributes:
        function: The fitting function.
        spread: Widths of the knee in frames per second, shape (curves,).
        deviation: Standard deviations of the capacity in frames per second, shape (curves,).
    """

    function: FittingFunction
    spread: Array
    deviation: Array

    def at(self, load: Array, mrr: Array, which: Indices) -> CurvePoint:
        """Mean loss at loads, of the chosen curves with these mrrs; all of shape (chosen,)."""
        spread, deviation = self.spread[which], self.deviation[which]
        if self.function is ERF or not deviation.any():
            return _plain(self.function, load, mrr, self._widened(which))
        varying = deviation > 0.0
        narrow, wide = varying & (deviation < _NARROW * spread), varying & (deviation >= _NARROW * spread)
        parts = np.empty((3, len(load)))
        for chosen, compute in ((~varying, _constant_stretch), (narrow, _narrow_stretch), (wide, _wide_stretch)):
            if chosen.any():
                parts[:, chosen] = compute(load[chosen], mrr[chosen], spread[chosen], deviation[chosen])
        return CurvePoint(parts[0], parts[1], parts[2])

    def explaining_mrr(self, load: Array, log_loss_rate: Array) -> Array:
        """About the mrr at which each curve's mean loss rate at the load is the given one."""
        plain = self.function.explaining_mrr(load, log_loss_rate, self._widened(np.arange(len(self.spread))))
        if self.function is ERF or not self.deviation.any():
            return plain
        steep = self.function.explaining_mrr(
            load, log_loss_rate - 0.5 * (self.deviation / self.spread) ** 2, self.spread
        )
        like_erf = ERF.explaining_mrr(load, log_loss_rate, np.hypot(2.5 * self.spread, np.sqrt(2.0) * self.deviation))
        return np.where(self.deviation < _NARROW * self.spread, steep, like_erf)

    def _widened(self, which: Indices) -> Array:
        """Spreads; those of an erf function include the deviation: a Gaussian folded with a Gaussian is a Gaussian."""
        spread = self.spread[which]
        return np.hypot(spread, np.sqrt(2.0) * self.deviation[which]) if self.function is ERF else spread


def _plain(function: FittingFunction, load: Array, mrr: Array, spread: Array) -> CurvePoint:
    loss = function.log_loss(load, mrr, spread)
    return CurvePoint(loss.log_rate, function.load_slope(load, mrr, spread), loss.slope)


def _constant_stretch(load: Array, mrr: Array, spread: Array, deviation: Array) -> Array:
    point = _plain(STRETCH, load, mrr, spread)
    return np.stack([point.log_rate, point.load_slope, point.mrr_slope])


def _narrow_stretch(load: Array, mrr: Array, spread: Array, deviation: Array) -> Array:
    """Sums over capacities: the trapezoid rule, which is nearly exact where the curve is smooth on their scale."""
    capacity = np.maximum(mrr[:, None] + deviation[:, None] * _CAPACITIES, spread[:, None])
    point = _plain(STRETCH, load[:, None], capacity, spread[:, None])
    top = point.log_rate.max(axis=1)
    shares = np.exp(point.log_rate - top[:, None]) * _CAPACITY_WEIGHTS
    total = shares.sum(axis=1)
    slopes = [np.sum(shares * slope, axis=1) / total for slope in (point.load_slope, point.mrr_slope)]
    return np.stack([top + np.log(total), *slopes])


def _wide_stretch(load: Array, mrr: Array, spread: Array, deviation: Array) -> Array:
    """Sums over the knee: a stretch function is a sharp knee at a logistically distributed place.

    So its mean over normal capacities is a sum of the means of sharp knees, which are known.
    """
    distance = -((load - mrr)[:, None] + spread[:, None] * _KNEES) / deviation[:, None]
    scaled = erfcx(np.abs(distance) / np.sqrt(2.0))
    bell = np.exp(-0.5 * distance**2)
    tail = 0.5 * bell * scaled
    below = np.where(distance > 0, tail, 1.0 - tail) @ _KNEE_WEIGHTS
    excess = bell * (1.0 / np.sqrt(2.0 * np.pi) - 0.5 * np.abs(distance) * scaled)
    excess += np.maximum(-distance, 0.0)
    rate = np.maximum(excess @ _KNEE_WEIGHTS, 1e-300)
    slope = np.maximum(below, 1e-300) / (rate * deviation)
    return np.stack([np.log(rate * deviation), slope, -slope])
