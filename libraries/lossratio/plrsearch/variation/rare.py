"""Losses that do not come from the load, because trials with at least as much load lost far fewer frames.

The mean loss does not fall as the load increases. So if a trial lost thousands of frames, and a trial with more load
lost none, frames are also lost for another reason, such as a pause. Trials at a lower load may have missed such losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import scipy

from lossratio.plrsearch.model import TrialCounts
from lossratio.units import format_frame_rate

_OVERLOAD = 1e-3
"""Minimum loss ratio of trials in overload."""
_BEYOND = 10.0
"""Chance and a varying capacity do not explain a loss this many times as large as that of a trial with more load, nor a
loss of this many batches and standard deviations."""
_LEAST_FRAMES = 100.0
"""Smallest loss of a pause. Where arrivals vary, a queue that is nearly full loses dozens of frames at a time."""
_TAIL = 1e-3
"""If few trials show how much the capacity varies: the probability that it varies by more than is assumed."""


@dataclass(frozen=True)
class RareLoss:
    """The loss at the lowest load among those that do not come from the load."""

    load: float
    """The load of its trial, in frames per second."""
    frames: float
    """Number of frames that this trial lost beyond what the other trial lost."""

    @classmethod
    def of(cls, counts: TrialCounts, long: TrialCounts, batch: float) -> RareLoss | None:
        """The loss that these trials show; None if the load, batches and a capacity that varies may explain them all.

        Long trials are only compared with each other, because a bucket passes more in short trials.

        Args:
            counts: The trials of usual length.
            long: Trials that are much longer.
            batch: Number of frames that are lost at once.
        """
        capacity, variation = seen_capacity(counts)
        lowest = capacity - variation
        losses = (cls._below(lowest, trials, batch) for trials in (counts, long))
        return min(filter(None, losses), key=attrgetter("load"), default=None)

    @classmethod
    def _below(cls, lowest: float, counts: TrialCounts, batch: float) -> RareLoss | None:
        """The loss that trials of similar length show below the lowest capacity."""
        ordered = counts.at(np.argsort(counts.load, kind="stable"))
        rate = ordered.lost / np.maximum(ordered.exposure, 1e-300)
        # The smallest rate of loss at the same load or above.
        least = np.minimum.accumulate(rate[::-1])[::-1]
        least = least[np.searchsorted(ordered.load, ordered.load)]

        usual = least * ordered.exposure
        beyond = ordered.lost - usual
        is_rare = beyond > np.maximum(_BEYOND * (batch + usual), _LEAST_FRAMES)
        found = np.flatnonzero(is_rare & (ordered.load < lowest))
        if not len(found):
            return None
        return cls(float(ordered.load[found[0]]), float(beyond[found[0]]))

    def __str__(self) -> str:
        """The loss, in a few words."""
        return (
            f"a trial at {format_frame_rate(self.load)} lost about {self.frames:,.0f} frames more than one with at "
            "least as much load"
        )


def seen_capacity(counts: TrialCounts) -> tuple[float, float]:
    """The capacity in overload, and how much it may vary, in frames per second.

    Without overload, the capacity is infinite. If no two trials in overload show how much it varies, that is infinite.
    """
    passed = counts.load - counts.lost / np.maximum(counts.exposure, 1e-300)
    is_overload = counts.lost > _OVERLOAD * counts.load * counts.exposure
    if not is_overload.any():
        return np.inf, 0.0

    passed = passed[is_overload]
    _, group = np.unique(counts.load[is_overload], return_inverse=True)
    if len(passed) == group.max() + 1:
        # No loads are equal. Different loads also change the rate that passes, so this does not underestimate the
        # variation.
        group = np.zeros_like(group)
    trials = np.bincount(group)
    freedom = len(passed) - len(trials)
    middle = float(np.median(passed))
    if not freedom:
        return middle, np.inf
    mean = np.bincount(group, passed) / trials
    stdev = float(np.sqrt(np.sum((passed - mean[group]) ** 2) / freedom))
    times = max(_BEYOND, float(scipy.special.stdtrit(freedom, 1.0 - _TAIL)))
    return middle, times * stdev
