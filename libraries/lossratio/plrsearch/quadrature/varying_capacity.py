"""The posterior of one fitting function with a varying capacity: three parameters, log s, log a and log m.

The outermost integral is over log s, then over log a around its own mode at that s, then over log m around its own
mode: Gauss-Lobatto quadrature with fixed nodes. With many trials rows are smooth, and 7 points give the others.
With few trials the integral is adaptive (`few_trials`).

Why `constant_capacity` does not do this, too: for one of 12 values of s it takes as long as this for all, or longer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import scipy
from numpy.polynomial.legendre import legval, legvander

from lossratio.plrsearch.likelihood import Model, RowDensity, VaryingCapacityLikelihood
from lossratio.plrsearch.model import Array, CriticalLoadQuestion
from lossratio.plrsearch.quadrature.few_trials import integrate_few
from lossratio.plrsearch.quadrature.panels import NODES, Panels, lobatto, moments_of, node_positions, roughness_of_nodes
from lossratio.plrsearch.quadrature.rows import Peaks, explaining_starts, find_rows, pieces_of, steps_of
from lossratio.plrsearch.quadrature.support import (
    DEEP,
    DEPTH,
    Support,
    deviation_bounds,
    extent,
    find_support,
    rough_rows,
)

_CORRECTIONS = 3
"""Most corrections of a support in log a."""
_ROUNDS = 40
"""Most corrections of a support in log s or log a."""
_ENOUGH_TRIALS = 25
"""Trials with which rows may be smooth around single maxima."""
_ENOUGH_LOSSY = 8
"""Trials with loss with which rows may be smooth."""
_POINTS = 7
"""Points at which a smooth row is computed."""
_REACH = 5.5
"""Standard deviations from the peak of a smooth row to its ends."""
_END = 8.0
"""Nats by which the ends of a smooth row are below its peak, at least."""
_SMOOTH = 0.05
"""Largest last coefficient of the log density of a smooth row, in nats."""
_ROUNDING = 1e-12
"""Relative distance from a limit that is a rounding error."""
_SMOOTH_LOADS = 1e-5
"""Largest last coefficient of smooth log critical loads, as a share of their range."""
_SAME = 0.1
"""Largest change by interpolation: of the log mass in nats, and of the mean in standard deviations."""


@dataclass(frozen=True)
class Resolution:
    """How fine the quadrature is."""

    nodes: int
    """Nodes in log s, and in log a, at which the density is computed."""
    finer: tuple[int, int]
    """Factors of the nodes in log s and in log a after interpolation: with few nodes quantiles have steps."""


EXACT = Resolution(12, (2, 3))
"""For results."""
FINER = (Resolution(24, (1, 2)), Resolution(40, (1, 1)))
"""For results whose rows are not smooth between the nodes of a coarser one."""
CERTAIN = (0.02, 0.05)
"""Largest errors of an exact posterior's mass, by its smoothness between nodes, that need no finer nodes: of the first
attempt, and of the next ones. The rule's error falls so fast with more nodes that such an error is far too large."""
ROUGH = Resolution(8, (1, 2))
"""For choosing loads."""


def integrate_exactly(
    model: Model, likelihood: VaryingCapacityLikelihood, question: CriticalLoadQuestion, least_log_mass: float
) -> tuple[Panels, float]:
    """Panels that integrate the posterior, by so many nodes as it needs, and about the error of their mass.

    Args:
        model: The posterior.
        likelihood: The model's likelihood.
        question: Target and limits.
        least_log_mass: Logarithm of the mass that the posterior should have at least. Panels with less may have missed
            its mode; they are believed if finer ones have the same mass.
    """
    if not _are_many(likelihood):
        return integrate_few(model, question, deviation_bounds(likelihood.groups), least_log_mass)
    last = np.inf
    for resolution in (EXACT, *FINER):
        panels, error = integrate_varying(model, likelihood, question, resolution)
        mass = moments_of(panels).log_mass
        believed = mass >= least_log_mass or abs(mass - last) < CERTAIN[0]
        if believed and error <= CERTAIN[0 if resolution is EXACT else 1]:
            break
        last = mass
    return panels, error if believed else np.inf


def integrate_varying(
    model: Model, likelihood: VaryingCapacityLikelihood, question: CriticalLoadQuestion, resolution: Resolution
) -> tuple[Panels, float]:
    """Panels that integrate the posterior, and about the error of their mass as a share of it.

    Args:
        model: The posterior.
        likelihood: The model's likelihood.
        question: Target and limits.
        resolution: How fine the quadrature is.
    """
    bounds = deviation_bounds(likelihood.groups)
    prior_width = bounds[1] - bounds[0]
    support, peaks = find_support(model, likelihood), None
    if _are_many(likelihood):
        support, peaks = _improved(support, model, likelihood, bounds)
    for correction in range(_CORRECTIONS):
        grid = _Grid.of(support, prior_width, resolution.nodes, resolution.nodes)
        rows = grid.rows(model)
        known = None if peaks is None else _refined(peaks, resolution.nodes)
        smooth = _smooth_rows(rows, likelihood, known, question)
        panels = _cut_panels(grid, rows, question) if smooth is None else _assembled(grid, smooth, question)
        log_masses = _log_masses(panels, grid)
        corrected = _corrected(log_masses, grid, bounds)
        if corrected is None or correction == _CORRECTIONS - 1:
            break
        support, peaks = corrected, None
    error = _unevenness(log_masses)
    if smooth is None:
        return panels, error
    nodes = (resolution.nodes * resolution.finer[0], resolution.nodes * resolution.finer[1])
    finer = _Grid.of(support, prior_width, *nodes)
    interpolated = _assembled(finer, smooth.interpolated(resolution.nodes, nodes), question)
    return (interpolated if _agree(panels, interpolated) else panels), error


def _unevenness(log_masses: Array) -> float:
    """About the error of the sum over nodes in log s and log a, from the rows' integrals; see `roughness`."""
    _, weights = lobatto(len(log_masses))
    density = np.exp(log_masses - log_masses.max())
    slices = density @ weights
    inner = float(np.sum(roughness_of_nodes(density) * slices * weights) / np.sum(slices * weights))
    return inner + float(roughness_of_nodes(slices))


def _agree(computed: Panels, interpolated: Panels) -> bool:
    """Whether mass and mean are the same before and after interpolation, so that it did not swing between nodes."""
    inside = (interpolated.critical_load.min() > 0.0) & np.all(interpolated.high > interpolated.low)
    if not inside or interpolated.log_density.max() > computed.log_density.max() + 0.5:
        return False
    before, after = moments_of(computed), moments_of(interpolated)
    same_mass = abs(after.log_mass - before.log_mass) < _SAME
    return same_mass and abs(after.mean - before.mean) < _SAME * before.stdev + 1e-9 * before.mean


def _improved(
    support: Support, model: Model, likelihood: VaryingCapacityLikelihood, bounds: tuple[float, float]
) -> tuple[Support, Peaks | None]:
    """A support that heights and widths of rows confirm, on a coarse grid since that is fast, and the rows' peaks.

    It may be far from the first support in log s, which is a bad guess where a function contradicts the trials.
    """
    corrections = 0
    for _ in range(_ROUNDS):
        grid = _Grid.of(support, bounds[1] - bounds[0], ROUGH.nodes, ROUGH.nodes)
        peaks = _peaks(grid.rows(model), likelihood)
        corrected = _corrected((peaks.height + np.log(peaks.width)).reshape(grid.log_spread.shape), grid, bounds)
        if corrected is None:
            return support, peaks
        corrections += corrected.deviations == support.deviations
        support = corrected
        if corrections == _CORRECTIONS:
            break
    return support, None


def _peaks(rows: RowDensity, likelihood: VaryingCapacityLikelihood) -> Peaks:
    return Peaks.near(rows, rough_rows(rows, likelihood).mode)


def _refined(known: Peaks, nodes: int) -> Peaks:
    """Peaks of the rows of a finer grid; they are smooth in log s and log a."""
    mode, log_width, height = (
        _interpolated(values, ROUGH.nodes, (nodes, nodes)) for values in (known.mode, np.log(known.width), known.height)
    )
    return Peaks(mode, np.exp(log_width), height)


def _log_masses(panels: Panels, grid: _Grid) -> Array:
    """Logarithms of the rows' integrals."""
    flat = np.full(grid.log_spread.size, -np.inf)
    np.logaddexp.at(flat, panels.row, scipy.special.logsumexp(panels.log_masses(), axis=1) - panels.log_weight)
    return flat.reshape(grid.log_spread.shape)


def _corrected(log_mass: Array, grid: _Grid, bounds: tuple[float, float]) -> Support | None:
    """A better support, from the rows' integrals; None if the given one is good enough."""
    _, weights = lobatto(len(log_mass))
    slices = scipy.special.logsumexp(log_mass + grid.log_weight, axis=1) - np.log(weights)
    log_deviation = grid.log_deviation[:, 0]
    low, high, fits = extent(grid.log_spread, log_mass, 0.0, np.inf)
    low_end, high_end, slices_fit = extent(log_deviation[None], slices[None], *bounds)
    relevant = slices > slices.max() - DEPTH
    if slices_fit[0] and fits[relevant].all():
        return None
    which = relevant if relevant.sum() > 3 else np.ones_like(relevant)
    return Support.through((float(low_end[0]), float(high_end[0])), log_deviation[which], low[which], high[which])


def _are_many(likelihood: VaryingCapacityLikelihood) -> bool:
    """Whether there are so many trials that rows are smooth around single maxima."""
    lossy = int(likelihood.trials @ (likelihood.groups.lost > 0))
    return lossy >= _ENOUGH_LOSSY and likelihood.trials.sum() >= _ENOUGH_TRIALS


def _smooth_rows(
    rows: RowDensity, likelihood: VaryingCapacityLikelihood, known: Peaks | None, question: CriticalLoadQuestion
) -> _SmoothRows | None:
    """Rows as polynomials around their peaks, if these are known or not; None if trials are few, or rows not smooth."""
    if not _are_many(likelihood):
        return None
    smooth = None if known is None else _polynomials(rows, known, question)
    return _polynomials(rows, _peaks(rows, likelihood), question) if smooth is None else smooth


def _polynomials(rows: RowDensity, peaks: Peaks, question: CriticalLoadQuestion) -> _SmoothRows | None:
    """Rows as polynomials through 7 points; None if a row is not smooth, or its peak is elsewhere."""
    low, high = peaks.ends(_REACH)
    points, _ = lobatto(_POINTS)
    log_density = rows.log_density(node_positions(low, high, points))
    coefficients = log_density @ np.linalg.inv(legvander(points, _POINTS - 1)).T
    peak = log_density.max(axis=1)
    ends = np.maximum(log_density[:, 0], log_density[:, -1])
    matters = peak > peak.max() - DEEP
    if np.any(matters & ((ends > peak - _END) | (np.abs(coefficients[:, -1]) > _SMOOTH))):
        return None
    return _SmoothRows(low, high, legval(NODES, coefficients.T), _log_critical_loads(rows, question, low, high))


def _log_critical_loads(rows: RowDensity, question: CriticalLoadQuestion, low: Array, high: Array) -> Array:
    """Logarithms of critical loads at the nodes of rows: interpolated between 7 points, where they are smooth."""
    points, _ = lobatto(_POINTS)
    few = np.log(rows.critical_loads(question, node_positions(low, high, points)))
    coefficients = few @ np.linalg.inv(legvander(points, _POINTS - 1)).T
    limits = np.log([question.min_load, question.max_load])
    rough = (few[:, 0] <= limits[0]) | (few[:, -1] >= limits[1])
    rough |= np.abs(coefficients[:, -1]) > _SMOOTH_LOADS * np.ptp(few, axis=1)
    log_loads = np.asarray(legval(NODES, coefficients.T))
    if rough.any():
        nodes = node_positions(low[rough], high[rough])
        log_loads[rough] = np.log(rows.critical_loads(question, nodes, np.flatnonzero(rough)))
    return log_loads


def _assembled(grid: _Grid, smooth: _SmoothRows, question: CriticalLoadQuestion) -> Panels:
    """Panels of smooth rows; loads that differ from a limit by rounding become the limit."""
    load = np.exp(smooth.log_critical_load)
    load = np.where(load < question.min_load * (1.0 + _ROUNDING), question.min_load, load)
    load = np.where(load > question.max_load * (1.0 - _ROUNDING), question.max_load, load)
    return Panels(
        np.arange(grid.log_spread.size),
        grid.log_spread.ravel(),
        np.exp(grid.log_deviation.ravel()),
        smooth.low,
        smooth.high,
        grid.log_weight.ravel(),
        smooth.log_density,
        load,
    )


def _cut_panels(grid: _Grid, rows: RowDensity, question: CriticalLoadQuestion) -> Panels:
    """Rows cut at their modes and where the critical load meets its limits."""
    ends = find_rows(rows, explaining_starts(rows), DEEP)
    steps = steps_of(rows, question, ceiling=float(np.exp(ends.high.max() + 1.0)))
    steps = np.clip(steps, ends.low[:, None], ends.high[:, None])
    row, low, high = pieces_of(np.sort(np.column_stack([ends.low, ends.mode, ends.high, steps]), axis=1))
    log_mrr = node_positions(low, high)
    return Panels(
        row,
        rows.log_spread[row],
        rows.deviation[row],
        low,
        high,
        grid.log_weight.ravel()[row],
        rows.log_density(log_mrr, row),
        rows.critical_loads(question, log_mrr, row),
    )


@dataclass(frozen=True)
class _Grid:
    """Nodes over log s and log a; arrays of shape (nodes in log s, nodes in log a)."""

    log_deviation: Array
    """Log s of the nodes."""
    log_spread: Array
    """Log a of the nodes."""
    log_weight: Array
    """Logarithm of their weights, the prior's density in log s included."""

    @classmethod
    def of(cls, support: Support, prior_width: float, deviations: int, spreads: int) -> _Grid:
        """Nodes that cover the support.

        Args:
            support: Where the posterior is.
            prior_width: Width of the prior in log s, which is flat.
            deviations: Nodes in log s.
            spreads: Nodes in log a, for each node in log s.
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


@dataclass(frozen=True)
class _SmoothRows:
    """Rows that are one panel each; arrays of shape (rows,), or (rows, ORDER) for what differs between nodes."""

    low: Array
    high: Array
    log_density: Array
    log_critical_load: Array

    def interpolated(self, nodes: int, finer: tuple[int, int]) -> _SmoothRows:
        """The rows of a finer grid (see `_interpolated`)."""
        return _SmoothRows(*(_interpolated(getattr(self, field.name), nodes, finer) for field in fields(self)))


def _interpolated(values: Array, nodes: int, finer: tuple[int, int]) -> Array:
    """Values at the nodes of another grid over the same support, by the polynomials through those at this grid's.

    Args:
        values: Shape (nodes in log s times nodes in log a, ...).
        nodes: Nodes in log s, and in log a, of the values' grid.
        finer: Nodes in log s and in log a of the other one.
    """
    to_coefficients = np.linalg.inv(legvander(lobatto(nodes)[0], nodes - 1))
    outer, inner = (legvander(lobatto(number)[0], nodes - 1) @ to_coefficients for number in finer)
    table = values.reshape(nodes, nodes, -1)
    fine = np.einsum("is,ja,sak->ijk", outer, inner, table, optimize=True)
    return np.asarray(fine.reshape(-1, *values.shape[1:]))
