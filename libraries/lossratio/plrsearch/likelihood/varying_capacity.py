"""The likelihood of a SUT whose capacity varies from trial to trial (in no draft).

Trial i has its own capacity M = m + s z, with z standard normal. Its losses are Poisson around the fitting function
with this capacity. So a trial's probability is an integral over M of two factors. The first is the Poisson probability
of its count, which is a bump around the capacity that explains the count. The second is the normal density around m.

The logarithm of the mean count is nearly a line over the bump, with the bump's slope. Then the likeliest capacity is
known in closed form. The integral is a Gauss-Hermite sum around it: the capacities are chosen by the line, but each
term of the sum is exact. There are two exceptions. A trial without loss has a step instead of a bump. If the step is
narrow, the trial's probability is the probability that the capacity is above the step. If the count is very large, the
bump itself is a Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import scipy
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import legvander

from lossratio.plrsearch.likelihood.constant_capacity import log_poisson_at_mean, poisson_deviance
from lossratio.plrsearch.model import Array, Columns, Curves, FittingFunction, Indices, TrialCounts

_FEW, _MANY = 16.0, 2e4
"""Up to the first count, the sum has more terms. Above the second one, the bump is a Gaussian."""
_TERMS_OF_FEW, _TERMS = 7, 3
_STEP_TERMS = 8
_SHARP = 1.1
"""Smallest deviation of the capacity, in widths of a step, for which the step is narrow."""
MEAN_OF_NONE = 0.7
"""The mean count at the middle of the step of a trial without loss."""
_NEWTON_STEPS = 2
_LARGE = 600.0
GRID = 0.15
"""Step of the grid of log a on which bumps are computed; between grid points, they are interpolated."""


@dataclass(frozen=True)
class Bumps(Columns):
    """The probability of each trial over its own capacity: a bump, or a step; arrays of shape (points, groups)."""

    place: Array
    """The capacity that explains the count, in frames per second; for a count of 0, the capacity with a mean of 0.7."""
    steepness: Array
    """By how much the logarithm of the mean count falls with the capacity there, per frame per second."""


class VaryingCapacityLikelihood:
    """Poisson losses around a capacity that varies normally. Each trial has its own z, so no trials are added up.

    Trials with the same load, exposure and count are one group.

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
        self._lossless, self._few, self._countable = np.searchsorted(
            lost, (0.0, _FEW, _MANY), "right"
        )
        self._log_own_mean: Array = np.log(np.where(lost > 0, lost, MEAN_OF_NONE))
        self._log_exposure = np.log(self.groups.exposure)
        lossy = slice(self._lossless, None)
        self.constant = float(log_poisson_at_mean(lost[lossy]) @ self.trials[lossy])

    def bumps(self, function: FittingFunction, log_spread: Array) -> Bumps:
        """The bumps at each log a, by a spline between grid points if these are fewer."""
        places, which = np.unique(log_spread, return_inverse=True)
        first, last = np.floor(places[[0, -1]] / GRID)
        grid = GRID * np.arange(first - 1.0, last + 3.0)
        if len(places) <= len(grid):
            return self._bumps(function, places).at(which)
        known = self._bumps(function, grid)
        both = scipy.interpolate.make_interp_spline(grid, np.hstack([known.place, known.steepness]))
        return Bumps(*np.split(both(log_spread), 2, axis=1))

    def _bumps(self, function: FittingFunction, log_spread: Array) -> Bumps:
        load, spread = self.groups.load, np.exp(log_spread)[:, None]
        wanted = self._log_own_mean - self._log_exposure
        place = function.explaining_mrr(load, wanted, spread)
        # The guess is exact if m is far above a. A place below a is where the line from a would lead.
        for _ in range(_NEWTON_STEPS):
            place = np.maximum(place, spread)
            loss = function.log_loss(load, place, spread)
            place = place - (loss.log_rate - wanted) / loss.slope
        return Bumps(place, -loss.slope)

    def log_probability(self, at: Curves, bumps: Bumps) -> Array:
        """Log probability of the counts without the constant, shape (points,). The curves' arrays are columns."""
        parts = np.empty((len(at.mrr), self._countable))
        is_sharp = np.zeros(parts.shape, dtype=bool)
        steps = slice(0, self._lossless)
        is_sharp[:, steps] = bumps.steepness[:, steps] * at.deviation > _SHARP
        is_few = np.arange(self._countable) < self._few
        for chosen, compute in (
            (is_sharp, self._above_step),
            (~is_sharp & is_few, partial(self._around_bump, terms=_TERMS_OF_FEW)),
            (~is_sharp & ~is_few, partial(self._around_bump, terms=_TERMS)),
        ):
            points, groups = np.nonzero(chosen)
            if len(points):
                parts[points, groups] = compute(at, bumps, points, groups)

        many = slice(self._countable, None)
        width = 1.0 / (bumps.steepness[:, many] ** 2 * self.groups.lost[many])
        variance = width + at.deviation**2
        gaussian = np.log(width / variance) - (bumps.place[:, many] - at.mrr) ** 2 / variance
        return np.asarray(
            parts @ self.trials[: self._countable] + 0.5 * gaussian @ self.trials[many]
        )

    def _around_bump(
        self, at: Curves, bumps: Bumps, points: Indices, groups: Indices, terms: int
    ) -> Array:
        """Sums around the likeliest capacities of pairs of points and groups, relative to a count equal to its mean."""
        mrr, spread, deviation = at.mrr[points], at.spread[points], at.deviation[points]
        load, lost, log_exposure, log_own_mean = (
            column[groups, None]
            for column in (
                self.groups.load,
                self.groups.lost,
                self._log_exposure,
                self._log_own_mean,
            )
        )
        place, steepness = bumps.place[points, groups, None], bumps.steepness[points, groups, None]
        line = Line(lost, (deviation * steepness) ** -2)
        mean = line.likeliest_mean(log_own_mean + steepness * (place - mrr))
        width = deviation / np.sqrt(1.0 + mean)
        nodes, log_weights = _hermite(terms)
        # The likeliest capacity is that much above m.
        offset = (mean - line.pull) / steepness + width * nodes
        capacity = np.maximum(mrr + offset, spread)
        log_mean = at.function.log_loss_rate(load, capacity, spread) + log_exposure
        surprise = np.minimum(log_mean - log_own_mean, _LARGE)
        log_poisson = np.where(
            lost > 0, -lost * poisson_deviance(surprise), -MEAN_OF_NONE * np.exp(surprise)
        )
        log_terms = log_poisson - 0.5 * (offset / deviation) ** 2 + log_weights
        return _log_sum(log_terms + np.log(width / deviation))

    def _above_step(self, at: Curves, _: Bumps, points: Indices, groups: Indices) -> Array:
        """No losses: the probability that the capacity is above the step, averaged over the step's places."""
        log_mean, log_weights = _step()
        log_rate = log_mean - self._log_exposure[groups, None]
        spread = at.spread[points]
        step = at.function.explaining_mrr(self.groups.load[groups, None], log_rate, spread)
        distance = (at.mrr[points] - np.maximum(step, spread)) / at.deviation[points]
        return _log_sum(scipy.special.log_ndtr(distance) + log_weights)


@dataclass(frozen=True)
class Line:
    """A Poisson count whose mean has a normally distributed logarithm, as if that were a line over capacities."""

    lost: Array
    """The count."""
    stiffness: Array
    """One divided by the variance of the logarithm."""

    @property
    def pull(self) -> Array:
        """The count, in units of the stiffness."""
        return self.lost / self.stiffness

    def likeliest_mean(self, log_mean: Array) -> Array:
        """The likeliest mean in units of the stiffness, given the logarithm of the mean at m."""
        return wright_omega(log_mean + self.pull - np.log(self.stiffness))


def wright_omega(z: Array) -> Array:
    """The solution w of w + log w = z, to about a ten-thousandth; SciPy's function takes ten times as long."""
    z = np.maximum(z, -30.0)
    log = np.maximum(z, 0.0) + np.log(1.0 + np.exp(-np.abs(z)))
    rough = log * (1.0 - np.log(1.0 + log) / (2.0 + log))
    return np.asarray(rough * (1.0 + z - np.log(rough)) / (1.0 + rough))


def _log_sum(log_terms: Array) -> Array:
    """Logarithms of sums along the last axis."""
    top = log_terms.max(axis=-1)
    return np.asarray(top + np.log(np.exp(log_terms - top[:, None]).sum(axis=-1)))


@cache
def _hermite(terms: int) -> tuple[Array, Array]:
    """Nodes in standard deviations of a Gaussian, and logarithms of the weights of values divided by its density."""
    nodes, weights = hermegauss(terms)
    return nodes, np.log(weights / np.sqrt(2.0 * np.pi)) + 0.5 * nodes**2


@cache
def _step() -> tuple[Array, Array]:
    """Gauss's rule for the logarithm of an exponentially distributed mean, by polynomials on a fine grid.

    The mean at which a SUT begins to lose frames is distributed like this. The weights are logarithms.
    """
    log_mean = np.linspace(-48.0, 4.0, 4001)
    root = np.exp(0.5 * (log_mean - np.exp(log_mean)))
    powers = legvander(np.linspace(-1.0, 1.0, len(log_mean)), _STEP_TERMS - 1)
    # Orthonormal polynomials, the first of which is constant. In their basis, multiplication by the place is a matrix.
    polynomials, _ = np.linalg.qr(root[:, None] * powers)
    nodes, vectors = np.linalg.eigh(polynomials.T @ (log_mean[:, None] * polynomials))
    return nodes, np.log(vectors[0] ** 2)
