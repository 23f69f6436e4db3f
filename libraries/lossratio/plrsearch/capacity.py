"""The likelihood of a SUT whose capacity varies from trial to trial (in no draft).

Trial i has its own capacity M = m + s z, z standard normal; its losses are Poisson around the fitting function with
that capacity. A trial's probability is then an integral over M of two factors: the Poisson probability of its count,
a bump around the capacity that explains the count, and the normal density around m. Where the bump is the wider
factor, or its count is large, the integrand is nearly Gaussian around its maximum (Laplace's method). Where the bump is
the narrower one and its count small, it is a skewed bump: Gauss quadrature with the bump as weight function.
Either is good to about 1 % of a trial's probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp

from lossratio.plrsearch.bumps import MAX_COUNT, NODES, WEIGHTS
from lossratio.plrsearch.counts import TrialCounts
from lossratio.plrsearch.curves import Indices
from lossratio.plrsearch.functions import Array, FittingFunction
from lossratio.plrsearch.likelihood import Parameters, Score, log_poisson_at_mean, poisson_deviance

_MANY = 200
"""Losses from which on the first guess of the likeliest capacity is good enough to expand around."""
_NARROW = 0.9
"""Widths of a bump in deviations of the capacity, up to which the bump is the narrower factor."""
_LOG_ROOT_TAU = 0.5 * float(np.log(2.0 * np.pi))
_TINY = 1e-300


@dataclass(frozen=True)
class Bumps:
    """Where in M the counts' probabilities have their bumps; shape (rows, trials), in frames per second.

    Attributes:
        place: The capacity that explains the count; for a count of 0, the one with a mean of 0.7.
        width: About the bump's standard deviation; for a count of 0, the width of its step.
    """

    place: Array
    width: Array


@dataclass(frozen=True)
class _Expansion:
    """The logarithm of the counts' probability at some capacities; shape (rows, points, trials).

    Attributes:
        value: Relative to the probability of a count that is the mean.
        pull: Derivative with respect to the capacity.
        bend: Negative second derivative; not negative.
    """

    value: Array
    pull: Array
    bend: Array


class VaryingCapacityLikelihood:
    """Poisson losses around a capacity that varies normally; every trial counts for itself, since each has its own z.

    With a deviation of 0 it is the Poisson likelihood.
    """

    def __init__(self, counts: TrialCounts) -> None:
        counts = counts.sorted()
        order = np.lexsort((counts.load, counts.lost))
        self.groups = TrialCounts(counts.load[order], counts.exposure[order], counts.lost[order])
        lost = self.groups.lost
        self._log_exposure = np.log(self.groups.exposure)
        self._log_own_rate = np.log(np.where(lost > 0, lost, 0.7)) - self._log_exposure
        self._lossless = int(np.searchsorted(lost, 0, side="right"))
        self._few = int(np.searchsorted(lost, MAX_COUNT, side="right"))
        self._not_many = int(np.searchsorted(lost, _MANY, side="right"))
        self._at_mean = np.zeros(len(lost))
        self._at_mean[self._lossless :] = log_poisson_at_mean(lost[self._lossless :])
        self.constant = float(np.sum(self._at_mean))

    def value(self, function: FittingFunction, at: Parameters) -> Array:
        """See `Likelihood.value`."""
        return self.score(function, at).value

    def score(self, function: FittingFunction, at: Parameters) -> Score:
        """See `Likelihood.score`."""
        bumps = self.bumps(function, at.spread[:, 0])
        parts = self._by_laplace(function, at, bumps)
        narrow = bumps.width[:, : self._few] < _NARROW * at.deviation[:, 0]
        for first, last, compute in ((0, self._lossless, self._steps), (self._lossless, self._few, self._skewed)):
            rows, trials = np.nonzero(narrow[:, first:last])
            if len(rows):
                parts[:, rows, :, trials + first] = compute(function, at, rows, trials + first)
        value, slope, information = parts.sum(axis=-1)
        return Score(value, slope, information)

    def bumps(self, function: FittingFunction, spread: Array) -> Bumps:
        """Where each trial's probability is as a function of its capacity, for spreads of shape (rows, 1)."""
        place = np.maximum(function.explaining_mrr(self.groups.load, self._log_own_rate, spread), spread)
        slope = function.log_loss(self.groups.load, place, spread).slope
        return Bumps(place, -1.0 / (slope * np.sqrt(np.maximum(self.groups.lost, 1.0))))

    def _by_laplace(self, function: FittingFunction, at: Parameters, bumps: Bumps) -> Array:
        """Log probability, slope and information of every trial, shape (3, rows, points, trials)."""
        capacity = self._likeliest_capacity(function, at, bumps)
        expansion = self._expanded(function, at, capacity, slice(None))
        offset = (capacity - at.mrr) / np.maximum(at.deviation, _TINY)
        stiffness = 1.0 + at.deviation**2 * expansion.bend
        push = at.deviation * expansion.pull - offset
        value = expansion.value + 0.5 * (push**2 / stiffness - offset**2 - np.log(stiffness))
        slope = (expansion.pull + expansion.bend * at.deviation * offset) / stiffness
        return np.stack([value, slope, expansion.bend / stiffness])

    def _likeliest_capacity(self, function: FittingFunction, at: Parameters, bumps: Bumps) -> Array:
        """About the capacities that explain each count together with m; shape (rows, points, trials)."""
        place, width = bumps.place[:, None, :], bumps.width[:, None, :]
        capacity = at.mrr + (place - at.mrr) * (at.deviation**2 / (at.deviation**2 + width**2))
        if self._lossless:
            which = slice(self._lossless)
            log_mean = function.log_loss_rate(self.groups.load[which], at.mrr, at.spread) + self._log_exposure[which]
            lift = _lambert(np.exp(np.minimum(log_mean, 300.0)) * (at.deviation / width[..., which]) ** 2)
            capacity[..., which] = at.mrr + width[..., which] * lift
        which = slice(self._not_many)
        expansion = self._expanded(function, at, capacity[..., which], which)
        offset = capacity[..., which] - at.mrr
        variance = at.deviation**2
        capacity[..., which] += (variance * expansion.pull - offset) / (1.0 + variance * expansion.bend)
        return np.maximum(capacity, at.spread)

    def _expanded(self, function: FittingFunction, at: Parameters, capacity: Array, which: slice) -> _Expansion:
        load, lost = self.groups.load[which], self.groups.lost[which]
        loss = function.log_loss(load, capacity, at.spread)
        log_mean = loss.log_rate + self._log_exposure[which]
        mean = np.exp(log_mean)
        pull = (lost - mean) * loss.slope
        bend = mean * loss.slope**2 - (lost - mean) * function.curvature(load, capacity, at.spread, loss)
        value = -mean
        lossy = slice(self._lossless, None)
        value[..., lossy] = -lost[lossy] * poisson_deviance(log_mean[..., lossy] - np.log(lost[lossy]))
        return _Expansion(value, pull, np.maximum(bend, 0.0))

    def _steps(self, function: FittingFunction, at: Parameters, rows: Indices, trials: Indices) -> Array:
        """No losses: the probability that the capacity is above a step that is smeared a little."""
        capacity = self._nodes(function, at, rows, trials, np.zeros_like(trials))
        deviation = at.deviation[rows]
        distance = (at.mrr[rows] - capacity[:, None, :]) / deviation
        log_tail = log_ndtr(distance)
        log_terms = log_tail + np.log(WEIGHTS[0])
        value = logsumexp(log_terms, axis=-1)
        shares = np.exp(log_terms - value[..., None])
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
        value = logsumexp(log_terms, axis=-1)
        shares = np.exp(log_terms - value[..., None])
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


def _lambert(x: Array) -> Array:
    """The solution y of y exp(y) = x, to some per cent."""
    log = np.log1p(x)
    return np.asarray(log * (1.0 - np.log1p(log) / (2.0 + log)))
