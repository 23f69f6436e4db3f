"""The logarithm of the posterior density over (log a, log m), up to its normalization, for many points at once.

The density is prior times likelihood. The prior is the draft's (section 5.4): the mrr is Lomax distributed, and the
spread is a random power of the mrr.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from lossratio.plrsearch.likelihood.constant_capacity import Likelihood, Score
from lossratio.plrsearch.model import (
    Array,
    CriticalLoadQuestion,
    Curves,
    FittingFunction,
    Indices,
    critical_load,
)

_FLOOR = 0.01
"""Below this log m (mrrs under 1.01 frames per second), the density's factor 1 / log m is constant, to avoid a pole."""

_POINTS_AT_ONCE = 1 << 13
"""Number of points times terms that are evaluated at once, so that the arrays stay in the processor's cache."""

T = TypeVar("T")
LikelihoodT = TypeVar("LikelihoodT", covariant=True)


@dataclass(frozen=True)
class Prior:
    """Density over (log a, log m), where 0 < log a < log m.

    m - 1 is Lomax distributed with alpha 1, and a = m^u with u uniform on (0, 1). The draft leaves the scale of m open.
    Here it is half the maximum load, as in FD.io CSIT's code.
    """

    scale: float
    """Scale of the mrr, in frames per second."""

    def log_density(self, log_mrr: Array) -> Array:
        """Logarithm of the density per unit of log a and of log m."""
        reach = self._log_reach(log_mrr)
        return np.asarray(
            np.log(self.scale) + log_mrr - 2.0 * reach - np.log(np.maximum(log_mrr, _FLOOR))
        )

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
class Model(Generic[LikelihoodT]):
    """The parts of the posterior of one fitting function."""

    function: FittingFunction
    """The fitting function."""
    likelihood: LikelihoodT
    """The counts' probability."""
    prior: Prior
    """The parameters' prior."""


@dataclass(frozen=True)
class RowDensity:
    """Prior times likelihood as a function of log m, in rows that differ in log a; the capacity is constant."""

    model: Model[Likelihood]
    """Prior and likelihood."""
    log_spread: Array
    """Log a of each row."""

    @property
    def spread(self) -> Array:
        """The width of the knee of each row, in frames per second."""
        return np.exp(self.log_spread)

    def log_density(self, log_mrr: Array) -> Array:
        """Logarithm of the density per unit of log a and log m, without the likelihood's constant."""
        return np.concatenate(
            self._in_pieces(self.model.likelihood.value, log_mrr)
        ) + self.model.prior.log_density(log_mrr)

    def score(self, log_mrr: Array, which: Indices | None = None) -> Score:
        """`log_density`, its derivative with respect to log m, and approximately its negative second derivative."""
        pieces = self._in_pieces(self.model.likelihood.score, log_mrr, which)
        mrr = np.exp(log_mrr)
        value = np.concatenate([part.value for part in pieces])
        slope = np.concatenate([part.slope for part in pieces])
        information = np.concatenate([part.information for part in pieces])
        return Score(
            value + self.model.prior.log_density(log_mrr),
            slope * mrr + self.model.prior.slope(log_mrr),
            information * mrr * mrr + 0.1,
        )

    def critical_loads(self, question: CriticalLoadQuestion, log_mrr: Array) -> Array:
        """Critical loads in frames per second, shape (rows, points)."""
        spread = np.repeat(self.spread, log_mrr.shape[1])
        curves = Curves(self.model.function, np.exp(log_mrr).ravel(), spread, np.zeros_like(spread))
        return critical_load(curves, question).reshape(log_mrr.shape)

    def _in_pieces(
        self,
        evaluate: Callable[[FittingFunction, Array, Array], T],
        log_mrr: Array,
        which: Indices | None = None,
    ) -> list[T]:
        """Evaluates some rows at a time."""
        spread = (self.spread if which is None else self.spread[which])[:, None, None]
        mrr = np.exp(log_mrr)[:, :, None]
        size = max(
            1, _POINTS_AT_ONCE // max(1, log_mrr.shape[1] * len(self.model.likelihood.groups))
        )
        pieces = (slice(at, at + size) for at in range(0, max(1, len(mrr)), size))
        return [evaluate(self.model.function, mrr[piece], spread[piece]) for piece in pieces]
