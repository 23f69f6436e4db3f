"""What each trial shows about its own capacity, given the shape of the knee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, FittingFunction, TrialCounts
from lossratio.plrsearch.quadrature import Mode

_LIKELY = 0.7
"""Lost frames that a trial without loss may have had: there a capacity is as likely to be below as above."""
_CERTAIN = 3.0
"""Loss is certain if it is expected even of a capacity larger by so many standard deviations."""
_CERTAIN_LOSS = 16.0
"""Lost frames that are expected of that capacity, at least."""

_ENOUGH = 8
"""Trials in overload that show the usual deviation."""
_WIDER = 1.3
"""How much larger the deviation is taken than such trials show it."""
_QUARTILE = 0.6745
"""Distance of a normal distribution's quartiles from its median."""


@dataclass(frozen=True)
class Capacities:
    """The capacities of trials, as shares of a reference less 1; arrays of one entry per trial, in their order."""

    reference: float
    """The reference, in frames per second."""
    place: Array
    """The capacity that explains the count; without loss the capacity is above."""
    blur: Array
    """Standard deviation of `place` by chance alone; without loss the width of the step."""
    lossy: NDArray[np.bool_]
    """Whether the trial lost frames."""
    certain: NDArray[np.bool_]
    """Whether loss was certain: a sample of such trials is not chosen by its capacities."""
    time: Array
    """Middle of the trial as a share of all traffic, 0 at the beginning and 1 at the end."""

    @classmethod
    def of(cls, function: FittingFunction, mode: Mode, counts: TrialCounts) -> Capacities:
        """The capacities under a curve."""
        spread = np.array(mode.spread)
        log_rate = np.log(np.maximum(counts.lost, _LIKELY) / counts.exposure)
        place = np.maximum(function.explaining_mrr(counts.load, log_rate, spread), spread)
        loss = function.log_loss(counts.load, place, spread)
        place = np.maximum(place - (loss.log_rate - log_rate) / loss.slope, spread)
        blur = -1.0 / (loss.slope * np.sqrt(np.maximum(counts.lost, 1.0)))
        usual = _usual_deviation(place[counts.load >= mode.mrr], mode)
        unlucky = function.log_loss_rate(counts.load, np.array(mode.mrr + _CERTAIN * usual), spread)
        certain = (np.exp(unlucky) * counts.exposure > _CERTAIN_LOSS) & (counts.lost > 0.0)
        traffic = np.cumsum(counts.exposure)
        time = (traffic - 0.5 * counts.exposure) / traffic.max(initial=1e-300)
        return cls(mode.mrr, place / mode.mrr - 1.0, blur / mode.mrr, counts.lost > 0.0, certain, time)

    def widths(self, deviation: float) -> Array:
        """Standard deviations of `place`, if that of the capacity is `deviation` (frames per second)."""
        return np.hypot(self.blur, deviation / self.reference)

    def residuals(self, deviation: float, correlation: float = 0.0) -> Array:
        """Residuals of trials in which loss was certain, in standard deviations: normal if the model is right."""
        values = (self.place / self.widths(deviation))[self.certain]
        if not correlation:
            return np.asarray(values)
        likeness = correlation**self.gaps
        fresh = (values[1:] - likeness * values[:-1]) / np.sqrt(1.0 - likeness**2)
        return np.concatenate([values[:1], fresh])

    @property
    def gaps(self) -> Array:
        """Time from each trial in which loss was certain to the next, in usual trials."""
        return np.asarray(np.diff(self.time[self.certain]) / np.median(np.diff(self.time)))


def _usual_deviation(overloaded: Array, mode: Mode) -> float:
    """Standard deviation of the capacity but for unusual trials, in frames per second.

    It is that of the lower half of the trials in overload: the largest capacities may be above the load.
    """
    if len(overloaded) < _ENOUGH:
        return mode.deviation
    lower, median = np.quantile(overloaded, [0.25, 0.5])
    return min(mode.deviation, _WIDER * float(median - lower) / _QUARTILE)


def normal_scores(values: Array) -> Array:
    """Values of a normal distribution with the same ranks: what is far out counts as no more than its rank."""
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return np.asarray(scipy.special.ndtri((ranks + 0.5) / len(values)))
