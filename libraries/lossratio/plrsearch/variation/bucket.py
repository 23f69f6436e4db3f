"""What a token bucket or a buffer passes only in short trials.

In overload, a trial of D seconds passes C D + B frames: C frames per second in the long run and, only once, the B
frames that a full bucket or an empty buffer takes. Trials of two durations at one load show both C and B.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.plrsearch.model import TrialCounts
from lossratio.units import format_about, format_frame_rate

_SHORT = 0.75
"""A trial is short if it takes less than this share of the usual time."""
_NEAR = 0.01
"""Loads that differ by a smaller share show the variation of the capacity equally well."""
_SURE = 10.0
"""A trial is beyond chance after this many standard deviations, because the standard deviation of two trials may be
small by chance."""
_BELOW = 6.0
"""The long-run rate is set below its apparent value by this many standard deviations of a trial, which equal three
standard deviations of the rate."""


@dataclass(frozen=True)
class Bucket:
    """Frames that pass in each trial besides a constant rate, no matter how long the trial is."""

    frames: float
    """The number of these frames, on one interface."""
    rate: float
    """At least this many frames per second pass in the long run, if short trials lost frames. Otherwise, fewer may
    pass."""
    has_lost: bool = True
    """Whether short trials lost frames. If not, the bucket may hold more."""
    error: float = 0.0
    """How much more than `rate` may pass in the long run, in frames per second. The rate is not known exactly."""

    @classmethod
    def of(cls, counts: TrialCounts) -> Bucket | None:
        """What short and usual trials at one load in overload show; None: no difference beyond chance."""
        is_short = cls.is_short(counts)
        overloaded = counts.load[~is_short & counts.is_overload]
        # A single usual trial may have a rare loss.
        often, trials = np.unique(counts.load[~is_short], return_counts=True)
        is_shown = np.isin(counts.load, overloaded) & np.isin(counts.load, often[trials > 1])
        loads = counts.load[is_short & is_shown]
        if not len(loads):
            return None
        # A pair of trials with more load shows more: a SUT that has become faster looks like a large bucket elsewhere.
        return cls._at(float(loads.max()), counts)

    @classmethod
    def _at(cls, load: float, counts: TrialCounts) -> Bucket | None:
        """What short and usual trials at one load show; None: no difference beyond chance."""
        rate = counts.loss_rate
        is_there = counts.load == load
        is_short = cls.is_short(counts)
        short = is_there & is_short
        usual = is_there & ~is_short

        # The rates of loss. The rate of short trials is smaller.
        passed_once = float(rate[usual].mean() - rate[short].mean())
        by_chance = float(np.sqrt(counts.lost[usual].mean()) / counts.exposure[usual].mean())
        near = ~is_short & (np.abs(counts.load / load - 1.0) < _NEAR) & counts.is_overload
        parts = rate[usual], counts.forwarding_rate[near]
        varies = max(float(part.std(ddof=1)) for part in parts if len(part) > 1)
        stdev = max(by_chance, varies)
        if passed_once < _SURE * stdev:
            return None
        seconds = float(np.median(counts.duration[usual]))
        shares = 1.0 / float(np.median(counts.duration[short])) - 1.0 / seconds
        frames = passed_once / shares
        in_long_run = float(load - rate[usual].mean() - frames / seconds)
        has_lost = bool(counts.lost[short].any())
        below = _BELOW * stdev
        return cls(frames, in_long_run - below, has_lost, 2.0 * below)

    @staticmethod
    def is_short(counts: TrialCounts) -> np.ndarray:
        """Which trials are short."""
        return np.asarray(counts.times_usual < _SHORT)

    def __str__(self) -> str:
        """The bucket, in one line."""
        number = "about" if self.has_lost else "at least"
        least = "" if self.has_lost else " or more"
        milliseconds = format_about(1e3 * self.frames / self.rate)
        line = (
            f"In short trials, {number} {format_about(self.frames)} more frames pass, as with a bucket or a buffer of "
            f"{milliseconds} ms{least}"
        )
        if not self.has_lost:
            return line
        return f"{line}, so no load above {format_frame_rate(self.rate)} is stated"
