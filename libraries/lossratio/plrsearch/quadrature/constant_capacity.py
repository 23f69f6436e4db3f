"""The posterior of one fitting function with a constant capacity: two parameters, log a and log m, adaptive quadrature.

The outer integral is over log a, the inner one over log m around each row's own mode. Both are cut into panels, and
rough panels are halved until density, moments and quantiles are smooth in each of them. Rows are cut where they bend.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lossratio.errors import SearchError
from lossratio.plrsearch.likelihood import Likelihood, Model, RowDensity
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, Indices
from lossratio.plrsearch.quadrature.panels import (
    ORDER,
    WEIGHTS,
    Panels,
    masses_of,
    mean_and_variance,
    node_positions,
    roughness,
)
from lossratio.plrsearch.quadrature.posterior import Posterior
from lossratio.plrsearch.quadrature.rows import (
    DROP,
    Modes,
    explaining_starts,
    find_modes,
    neighbouring_starts,
    steps_of,
    supports,
)
from lossratio.plrsearch.quadrature.zoom import ends_of, zoomed

EXACT, ROUGH = 1e-7, 0.1
"""Largest errors of a panel, as a share of all mass and variance: for results (whose quantiles must also be accurate),
and for choosing loads."""

_ROWS = 20
_DEEP_DROP = 90.0
_ROUNDS = 200
_INNER = 0.02
"""Errors in log m must be smaller than errors in log a by this factor, or they look like roughness in log a."""
_QUANTILE_ERROR = 1e-7
_PROBABILITIES = (0.005, 0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975, 0.995)


def integrate(
    model: Model[Likelihood], question: CriticalLoadQuestion, tolerance: float = EXACT
) -> Posterior:
    """The posterior, by panels that integrate it, its moments and its quantiles.

    Raises:
        SearchError: If panels are still rough after many rounds.
    """
    quadrature = _Quadrature(model, question, tolerance)
    for _ in range(_ROUNDS):
        if not quadrature.refine():
            return quadrature.posterior()
    raise SearchError(
        f"The posterior of the {model.function.name} function could not be integrated to {tolerance:g}: "
        f"its panels are still rough. Please report the trials."
    )


def _outer_support(model: Model[Likelihood]) -> Modes:
    """Rows across the posterior's support in log a."""
    known: list[Modes] = []

    def log_masses(places: Array, _: Indices) -> Array:
        rows = RowDensity(model, places[0])
        starts = explaining_starts(rows)
        if known:
            starts = np.column_stack([starts, neighbouring_starts(known[-1], places[0])])
        known.append(find_modes(rows, starts))
        return known[-1].log_mass[None]

    ceiling = np.array([model.prior.highest_log_mrr(DROP)])
    zoomed(log_masses, np.zeros(1), ceiling, _ROWS, DROP)
    return known[-1]


class _Quadrature:
    """Blocks of log a with ORDER rows each.

    The rows' panels in log m are `panels`; row r belongs to block r // ORDER.
    """

    def __init__(
        self, model: Model[Likelihood], question: CriticalLoadQuestion, tolerance: float
    ) -> None:
        self.model = model
        self.question = question
        self.tolerance = tolerance
        self.known = _outer_support(model)
        height = self.known.log_mass
        low, high = ends_of(self.known.log_spread, height > height.max() - DROP).tolist()
        best = int(np.argmax(height))
        steps = steps_of(RowDensity(model, self.known.log_spread[best : best + 1]), question)[0]
        # If nearly all critical loads are at a limit, the few others make up all of the variance.
        self._drop = DROP if steps[0] < self.known.mode[best] < steps[-1] else _DEEP_DROP
        self._bounds: list[tuple[float, float]] = []
        mode = float(self.known.log_spread[best])
        edges = [low, mode, high] if low < mode < high else [low, high]
        self.panels = self._blocks(list(pairwise(edges)))

    def refine(self) -> bool:
        """Halves the rough panels in log m or, if there are none, in log a; returns whether there were any.

        First, panels that are rough in mass or moments are halved, then blocks that are rough in quantiles.
        """
        if self._halve_panels(self._rough_panels()):
            return True
        masses, _ = masses_of(self.panels)
        moments = self._per_row(
            np.stack([(masses * share).sum(axis=1) for share in self._shares(masses)])
        )
        return self._halve_blocks(self._rough_blocks(moments)) or (
            self.tolerance < ROUGH and self._refine_quantiles()
        )

    def posterior(self) -> Posterior:
        """The posterior that the panels so far represent."""
        (masses, log_mass), panels = masses_of(self.panels), self.panels
        mrr = np.exp(node_positions(panels.low, panels.high).ravel())
        spread = np.repeat(np.exp(panels.log_spread), ORDER)
        return Posterior(
            self.question,
            panels.critical_load.ravel(),
            masses.ravel(),
            ORDER,
            curves=Curves(self.model.function, mrr, spread, np.zeros(masses.size)),
            likeliest=int(np.argmax(panels.log_density)),
            log_evidence=log_mass + self.model.likelihood.constant,
        )

    def _refine_quantiles(self) -> bool:
        posterior = self.posterior()
        loads = np.unique(posterior.rough_quantiles(_PROBABILITIES))
        loads = loads[(loads > self.question.min_load) & (loads < self.question.max_load)]
        if not len(loads):
            return False
        shares, density = posterior.shares_and_density(loads)
        harmless = np.minimum(_QUANTILE_ERROR * loads, 1e-3 * posterior.stdev) * density
        importance = self.tolerance / np.maximum(harmless, self.tolerance)
        return self._halve_blocks(self._rough_blocks(self._per_row(shares) * importance[:, None]))

    def _halve_panels(self, rough: NDArray[np.bool_]) -> bool:
        if not rough.any():
            return False
        split = self.panels.at(rough)
        middle = 0.5 * (split.low + split.high)
        common = (split.row, split.log_spread, split.log_weight)
        halves = (
            self._evaluated(*common, split.low, middle),
            self._evaluated(*common, middle, split.high),
        )
        self.panels = self.panels.at(~rough).joined(*halves)
        return True

    def _halve_blocks(self, blocks: list[int]) -> bool:
        if not blocks:
            return False
        bounds = [self._bounds[block] for block in blocks]
        halves = [
            half
            for low, high in bounds
            for half in ((low, 0.5 * (low + high)), (0.5 * (low + high), high))
        ]
        kept = self.panels.at(~np.isin(self.panels.row // ORDER, blocks))
        self.panels = kept.joined(self._blocks(halves))
        return True

    def _blocks(self, bounds: list[tuple[float, float]]) -> Panels:
        """New blocks: their rows, each cut at its mode and where the critical load meets the limits."""
        low, high = np.array(bounds).T
        row = len(self._bounds) * ORDER + np.arange(len(bounds) * ORDER)
        self._bounds += bounds
        log_spread = node_positions(low, high).ravel()
        log_weight = (np.log(0.5 * (high - low))[:, None] + np.log(WEIGHTS)).ravel()
        cuts = cut_rows(RowDensity(self.model, log_spread), self.known, self.question, self._drop)
        which, piece = np.nonzero(np.diff(cuts, axis=1) > 1e-15 * np.abs(cuts[:, :-1]))
        ends = cuts[which, piece], cuts[which, piece + 1]
        return self._evaluated(row[which], log_spread[which], log_weight[which], *ends)

    def _evaluated(
        self, row: Indices, log_spread: Array, log_weight: Array, low: Array, high: Array
    ) -> Panels:
        log_mrr = node_positions(low, high)
        rows = RowDensity(self.model, log_spread)
        log_density = rows.log_density(log_mrr)
        load = rows.critical_loads(self.question, log_mrr)
        return Panels(row, log_spread, low, high, log_weight, log_density, load)

    def _rough_panels(self) -> NDArray[np.bool_]:
        """Panels with errors that matter compared with the largest row. Such errors would make rows rough in log a."""
        masses, _ = masses_of(self.panels)
        top = self.panels.log_density.max(axis=1, keepdims=True)
        density = np.exp(self.panels.log_density - top)
        weight = np.exp(self.panels.log_weight - self.panels.log_weight.max())
        rough = np.zeros(len(masses), dtype=bool)
        for share in self._shares(masses):
            parts = (share * masses).sum(axis=1) / weight
            largest = self._per_row(parts[None]).max()
            rough |= parts * roughness(density * share) > _INNER * self.tolerance * largest
        return rough

    def _shares(self, masses: Array) -> tuple[Array, ...]:
        """Factors of the nodes' masses in the sums that have to be accurate: 1, and the shares of both variances."""
        loads = self.panels.critical_load
        return (
            np.ones_like(masses),
            *(_shares_of_variance(values, masses) for values in (loads, np.log(loads))),
        )

    def _per_row(self, columns: Array) -> Array:
        """Adds up panels of the same row; shape (quantities, rows)."""
        rows = len(self._bounds) * ORDER
        return np.stack(
            [np.bincount(self.panels.row, column, minlength=rows) for column in columns]
        )

    def _rough_blocks(self, quantities: Array) -> list[int]:
        """Blocks in which a quantity is not smooth in log a, if the error is more than the tolerance of the whole."""
        blocks = quantities.reshape(len(quantities), len(self._bounds), ORDER)
        error = blocks.sum(axis=2) * roughness(blocks / WEIGHTS)
        present = np.zeros(len(self._bounds), dtype=bool)
        present[np.unique(self.panels.row // ORDER)] = True
        return [
            int(block) for block in np.flatnonzero((error > self.tolerance).any(axis=0) & present)
        ]


def _shares_of_variance(values: Array, masses: Array) -> Array:
    """Squares of the differences from the mean, divided by the variance; zeros if there is none."""
    mean, variance = mean_and_variance(values, masses)
    return np.asarray((values - mean) ** 2 / max(variance, 1e-30 * mean * mean))


def cut_rows(
    density: RowDensity, known: Modes, question: CriticalLoadQuestion, drop: float
) -> Array:
    """Log m at which to cut rows, shape (rows, cuts); sorted, and possibly with duplicates.

    Rows are cut at their modes, and where the critical load meets its limits.
    """
    mode, _, low, high = supports(density, neighbouring_starts(known, density.log_spread), drop)
    bends = np.clip(steps_of(density, question), low[:, None], high[:, None])
    return np.sort(np.column_stack([low, mode, high, bends]), axis=1)
