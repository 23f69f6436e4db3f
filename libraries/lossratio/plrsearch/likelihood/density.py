"""The logarithm of the posterior density over (log a, log m), up to its normalization, for many points at once.

It is prior times likelihood. The prior is the draft's (section 5.4): the mrr is Lomax distributed, the spread a random
power of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from lossratio.plrsearch.likelihood.constant_capacity import Bumps, Likelihood, Parameters, Score
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, FittingFunction, Indices, critical_load

_FLOOR = 0.01
"""Below this log m the density's factor 1 / log m is constant, to have no pole: mrrs under 1.01 frames per second."""

_POINTS_AT_ONCE = 1 << 13
"""Points times terms that are evaluated at once, so that the arrays stay in the processor's cache."""

_GRID = 0.06
"""Step of the grid of log a on which the places of the trials' probabilities are computed."""

T = TypeVar("T")


@dataclass(frozen=True)
class Prior:
    """Density over (log a, log m), where 0 < log a < log m.

    m - 1 is Lomax distributed with alpha 1, and a = m^u with u uniform on (0, 1). The draft leaves the scale of m
    open; it is half the maximum load, as in FD.io CSIT's code.
    """

    scale: float
    """Scale of the mrr, in frames per second."""

    def log_density(self, log_mrr: Array) -> Array:
        """Logarithm of the density per unit of log a and of log m."""
        reach = self._log_reach(log_mrr)
        return np.asarray(np.log(self.scale) + log_mrr - 2.0 * reach - np.log(np.maximum(log_mrr, _FLOOR)))

    def slope(self, log_mrr: Array) -> Array:
        """Derivative of `log_density` with respect to log m."""
        pole = np.where(log_mrr > _FLOOR, 1.0 / np.maximum(log_mrr, _FLOOR), 0.0)
        return np.asarray(1.0 - 2.0 * np.exp(log_mrr - self._log_reach(log_mrr)) - pole)

    def highest_log_mrr(self, drop: float) -> float:
        """The log m beyond which the prior has less than exp(-drop) of its mass."""
        return max(float(np.log(self.scale)), 1.0) + drop

    def _log_reach(self, log_mrr: Array) -> Array:
        return np.log(self.scale + np.expm1(log_mrr))


@dataclass(frozen=True)
class Model:
    """The parts of the posterior of one fitting function."""

    function: FittingFunction
    """The fitting function."""
    likelihood: Likelihood
    """The counts' probability."""
    prior: Prior
    """The parameters' prior."""
    _grid: dict[float, tuple[Array, Array]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Place and width of the trials' probabilities at steps of log a that were needed so far."""

    def bumps(self, log_spread: Array) -> Bumps:
        """The place of the trials' probabilities in rows of log a: by cubics between rows of a grid."""
        at = log_spread / _GRID
        first = np.floor(at)
        grid = np.unique(first[:, None] + np.arange(-1.0, 3.0))
        new = [place for place in grid if place not in self._grid]
        if len(new) >= len(log_spread):
            places, which = np.unique(log_spread, return_inverse=True)
            return self._exact_bumps(places).chosen(which)
        if new:
            found = self._exact_bumps(_GRID * np.array(new))
            self._grid.update(zip(new, zip(found.place, found.width, strict=True), strict=True))
        t, rows = at - first, np.arange(len(at))[:, None]
        cubics = (
            -t * (t - 1) * (t - 2) / 6,
            (t * t - 1) * (t - 2) / 2,
            -t * (t + 1) * (t - 2) / 2,
            t * (t * t - 1) / 6,
        )
        weights = np.zeros((len(at), len(grid)))
        weights[rows, np.searchsorted(grid, first - 1.0)[:, None] + np.arange(4)] = np.stack(cubics, axis=1)
        place, width = (weights @ np.stack(column) for column in zip(*map(self._grid.__getitem__, grid), strict=True))
        return Bumps(place, width)

    def _exact_bumps(self, log_spread: Array) -> Bumps:
        spread = np.exp(log_spread)[:, None]
        size = max(1, _POINTS_AT_ONCE // max(1, len(self.likelihood.groups)))
        pieces = [self.likelihood.bumps(self.function, spread[piece]) for piece in _pieces(len(spread), size)]
        return Bumps(np.concatenate([part.place for part in pieces]), np.concatenate([part.width for part in pieces]))

    def rows(self, log_spread: Array, deviation: Array) -> RowDensity:
        """The density in rows of fixed log a and capacity deviation (frames per second), each of shape (rows,)."""
        return RowDensity(self, log_spread, deviation)


@dataclass(frozen=True)
class RowDensity:
    """Prior times likelihood as a function of log m, in rows that differ in the other parameters."""

    model: Model
    """Prior and likelihood."""
    log_spread: Array
    """Log a of each row."""
    deviation: Array
    """Standard deviation of the capacity in each row, in frames per second; 0 where it does not vary."""

    def chosen(self, which: Indices) -> RowDensity:
        """Some of the rows."""
        return RowDensity(self.model, self.log_spread[which], self.deviation[which])

    @cached_property
    def bumps(self) -> Bumps:
        """The place of the trials' probabilities, for all points of a row."""
        return self.model.bumps(self.log_spread)

    def log_density(self, log_mrr: Array, which: Indices | None = None) -> Array:
        """Logarithm of the density per unit of log a and log m, without the likelihood's constant.

        Args:
            log_mrr: Log m, shape (rows, points).
            which: Indices of the rows; all rows if None.
        """
        values = self._in_pieces(self.model.likelihood.value, log_mrr, which)
        return np.concatenate(values) + self.model.prior.log_density(log_mrr)

    def score(self, log_mrr: Array, which: Indices | None = None) -> Score:
        """`log_density`, its derivative with respect to log m, and about its negative second derivative."""
        pieces = self._in_pieces(self.model.likelihood.score, log_mrr, which)
        mrr = np.exp(log_mrr)
        return Score(
            np.concatenate([part.value for part in pieces]) + self.model.prior.log_density(log_mrr),
            np.concatenate([part.slope for part in pieces]) * mrr + self.model.prior.slope(log_mrr),
            np.concatenate([part.information for part in pieces]) * mrr * mrr + 0.1,
        )

    def critical_loads(self, question: CriticalLoadQuestion, log_mrr: Array, which: Indices | None = None) -> Array:
        """Critical loads in frames per second, shape (rows, points).

        Args:
            question: Target and limits.
            log_mrr: Log m, shape (rows, points).
            which: Indices of the rows; all rows if None.
        """
        chosen, points = slice(None) if which is None else which, log_mrr.shape[1]
        spread, deviation = np.exp(self.log_spread[chosen]), self.deviation[chosen]
        curves = Curves(self.model.function, np.repeat(spread, points), np.repeat(deviation, points))
        return critical_load(curves, question, np.exp(log_mrr).ravel()).reshape(log_mrr.shape)

    def _in_pieces(
        self, evaluate: Callable[[FittingFunction, Parameters], T], log_mrr: Array, which: Indices | None
    ) -> list[T]:
        """Evaluates some rows at a time."""
        chosen = slice(None) if which is None else which
        mrr = np.exp(log_mrr)[:, :, None]
        spread, deviation = np.exp(self.log_spread[chosen])[:, None, None], self.deviation[chosen][:, None, None]
        size = max(1, _POINTS_AT_ONCE // max(1, log_mrr.shape[1] * self.model.likelihood.terms))
        bumps = self.bumps.chosen(chosen)
        return [
            evaluate(self.model.function, Parameters(mrr[piece], spread[piece], deviation[piece], bumps.chosen(piece)))
            for piece in _pieces(len(mrr), size)
        ]


def _pieces(length: int, size: int) -> list[slice]:
    """Slices of at most `size` rows; one slice if there are no rows."""
    return [slice(at, at + size) for at in range(0, max(1, length), size)]
