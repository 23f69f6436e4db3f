"""Rows of a posterior that are so smooth that few points tell all others.

Log density and log critical load are much smoother than the density itself: where trials are many, they are polynomials
in log m to more digits than are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.polynomial.legendre import legval, legvander
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood import RowDensity
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, Indices, critical_load
from lossratio.plrsearch.quadrature.panels import lobatto

POINTS = 16
"""Points at which a row is computed."""
_NODES, _ = lobatto(POINTS)
_TO_LEGENDRE = np.linalg.inv(legvander(_NODES, POINTS - 1))
_ERROR = 1e-8
"""Nats that the last coefficients of log density may be; where counts are large, rounding alone makes them 1e-9."""
_LOAD_ERROR = 1e-9
"""The same of log critical load, as a share of its range."""


@dataclass(frozen=True)
class SmoothRows:
    """Polynomials of rows; arrays of shape (rows,), or (rows, POINTS) for Legendre coefficients.

    Attributes:
        low: Log m at which the row begins.
        high: Log m at which it ends.
        log_density: Coefficients of the log density.
        log_load: Coefficients of the logarithm of the critical load.
        holds: Whether the row is smooth, so that these can be used.
    """

    low: Array
    high: Array
    log_density: Array
    log_load: Array
    holds: NDArray[np.bool_]

    @classmethod
    def none(cls) -> SmoothRows:
        """No rows."""
        return cls(np.zeros(0), np.zeros(0), np.zeros((0, POINTS)), np.zeros((0, POINTS)), np.zeros(0, dtype=bool))

    @classmethod
    def of(
        cls, density: RowDensity, question: CriticalLoadQuestion, low: Array, high: Array, depth: float = -np.inf
    ) -> SmoothRows:
        """Computes rows.

        Args:
            density: The rows.
            question: What the critical load is. Where it meets a limit it has a kink, and is not smooth.
            low: Log m at which each row begins.
            high: Log m at which it ends.
            depth: Nats by which the ends of a row have to be below its highest point.
        """
        log_mrr = (0.5 * (low + high))[:, None] + (0.5 * (high - low))[:, None] * _NODES
        values = density.log_density(log_mrr)
        log_density = values @ _TO_LEGENDRE.T
        spread, deviation = (np.repeat(each, POINTS) for each in (np.exp(density.log_spread), density.deviation))
        curves = Curves(density.model.function, spread, deviation)
        loads = critical_load(curves, question, np.exp(log_mrr).ravel()).reshape(log_mrr.shape)
        log_load = np.log(loads) @ _TO_LEGENDRE.T
        holds = (loads[:, 0] > question.min_load) & (loads[:, -1] < question.max_load) & (high > low)
        holds &= values.max(axis=1) - np.maximum(values[:, 0], values[:, -1]) > depth
        holds &= np.abs(log_density[:, -2:]).max(axis=1) < _ERROR
        holds &= np.abs(log_load[:, -2:]).max(axis=1) < _LOAD_ERROR * np.ptp(np.log(loads), axis=1)
        return cls(low, high, log_density, log_load, holds)

    def joined(self, other: SmoothRows) -> SmoothRows:
        """These and other rows."""
        every = (self, other)
        return SmoothRows(*(np.concatenate([getattr(each, one.name) for each in every]) for one in fields(self)))

    def chosen(self, which: Indices) -> SmoothRows:
        """Some of the rows."""
        return SmoothRows(*(getattr(self, one.name)[which] for one in fields(self)))

    def at(self, row: Indices, log_mrr: Array) -> tuple[Array, Array]:
        """Log density and critical load, of shape (panels, nodes) as `log_mrr`; zeros where rows are not smooth."""
        log_density, load = np.zeros_like(log_mrr), np.zeros_like(log_mrr)
        holds = self.holds[row]
        row = row[holds]
        low, high = self.low[row, None], self.high[row, None]
        x = (2.0 * log_mrr[holds] - low - high) / (high - low)
        log_density[holds] = legval(x, self.log_density[row].T[:, :, None], tensor=False)
        load[holds] = np.exp(legval(x, self.log_load[row].T[:, :, None], tensor=False))
        return log_density, load
