"""Losses that do not come from the load, because trials with at least as much load lost far fewer frames.

The mean loss does not fall as the load increases. So if a trial lost thousands of frames, and a trial with more load
lost none, frames are also lost for another reason, such as a pause. Trials at a lower load may have missed such losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, TrialCounts
from lossratio.units import format_frame_rate

_BEYOND = 10.0
"""Chance and a varying capacity do not explain a loss this many times as large as that of a trial with more load, nor a
loss of this many batches and standard deviations."""
_LEAST_FRAMES = 100.0
"""Smallest loss of a pause. Where arrivals vary, a queue that is nearly full loses dozens of frames at a time."""
_FOLLOW, _OF_LOADS = 3, 0.2
"""At least so many trials lost at most a share of their frames that is small compared with how far their loads are
apart: at most this share of it. The capacities of three trials are below their loads by so little with a probability of
about 0.2 cubed."""
_UNUSUAL = 10
"""One of so many trials may be unusual."""
_TAIL = 1e-3
"""If few trials show how much the capacity varies: the probability that it varies by more than is assumed."""


@dataclass(frozen=True)
class RareLoss:
    """The loss at the lowest load among those that do not come from the load."""

    load: float
    """The load of its trial, in frames per second."""
    frames: float
    """Number of frames that this trial lost beyond what the other trial lost."""
    seconds: float
    """How long the trial took."""

    @classmethod
    def of(cls, counts: TrialCounts, long: TrialCounts, batch: float) -> RareLoss | None:
        """The loss that these trials show; None if the load, batches and a capacity that varies may explain them all.

        Long trials are only compared with each other, because a bucket passes more in short trials.

        Args:
            counts: The trials of usual length.
            long: Trials that are much longer.
            batch: Number of frames that are usually lost at once.
        """
        capacity = SeenCapacity.of(counts)
        lowest = capacity.mean - capacity.variation
        losses = (cls._below(lowest, trials, batch) for trials in (counts, long))
        return min(filter(None, losses), key=attrgetter("load"), default=None)

    @classmethod
    def _below(cls, lowest: float, counts: TrialCounts, batch: float) -> RareLoss | None:
        """The loss that trials of similar length show below the lowest capacity."""
        ordered = counts.at(np.argsort(counts.load, kind="stable"))
        rate = ordered.loss_rate
        # The smallest rate of loss at the same load or above.
        least = np.minimum.accumulate(rate[::-1])[::-1]
        least = least[np.searchsorted(ordered.load, ordered.load)]

        usual = least * ordered.exposure
        beyond = ordered.lost - usual
        is_rare = beyond > np.maximum(_BEYOND * (batch + usual), _LEAST_FRAMES)
        found = np.flatnonzero(is_rare & (ordered.load < lowest))
        if not len(found):
            return None
        lowest_loss = found[0]
        return cls(
            float(ordered.load[lowest_loss]),
            float(beyond[lowest_loss]),
            float(ordered.duration[lowest_loss]),
        )

    def __str__(self) -> str:
        """The loss, in a few words."""
        return (
            f"a trial of {self.seconds:.3g} s at {format_frame_rate(self.load)} lost about {self.frames:,.0f} frames "
            "more than one with at least as much load"
        )

    def in_doubt(self, allowed: float, load: float, seconds: float, advice: str) -> str:
        """Why a load that its trials verify may lose more than the target, in words.

        Args:
            allowed: Seconds between such losses that the target allows at the load.
            load: The load, in frames per second.
            seconds: How long the trials there took together.
            advice: What to do; empty: nothing is of use.
        """
        words = (
            f"{self}. If such losses come more often than once in {allowed:,.0f} s at {format_frame_rate(load)}, too, "
            f"they exceed the target. The trials there took {seconds:,.0f} s, which is too short to rule that out"
        )
        return f"{words}; {advice}" if advice else words


def passed_follows_load(counts: TrialCounts) -> bool:
    """Whether trials with much loss pass nearly as much as their loads, so that the capacity does not limit them.

    If the capacity varies, what passes does not depend on the load. After a long pause, it is the load without the
    frames of the pause. Only trials below a load that lost nothing show the difference.
    """
    quiet = _highest_quiet(counts)
    lossy = counts.at(counts.is_overload & (counts.load <= quiet))
    if len(lossy) < _FOLLOW:
        return False
    apart = float(np.ptp(lossy.load) / lossy.load.max())
    return float((lossy.lost / lossy.sent).max()) < _OF_LOADS * apart


def _highest_quiet(counts: TrialCounts) -> float:
    """The highest load without loss, in frames per second; 0: there is none."""
    return float(counts.load[counts.lost == 0.0].max(initial=0.0))


@dataclass(frozen=True)
class SeenCapacity:
    """What trials in overload forward."""

    mean: float
    """The median forwarding rate in frames per second; infinite without overload."""
    stdev: float
    """Standard deviation of the rate at equal loads, in frames per second; infinite if no two trials show it."""
    times: float
    """How many standard deviations a rate may be from the mean."""
    has_equal: bool = False
    """Whether trials at equal loads show the standard deviation. If not, it also comes from the different loads."""

    @classmethod
    def of(cls, counts: TrialCounts) -> SeenCapacity:
        """What these trials show, without the most unusual tenth, because pauses may be in them.

        If what passes follows the load, pauses are in all trials with loss below a load without loss.
        """
        overloaded = counts.at(counts.is_overload)
        if passed_follows_load(counts):
            overloaded = overloaded.at(overloaded.load > _highest_quiet(counts))
        if not len(overloaded):
            return cls(np.inf, 0.0, _BEYOND)

        passed = overloaded.forwarding_rate
        _, group = np.unique(overloaded.load, return_inverse=True)
        has_equal = len(passed) > group.max() + 1
        if not has_equal:
            # Different loads also change the rate that passes, so this does not underestimate the variation.
            group = np.zeros_like(group)
        middle = float(np.median(passed))
        usual = np.argsort(_squared(passed, group))[: len(passed) - len(passed) // _UNUSUAL]
        passed = passed[usual]
        group = group[usual]
        freedom = len(passed) - len(np.unique(group))
        if not freedom:
            return cls(middle, np.inf, _BEYOND)
        times = max(_BEYOND, float(scipy.special.stdtrit(freedom, 1.0 - _TAIL)))
        stdev = float(np.sqrt(_squared(passed, group).sum() / freedom))
        return cls(middle, stdev, times, has_equal)

    @property
    def variation(self) -> float:
        """How much the capacity may vary, in frames per second."""
        return self.times * self.stdev


def _squared(values: Array, group: NDArray[np.intp]) -> Array:
    """Squared distances of values from the median of their group."""
    _, group = np.unique(group, return_inverse=True)
    middle = np.array([np.median(values[group == number]) for number in range(group.max() + 1)])
    return np.asarray((values - middle[group]) ** 2)
