"""Rows of a posterior as polynomials: 16 points of a smooth row give all its other points by interpolation.

Log density and log critical load are much smoother than the density itself. With many trials they are polynomials in
log m to more digits than an estimate needs. Rows that are not smooth are cut where they bend.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.polynomial.legendre import legval, legvander
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood import RowDensity
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Indices
from lossratio.plrsearch.quadrature.panels import lobatto, node_positions
from lossratio.plrsearch.quadrature.rows import (
    FEW_LOADS,
    Modes,
    Peaks,
    find_rows,
    neighbouring_starts,
    steps_of,
)

POINTS = 16
"""Points at which a row is computed."""
_NODES, _ = lobatto(POINTS)
_TO_LEGENDRE = np.linalg.inv(legvander(_NODES, POINTS - 1))
_ERROR = 1e-8
"""Largest last coefficients of log density, in nats; rounding alone makes them 1e-9 where counts are large."""
_LOAD_ERROR = 1e-9
"""Largest last coefficients of log critical load, as a share of its range."""
_DEEP_ENOUGH = 0.75
"""Least depth of the ends of a row that is taken for a Gaussian, as a share of the support's depth."""


@dataclass(frozen=True)
class SmoothRows:
    """Polynomials of rows; arrays of shape (rows,), or (rows, POINTS) for Legendre coefficients.

    Attributes:
        low: Log m at which the row begins.
        high: Log m at which it ends.
        log_density: Coefficients of the log density.
        log_load: Coefficients of the logarithm of the critical load.
        holds: Whether the row is smooth, so that its polynomials are exact.
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
        """Computes the polynomials of rows.

        Args:
            density: The rows.
            question: Target and limits. A row in which the critical load meets a limit has a kink, and is not smooth.
            low: Log m at which each row begins.
            high: Log m at which it ends.
            depth: Nats by which the ends of a smooth row are below its highest point, at least.
        """
        log_mrr = node_positions(low, high, _NODES)
        values = density.log_density(log_mrr)
        log_density = values @ _TO_LEGENDRE.T
        loads = density.critical_loads(question, log_mrr)
        log_load = np.log(loads) @ _TO_LEGENDRE.T
        holds = (loads[:, 0] > question.min_load) & (loads[:, -1] < question.max_load) & (high > low)
        holds &= values.max(axis=1) - np.maximum(values[:, 0], values[:, -1]) > depth
        holds &= np.abs(log_density[:, -2:]).max(axis=1) < _ERROR
        holds &= np.abs(log_load[:, -2:]).max(axis=1) < _LOAD_ERROR * np.ptp(np.log(loads), axis=1)
        return cls(low, high, log_density, log_load, holds)

    def joined(self, other: SmoothRows) -> SmoothRows:
        """These and other rows."""
        parts = (self, other)
        return SmoothRows(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(self)))

    def chosen(self, which: Indices) -> SmoothRows:
        """Some of the rows."""
        return SmoothRows(*(getattr(self, field.name)[which] for field in fields(self)))

    def at(self, row: Indices, log_mrr: Array) -> tuple[Array, Array]:
        """Log density and critical load, of `log_mrr`'s shape (panels, nodes); zeros in rows that are not smooth."""
        log_density, load = np.zeros_like(log_mrr), np.zeros_like(log_mrr)
        holds = self.holds[row]
        row = row[holds]
        low, high = self.low[row, None], self.high[row, None]
        x = (2.0 * log_mrr[holds] - low - high) / (high - low)
        log_density[holds] = legval(x, self.log_density[row].T[:, :, None], tensor=False)
        load[holds] = np.exp(legval(x, self.log_load[row].T[:, :, None], tensor=False))
        return log_density, load


@dataclass(frozen=True)
class CutRows:
    """Rows, and where their panels begin and end.

    Attributes:
        smooth: The rows as polynomials; `holds` marks those that are smooth.
        cuts: Log m at which to cut the rows, shape (rows, cuts); sorted, and several may be at one place.
    """

    smooth: SmoothRows
    cuts: Array


def cut_rows(density: RowDensity, known: Modes, question: CriticalLoadQuestion, drop: float) -> CutRows:
    """Cuts rows at their modes. With many trials nearly all rows are like Gaussians: only the others need a search.

    Args:
        density: The rows.
        known: Maxima of rows nearby.
        question: Target and limits.
        drop: Nats below a row's maximum at which it ends.
    """
    peaks = Peaks.near(density, np.interp(density.log_spread, known.log_spread, known.mode))
    low, high = peaks.ends(np.sqrt(2.0 * drop))
    low = np.maximum(low, density.log_spread)
    smooth = SmoothRows.of(density, question, low, high, depth=_DEEP_ENOUGH * drop)
    others = np.flatnonzero(~smooth.holds)
    if not len(others):
        return CutRows(smooth, np.column_stack([low, peaks.mode, high]))
    searched = _searched_rows(density.chosen(others), known, question, drop)
    order, cuts = np.arange(len(low)), np.tile(high[:, None], searched.cuts.shape[1])
    order[others] = len(low) + np.arange(len(others))
    cuts[:, 0], cuts[:, 1], cuts[others] = low, peaks.mode, searched.cuts
    return CutRows(smooth.joined(searched.smooth).chosen(order), cuts)


def _searched_rows(density: RowDensity, known: Modes, question: CriticalLoadQuestion, drop: float) -> CutRows:
    """Rows of any shape: cut at their modes, where the critical load meets its limits, and at the loads of trials."""
    rows = find_rows(density, neighbouring_starts(known, density.log_spread), drop)
    smooth = SmoothRows.of(density, question, rows.low, rows.high)
    bends = np.column_stack([steps_of(density, question), _knees(density)])
    bends = np.clip(bends, rows.low[:, None], rows.high[:, None])
    return CutRows(smooth, np.sort(np.column_stack([rows.low, rows.mode, rows.high, bends]), axis=1))


def _knees(density: RowDensity) -> Array:
    """Log m around which single trials may make the density steep, if trials are so few that it is broad elsewhere."""
    groups = density.model.likelihood.groups
    loads = groups.load if len(groups) <= FEW_LOADS else groups.load[groups.lost == 0][-1:]
    reach = 20.0 * np.exp(density.log_spread)[:, None]
    return np.asarray(
        np.log(np.maximum(np.concatenate([loads - reach, loads + 0.0 * reach, loads + reach], axis=1), 1.0))
    )
