"""Rows of a posterior: as polynomials where they are smooth, and cut into panels where they bend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.plrsearch.likelihood import RowDensity
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, mrr_of_critical_load
from lossratio.plrsearch.quadrature.peaks import Peaks
from lossratio.plrsearch.quadrature.ridge import DROP, FEW_LOADS, Modes, find_rows, neighbouring_starts
from lossratio.plrsearch.quadrature.smooth import SmoothRows

_DEEP_ENOUGH = 0.75
"""Share of the support's depth that the ends of a row must have, if it is taken for a Gaussian's."""
_STEPS = 6


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
