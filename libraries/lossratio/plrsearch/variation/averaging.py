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
from lossratio.trials import Observed, Seconds

_BLOCKS = 4
"""Least number of averages that an Allan deviation is made of."""


@dataclass(frozen=True)
class AllanDeviation(Observed):
    """The Allan deviation of the capacity over an averaging time."""

    seconds: Seconds
    """The averaging time."""
    deviation_ratio: float
    """The deviation, as a share of the capacity."""


@dataclass(frozen=True)
class Averaging(Observed):
    """How the capacity's noise averages out over time, and how long trials should be."""

    allan: tuple[AllanDeviation, ...]
    """Allan deviations of the capacities of trials in which loss was certain."""
    correlation_time_s: Seconds
    """Time after which capacities are alike to 1/e; 0: successive trials are independent."""
    recommended_duration_s: Seconds
    """Duration of trials that show a capacity of their own each: the correlation time, but no less than trials took."""

    def __str__(self) -> str:
        """How long trials should be, and why."""
        deviations = ", ".join(f"{point.deviation_ratio:.2g} over {point.seconds:.3g} s" for point in self.allan)
        seen = "successive trials are independent: they are long enough"
        if self.correlation_time_s:
            seen = (
                f"capacities are alike for {self.correlation_time_s:.3g} s: trials of "
                f"{self.recommended_duration_s:.3g} s would show more each"
            )
        return f"{seen} (Allan deviation as a share of the capacity: {deviations})"


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
            deviations.append(AllanDeviation(trials * period, deviation))
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
