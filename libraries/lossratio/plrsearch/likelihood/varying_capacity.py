"""The likelihood of a SUT whose capacity varies from trial to trial (in no draft).

Trial i has its own capacity M = m + s z, with z standard normal. Its losses are Poisson around the fitting function
with this capacity. So a trial's probability is an integral over M of two factors. The first is the Poisson probability
of its count, which is a bump around the capacity that explains the count. The second is the normal density around m. If
the bump is the wider factor, or its count is large, the integrand is nearly Gaussian around its maximum (Laplace's
method). If the bump is narrower and its count is small, the integrand is a skewed bump, which needs Gauss quadrature
with the bump as weight function. Both methods have an error of about 1 % of a trial's probability. If the count is very
large, the bump itself is a Gaussian, and all such trials together are three sums for each row. The Gauss rules follow
from a gamma distribution: its density is the probability of k losses as a function of the mean. For k = 0, the same
holds for the density of the mean at which a SUT begins to lose frames. In the logarithm of the mean, this density is a
bump that is skewed to the left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import scipy
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood.constant_capacity import log_poisson_at_mean, poisson_deviance
from lossratio.plrsearch.model import Array, Columns, Curves, FittingFunction, Indices, TrialCounts

_MANY = 2e4
"""Smallest count whose bump is a Gaussian."""
_NARROW = 0.9
"""Largest width of a narrow bump, in standard deviations of the capacity."""
_MAX_COUNT = 16
"""Largest count that has its own rule."""
_ORDER = 8
_NEAR = 0.3
"""Largest distance, in standard deviations, at which the likeliest capacity is close enough for the expansion."""
_ITERATIONS = 12
"""Maximum number of steps towards the likeliest capacity. A cell that is still far from it is improbable anyway."""
_NEAR_SPREAD = 0.05
"""If the knee is wider than this share of the capacity, the first guess of a bump's place is not good enough."""
_NEAR_STEPS = 4
_TINY = 1e-300
_LOG_ROOT_TAU = 0.5 * float(np.log(2.0 * np.pi))
GRID = 0.15
"""Step of the grid of log a on which bumps are computed; between grid points, they are interpolated."""
_CELLS_AT_ONCE = 1 << 13
"""Number of bumps that are computed at once, so that the arrays stay in the processor's cache."""


@dataclass(frozen=True)
class Bumps:
    """The probability of each trial over its own capacity: a bump.

    Arrays have the shape (points, trials), in frames per second.
    """

    place: Array
    """The capacity that explains the count; for a count of 0, the capacity with a mean of 0.7."""
    width: Array
    """Approximate standard deviation of the bump; for a count of 0, the width of its step."""


class VaryingCapacityLikelihood:
    """Poisson losses around a capacity that varies normally. Each trial has its own z, so no trials are added up.

    Trials with the same load, exposure and count are one group. With a deviation of 0 it is the Poisson likelihood.

    Attributes:
        groups: The groups, by their counts.
        trials: How many trials each group has.
        constant: The constant to add to `log_probability` for the logarithm of the counts' probability.
    """

    def __init__(self, counts: TrialCounts) -> None:
        """Groups the trials."""
        columns = np.stack([counts.lost, counts.load, counts.exposure])
        _, first, multiplicity = np.unique(columns, axis=1, return_index=True, return_counts=True)
        self.groups = counts.at(first)
        self.trials: Array = multiplicity.astype(float)
        lost = self.groups.lost
        self._log_exposure = np.log(self.groups.exposure)
        self._log_own_rate = np.log(np.where(lost > 0, lost, 0.7)) - self._log_exposure
        self._lossless = int(np.searchsorted(lost, 0, side="right"))
        self._few = int(np.searchsorted(lost, _MAX_COUNT, side="right"))
        self._many = int(np.searchsorted(lost, _MANY))
        self._at_mean = np.zeros(len(lost))
        self._at_mean[self._lossless :] = log_poisson_at_mean(lost[self._lossless :])
        self.constant = float(self._at_mean @ self.trials)
        self._grids: dict[str, dict[float, tuple[Array, Array]]] = {}

    def bumps(self, function: FittingFunction, log_spread: Array) -> Bumps:
        """The bumps at each log a, by cubics between grid points, which are computed once."""
        known = self._grids.setdefault(function.name, {})
        at = np.round(log_spread / GRID, 9)
        first = np.floor(at)
        around = first[:, None] + np.where(at > first, 1.0, 0.0)[:, None] * np.arange(-1.0, 3.0)
        grid = np.unique(around)
        new = [place for place in grid if place not in known]
        if new:
            found = self._bumps(function, np.exp(GRID * np.array(new))[:, None])
            known.update(zip(new, zip(found.place, found.width, strict=True), strict=True))

        t = at - first
        # Formula: Lagrange's cubics through four neighbours.
        cubics = (
            -t * (t - 1) * (t - 2) / 6,
            (t * t - 1) * (t - 2) / 2,
            -t * (t + 1) * (t - 2) / 2,
            t * (t * t - 1) / 6,
        )
        rows = (
            np.stack(cubics, axis=1).ravel(),
            np.searchsorted(grid, around).ravel(),
            4 * np.arange(len(at) + 1),
        )
        weights = scipy.sparse.csr_array(rows, shape=(len(at), len(grid)))
        place, width = (
            weights @ np.stack(column) for column in zip(*map(known.__getitem__, grid), strict=True)
        )

        return Bumps(place, width)

    def _bumps(self, function: FittingFunction, spread: Array) -> Bumps:
        """The bumps at widths of the knee of shape (rows, 1)."""
        size = max(1, _CELLS_AT_ONCE // max(1, len(self.groups)))
        parts = [
            self._piece(function, spread[at : at + size]) for at in range(0, len(spread), size)
        ]
        place, width = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Bumps(place, width)

    def _piece(self, function: FittingFunction, spread: Array) -> tuple[Array, Array]:
        place = np.maximum(
            function.explaining_mrr(self.groups.load, self._log_own_rate, spread), spread
        )
        loss = function.log_loss(self.groups.load, place, spread)
        place = np.maximum(place - (loss.log_rate - self._log_own_rate) / loss.slope, spread)
        slope = np.broadcast_to(loss.slope, place.shape).copy()
        # The guess is good if m is far above a.
        near = np.flatnonzero((spread > _NEAR_SPREAD * place).any(axis=1))
        for _ in range(_NEAR_STEPS if len(near) else 0):
            own, wide = place[near], spread[near]
            loss = function.log_loss(self.groups.load, own, wide)
            moved = np.maximum(own - (loss.log_rate - self._log_own_rate) / loss.slope, wide)
            place[near], slope[near] = np.where(wide > _NEAR_SPREAD * own, moved, own), loss.slope
        return place, -1.0 / (slope * np.sqrt(np.maximum(self.groups.lost, 1.0)))

    def log_probability(self, at: Curves, bumps: Bumps) -> Array:
        """Log probability of the counts without the constant, shape (points,). The curves' arrays are columns."""
        narrow = bumps.width[:, : self._many] < _NARROW * at.deviation
        narrow[:, self._few :] = False
        parts = np.empty(narrow.shape)
        rows, trials = np.nonzero(~narrow)
        parts[rows, trials] = _integrals(self._cells(at, bumps, rows, trials), at.function)

        for first, last, compute in (
            (0, self._lossless, self._steps),
            (self._lossless, self._few, self._skewed),
        ):
            rows, trials = np.nonzero(narrow[:, first:last])
            if len(rows):
                parts[rows, trials + first] = compute(at, rows, trials + first)

        # The bumps of trials with very many losses are Gaussians.
        place, width = bumps.place[:, self._many :], bumps.width[:, self._many :]
        variance = width**2 + at.deviation**2
        gaussian = 0.5 * (np.log(width**2 / variance) - (place - at.mrr) ** 2 / variance)
        return np.asarray(parts @ self.trials[: self._many] + gaussian @ self.trials[self._many :])

    def _cells(self, at: Curves, bumps: Bumps, rows: Indices, trials: Indices) -> _Cells:
        """Pairs of points and trials, with a first guess of the likeliest capacities."""
        place, width = bumps.place[rows, trials], bumps.width[rows, trials]
        mrr = at.mrr[rows, 0]
        spread = at.spread[rows, 0]
        deviation = at.deviation[rows, 0]
        capacity = mrr + (place - mrr) * deviation**2 / (deviation**2 + width**2)
        low, high = np.minimum(mrr, place), np.maximum(mrr, place)
        load = self.groups.load[trials]
        lost = self.groups.lost[trials]
        log_exposure = self._log_exposure[trials]
        quiet = lost == 0

        if quiet.any():
            mean, wide = mrr[quiet], width[quiet]
            log_mean = (
                at.function.log_loss_rate(load[quiet], mean, spread[quiet]) + log_exposure[quiet]
            )
            lift = wright_omega(log_mean + 2.0 * np.log(deviation[quiet] / wide))
            low[quiet] = mean
            high[quiet] += 12.0 * wide
            capacity[quiet] = np.minimum(mean + wide * lift, high[quiet])

        return _Cells(load, lost, log_exposure, mrr, spread, deviation, capacity, low, high)

    def _steps(self, at: Curves, rows: Indices, trials: Indices) -> Array:
        """No losses: the probability that the capacity is above a smooth step."""
        capacity = self._nodes(at, rows, trials, np.zeros_like(trials))
        distance = (at.mrr[rows] - capacity) / at.deviation[rows]
        tail = scipy.special.ndtr(distance) @ _rules()[1][0]
        log_tail = np.log(np.maximum(tail, _TINY))
        tiny = tail < _TINY
        if tiny.any():
            log_tail[tiny] = _log_sum(
                scipy.special.log_ndtr(distance[tiny]) + np.log(_rules()[1][0])
            )
        return np.asarray(log_tail)

    def _skewed(self, at: Curves, rows: Indices, trials: Indices) -> Array:
        """Few losses: the normal density, averaged over the capacities that explain the count."""
        counts = self.groups.lost[trials].astype(int)
        deviation = at.deviation[rows]
        capacity = self._nodes(at, rows, trials, counts)
        steepness = -at.function.log_loss(
            self.groups.load[trials][:, None], capacity, at.spread[rows]
        ).slope
        distance = (capacity - at.mrr[rows]) / deviation
        weights = _rules()[1][counts]
        log_factor = np.log(weights / (steepness * deviation * counts[:, None])) - _LOG_ROOT_TAU
        return _log_sum(log_factor - 0.5 * distance**2) - self._at_mean[trials]

    def _nodes(self, at: Curves, rows: Indices, trials: Indices, counts: Indices) -> Array:
        """Capacities at which the mean is one of the bump's nodes, shape (pairs, nodes)."""
        log_rate = _rules()[0][counts] - self._log_exposure[trials][:, None]
        spread = at.spread[rows]
        return np.maximum(
            at.function.explaining_mrr(self.groups.load[trials][:, None], log_rate, spread), spread
        )


def _log_sum(log_terms: Array) -> Array:
    """Logarithms of sums along the last axis."""
    top = log_terms.max(axis=-1)
    return np.asarray(top + np.log(np.exp(log_terms - top[:, None]).sum(axis=-1)))


def wright_omega(z: Array) -> Array:
    """The solution w of w + log w = z, to about a ten-thousandth; SciPy's function takes ten times as long."""
    z = np.maximum(z, -30.0)
    log = np.maximum(z, 0.0) + np.log(1.0 + np.exp(-np.abs(z)))
    rough = log * (1.0 - np.log(1.0 + log) / (2.0 + log))
    return np.asarray(rough * (1.0 + z - np.log(rough)) / (1.0 + rough))


@dataclass(frozen=True)
class _Cells(Columns):
    """Pairs of points and trials: arrays of shape (cells,), loads and capacities in frames per second.

    `capacity` is approximately the likeliest capacity, given count and mean. It is between `low` and `high`.
    """

    load: Array
    lost: Array
    log_exposure: Array
    mrr: Array
    spread: Array
    deviation: Array
    capacity: Array
    low: Array
    high: Array


def _integrals(cells: _Cells, function: FittingFunction) -> Array:
    """Logarithms of the cells' integrals, expanded around the likeliest capacities."""
    values, open_ones = np.empty(len(cells.load)), np.arange(len(cells.load))
    for iteration in range(_ITERATIONS):
        values[open_ones], far, step = _expanded(cells, function)
        cells = cells.at(far)
        open_ones = open_ones[far]
        step = step[far]
        if not len(open_ones):
            break
        cells = _moved(cells, step, bisect=iteration % 3 == 2)
    return values


def _expanded(cells: _Cells, function: FittingFunction) -> tuple[Array, NDArray[np.bool_], Array]:
    """Logarithms of integrals by expansion around the cells' capacities, relative to a count that equals the mean.

    Also returns which capacities are too far from the likeliest capacities for this, and the steps towards the latter.
    """
    loss = function.log_loss(cells.load, cells.capacity, cells.spread)
    log_mean = loss.log_rate + cells.log_exposure
    mean = np.exp(log_mean)
    excess = cells.lost - mean
    curvature = function.curvature(cells.load, cells.capacity, cells.spread, loss)
    bend = np.maximum(mean * loss.slope**2 - excess * curvature, 0.0)
    surprise = log_mean - np.log(np.maximum(cells.lost, 1.0))
    log_probability = np.where(cells.lost > 0, -cells.lost * poisson_deviance(surprise), -mean)
    offset = (cells.capacity - cells.mrr) / np.maximum(cells.deviation, _TINY)
    stiffness = 1.0 + cells.deviation**2 * bend
    push = cells.deviation * excess * loss.slope - offset
    gain = push**2 / stiffness
    far = gain > _NEAR**2
    value = log_probability + 0.5 * (np.where(far, 0.0, gain) - offset**2 - np.log(stiffness))

    return np.minimum(value, 0.0), far, cells.deviation * push / stiffness


def _moved(cells: _Cells, step: Array, *, bisect: bool) -> _Cells:
    """The cells with capacities closer to the likeliest ones: after the steps, if these stay within the bracket."""
    low = np.where(step > 0, cells.capacity, cells.low)
    high = np.where(step > 0, cells.high, cells.capacity)
    target = cells.capacity + step
    inside = (target > low) & (target < high) & (not bisect)
    return replace(cells, capacity=np.where(inside, target, 0.5 * (low + high)), low=low, high=high)


def _rule(shape: int) -> tuple[Array, Array]:
    """Nodes and weights for the logarithm of a gamma distributed variable, by polynomials on a fine grid."""
    x = np.linspace(
        np.log(shape) - 45.0 / shape - 3.0, np.log(shape + 12.0 * np.sqrt(shape) + 30.0), 4001
    )
    root = np.exp(0.5 * (shape * x - np.exp(x) - shape * np.log(shape) + shape))
    # Orthonormal polynomials, the first of which is constant. In their basis, multiplication by x is a matrix.
    polynomials, _ = np.linalg.qr(
        root[:, None] * legvander(np.linspace(-1.0, 1.0, len(x)), _ORDER - 1)
    )
    nodes, vectors = np.linalg.eigh(polynomials.T @ (x[:, None] * polynomials))
    return nodes, vectors[0] ** 2


@cache
def _rules() -> tuple[Array, Array]:
    """For each count, logarithms of the mean at the nodes, and their weights, whose sum is 1; shapes (counts, nodes).

    They are computed on first use. With OpenBLAS's threads, this takes a third of the time of all imports of lossratio.
    """
    nodes, weights = zip(*(_rule(max(count, 1)) for count in range(_MAX_COUNT + 1)), strict=True)
    return np.stack(nodes), np.stack(weights)
