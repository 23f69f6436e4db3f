"""Rows of a posterior: densities over log m with all other parameters fixed, with their maxima and ends.

The posterior is a thin ridge in (log a, log m), so each row has its own mode and its own support. Newton's method, kept
within brackets, finds both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.plrsearch.likelihood import RowDensity
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, mrr_of_critical_load

DROP = 28.0
"""A row's support ends this many nats below its maximum; 1e-14 of the mass lies beyond."""
_STARTS = np.linspace(0.0, 1.0, 9)
_ITERATIONS = 80
_GAIN = 0.1
"""Nats by which the maximum of a row may be missed."""
_HOPELESS = 100.0
"""A row this many nats below the highest row has no mass, and its maximum need not be exact."""


@dataclass(frozen=True)
class Modes:
    """Maxima of rows of the posterior, each at one log a; arrays of one length, sorted by it."""

    log_spread: Array
    """Log a of each row."""
    mode: Array
    """Log m of the highest density."""
    log_mass: Array
    """Logarithm of the row's integral over log m, roughly."""


def find_modes(density: RowDensity, starts: Array) -> Modes:
    """Finds each row's maximum and rough integral, by a Gaussian of the same curvature."""
    ceiling, starts = _domain(density, starts, DROP)
    mode, peak, information = _maximum(density, starts, ceiling, _HOPELESS)
    return Modes(density.log_spread, mode, peak - 0.5 * np.log(information))


def supports(
    density: RowDensity, starts: Array, drop: float = DROP
) -> tuple[Array, Array, Array, Array]:
    """Log m of each row's highest density, its logarithm there, and log m where its support begins and ends."""
    ceiling, starts = _domain(density, starts, drop)
    mode, peak, _ = maximum = _maximum(density, starts, ceiling)
    return mode, peak, *_crossings(density, maximum, ceiling, drop)


def _domain(density: RowDensity, starts: Array, drop: float) -> tuple[Array, Array]:
    """The largest log m of each row, and the starts below it, in order."""
    ceiling = np.maximum(
        density.model.prior.highest_log_mrr(drop + 5.0), density.log_spread + drop + 5.0
    )
    return ceiling, np.sort(np.clip(starts, density.log_spread[:, None], ceiling[:, None]), axis=1)


def explaining_starts(density: RowDensity) -> Array:
    """Starts from the trials: quantiles of the mrrs that explain single trials, as each may be near a maximum."""
    groups = density.model.likelihood.groups
    model = density.model
    lossy = groups.lost > 0
    middle = np.broadcast_to(np.log(model.prior.scale), (len(density.log_spread), 1))
    if not lossy.any():
        return middle
    log_rate = np.log(groups.lost[lossy] / groups.exposure[lossy])
    spread = np.exp(density.log_spread)[:, None]
    mrr = model.function.explaining_mrr(groups.load[lossy], log_rate, spread)
    mrr = np.log(np.maximum(mrr, spread))
    return np.column_stack([np.quantile(mrr, _STARTS, axis=1).T, middle])


def neighbouring_starts(known: Modes, log_spread: Array) -> Array:
    """Starts from known rows: the interpolated mode, and the modes of the nearest rows on both sides."""
    above = np.clip(
        np.searchsorted(known.log_spread, log_spread), 1, max(1, len(known.log_spread) - 1)
    )
    above = np.minimum(above, len(known.log_spread) - 1)
    below = np.maximum(above - 1, 0)
    between = np.interp(log_spread, known.log_spread, known.mode)
    return np.stack([known.mode[below], between, known.mode[above]], axis=1)


def steps_of(density: RowDensity, question: CriticalLoadQuestion) -> Array:
    """Log m at which the critical load is the minimum and the maximum, where it has kinks, shape (rows, 2)."""
    ceiling = float(np.exp(density.model.prior.highest_log_mrr(DROP) + DROP))
    loads = np.tile([question.min_load, question.max_load], len(density.log_spread))
    spread = np.repeat(density.spread, 2)
    curves = Curves(density.model.function, spread, spread, np.zeros_like(spread))
    return np.log(mrr_of_critical_load(curves, question, loads, ceiling)).reshape(-1, 2)


def _maximum(
    density: RowDensity, starts: Array, ceiling: Array, depth: float = np.inf
) -> tuple[Array, Array, Array]:
    """Climbs from each row's best candidate: position, height and information of the maximum.

    A density that is concave between x and the bracket's end gains at most slope times distance there. If this gain is
    small, x is close enough to the maximum. Rows that cannot come within `depth` nats of the highest row are left out.
    """
    rows = np.arange(len(starts))
    scores = density.score(starts)
    best = np.argmax(scores.value, axis=1)
    x = starts[rows, best]
    peak = scores.value[rows, best]
    information = scores.information[rows, best]
    slope = scores.slope[rows, best]
    below = np.where(starts < x[:, None], starts, -np.inf).max(axis=1)
    above = np.where(starts > x[:, None], starts, np.inf).min(axis=1)
    low = np.where(slope > 0, x, np.maximum(below, density.log_spread))
    high = np.where(slope > 0, np.minimum(above, ceiling), x)
    top = x.copy()
    top_peak = peak.copy()
    top_information = information.copy()
    active = rows

    for _ in range(_ITERATIONS):
        end = np.where(slope > 0, high, low)
        gain = np.abs(slope * (end - x))
        promising = peak + gain > top_peak.max() - depth
        active = active[
            promising[active]
            & (gain[active] > _GAIN)
            & ((high - low)[active] > 1e-14 * np.abs(x[active]))
        ]
        if not len(active):
            break

        target = x[active] + slope[active] / information[active]
        outside = (target <= low[active]) | (target >= high[active])
        target = np.where(outside, 0.5 * (low[active] + high[active]), target)
        score = density.score(target[:, None], active)
        x[active], peak[active], slope[active] = target, score.value[:, 0], score.slope[:, 0]
        information[active] = score.information[:, 0]
        low[active] = np.where(slope[active] > 0, target, low[active])
        high[active] = np.where(slope[active] > 0, high[active], target)
        better = peak > top_peak
        top, top_peak = np.where(better, x, top), np.where(better, peak, top_peak)
        top_information = np.where(better, information, top_information)

    return top, top_peak, top_information


def _crossings(
    density: RowDensity, maximum: tuple[Array, Array, Array], ceiling: Array, drop: float
) -> tuple[Array, Array]:
    """Log m on both sides of the mode where the density is `drop` nats lower (or a tenth more), or the domain ends."""
    mode, peak, information = maximum
    level = (peak - 1.05 * drop)[:, None]
    inside = np.stack([mode, mode], axis=1)
    outside = np.stack([density.log_spread, ceiling], axis=1)
    at_end = density.log_density(outside) > level
    reach = np.sqrt(2.1 * drop / information)
    x = np.clip(np.stack([mode - reach, mode + reach], axis=1), outside[:, :1], outside[:, 1:])
    x = np.where(at_end, outside, x)
    active = np.flatnonzero(~at_end.all(axis=1))

    for _ in range(_ITERATIONS):
        if not len(active):
            break

        here, finished = x[active], at_end[active]
        score = density.score(here, active)
        excess = score.value - level[active]
        inside[active] = np.where((excess > 0) & ~finished, here, inside[active])
        outside[active] = np.where((excess <= 0) & ~finished, here, outside[active])
        lower, upper = np.minimum(inside, outside)[active], np.maximum(inside, outside)[active]
        target = here - excess / np.where(score.slope == 0, 1e-300, score.slope)
        target = np.where((target > lower) & (target < upper), target, 0.5 * (lower + upper))
        finished |= (np.abs(excess) <= 0.05 * drop) | (upper - lower <= 1e-13 * np.abs(upper))
        x[active] = np.where(finished, here, target)
        at_end[active] = finished
        active = active[~finished.all(axis=1)]

    return x[:, 0], x[:, 1]
