"""From parameters to critical loads and back, for one fitting function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.functions import Array, FittingFunction

_ITERATIONS = 60


@dataclass(frozen=True)
class CriticalLoadQuestion:
    """What is asked: at which load is the mean loss ratio the target, between which limits.

    Attributes:
        target_loss_ratio: Between 0 and 1, exclusive.
        min_load: Smallest load that can be an answer, in frames per second.
        max_load: Largest load that can be an answer, in frames per second.

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


def critical_load(function: FittingFunction, question: CriticalLoadQuestion, mrr: Array, spread: Array) -> Array:
    """The load in frames per second at which the mean loss ratio is the target, clamped to the limits.

    Newton's method on log r - log b - log t, which increases with the load, kept within a bracket.
    """
    log_target = np.log(question.target_loss_ratio)
    limits = np.array([question.min_load, question.max_load])
    ends = function.log_loss_rate(limits, mrr[..., None], spread[..., None]) - np.log(limits) - log_target
    low = np.where(ends[..., 1] <= 0, question.max_load, question.min_load)
    high = np.where(ends[..., 0] >= 0, question.min_load, question.max_load)
    load = np.clip(mrr - function.explaining_mrr(np.zeros(()), log_target + np.log(mrr), spread), low, high)
    for _ in range(_ITERATIONS):
        excess = function.log_loss_rate(load, mrr, spread) - np.log(load) - log_target
        low, high = np.where(excess < 0, load, low), np.where(excess < 0, high, load)
        step = -excess / np.maximum(function.load_slope(load, mrr, spread) - 1.0 / load, 1e-12 / load)
        moved = load + step
        moved = np.where((moved >= low) & (moved <= high), moved, 0.5 * (low + high))
        done = np.abs(moved - load) <= 1e-7 * np.minimum(spread, load)
        load = moved
        if done.all():
            break
    return load


def mrr_of_critical_load(
    function: FittingFunction, question: CriticalLoadQuestion, load: Array, spread: Array, ceiling: float
) -> Array:
    """The mrr, between the spread and `ceiling`, at which the critical load is the given one; the nearer end if none."""
    wanted = np.log(question.target_loss_ratio) + np.log(load)
    load, spread, wanted = np.broadcast_arrays(load, spread, wanted)
    low, high = np.array(spread), np.full(load.shape, ceiling)
    high = np.maximum(low, high)
    mrr = np.clip(function.explaining_mrr(load, wanted, spread), low, high)
    for _ in range(_ITERATIONS):
        loss = function.log_loss(load, mrr, spread)
        excess = loss.log_rate - wanted
        low, high = np.where(excess > 0, mrr, low), np.where(excess > 0, high, mrr)
        moved = mrr - excess / np.minimum(loss.slope, -1e-300)
        moved = np.where((moved >= low) & (moved <= high), moved, np.sqrt(low * high))
        done = np.abs(moved - mrr) <= 1e-7 * np.minimum(spread, mrr)
        mrr = moved
        if done.all():
            break
    return mrr


def mrr_per_critical_load(
    function: FittingFunction, load: Array, mrr: Array, spread: Array
) -> Array:
    """Derivative of the mrr with respect to the critical load, at a fixed spread, where the critical load is `load`."""
    slope = np.minimum(function.log_loss(load, mrr, spread).slope, -1e-300)
    return np.asarray((1.0 / load - function.load_slope(load, mrr, spread)) / slope)
