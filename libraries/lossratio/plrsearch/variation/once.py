"""Losses that come once in each trial, no matter how long it takes.

The first frames of a trial may be lost while a device learns its flows, and the last ones may wait for others in a
buffer. A trial that is five times shorter loses as many such frames, not a fifth of them. They say nothing about the
loss ratio in the long run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lossratio.plrsearch.model import Array, TrialCounts
from lossratio.units import format_about

_BELOW = 0.95
"""Only trials at less than this share of the forwarding rate show such losses, because others are close to overload."""
_SAFE = 0.93
"""No load above this share of it is verified, because losses by overload hide among those that come once."""
_LOWEST = 0.7
"""Only trials at or above this share of it are compared, because similar loads lose similar numbers of frames. If there
are too few, the highest ones below it are compared, too."""
_EQUAL = 0.01
"""Loads that differ by less than this share count as equal."""
_ALIKE = 6.0
"""The mean loss at the higher half of these loads is at most this many times that at the lower half."""
_NEAR_OVERLOAD, _LEAST_NEAR, _ALIKE_NEAR = 0.99, 4, 2.0
"""If there are at least so many trials up to this share of the forwarding rate, they also show such losses. The last
number takes the place of `_ALIKE` then, because losses by overload grow faster with the load."""
_LARGEST = 3.0
"""A loss that comes once is at most this many times the largest loss at these loads."""
_LOSSY = 0.8
"""Minimum share of the trials there that lose frames."""
_LEAST_LOST = 5.0
"""Minimum mean number of these frames."""
_MOST_LOST = 0.01
"""Largest share of its frames that a trial loses once. If a trial loses more, it is in overload."""
_AS_LONG = 0.9
"""Minimum duration of the trials that show the forwarding rate, as a share of the usual duration."""
SHARE = 0.2
"""Duration of the short trials, as a share of the usual duration."""
_USUAL = 2
"""Minimum number of trials of the usual length that are compared."""
_ENOUGH, _MOST = 8, 12
"""Number of short trials that are compared with them, and their maximum number while they do not decide."""
_FIRST = 4
"""After so many short trials, no more follow if losses probably grow with time."""
_LESS = 0.35
"""They probably do so if short trials lose less than this share of what the others lose."""
_SURE = 3.0
"""Standard deviations by which short trials must lose more frames than if losses grew with time."""
_LEAST_STDEV = 0.5
"""Minimum standard deviation of the frames that a trial loses, as a share of their mean, because few trials show it."""
_LEAST = 0.5
"""Short trials must lose at least this share of what other trials lose."""
_MARGIN = 1.25
"""Other trials may lose this many times the largest loss so far."""
_DEVIATIONS = 3.0
"""They may lose more than it by this many standard deviations. The smaller of the two limits counts."""


@dataclass(frozen=True)
class OnceLost:
    """Frames that each trial loses once."""

    most: float
    """The largest number of frames that a trial lost once."""
    frames: float
    """So many lost frames of a trial do not count, because later trials may lose slightly more than others did."""
    highest_load: float
    """At this load in frames per second, and above, losses may also come from overload."""
    short_s: float
    """Seconds of the short trials."""
    usual_s: float
    """Seconds of the trials of the usual length."""

    @classmethod
    def of(cls, usual: TrialCounts, short: TrialCounts) -> OnceLost | None:
        """What short trials show, compared with usual ones; None: losses grow with time, or the trials are too few."""
        rate = _highest_rate(usual)
        short = _at_one_load(short)
        if len(short) < _ENOUGH or _lose_more(short, usual):
            return None
        compared = _compared(usual, short)
        if not _may_come_once(compared, _ALIKE):
            return None

        usual_s = float(np.median(compared.duration))
        times = float(short.duration.sum()) / usual_s
        mean = float(compared.lost.mean())
        stdev = max(float(compared.lost.std(ddof=1)), _LEAST_STDEV * mean)
        by_chance = stdev * np.sqrt(times + times**2 / len(compared))
        least = max(times * mean + _SURE * by_chance, _LEAST * mean * len(short))
        if short.lost.sum() <= least or np.mean(short.lost > 0.0) < _LOSSY:
            return None

        lost = np.concatenate([usual.lost[usual.load < _BELOW * rate], short.lost])
        # A much larger loss has another cause.
        is_alike = lost <= _LARGEST * max(compared.lost.max(), short.lost.max())
        lost = lost[is_alike]
        most = float(lost.max())
        frames = min(_MARGIN * most, most + _DEVIATIONS * float(lost.std()))
        return cls(most, frames, _SAFE * rate, float(np.median(short.duration)), usual_s)

    def in_long(self, load: float, usual_loads: Array, usual_lost: Array) -> float:
        """So many lost frames of a long trial do not count.

        Trials of usual length lose as many frames once, and those at more load do not lose fewer.

        Args:
            load: The long trial's load, in frames per second.
            usual_loads: The loads of the trials of usual length.
            usual_lost: Their lost frames.
        """
        loads, trials = np.unique(usual_loads[usual_loads >= load], return_counts=True)
        enough = loads[trials >= _ENOUGH]
        if not len(enough):
            return self.frames
        return min(self.frames, float(usual_lost[usual_loads == enough[0]].max()))

    def without(self, counts: TrialCounts) -> TrialCounts:
        """The trials without the frames that may have been lost once."""
        once = np.full(len(counts), self.frames)
        usual = counts.at(~counts.is_long & ~counts.is_short)
        for load in np.unique(counts.load[counts.is_long]).tolist():
            once[counts.is_long & (counts.load == load)] = self.in_long(
                load, usual.load, usual.lost
            )
        return replace(counts, lost=np.maximum(counts.lost - once, 0.0))

    def __str__(self) -> str:
        """The losses, in a few words."""
        return (
            f"each trial loses up to {format_about(self.most)} frames, whether it takes {self.short_s:g} s or "
            f"{self.usual_s:g} s; these are not counted, so other losses of this size would not be seen"
        )


@dataclass(frozen=True)
class AskedTrial:
    """A trial that may show losses that come once."""

    load: float
    """Its load, in frames per second."""
    share: float
    """Its duration, as a share of the usual duration."""


def asked(usual: TrialCounts, short: TrialCounts) -> AskedTrial | None:
    """The next trial that may show such losses; None: there is no sign of them, or they are known.

    Short trials and at least two trials of the usual length are at one load.
    """
    short = _at_one_load(short)
    if not len(short):
        first = _first_load(usual)
        return None if first is None else AskedTrial(first, SHARE)

    compared = _compared(usual, short)
    load = float(short.load[0])
    # Most trials are usual ones.
    is_last = len(short) >= min(_MOST, len(usual) - 1)
    is_known = len(short) >= _ENOUGH and OnceLost.of(usual, short) is not None
    if is_last or is_known or _lose_more(short, usual):
        return None
    if not len(compared):
        return AskedTrial(load, 1.0)
    if len(compared) >= _USUAL and not _may_come_once(compared, _ALIKE):
        # Few trials there may have lost nothing by chance, although trials at many loads lose as much.
        below = _below(usual)
        is_sign = len(below) >= _ENOUGH and _may_come_once(below, _ALIKE)
        return AskedTrial(load, 1.0) if is_sign and len(compared) < _ENOUGH else None
    if len(short) < _FIRST:
        return AskedTrial(load, SHARE)
    if short.lost.mean() < _LESS * compared.lost.mean():
        return None
    return AskedTrial(load, 1.0 if len(compared) < _USUAL else SHARE)


def _at_one_load(short: TrialCounts) -> TrialCounts:
    """The short trials at the load of the first one."""
    return short.at(np.abs(short.load - short.load[:1]) <= _EQUAL * short.load)


def _lose_more(short: TrialCounts, usual: TrialCounts) -> bool:
    """Whether short trials lose far more frames than any others, so that the SUT has changed."""
    largest = float(_below(usual).lost.max(initial=0.0))
    return largest > 0.0 and bool(np.median(short.lost) > _LARGEST * largest)


def _highest_rate(usual: TrialCounts) -> float:
    """The highest forwarding rate in overload, in frames per second; infinite if no trial is in overload.

    Below it, losses that come once in each trial may look like overload. A shorter trial passes more of a bucket, so it
    does not show the rate.
    """
    overloaded = usual.at(usual.is_overload & (usual.times_usual >= _AS_LONG))
    return float(overloaded.forwarding_rate.max()) if len(overloaded) else np.inf


def _compared(usual: TrialCounts, short: TrialCounts) -> TrialCounts:
    """The trials that short ones are compared with: those at their load."""
    below = _below(usual)
    return below.at(np.abs(below.load / short.load[0] - 1.0) < _EQUAL)


def _first_load(usual: TrialCounts) -> float | None:
    """The load of the first short trial: where losses may come once; None: no trials are a sign of that."""
    below = _below(usual)
    rate = _highest_rate(usual)
    if len(below) >= _USUAL:
        alike = _alike(below)
        highest = np.sort(alike.load)[-_USUAL:]
        compared = alike.at(alike.load >= min(_LOWEST * rate, highest[0]))
        if _may_come_once(compared, _ALIKE):
            return float(np.sort(compared.load)[(len(compared) - 1) // 2])

    near = _below(usual, _NEAR_OVERLOAD)
    near = _alike(near.at(near.load >= _LOWEST * rate))
    is_wide = len(near) >= _LEAST_NEAR and np.ptp(near.load) >= _EQUAL * rate
    if not is_wide or not _may_come_once(near, _ALIKE_NEAR):
        return None
    return min(float(near.load.min()), _SAFE * rate)


def _alike(trials: TrialCounts) -> TrialCounts:
    """The trials without those that lose far more than most, because overload is near."""
    most = np.median(trials.lost) if len(trials) else 0.0
    return trials.at(trials.lost <= _ALIKE * most)


def _below(usual: TrialCounts, share: float = _BELOW) -> TrialCounts:
    """The trials below this share of the forwarding rate that do not seem to be in overload."""
    is_below = usual.load < share * _highest_rate(usual)
    return usual.at(is_below & (usual.lost < _MOST_LOST * usual.sent))


def _may_come_once(compared: TrialCounts, alike: float) -> bool:
    """Whether nearly all trials lose frames, and the higher loads at most so many times as much as the lower ones."""
    if len(compared) < _USUAL or np.mean(compared.lost > 0.0) < _LOSSY:
        return False
    if compared.lost.mean() < _LEAST_LOST:
        return False
    middle = float(np.median(compared.load))
    lower = float(compared.lost[compared.load <= middle].mean())
    higher = float(compared.lost[compared.load >= middle].mean())
    return higher <= alike * lower
