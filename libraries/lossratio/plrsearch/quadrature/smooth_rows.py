"""Rows of a posterior: as polynomials where they are smooth, and cut into panels where they bend."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.polynomial.legendre import legval, legvander
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood import RowDensity
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, Indices, critical_load, mrr_of_critical_load
from lossratio.plrsearch.quadrature.panels import lobatto
from lossratio.plrsearch.quadrature.rows import DROP, FEW_LOADS, Modes, Peaks, find_rows, neighbouring_starts

POINTS = 16
"""Points at which a row is computed."""
_NODES, _ = lobatto(POINTS)
_TO_LEGENDRE = np.linalg.inv(legvander(_NODES, POINTS - 1))
_ERROR = 1e-8
"""Nats that the last coefficients of log density may be; where counts are large, rounding alone makes them 1e-9."""
_LOAD_ERROR = 1e-9
"""The same of log critical load, as a share of its range."""
_DEEP_ENOUGH = 0.75
"""Share of the support's depth that the ends of a row must have, if it is taken for a Gaussian's."""
_STEPS = 6


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


@dataclass(frozen=True)
class CutRows:
    """Rows, and where their panels begin and end.

    Attributes:
        smooth: The rows as polynomials, as far as they are any.
        cuts: Log m at which to cut them, shape (rows, cuts): sorted, and some of them at the same place.
    """

    smooth: SmoothRows
    cuts: Array


def cut_rows(density: RowDensity, known: Modes, question: CriticalLoadQuestion, drop: float) -> CutRows:
    """Cuts rows at their modes. Where trials are many nearly all are like Gaussians: only the others are searched for.

    Args:
        density: The rows.
        known: Maxima of rows nearby.
        question: What the critical load is.
        drop: Nats below their maxima to which the rows matter.
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


def steps_of(density: RowDensity, question: CriticalLoadQuestion) -> Array:
    """Log m at which the critical load is the minimum, the maximum and some loads between, shape (rows, steps).

    The critical load has kinks at its limits, and is very steep near the minimum.
    """
    loads = np.geomspace(question.min_load, question.max_load, _STEPS)
    ceiling = float(np.exp(density.model.prior.highest_log_mrr(DROP) + DROP))
    spread, deviation = (np.repeat(each, _STEPS) for each in (np.exp(density.log_spread), density.deviation))
    curves = Curves(density.model.function, spread, deviation)
    each = np.tile(loads, len(density.log_spread))
    return np.log(mrr_of_critical_load(curves, question, each, ceiling)).reshape(-1, _STEPS)


def _searched_rows(density: RowDensity, known: Modes, question: CriticalLoadQuestion, drop: float) -> CutRows:
    """Rows that may be anything: cut at their modes, where the critical load meets its limits, and where trials are."""
    rows = find_rows(density, neighbouring_starts(known, density.log_spread), drop)
    smooth = SmoothRows.of(density, question, rows.low, rows.high)
    bends = np.column_stack([steps_of(density, question), _knees(density)])
    bends = np.clip(bends, rows.low[:, None], rows.high[:, None])
    return CutRows(smooth, np.sort(np.column_stack([rows.low, rows.mode, rows.high, bends]), axis=1))


def _knees(density: RowDensity) -> Array:
    """Log m around which single trials may make the density steep: where few trials leave it broad otherwise."""
    groups = density.model.likelihood.groups
    loads = groups.load if len(groups) <= FEW_LOADS else groups.load[groups.lost == 0][-1:]
    reach = 20.0 * np.exp(density.log_spread)[:, None]
    return np.asarray(
        np.log(np.maximum(np.concatenate([loads - reach, loads + 0.0 * reach, loads + reach], axis=1), 1.0))
    )
