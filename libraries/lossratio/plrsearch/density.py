"""The logarithm of the posterior density over (log a, log m), up to its normalization, for many points at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lossratio.plrsearch.functions import Array, FittingFunction
from lossratio.plrsearch.likelihood import Likelihood, Score
from lossratio.plrsearch.prior import Prior

_POINTS_AT_ONCE = 1 << 17
"""Points times trials that are evaluated in one go, so that the arrays stay in the processor's cache."""

T = TypeVar("T")


@dataclass(frozen=True)
class Density:
    """Prior times likelihood of one fitting function. All arrays have the shape (rows, points).

    Attributes:
        function: The fitting function.
        likelihood: The counts' probability.
        prior: The parameters' prior.
    """

    function: FittingFunction
    likelihood: Likelihood
    prior: Prior

    def log_density(self, log_spread: Array, log_mrr: Array) -> Array:
        """Logarithm of the density per unit of log a and log m, without the likelihood's constant."""

        def piece(mrr: Array, spread: Array) -> Array:
            return self.likelihood.value(self.function.log_loss_rate(self.likelihood.groups.load, mrr, spread))

        pieces = self._in_pieces(piece, log_spread, log_mrr)
        return np.concatenate(pieces) + self.prior.log_density(log_mrr)

    def score(self, log_spread: Array, log_mrr: Array) -> Score:
        """The same with its derivative with respect to log m, and the negative second derivative, about."""

        def piece(mrr: Array, spread: Array) -> Score:
            return self.likelihood.score(self.function.log_loss(self.likelihood.groups.load, mrr, spread))

        pieces = self._in_pieces(piece, log_spread, log_mrr)
        mrr = np.exp(log_mrr)
        return Score(
            np.concatenate([each.value for each in pieces]) + self.prior.log_density(log_mrr),
            np.concatenate([each.slope for each in pieces]) * mrr + self.prior.slope(log_mrr),
            np.concatenate([each.information for each in pieces]) * mrr * mrr + 0.1,
        )

    def _in_pieces(self, piece: Callable[[Array, Array], T], log_spread: Array, log_mrr: Array) -> list[T]:
        """Calls `piece` with some rows at a time: mrr (rows, points, 1) and spread (rows, 1, 1), for trials last."""
        rows = max(1, _POINTS_AT_ONCE // max(1, log_mrr.shape[1] * len(self.likelihood.groups)))
        mrr = np.exp(log_mrr)[:, :, None]
        spread = np.broadcast_to(np.exp(log_spread), (len(log_mrr), 1))[:, :, None]
        return [piece(mrr[at : at + rows], spread[at : at + rows]) for at in range(0, max(1, len(log_mrr)), rows)]
