"""The region in log s and log a that holds the posterior of a varying capacity, found from coarse to fine.

With many trials each count's probability is approximated by a Gaussian (`rough_rows`). Then the density in a row is a
Gaussian in m, but for trials without loss, and needs no search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood import Bumps, Model, RowDensity, VaryingCapacityLikelihood
from lossratio.plrsearch.model import Array, TrialCounts
from lossratio.plrsearch.quadrature.rows import explaining_starts, find_rows

DEPTH = 12.5
"""Nats below the maximum at which the support ends: 5 standard deviations of a Gaussian."""
DEEP = 20.0
"""Nats below the maximum at which a row in log m ends."""
_HEAVY = 8.0
"""Nats below the maximum; an end of the support that is higher is too heavy."""
_SLICES = 7
_FIRST_ROWS = 18
_ROWS = 9
_ENOUGH = 4
_ENOUGH_LOSSY = 8
_ROUNDS = 25
_ITERATIONS = 6
_NEAR = 0.1
"""Standard deviations of a row by which its maximum may be missed."""
_FAR = 30.0
"""Standard deviations above a step; its hazard is 0 farther above."""
_POINTS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Support:
    """The region that holds the posterior."""

    low_deviation: float
    """Log s at which it begins."""
    high_deviation: float
    """Log s at which it ends."""
    low_spread: Polynomial
    """The log a at which it begins, as a polynomial in log s."""
    high_spread: Polynomial
    """The log a at which it ends, as a polynomial in log s."""
    lowest_spread: float
    """Smallest log a of any slice."""
    highest_spread: float
    """Largest log a of any slice."""

    @classmethod
    def through(cls, ends: tuple[float, float], log_deviation: Array, low: Array, high: Array) -> Support:
        """A support with polynomials through the ends of some slices, so that the ends between slices are smooth.

        No end is beyond the outermost of these ends: there a polynomial may be far from the posterior.
        """
        degree = min(2, len(log_deviation) - 1)
        low_fit, high_fit = (Polynomial.fit(log_deviation, ends_of_slices, degree) for ends_of_slices in (low, high))
        return cls(*ends, low_fit, high_fit, float(low.min()), float(high.max()))

    @property
    def deviations(self) -> tuple[float, float]:
        """Log s at which it begins and ends."""
        return self.low_deviation, self.high_deviation

    def spreads(self, log_deviation: Array) -> tuple[Array, Array]:
        """Log a at which the support begins and ends at each log s."""
        low = np.clip(self.low_spread(log_deviation), self.lowest_spread, self.highest_spread)
        return low, np.clip(self.high_spread(log_deviation), low + 1e-9, self.highest_spread + 1e-9)


Masses = Callable[[Array, Array], Array]
"""Logarithms of the rows' integrals over log m, from their log s and log a; all of one shape."""


def deviation_bounds(counts: TrialCounts) -> tuple[float, float]:
    """The prior's bounds in log s: 1e-6 and 0.1 of the median forwarding rate of trials that lost frames."""
    lossy = counts.lost > 0
    forwarded = counts.load[lossy] - counts.lost[lossy] / counts.exposure[lossy]
    forwarded = forwarded[forwarded > 0]
    scale = float(np.median(forwarded)) if len(forwarded) else float(counts.load.max(initial=1e6))
    return float(np.log(1e-6 * scale)), float(np.log(0.1 * scale))


def find_support(model: Model, likelihood: VaryingCapacityLikelihood) -> Support:
    """Finds the support, by the exact density where trials are few, else by an approximation."""

    def by_approximation(log_deviation: Array, log_spread: Array) -> Array:
        rows = model.rows(log_spread.ravel(), np.exp(log_deviation.ravel()))
        return rough_rows(rows, likelihood).log_mass.reshape(log_spread.shape)

    def by_search(log_deviation: Array, log_spread: Array) -> Array:
        rows = model.rows(log_spread.ravel(), np.exp(log_deviation.ravel()))
        return find_rows(rows, explaining_starts(rows), DEEP).log_mass.reshape(log_spread.shape)

    rough = likelihood.trials @ (likelihood.groups.lost > 0) >= _ENOUGH_LOSSY
    masses = by_approximation if rough else by_search
    bounds = deviation_bounds(likelihood.groups)
    log_deviation = np.linspace(*bounds, _SLICES)
    ceiling = model.prior.highest_log_mrr(DEEP)
    low, high = np.zeros(_SLICES), np.full(_SLICES, ceiling)
    rows = _FIRST_ROWS
    for _ in range(_ROUNDS):
        low, high, log_mass = _slices(masses, log_deviation, low, high, rows)
        rows = _ROWS
        inside = np.flatnonzero(log_mass > log_mass.max() - DEPTH)
        if len(inside) >= _ENOUGH:
            break
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, _SLICES - 1)
        finer = np.linspace(log_deviation[first], log_deviation[last], _SLICES)
        low = np.interp(finer, log_deviation, _neighbourhood(low, np.minimum))
        high = np.interp(finer, log_deviation, _neighbourhood(high, np.maximum))
        log_deviation = finer
    low_end, high_end, _ = extent(log_deviation[None], log_mass[None], *bounds)
    ends = float(low_end[0]), float(high_end[0])
    return Support.through(ends, *within(ends, log_deviation, low, high))


def _slices(masses: Masses, log_deviation: Array, low: Array, high: Array, rows: int) -> tuple[Array, Array, Array]:
    """Narrows each slice's range of log a to its support; returns both ends, and the log of the slice's integral."""
    low, high = low.copy(), high.copy()
    log_mass = np.full(len(log_deviation), -np.inf)
    open_ones = np.arange(len(log_deviation))
    for _ in range(_ROUNDS):
        if not len(open_ones):
            break
        spacing = (high - low)[open_ones] / (rows - 1)
        log_spread = low[open_ones, None] + spacing[:, None] * np.arange(rows)
        row_masses = masses(np.broadcast_to(log_deviation[open_ones, None], log_spread.shape), log_spread)
        log_mass[open_ones] = scipy.special.logsumexp(row_masses, axis=1) + np.log(spacing)
        inside = row_masses > row_masses.max(axis=1, keepdims=True) - DEPTH
        slices = np.arange(len(open_ones))
        first = np.maximum(np.argmax(inside, axis=1) - 1, 0)
        last = np.minimum(rows - np.argmax(inside[:, ::-1], axis=1), rows - 1)
        unresolved = (inside.sum(axis=1) < _ENOUGH) & (spacing > 1e-10)
        ends = extent(log_spread, row_masses, 0.0, np.inf)
        low[open_ones] = np.where(unresolved, log_spread[slices, first], ends[0])
        high[open_ones] = np.where(unresolved, log_spread[slices, last], ends[1])
        open_ones, rows = open_ones[unresolved], _ROWS
    return low, high, log_mass


def _neighbourhood(values: Array, extreme: Callable[[Array, Array], Array]) -> Array:
    """Each value's extreme with its two neighbours."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    return extreme(extreme(padded[:-2], padded[2:]), values)


def extent(x: Array, log_mass: Array, floor: float, ceiling: float) -> tuple[Array, Array, NDArray[np.bool_]]:
    """The places along x where log masses are DEPTH below their maximum, and whether x covers that range well.

    Args:
        x: Increasing positions, shape (rows, points).
        log_mass: Logarithms of densities at them.
        floor: Where the domain begins.
        ceiling: Where it ends.

    Returns:
        Lower and upper ends, shape (rows,): between points by interpolation, beyond heavy ends by half of the range;
        and whether each end of x has little mass or is the domain's, and most points are inside.
    """
    points = x.shape[1]
    rows = np.arange(len(x))
    depth = log_mass - log_mass.max(axis=1, keepdims=True) + DEPTH
    inside = depth > 0
    first, last = np.argmax(inside, axis=1), points - 1 - np.argmax(inside[:, ::-1], axis=1)
    ends = []
    for end, outer in ((first, np.maximum(first - 1, 0)), (last, np.minimum(last + 1, points - 1))):
        share = depth[rows, end] / np.maximum(depth[rows, end] - depth[rows, outer], 1e-300)
        ends.append(x[rows, end] + np.where(end == outer, 0.0, share) * (x[rows, outer] - x[rows, end]))
    low, high = ends
    width = high - low
    light = DEPTH - _HEAVY
    low = np.where(depth[:, 0] > light, np.maximum(low - 0.5 * width, floor), low)
    high = np.where(depth[:, -1] > light, np.minimum(high + 0.5 * width, ceiling), high)
    low_fits = (depth[:, 0] < light) | (x[:, 0] <= floor + 1e-9)
    high_fits = (depth[:, -1] < light) | (x[:, -1] >= ceiling - 1e-9)
    return low, high, low_fits & high_fits & (inside.sum(axis=1) >= 0.6 * points)


def within(ends: tuple[float, float], log_deviation: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Slices between the ends, and the spreads' ends there, by interpolation."""
    positions = np.linspace(*ends, _SLICES)
    return positions, np.interp(positions, log_deviation, low), np.interp(positions, log_deviation, high)


@dataclass(frozen=True)
class RoughRows:
    """The rows' maxima, approximately; arrays of shape (rows,)."""

    mode: Array
    """Log m of the highest density."""
    log_mass: Array
    """Logarithm of the row's integral over log m."""


def rough_rows(density: RowDensity, likelihood: VaryingCapacityLikelihood) -> RoughRows:
    """The rows' maxima and integrals with Gaussian bumps (see `Bumps`); at least one trial must have lost frames."""
    size = max(1, _POINTS_AT_ONCE // len(likelihood.groups))
    pieces = [
        _piece(likelihood, density.bumps.chosen(slice(at, at + size)), density.deviation[at : at + size, None])
        for at in range(0, len(density.log_spread), size)
    ]
    mode, height, stiffness = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    mode = np.maximum(np.log(np.maximum(mode, 1.0)), density.log_spread)
    log_width = 0.5 * np.log(2.0 * np.pi / stiffness) - mode
    return RoughRows(mode, height + log_width + density.model.prior.log_density(mode))


def _piece(likelihood: VaryingCapacityLikelihood, bumps: Bumps, deviation: Array) -> tuple[Array, Array, Array]:
    """Place, height and negative second derivative of the maximum in m."""
    lossy = likelihood.groups.lost > 0
    trials, quiet = likelihood.trials[lossy], likelihood.trials[~lossy]
    scale = np.hypot(deviation, bumps.width)
    weight = trials * scale[:, lossy] ** -2
    place = bumps.place[:, lossy]
    total = weight.sum(axis=1)
    mean = np.sum(weight * place, axis=1) / total
    constant = -0.5 * np.sum(weight * (place - mean[:, None]) ** 2, axis=1)
    constant -= np.log(scale[:, lossy] / bumps.width[:, lossy]) @ trials
    step, step_scale = bumps.place[:, ~lossy], scale[:, ~lossy]
    best, stiffness = mean, total
    for _ in range(_ITERATIONS if not lossy.all() else 0):
        distance = np.minimum((best[:, None] - step) / step_scale, _FAR)
        hazard = np.sqrt(2.0 / np.pi) / scipy.special.erfcx(-np.sqrt(0.5) * distance)
        # It is between 0 and 1; far from the step both terms cancel, and only rounding errors are left.
        curvature = np.clip(hazard * (hazard + distance), 0.0, 1.0)
        stiffness = total + (curvature / step_scale**2) @ quiet
        move = ((hazard / step_scale) @ quiet - total * (best - mean)) / stiffness
        best = best + move
        if np.all(move * move * stiffness < _NEAR**2):
            break
    tails = scipy.special.log_ndtr((best[:, None] - step) / step_scale) @ quiet
    return best, constant - 0.5 * total * (best - mean) ** 2 + tails, stiffness
