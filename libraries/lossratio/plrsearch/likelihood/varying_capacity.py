"""The likelihood of a SUT whose capacity varies from trial to trial (in no draft).

Trial i has its own capacity M = m + s z, z standard normal; its losses are Poisson around the fitting function with
that capacity. A trial's probability is then an integral over M of two factors: the Poisson probability of its count,
a bump around the capacity that explains the count, and the normal density around m. Where the bump is the wider
factor, or its count is large, the integrand is nearly Gaussian around its maximum (Laplace's method). Where the bump is
the narrower one and its count small, it is a skewed bump: Gauss quadrature with the bump as weight function.
Both have an error of about 1 % of a trial's probability. Where the count is very large, the bump itself is a Gaussian:
all such trials together are three sums for each row.

The Gauss rules: the probability of k losses, as a function of the mean, is the density of a gamma distribution; so is,
for k = 0, the density of the mean at which a SUT begins to lose frames. In the logarithm of the mean it is a bump,
skewed to the left.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood.constant_capacity import (
    Bumps,
    Parameters,
    Score,
    log_poisson_at_mean,
    poisson_deviance,
)
from lossratio.plrsearch.model import Array, FittingFunction, Indices, TrialCounts

_MANY = 2e4
"""Smallest count whose bump is a Gaussian."""
_POINTS_OF_ROW = 7
_NARROW = 0.9
"""Largest width of a narrow bump, in standard deviations of the capacity."""
_MAX_COUNT = 16
"""Largest count that has a rule of its own."""
_ORDER = 8
_NEAR = 0.3
"""Largest distance, in standard deviations, at which the likeliest capacity is near enough for the expansion."""
_ITERATIONS = 12
"""Most steps towards the likeliest capacity; a cell that is still far from it then is improbable in any case."""
_NEAR_SPREAD = 0.05
"""Width of the knee, as a share of the capacity, from which on the first guess of a bump's place is not good enough."""
_NEAR_STEPS = 4
_TINY = 1e-300
_LOG_ROOT_TAU = 0.5 * float(np.log(2.0 * np.pi))


class VaryingCapacityLikelihood:
    """Poisson losses around a capacity that varies normally; each trial has its own z, so no trials are added up.

    Trials with the same load, exposure and count are one group. With a deviation of 0 it is the Poisson likelihood.

    Attributes:
        trials: How many trials each group counts as.
    """

    def __init__(self, counts: TrialCounts, share: float = 1.0) -> None:
        """Groups the trials.

        Args:
            counts: The trials.
            share: Each trial counts as this share of one: less than 1 if successive trials are alike.
        """
        columns = np.stack([counts.lost, counts.load, counts.exposure])
        columns, multiplicity = np.unique(columns, axis=1, return_counts=True)
        self.groups = TrialCounts(columns[1], columns[2], columns[0])
        self.trials: Array = share * multiplicity.astype(float)
        lost = self.groups.lost
        self._log_exposure = np.log(self.groups.exposure)
        self._log_own_rate = np.log(np.where(lost > 0, lost, 0.7)) - self._log_exposure
        self._lossless = int(np.searchsorted(lost, 0, side="right"))
        self._few = int(np.searchsorted(lost, _MAX_COUNT, side="right"))
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
        parts = _integrals(self._cells(function, at, bumps), function, ~narrow[:, None, :])
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
        # The guess is good where m is far above a.
        for _ in range(_NEAR_STEPS if np.any(spread > _NEAR_SPREAD * place) else 0):
            loss = function.log_loss(self.groups.load, place, spread)
            moved = np.maximum(place - (loss.log_rate - self._log_own_rate) / loss.slope, spread)
            place = np.where(spread > _NEAR_SPREAD * place, moved, place)
        return Bumps(place, -1.0 / (loss.slope * np.sqrt(np.maximum(self.groups.lost, 1.0))))

    def _cells(self, function: FittingFunction, at: Parameters, bumps: Bumps) -> _Cells:
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
        counted = slice(self._many)
        trials = (self.groups.load[counted], self.groups.lost[counted], self._log_exposure[counted])
        return _Cells(*trials, at.mrr, at.spread, at.deviation, capacity, low, high)

    def _steps(self, function: FittingFunction, at: Parameters, rows: Indices, trials: Indices) -> Array:
        """No losses: the probability that the capacity is above a smooth step."""
        capacity = self._nodes(function, at, rows, trials, np.zeros_like(trials))
        deviation = at.deviation[rows]
        distance = (at.mrr[rows] - capacity[:, None, :]) / deviation
        log_tail = scipy.special.log_ndtr(distance)
        log_terms = log_tail + np.log(_WEIGHTS[0])
        value, shares = _summed(log_terms)
        hazard = np.exp(-0.5 * distance**2 - _LOG_ROOT_TAU - log_tail) / deviation
        slope = np.sum(shares * hazard, axis=-1)
        bend = np.sum(shares * hazard * (distance / deviation), axis=-1) + slope**2
        # Far below the step both terms cancel, and rounding errors may be larger than the normal density's curvature.
        return np.stack([value, slope, np.clip(bend, 0.0, deviation[:, :, 0] ** -2)], axis=1)

    def _skewed(self, function: FittingFunction, at: Parameters, rows: Indices, trials: Indices) -> Array:
        """Few losses: the normal density, averaged over the capacities that explain the count."""
        counts = self.groups.lost[trials].astype(int)
        capacity = self._nodes(function, at, rows, trials, counts)
        steepness = -function.log_loss(self.groups.load[trials][:, None], capacity, at.spread[rows][:, :, 0]).slope
        deviation = at.deviation[rows]
        distance = (capacity[:, None, :] - at.mrr[rows]) / deviation
        log_factor = np.log(_WEIGHTS[counts] / (steepness * deviation[:, :, 0] * counts[:, None])) - _LOG_ROOT_TAU
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
        log_rate = _NODES[counts] - self._log_exposure[trials][:, None]
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


@dataclass(frozen=True)
class _Cells:
    """Trials at parameters: arrays that broadcast against each other, loads and capacities in frames per second."""

    load: Array
    """Offered load."""
    lost: Array
    """Lost frames."""
    log_exposure: Array
    """Logarithm of the exposure."""
    mrr: Array
    """The capacities' mean."""
    spread: Array
    """Width of the knee."""
    deviation: Array
    """The capacities' standard deviation."""
    capacity: Array
    """About the capacity that is likeliest, given count and mean; between `low` and `high`."""
    low: Array
    """Smallest capacity that may be likeliest."""
    high: Array
    """Largest one."""

    def chosen(self, which: NDArray[np.bool_]) -> _Cells:
        """Some of the cells, one by one: arrays of shape (cells,)."""
        return _Cells(*(np.broadcast_to(getattr(self, name), which.shape)[which] for name in _FIELDS))


_FIELDS = tuple(field.name for field in fields(_Cells))


@dataclass(frozen=True)
class _Expansion:
    """Integrals of cells, expanded around their capacities, and steps to better capacities; arrays of one shape."""

    integrals: tuple[Array, Array, Array]
    """Logarithm of the integral, its derivative with respect to the mrr, and the second one's negative."""
    near: NDArray[np.bool_]
    """Whether the capacity is so near to the likeliest one that the integral is good."""
    step: Array
    """From the capacity to about the likeliest one, in frames per second."""

    @classmethod
    def of(cls, cells: _Cells, function: FittingFunction) -> _Expansion:
        log_probability, pull, bend = _expanded_probability(cells, function)
        offset = (cells.capacity - cells.mrr) / np.maximum(cells.deviation, _TINY)
        stiffness = 1.0 + cells.deviation**2 * bend
        push = cells.deviation * pull - offset
        gain = push**2 / stiffness
        near = gain <= _NEAR**2
        value = log_probability + 0.5 * (np.where(near, gain, 0.0) - offset**2 - np.log(stiffness))
        slope = (pull + bend * cells.deviation * offset) / stiffness
        return cls((np.minimum(value, 0.0), slope, bend / stiffness), near, cells.deviation * push / stiffness)


def _integrals(cells: _Cells, function: FittingFunction, wanted: NDArray[np.bool_]) -> Array:
    """Logarithm, its derivative with respect to the mrr and the second one's negative, shape (3, *cells).

    Args:
        cells: The cells, with a first guess of their likeliest capacities; mostly it is good enough.
        function: The fitting function.
        wanted: Cells whose capacity must become the likeliest one; broadcasts against the cells.
    """
    # All cells together: terms that differ between rows only, or between trials only, are then computed once.
    expansion = _Expansion.of(cells, function)
    values = np.stack(expansion.integrals)
    flat, far = values.reshape(3, -1), ~expansion.near & wanted
    open_ones, step = np.flatnonzero(far), expansion.step[far]
    cells = cells.chosen(far)
    for iteration in range(_ITERATIONS - 1):
        if not len(open_ones):
            break
        cells = _moved(cells, step, bisect=iteration % 3 == 2)
        expansion = _Expansion.of(cells, function)
        flat[:, open_ones] = expansion.integrals
        far, step = ~expansion.near, expansion.step
        cells, open_ones, step = cells.chosen(far), open_ones[far], step[far]
    return values


def _moved(cells: _Cells, step: Array, *, bisect: bool) -> _Cells:
    """The cells with capacities nearer to the likeliest ones: after the steps, if these stay in the bracket."""
    low = np.where(step > 0, cells.capacity, cells.low)
    high = np.where(step > 0, cells.high, cells.capacity)
    target = cells.capacity + step
    inside = (target > low) & (target < high) & (not bisect)
    return replace(cells, capacity=np.where(inside, target, 0.5 * (low + high)), low=low, high=high)


def _expanded_probability(cells: _Cells, function: FittingFunction) -> tuple[Array, Array, Array]:
    """Logarithm of the count's probability at the capacity, its derivative, and the second one's negative.

    The probability is relative to that of a count which is the mean.
    """
    loss = function.log_loss(cells.load, cells.capacity, cells.spread)
    log_mean = loss.log_rate + cells.log_exposure
    mean = np.exp(log_mean)
    excess = cells.lost - mean
    curvature = function.curvature(cells.load, cells.capacity, cells.spread, loss)
    bend = np.maximum(mean * loss.slope**2 - excess * curvature, 0.0)
    surprise = log_mean - np.log(np.maximum(cells.lost, 1.0))
    log_probability = np.where(cells.lost > 0, -cells.lost * poisson_deviance(surprise), -mean)
    return log_probability, excess * loss.slope, bend


def _rule(shape: int) -> tuple[Array, Array]:
    """Nodes and weights for the logarithm of a gamma distributed variable: Stieltjes' procedure on a fine grid."""
    x = np.linspace(np.log(shape) - 45.0 / shape - 3.0, np.log(shape + 12.0 * np.sqrt(shape) + 30.0), 4001)
    log_density = shape * x - np.exp(x)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    last, polynomial = np.zeros_like(x), np.ones_like(x)
    diagonal, products = np.zeros(_ORDER), np.ones(_ORDER)
    last_norm = 1.0
    for degree in range(_ORDER):
        norm = float(np.sum(density * polynomial**2))
        diagonal[degree] = np.sum(density * x * polynomial**2) / norm
        products[degree] = norm / last_norm if degree else 0.0
        last, polynomial = polynomial, (x - diagonal[degree]) * polynomial - products[degree] * last
        last_norm = norm
    off_diagonal = np.sqrt(products[1:])
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1))
    return nodes, vectors[0] ** 2


_RULES = [_rule(max(count, 1)) for count in range(_MAX_COUNT + 1)]
_NODES = np.stack([nodes for nodes, _ in _RULES])
"""Logarithms of the mean at the nodes, shape (counts, nodes)."""
_WEIGHTS = np.stack([weights for _, weights in _RULES])
"""Their weights, shape (counts, nodes); each count's sum is 1."""
