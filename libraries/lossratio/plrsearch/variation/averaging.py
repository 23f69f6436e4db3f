"""How long trials should be, by the time over which the capacity's noise is alike.

The Allan deviation of capacities (Allan 1966) shows it: over independent noise it falls with the root of the averaging
time, over noise that is alike it does not. Trials that are shorter than the correlation time show the same capacity
again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array
from lossratio.plrsearch.variation.order import ENOUGH, Order
from lossratio.plrsearch.variation.sample import Capacities

_BLOCKS = 4
"""Least number of averages that an Allan deviation is made of."""


@dataclass(frozen=True)
class Averaging:
    """How the capacity's noise averages out over time."""

    allan_deviations: tuple[tuple[float, float], ...]
    """Averaging time in seconds and Allan deviation there, as a share of the capacity."""
    correlation_time: float
    """Seconds after which capacities are alike to 1/e; 0: successive trials are independent."""
    duration: float
    """Recommended duration of a trial, in seconds: the correlation time, but no less than trials took."""


def averaging_of(capacities: Capacities, order: Order, period: float, duration: float) -> Averaging | None:
    """How the capacity's noise averages out; None if loss was certain in too few trials.

    Args:
        capacities: What the trials show.
        order: What their order shows.
        period: Seconds from one trial to the next, on average.
        duration: Seconds of a trial, on average.
    """
    if capacities.certain.sum() < ENOUGH:
        return None
    place = capacities.place - order.drift * capacities.time
    trials, deviations = 1, []
    while trials * _BLOCKS <= len(place):
        deviation = _allan_deviation(place, capacities.certain, trials)
        if deviation is not None:
            deviations.append((trials * period, deviation))
        trials *= 2
    time = -period / float(np.log(order.correlation)) if order.correlation else 0.0
    return Averaging(tuple(deviations), time, max(duration, time))


def _allan_deviation(place: Array, certain: NDArray[np.bool_], trials: int) -> float | None:
    """Half the mean square of the differences of successive averages over so many trials each, and its root."""
    blocks = np.arange(len(place)) // trials
    shown = np.bincount(blocks, certain)
    averages = np.bincount(blocks, np.where(certain, place, 0.0)) / np.maximum(shown, 1.0)
    both = (shown[1:] > 0) & (shown[:-1] > 0)
    if both.sum() < _BLOCKS - 1:
        return None
    return float(np.sqrt(0.5 * np.mean(np.diff(averages)[both] ** 2)))
