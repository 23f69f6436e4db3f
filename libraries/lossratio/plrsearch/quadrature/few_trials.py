"""The posterior of one fitting function with a varying capacity and few trials: adaptive over all three parameters.

Few trials may be explained exactly by one pair of m and a. Where the capacity hardly varies, all mass is near that
pair, in a thousandth of the width in log a that it has where the capacity varies more; no fixed nodes see both. So the
integral over log s is cut into blocks with some nodes. At each node the peaks in log a are looked for, and the integral
over log a is cut into blocks around them, again with some nodes. At each of these is a row in log m, cut at its mode
and where the critical load meets its limits. What is rough is halved, in log m, then in log a, then in log s.

Along log m the likelihood has a single maximum: the logarithm of each count's probability is concave in the capacity,
and remains so if a normal distribution is folded with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood import Model, RowDensity
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, Indices, mrr_of_critical_load
from lossratio.plrsearch.quadrature.panels import (
    NODES,
    ORDER,
    WEIGHTS,
    Panels,
    lobatto,
    masses_of,
    moments_of,
    node_positions,
    roughness,
    roughness_of_nodes,
)
from lossratio.plrsearch.quadrature.rows import explaining_starts, find_rows, pieces_of
from lossratio.plrsearch.quadrature.scouting import DEEP, DEPTH, edges_of, scouted_slices

_NODES = 7
"""Nodes of a block, in log s and in log a."""
_SLICE_DEPTH = 14.0
"""Nats below the maximum where the integral over log s ends."""
_WELL_WITHIN = 0.2
"""Share of a tolerance that is left for what is not halved, so that a round does not halve a single block."""
_NO_MASS = 1e-10
"""Share of the mass that a panel without mass has."""
_TOUCHING = 1e-9
"""Distance from the end of a domain that is none."""
_ROUNDS = 60
_LOAD_POINTS, _ = lobatto(8)
"""Points at which critical loads are computed."""
_TO_COEFFICIENTS = np.linalg.inv(legvander(_LOAD_POINTS, len(_LOAD_POINTS) - 1)).T
_LAST_COEFFICIENTS = _TO_COEFFICIENTS[:, -2:]
_BETWEEN_POINTS = _TO_COEFFICIENTS @ legvander(NODES, len(_LOAD_POINTS) - 1).T
_SMOOTH_LOADS = 1e-4
"""Largest last coefficients of smooth log critical loads, as a share of their range."""
_MOST_ROWS = 12_000
"""Rows after which nothing is halved any more."""


@dataclass(frozen=True)
class Effort:
    """How accurate the integral has to be, and how closely peaks are looked for.

    Tolerances are largest errors by roughness, of all panels or blocks together, as shares of mass and variance.
    """

    panels: float
    """Tolerance in log m."""
    inner: float
    """Tolerance in log a. Errors of slices would look like roughness in log s, if they were not smaller."""
    outer: float
    """Tolerance in log s."""
    slices: int
    """Values of log s at which the posterior is looked for first."""
    spreads: int
    """Values of log a at which it is looked for first, at each log s."""


EXACT = Effort(3e-4, 1e-3, 5e-3, slices=13, spreads=25)
"""For results."""
CLOSER = Effort(3e-4, 1e-3, 5e-3, slices=29, spreads=67)
"""For results that seem to have missed a peak."""
_SAME = 0.02
"""Nats by which masses differ that are the same."""
_LIKELIHOOD_ERROR = 0.02
"""Error that the approximate integral over a trial's own capacity may have: of the mean, in standard deviations."""
_CAUTION = 4.0
"""Factor of errors by roughness, so that they are not smaller than the real ones."""
_LEAST_ERROR = 0.002
"""Smallest error that is stated: for what ends of rows and blocks cut off, and for critical loads between points."""


def integrate_few(
    model: Model, question: CriticalLoadQuestion, bounds: tuple[float, float], least_log_mass: float
) -> tuple[Panels, float]:
    """Panels that integrate the posterior, and a bound of about the error of mass and mean.

    It is a share of the mass, and a distance of the mean in standard deviations. That of each trial's own integral is
    within it.

    Args:
        model: The posterior.
        question: Target and limits.
        bounds: Smallest and largest log s; the prior between them is flat.
        least_log_mass: Logarithm of the mass that the posterior should have at least. Panels with less may have missed
            a peak; they are believed if a closer look finds the same mass.
    """
    panels, error = integrated(model, question, bounds, EXACT)
    mass = moments_of(panels).log_mass
    if mass < least_log_mass:
        panels, error = integrated(model, question, bounds, CLOSER)
        second = moments_of(panels).log_mass
        if second < least_log_mass and abs(second - mass) > _SAME:
            return panels, np.inf
    return panels, max(error, _LIKELIHOOD_ERROR)


def integrated(
    model: Model, question: CriticalLoadQuestion, bounds: tuple[float, float], effort: Effort
) -> tuple[Panels, float]:
    """Panels that integrate the posterior with this effort, and about their error; see `integrate_few`."""
    quadrature = _Quadrature(model, question, bounds, effort)
    for _ in range(_ROUNDS):
        if not quadrature.refine():
            break
    return quadrature.panels, max(_CAUTION * quadrature.error, _LEAST_ERROR)


class _Quadrature:
    """Blocks in log s, each with _NODES slices; blocks in log a of slices, each with _NODES rows; panels of rows.

    Slice i belongs to the block i // _NODES in log s, row i to the block i // _NODES in log a.
    """

    def __init__(
        self, model: Model, question: CriticalLoadQuestion, bounds: tuple[float, float], effort: Effort
    ) -> None:
        self._model, self._question, self._effort, self._bounds = model, question, effort, bounds
        self._ceiling = model.prior.highest_log_mrr(DEEP)
        self._top = -np.inf
        self._outer = np.zeros((0, 2))
        self._inner = np.zeros((0, 2))
        self._slice_of_inner = np.zeros(0, dtype=int)
        self.panels = _NO_PANELS
        places = np.linspace(*bounds, effort.slices)
        spreads = np.linspace(0.0, self._ceiling, effort.spreads)
        scouted = scouted_slices(model, places, spreads)
        self._top = max(one.log_mass for one in scouted)
        heavy = [one for one in scouted if one.log_mass > self._top - DEPTH]
        low, high = min(one.ends[0] for one in heavy), max(one.ends[1] for one in heavy)
        self._spreads = np.unique([low, *spreads[(spreads > low) & (spreads < high)], high])
        edges = edges_of(places, np.array([one.log_mass for one in scouted]), _SLICE_DEPTH)
        self._add_outer(np.stack([edges[:-1], edges[1:]], axis=1))

    @property
    def error(self) -> float:
        """About the error of mass, mean and variance; see `_quantities`."""
        quantities = self._quantities()
        inner, outer = self._inner_nodes(quantities), self._outer_nodes(quantities)
        errors = self._panel_errors(quantities).sum() + _block_errors(inner).sum() + _block_errors(outer).sum()
        return float(errors + self._open_inner(inner)[0].sum() + self._open_outer(outer)[0].sum())

    def refine(self) -> bool:
        """Halves what is rough, and adds blocks where mass may be missing; returns whether there was anything."""
        if len(self._inner) * _NODES > _MOST_ROWS:
            return False
        quantities = self._quantities()
        return (
            self._halve_panels(self._panel_errors(quantities))
            or self._extend_inner(*self._open_inner(self._inner_nodes(quantities)))
            or self._halve_inner(_block_errors(self._inner_nodes(quantities)))
            or self._extend_outer(*self._open_outer(self._outer_nodes(quantities)))
            or self._halve_outer(_block_errors(self._outer_nodes(quantities)))
        )

    def _quantities(self) -> Array:
        """Each node's part of the mass, of the mean's distance from itself, and of the variance.

        The sums are 1, 0 and 1: distances are in standard deviations. The shape is (3, panels, nodes).
        """
        masses, _ = masses_of(self.panels)
        loads = self.panels.critical_load
        centre = loads.flat[int(np.argmax(masses))]
        mean = centre + float(np.sum((loads - centre) * masses))
        distance = loads - mean
        distance /= max(float(np.sqrt(np.sum(masses * distance**2))), 1e-15 * mean)
        return np.stack([masses, masses * distance, masses * distance**2])

    def _panel_errors(self, quantities: Array) -> Array:
        return np.asarray((np.abs(quantities).sum(axis=2) * roughness(quantities / WEIGHTS)).max(axis=0))

    def _inner_nodes(self, quantities: Array) -> Array:
        """Parts of the rows, shape (3, blocks in log a, nodes)."""
        return _at_nodes(quantities, self.panels.row, len(self._inner))

    def _outer_nodes(self, quantities: Array) -> Array:
        """Parts of the slices, shape (3, blocks in log s, nodes)."""
        return _at_nodes(quantities, self._slice_of_inner[self.panels.row // _NODES], len(self._outer))

    def _open_inner(self, nodes: Array) -> tuple[Array, Array]:
        return _open_ends(nodes, self._inner, self._slice_of_inner, (0.0, self._ceiling))

    def _open_outer(self, nodes: Array) -> tuple[Array, Array]:
        return _open_ends(nodes, self._outer, np.zeros(len(self._outer), dtype=int), self._bounds)

    def _extend_inner(self, missing: Array, beyond: Array) -> bool:
        chosen = _largest(missing, self._effort.inner)
        return self._add_inner(np.tile(self._slice_of_inner, 2)[chosen], beyond[chosen])

    def _extend_outer(self, missing: Array, beyond: Array) -> bool:
        chosen = _largest(missing, self._effort.outer)
        return self._add_outer(beyond[chosen])

    def _halve_inner(self, errors: Array) -> bool:
        chosen = _largest(errors, self._effort.inner)
        slices, halves = np.repeat(self._slice_of_inner[chosen], 2), _halves(self._inner[chosen])
        self._drop_inner(chosen)
        return self._add_inner(slices, halves)

    def _halve_outer(self, errors: Array) -> bool:
        chosen = _largest(errors, self._effort.outer)
        halves = _halves(self._outer[chosen])
        self._drop_inner(chosen[self._slice_of_inner // _NODES])
        self._slice_of_inner = _renumbered(self._slice_of_inner, ~chosen)
        self._outer = self._outer[~chosen]
        return self._add_outer(halves)

    def _drop_inner(self, which: NDArray[np.bool_]) -> None:
        kept = self.panels.chosen(~which[self.panels.row // _NODES])
        self.panels = replace(kept, row=_renumbered(kept.row, ~which))
        self._inner, self._slice_of_inner = self._inner[~which], self._slice_of_inner[~which]

    def _add_outer(self, blocks: Array) -> bool:
        """New blocks in log s, with all that belongs to them; returns whether there are any."""
        if not len(blocks):
            return False
        nodes, _ = lobatto(_NODES)
        first = len(self._outer) * _NODES
        self._outer = np.concatenate([self._outer, blocks])
        log_deviation = node_positions(blocks[:, 0], blocks[:, 1], nodes).ravel()
        scouted = scouted_slices(self._model, log_deviation, self._spreads)
        self._top = max(self._top, *(one.log_mass for one in scouted))
        inner, slices = [np.zeros((0, 2))], list[int]()
        for number, one in enumerate(scouted):
            depth = DEPTH - (self._top - one.log_mass)
            if depth > 0.0:
                edges = edges_of(one.log_spread, one.log_density, max(depth, 6.0))
                inner += [np.stack([edges[:-1], edges[1:]], axis=1)]
                slices += [first + number] * (len(edges) - 1)
        self._add_inner(np.array(slices, dtype=int), np.concatenate(inner))
        return True

    def _add_inner(self, slices: Indices, blocks: Array) -> bool:
        """New blocks in log a, with their rows; returns whether there are any."""
        if not len(blocks):
            return False
        nodes, weights = lobatto(_NODES)
        first = len(self._inner) * _NODES
        self._inner = np.concatenate([self._inner, blocks])
        self._slice_of_inner = np.concatenate([self._slice_of_inner, slices])
        outer = self._outer[slices // _NODES]
        half = 0.5 * (outer[:, 1] - outer[:, 0])
        log_deviation = outer[:, 0] + half * (1.0 + nodes[slices % _NODES])
        log_weight = np.log(
            half * weights[slices % _NODES] * 0.5 * (blocks[:, 1] - blocks[:, 0]) / np.diff(self._bounds)
        )
        rows = self._model.rows(
            node_positions(blocks[:, 0], blocks[:, 1], nodes).ravel(), np.repeat(np.exp(log_deviation), _NODES)
        )
        weights_of_rows = (log_weight[:, None] + np.log(weights)).ravel()
        self._join(_panels_of(rows, self._question, weights_of_rows), first + np.arange(len(blocks) * _NODES))
        return True

    def _halve_panels(self, errors: Array) -> bool:
        which = _largest(errors, self._effort.panels)
        if not which.any():
            return False
        split = self.panels.chosen(which)
        self.panels = self.panels.chosen(~which)
        blocks = _halves(np.stack([split.low, split.high], axis=1))
        rows = self._model.rows(split.log_spread, split.deviation)
        row = np.repeat(np.arange(len(split.row)), 2)
        self._join(_evaluated(rows, self._question, split.log_weight, row, blocks[:, 0], blocks[:, 1]), split.row)
        return True

    def _join(self, panels: Panels, rows: Indices) -> None:
        """Adds panels, but those without mass; their rows are indices of `rows`."""
        self.panels = _with_mass(self.panels.joined(replace(panels, row=rows[panels.row])))


_NO_PANELS = Panels(np.zeros(0, dtype=int), *[np.zeros(0)] * 5, *[np.zeros((0, ORDER))] * 2)


def _largest(errors: Array, tolerance: float) -> NDArray[np.bool_]:
    """The largest errors, if all together are above the tolerance: so many that the others are well within it."""
    order = np.argsort(errors)
    chosen = np.zeros(len(errors), dtype=bool)
    if errors.sum() > tolerance:
        chosen[order[np.cumsum(errors[order]) > _WELL_WITHIN * tolerance]] = True
    return chosen


def _halves(blocks: Array) -> Array:
    """Both halves of each block."""
    middle = blocks.mean(axis=1)
    return np.stack([blocks[:, 0], middle, middle, blocks[:, 1]], axis=1).reshape(-1, 2)


def _renumbered(nodes: Indices, kept: NDArray[np.bool_]) -> Indices:
    """Indices of nodes after blocks were dropped."""
    place: Indices = np.cumsum(kept) - 1
    return np.asarray(place[nodes // _NODES] * _NODES + nodes % _NODES)


def _at_nodes(quantities: Array, node: Indices, blocks: int) -> Array:
    """Sums of the panels at each node of blocks, shape (quantities, blocks, nodes)."""
    columns = quantities.sum(axis=2)
    sums = [np.bincount(node, column, minlength=blocks * _NODES) for column in columns]
    return np.asarray(sums, dtype=float).reshape(len(columns), blocks, _NODES)


def _block_errors(nodes: Array) -> Array:
    """Largest error of each block, from its nodes' parts of the quantities, shape (quantities, blocks, nodes)."""
    _, weights = lobatto(_NODES)
    return np.asarray((np.abs(nodes).sum(axis=2) * roughness_of_nodes(nodes / weights)).max(axis=0))


def _open_ends(nodes: Array, blocks: Array, group: Indices, domain: tuple[float, float]) -> tuple[Array, Array]:
    """About the mass below and above each block that no block covers, and blocks that would cover it.

    It is that of half a block of the end's density. Both arrays begin with the lower ends of all blocks.

    Args:
        nodes: Parts of the quantities at the blocks' nodes, shape (quantities, blocks, nodes).
        blocks: Low and high ends.
        group: The integral that each block belongs to.
        domain: Where the integrals begin and end.
    """
    _, weights = lobatto(_NODES)
    ends = np.abs(nodes[:, :, [0, -1]]).max(axis=0) / weights[0]
    count = group.max(initial=0) + 1
    lowest, highest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(lowest, group, blocks[:, 0])
    np.maximum.at(highest, group, blocks[:, 1])
    low, high = blocks.T
    width = high - low
    missing = [
        np.where((low == lowest[group]) & (low > domain[0] + _TOUCHING), ends[:, 0], 0.0),
        np.where((high == highest[group]) & (high < domain[1] - _TOUCHING), ends[:, 1], 0.0),
    ]
    below = np.stack([np.maximum(low - width, domain[0]), low], axis=1)
    above = np.stack([high, np.minimum(high + width, domain[1])], axis=1)
    return np.concatenate(missing), np.concatenate([below, above])


def _panels_of(rows: RowDensity, question: CriticalLoadQuestion, log_weight: Array) -> Panels:
    """Rows cut at their modes, and where the critical load meets its limits."""
    ends = find_rows(rows, explaining_starts(rows), DEEP)
    heavy = np.flatnonzero(ends.log_mass + log_weight > np.max(ends.log_mass + log_weight) + np.log(_NO_MASS))
    loads = np.tile([question.min_load, question.max_load], len(heavy))
    curves = Curves(
        rows.model.function, np.repeat(np.exp(rows.log_spread[heavy]), 2), np.repeat(rows.deviation[heavy], 2)
    )
    limits = np.log(mrr_of_critical_load(curves, question, loads, float(np.exp(ends.high.max() + 1.0)))).reshape(-1, 2)
    low, high = ends.low[heavy], ends.high[heavy]
    limits = np.clip(limits, low[:, None], high[:, None])
    piece, lows, highs = pieces_of(np.sort(np.column_stack([low, ends.mode[heavy], high, limits]), axis=1))
    return _evaluated(rows, question, log_weight, heavy[piece], lows, highs)


def _evaluated(
    rows: RowDensity, question: CriticalLoadQuestion, log_weight: Array, row: Indices, low: Array, high: Array
) -> Panels:
    """Panels of rows between these ends, but those without mass."""
    log_mrr = node_positions(low, high)
    blank = np.zeros_like(log_mrr)
    spread, deviation = rows.log_spread[row], rows.deviation[row]
    density = rows.log_density(log_mrr, row)
    panels = _with_mass(Panels(row, spread, deviation, low, high, log_weight[row], density, blank))
    return replace(panels, critical_load=_critical_loads(rows, question, panels))


def _with_mass(panels: Panels) -> Panels:
    log_masses = scipy.special.logsumexp(panels.log_masses(), axis=1)
    return panels.chosen(log_masses > log_masses.max(initial=-np.inf) + np.log(_NO_MASS))


def _critical_loads(rows: RowDensity, question: CriticalLoadQuestion, panels: Panels) -> Array:
    """Critical loads at the nodes of panels: interpolated between some points, where they are smooth."""
    row, low, high = panels.row, panels.low, panels.high
    ends = rows.critical_loads(question, np.stack([low, high], axis=1), row)
    loads = np.tile(ends[:, :1], ORDER)
    bent = np.flatnonzero(ends[:, 0] < ends[:, 1])
    inner = node_positions(low[bent], high[bent], _LOAD_POINTS[1:-1])
    few = np.log(np.column_stack([ends[bent, 0], rows.critical_loads(question, inner, row[bent]), ends[bent, 1]]))
    loads[bent, 1:-1] = np.exp(few @ _BETWEEN_POINTS)[:, 1:-1]
    loads[:, -1] = ends[:, 1]
    rough = bent[np.abs(few @ _LAST_COEFFICIENTS).max(axis=1) > _SMOOTH_LOADS * np.ptp(few, axis=1)]
    loads[rough] = rows.critical_loads(question, node_positions(low[rough], high[rough]), row[rough])
    return np.asarray(np.clip(loads, question.min_load, question.max_load))
