"""Nodes over log s and log a, and values between them: Gauss-Lobatto rules along the posterior's support."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import legvander

from lossratio.plrsearch.likelihood import Model, RowDensity
from lossratio.plrsearch.model import Array
from lossratio.plrsearch.quadrature.panels import lobatto
from lossratio.plrsearch.quadrature.support import Support


@dataclass(frozen=True)
class Grid:
    """Nodes over log s and log a; arrays of shape (nodes in log s, nodes in log a).

    Attributes:
        log_deviation: Log s of the nodes.
        log_spread: Log a of the nodes.
        log_weight: Logarithm of their weights, the prior's density in log s included.
    """

    log_deviation: Array
    log_spread: Array
    log_weight: Array

    @classmethod
    def of(cls, support: Support, prior_width: float, deviations: int, spreads: int) -> Grid:
        """Nodes that cover the support.

        Args:
            support: Where the posterior is.
            prior_width: Width of the prior in log s, which is flat.
            deviations: Nodes in log s.
            spreads: Nodes in log a, for each of them.
        """
        nodes, weights = lobatto(deviations)
        half = 0.5 * (support.high_deviation - support.low_deviation)
        log_deviation = support.low_deviation + half * (1.0 + nodes)
        low, high = support.spreads(log_deviation)
        inner_nodes, inner_weights = lobatto(spreads)
        log_spread = low[:, None] + 0.5 * (high - low)[:, None] * (1.0 + inner_nodes)
        log_weight = np.log(half / prior_width * weights)[:, None] + np.log(0.5 * (high - low)[:, None] * inner_weights)
        return cls(np.broadcast_to(log_deviation[:, None], log_spread.shape), log_spread, log_weight)

    def rows(self, model: Model) -> RowDensity:
        """The rows of the nodes."""
        return model.rows(self.log_spread.ravel(), np.exp(self.log_deviation.ravel()))


def refined(values: Array, nodes: int, finer: tuple[int, int]) -> Array:
    """Values at the nodes of another grid over the same support, by the polynomials through those at this grid's.

    Args:
        values: Shape (nodes in log s times nodes in log a, ...).
        nodes: Nodes in log s, and in log a, of the values' grid.
        finer: Nodes in log s and in log a of the other one.
    """
    to_coefficients = np.linalg.inv(legvander(lobatto(nodes)[0], nodes - 1))
    outer, inner = (legvander(lobatto(each)[0], nodes - 1) @ to_coefficients for each in finer)
    table = values.reshape(nodes, nodes, -1)
    fine = np.einsum("is,ja,sak->ijk", outer, inner, table, optimize=True)
    return np.asarray(fine.reshape(-1, *values.shape[1:]))
