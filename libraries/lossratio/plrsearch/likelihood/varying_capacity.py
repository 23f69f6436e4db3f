"""The likelihood of a SUT whose capacity varies from trial to trial (in no draft).

Trial i has its own capacity M = m + s z, z standard normal; its losses are Poisson around the fitting function with
that capacity. A trial's probability is then an integral over M of two factors: the Poisson probability of its count,
a bump around the capacity that explains the count, and the normal density around m. Where the bump is the wider
factor, or its count is large, the integrand is nearly Gaussian around its maximum (Laplace's method). Where the bump is
the narrower one and its count small, it is a skewed bump: Gauss quadrature with the bump as weight function.
Either is good to about 1 % of a trial's probability. Where the count is very large, the bump itself is a Gaussian: all
such trials together are three sums for each row.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from lossratio.plrsearch.likelihood.bumps import MAX_COUNT, NODES, WEIGHTS
from lossratio.plrsearch.likelihood.constant_capacity import Bumps, Parameters, Score, log_poisson_at_mean
from lossratio.plrsearch.likelihood.laplace import Cells, integrals
from lossratio.plrsearch.model import Array, FittingFunction, Indices, TrialCounts

_MANY = 2e4
"""Count from which on a bump is a Gaussian."""
_POINTS_OF_ROW = 7
_NARROW = 0.9
"""Widths of a bump in deviations of the capacity, up to which the bump is the narrower factor."""
_LOG_ROOT_TAU = 0.5 * float(np.log(2.0 * np.pi))
_TINY = 1e-300


class VaryingCapacityLikelihood:
    """Poisson losses around a capacity that varies normally; every trial counts for itself, since each has its own z.

    Only trials that are the same in everything are one group. With a deviation of 0 it is the Poisson likelihood.

    Attributes:
        trials: How many trials each group has.
    """

    def __init__(self, counts: TrialCounts) -> None:
        columns = np.stack([counts.lost, counts.load, counts.exposure])
        columns, multiplicity = np.unique(columns, axis=1, return_counts=True)
        self.groups = TrialCounts(columns[1], columns[2], columns[0])
        self.trials = multiplicity.astype(float)
        lost = self.groups.lost
        self._log_exposure = np.log(self.groups.exposure)
        self._log_own_rate = np.log(np.where(lost > 0, lost, 0.7)) - self._log_exposure
        self._lossless = int(np.searchsorted(lost, 0, side="right"))
        self._few = int(np.searchsorted(lost, MAX_COUNT, side="right"))
        self._many = int(np.searchsorted(lost, _MANY))
        self.terms = max(self._many, len(lost) // _POINTS_OF_ROW)
        self._at_mean = np.zeros(len(lost))
        self._at_mean[self._lossless :] = log_poisson_at_mean(lost[self._lossless :])
        self.constant = float(self._at_mean @ self.trials)

    def value(self, function: FittingFunction, at: Parameters) -> Array:
        """See `Likelihood.value`."""
        return self.score(function, at).value

    def score(self, function: FittingFunction, at: Parameters) -> Score:
        """See `Likelihood.score`."""
        bumps = self.bumps(function, at.spread[:, 0]) if at.bumps is None else at.bumps
        narrow = bumps.width[:, : self._many] < _NARROW * at.deviation[:, 0]
        narrow[:, self._few :] = False
        parts = integrals(self._cells(function, at, bumps), function, ~narrow[:, None, :])
        for first, last, compute in ((0, self._lossless, self._steps), (self._lossless, self._few, self._skewed)):
            rows, trials = np.nonzero(narrow[:, first:last])
            if len(rows):
                parts[:, rows, :, trials + first] = compute(function, at, rows, trials + first)
        value, slope, information = parts @ self.trials[: self._many] + self._gaussian(at, bumps)
        return Score(value, slope, information)

    def _gaussian(self, at: Parameters, bumps: Bumps) -> Array:
        """Log probability, slope and information of the trials with very many losses, shape (3, rows, points)."""
        place, width, trials = bumps.place[:, self._many :], bumps.width[:, self._many :], self.trials[self._many :]
        variance = width**2 + at.deviation[:, 0] ** 2
        weight = trials / variance
        total = weight.sum(axis=1, keepdims=True)
        centre = np.sum(weight * place, axis=1, keepdims=True) / np.maximum(total, _TINY)
        constant = np.log(width**2 / variance) @ trials - np.sum(weight * (place - centre) ** 2, axis=1)
        offset = at.mrr[:, :, 0] - centre
        value = 0.5 * (constant[:, None] - total * offset**2)
        return np.stack([value, -total * offset, np.broadcast_to(total, value.shape)])

    def bumps(self, function: FittingFunction, spread: Array) -> Bumps:
        """See `Likelihood.bumps`."""
        place = np.maximum(function.explaining_mrr(self.groups.load, self._log_own_rate, spread), spread)
        loss = function.log_loss(self.groups.load, place, spread)
        place = np.maximum(place - (loss.log_rate - self._log_own_rate) / loss.slope, spread)
        return Bumps(place, -1.0 / (loss.slope * np.sqrt(np.maximum(self.groups.lost, 1.0))))

    def _cells(self, function: FittingFunction, at: Parameters, bumps: Bumps) -> Cells:
        """All trials without very many losses, at all points, with a first guess of the likeliest capacities."""
        place, width = bumps.place[:, None, : self._many], bumps.width[:, None, : self._many]
        share = at.deviation**2 / (at.deviation**2 + width**2)
        capacity = at.mrr + (place - at.mrr) * share
        low, high = np.minimum(at.mrr, place), np.maximum(at.mrr, place)
        if self._lossless:
            first = slice(self._lossless)
            log_mean = function.log_loss_rate(self.groups.load[first], at.mrr, at.spread) + self._log_exposure[first]
            lift = _lambert(np.exp(np.minimum(log_mean, 300.0)) * (at.deviation / width[..., first]) ** 2)
            low[..., first] = at.mrr
            high[..., first] += 12.0 * width[..., first]
            capacity[..., first] = np.minimum(at.mrr + width[..., first] * lift, high[..., first])
        each = slice(self._many)
        trials = (self.groups.load[each], self.groups.lost[each], self._log_exposure[each])
        return Cells(*trials, at.mrr, at.spread, at.deviation, capacity, low, high)

    def _steps(self, function: FittingFunction, at: Parameters, rows: Indices, trials: Indices) -> Array:
        """No losses: the probability that the capacity is above a step that is smeared a little."""
        capacity = self._nodes(function, at, rows, trials, np.zeros_like(trials))
        deviation = at.deviation[rows]
        distance = (at.mrr[rows] - capacity[:, None, :]) / deviation
        log_tail = log_ndtr(distance)
        log_terms = log_tail + np.log(WEIGHTS[0])
        value, shares = _summed(log_terms)
        hazard = np.exp(-0.5 * distance**2 - _LOG_ROOT_TAU - log_tail) / deviation
        slope = np.sum(shares * hazard, axis=-1)
        bend = np.sum(shares * hazard * (distance / deviation), axis=-1) + slope**2
        return np.stack([value, slope, np.maximum(bend, 0.0)], axis=1)

    def _skewed(self, function: FittingFunction, at: Parameters, rows: Indices, trials: Indices) -> Array:
        """Few losses: the normal density, averaged over the capacities that the count's mean may mean."""
        counts = self.groups.lost[trials].astype(int)
        capacity = self._nodes(function, at, rows, trials, counts)
        steepness = -function.log_loss(self.groups.load[trials][:, None], capacity, at.spread[rows][:, :, 0]).slope
        deviation = at.deviation[rows]
        distance = (capacity[:, None, :] - at.mrr[rows]) / deviation
        log_factor = np.log(WEIGHTS[counts] / (steepness * deviation[:, :, 0] * counts[:, None])) - _LOG_ROOT_TAU
        log_terms = log_factor[:, None, :] - 0.5 * distance**2
        value, shares = _summed(log_terms)
        offset = np.sum(shares * distance, axis=-1)
        spread_out = np.sum(shares * (distance - offset[..., None]) ** 2, axis=-1)
        deviation = deviation[:, :, 0]
        value -= self._at_mean[trials][:, None]
        return np.stack([value, offset / deviation, np.maximum(1.0 - spread_out, 0.0) / deviation**2], axis=1)

    def _nodes(
        self, function: FittingFunction, at: Parameters, rows: Indices, trials: Indices, counts: Indices
    ) -> Array:
        """Capacities at which the mean is one of the bump's nodes, shape (pairs, nodes)."""
        log_rate = NODES[counts] - self._log_exposure[trials][:, None]
        spread = at.spread[rows][:, :, 0]
        return np.maximum(function.explaining_mrr(self.groups.load[trials][:, None], log_rate, spread), spread)


def _summed(log_terms: Array) -> tuple[Array, Array]:
    """Logarithms of sums along the last axis, and each term's share of its sum."""
    top = log_terms.max(axis=-1, keepdims=True)
    shares = np.exp(log_terms - top)
    total = shares.sum(axis=-1, keepdims=True)
    return (top + np.log(total))[..., 0], shares / total


def _lambert(x: Array) -> Array:
    """The solution y of y exp(y) = x, to some per cent."""
    log = np.log1p(x)
    return np.asarray(log * (1.0 - np.log1p(log) / (2.0 + log)))
