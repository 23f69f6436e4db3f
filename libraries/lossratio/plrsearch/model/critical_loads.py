"""The load at which the mean loss ratio is the target, from the parameters of a curve, and the reverse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.model.curves import Curves, Indices
from lossratio.plrsearch.model.functions import Array

_ITERATIONS = 100


@dataclass(frozen=True)
class CriticalLoadQuestion:
    """The question that a search answers: at which load is the mean loss ratio the target?

    Attributes:
        target_loss_ratio: Between 0 and 1, exclusive.
        min_load: Smallest possible answer, in frames per second.
        max_load: Largest possible answer, in frames per second.

    Raises:
        SearchError: If a value makes no sense.
    """

    target_loss_ratio: float
    min_load: float
    max_load: float

    def __post_init__(self) -> None:
        if not 0.0 < self.target_loss_ratio < 1.0:
            raise SearchError(
                f"The target loss ratio must be between 0 and 1, exclusive, not {self.target_loss_ratio!r}."
            )
        if not (0.0 < self.min_load < self.max_load < np.inf):
            raise SearchError(
                f"The loads must be 0 < minimum < maximum < infinity, not {self.min_load!r} and {self.max_load!r}."
            )


def critical_load(curves: Curves, question: CriticalLoadQuestion, mrr: Array) -> Array:
    """The load in frames per second at which the mean loss ratio is the target, clamped to the limits.

    The excess of log r - log b over log t increases with the load.

    Args:
        curves: The curves, shape (curves,).
        question: Target and limits.
        mrr: Limiting forwarding rates in frames per second, shape (curves,).
    """
    log_target = np.log(question.target_loss_ratio)

    def excess(load: Array, which: Indices) -> tuple[Array, Array]:
        point = curves.at(load, mrr[which], which)
        slope = np.maximum(point.load_slope - 1.0 / load, 1e-12 / load)
        return point.log_rate - np.log(load) - log_target, slope

    start = mrr - curves.explaining_mrr(np.zeros(()), log_target + np.log(mrr))
    low, high = np.full(mrr.shape, question.min_load), np.full(mrr.shape, question.max_load)
    return _root(excess, start, low, high, np.minimum(curves.spread, question.min_load))


def mrr_of_critical_load(curves: Curves, question: CriticalLoadQuestion, load: Array, ceiling: float) -> Array:
    """The mrr, between the spread and `ceiling`, with the given critical load; the nearer end if there is none.

    Args:
        curves: The curves, shape (curves,).
        question: The target.
        load: Critical loads in frames per second, shape (curves,).
        ceiling: Largest mrr in frames per second.
    """
    wanted = np.log(question.target_loss_ratio) + np.log(load)

    def lack(mrr: Array, which: Indices) -> tuple[Array, Array]:
        point = curves.at(load[which], mrr, which)
        return wanted[which] - point.log_rate, np.maximum(-point.mrr_slope, 1e-300)

    start = curves.explaining_mrr(load, wanted)
    return _root(lack, start, curves.spread, np.maximum(curves.spread, ceiling), curves.spread)


def _root(
    function: Callable[[Array, Indices], tuple[Array, Array]], start: Array, low: Array, high: Array, scale: Array
) -> Array:
    """Roots of increasing functions, or the nearer end, by Newton's method within brackets.

    A step onto the bracket's end is allowed. Newton's method squares its error, so no step is needed after one of 1e-7
    of the scale on which the function bends.

    Args:
        function: Values and slopes of the functions with the given indices.
        start: Where to begin.
        low: Lower ends.
        high: Upper ends.
        scale: The scales on which the functions bend.
    """
    every = np.arange(len(start))
    beyond_high, beyond_low = function(high, every)[0] <= 0, function(low, every)[0] >= 0
    low, high = np.where(beyond_high, high, low), np.where(beyond_low, low, high)
    x = np.clip(start, low, high)
    active = np.flatnonzero(low < high)
    for _ in range(_ITERATIONS):
        if not len(active):
            break
        here = x[active]
        value, slope = function(here, active)
        low[active] = np.where(value < 0, here, low[active])
        high[active] = np.where(value < 0, high[active], here)
        moved = here - value / slope
        inside = (moved >= low[active]) & (moved <= high[active])
        x[active] = np.where(inside, moved, np.sqrt(low[active] * high[active]))
        active = active[np.abs(x[active] - here) > 1e-7 * np.minimum(scale[active], here)]
    return x
