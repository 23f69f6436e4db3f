"""How frames are lost, by counts: in batches, in pauses of one length, and ever more along a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy

from lossratio.plrsearch.counting import BATCH, FINE, NEAR, Evidence
from lossratio.plrsearch.counts import Array, TrialCounts

_LEAST_BATCH = 4.0
"""Frames of the smallest batch."""
_MULTIPLES = 8.0
"""The most batches that a trial loses for its count to show their size."""
_ALIKE = 6
"""The least number of such trials. If all are even numbers of batches by chance, which of fewer may be, the batch seems
twice as large."""
_EVENTS, _SHARE_ON_LINE, _PAUSE_ERROR, _APART = 3, 0.65, 0.003, 1.03
"""Pauses are known from this many losses on a line, or this share of them, with this relative error, at loads of which
one is at least this many times another. Several pauses in a trial count as a share of one."""
_MOST_PAUSES = 4.0
"""The most pauses of a trial that is on the line."""
_FREE = 0.998
"""At this share of the load that fills the ring in a pause, pauses lose nothing."""
_PAUSE_FRAMES = 16.0
"""A pause loses more frames than this in a trial."""
_BELOW_KNEE = 0.99
"""Pauses are told at loads below this share of what an overload forwards: nearer to it, the knee loses frames, too."""
_ALIKE_LOSSES = 0.8
"""Losses of long trials that differ by less are alike."""
_CHANGE = 0.001
"""A device has changed if it forwards more or less by this share, and by more than its scatter explains."""
_CHANCE = 0.0025
"""Probability that scatter explains more or less than this, by Student's distribution."""
_STEEPEST = 1e5
"""The loss ratio grows by at most this power of the load."""


@dataclass(frozen=True)
class SeenBucketRate:
    """What a short trial passes once, and the rate in the long run."""

    long_run: float
    """Frames per second."""
    frames: float
    """Frames that pass once in each trial."""

    @property
    def free_load(self) -> float:
        """The load, in frames per second, up to which the bucket loses nothing."""
        return (1.0 - 0.02 * FINE) * self.long_run


@dataclass(frozen=True)
class FixedPause:
    """Pauses of one length, seen by what they lose at several loads."""

    length_s: float
    """Seconds of a pause."""
    ring_frames: float
    """Frames that wait in the meantime; the others are lost."""
    is_single: bool
    """Whether most trials saw none, so that length and ring are those of one pause and not of several together. The
    load up to which nothing is lost is the same."""

    @property
    def free_load(self) -> float:
        """The load, in frames per second, up to which pauses lose nothing."""
        return _FREE * self.ring_frames / self.length_s


def batch(lost: Array) -> float | None:
    """Number of frames that are lost at a time if these counts of trials are its multiples. None: they are not."""
    lost = np.sort(lost[lost > 0.0])
    if len(lost) < _ALIKE or lost[0] < _LEAST_BATCH or lost[0] > BATCH:
        return None
    times = lost[lost <= _MULTIPLES * lost[0]] / lost[0]
    is_multiple = np.abs(times - np.round(times)) < 1e-3
    return float(lost[0]) if len(times) >= _ALIKE and is_multiple.all() else None


def seen_bucket(
    evidence: Evidence, held: float, lengths: tuple[float, float]
) -> SeenBucketRate | None:
    """The bucket that explains why long trials at a load lose frames, and short ones do not; None: none does.

    Args:
        evidence: The trials.
        held: The load in frames per second.
        lengths: Seconds of short trials and of long ones.
    """
    short, long = lengths
    here = evidence.within(held, held)
    is_long = evidence.counts.duration > short
    lost = evidence.counts.lost[here & is_long]
    in_short_ones = evidence.counts.lost[here & ~is_long].max(initial=0.0)
    is_alike = len(lost) > 1 and lost.min() > max(_ALIKE_LOSSES * lost.max(), in_short_ones / NEAR)
    goodput = float(np.mean(evidence.goodputs)) if len(evidence.goodputs) else math.inf
    if not is_alike or held <= (1.0 - 2.0 * FINE) * goodput:
        return None
    long_run = (held * long - float(lost.mean()) - goodput * short) / (long - short)
    return SeenBucketRate(long_run, (goodput - long_run) * short)


def changed(before: Sequence[float], goodput: float) -> float | None:
    """Change of what an overload forwards, as a share; None: scatter explains it."""
    if len(before) < 2:
        return None
    mean = float(np.mean(before))
    change = goodput / mean - 1.0
    deviations = float(scipy.special.stdtrit(len(before) - 1, 1.0 - _CHANCE))
    scatter = deviations * float(np.std(before, ddof=1)) / mean
    return change if abs(change) > max(_CHANGE, scatter) else None


def fixed_pause(counts: TrialCounts) -> FixedPause | None:
    """The pauses that explain the events: their losses grow with the load along a line. None: they do not."""
    forwarded = counts.forwarding_rate[counts.is_overload].min(initial=math.inf)
    is_possible = ~counts.is_overload & (counts.load < _BELOW_KNEE * forwarded)
    events = is_possible & (counts.lost > _PAUSE_FRAMES)
    lowest = np.argsort(counts.load[events], kind="stable")[: 4 * _EVENTS]
    load, lost = counts.load[events][lowest], counts.lost[events][lowest]
    pauses = _pauses_on_a_line(load, lost)
    if _weight(pauses) < max(_EVENTS, _SHARE_ON_LINE * len(load)):
        return None

    on_line = pauses > 0.0
    length, negative_ring = np.polyfit(load[on_line], lost[on_line] / pauses[on_line], 1)
    if length <= 0.0 or negative_ring >= 0.0:
        return None
    is_possible &= counts.load >= load.min()
    is_single = 2 * np.count_nonzero(events) <= np.count_nonzero(is_possible)
    return FixedPause(float(length), -float(negative_ring), bool(is_single))


def _pauses_on_a_line(load: Array, lost: Array) -> Array:
    """How many pauses each trial saw, by the line through two losses that explains the most; 0: it is not on it."""
    best = np.zeros(len(load))
    for first, second in combinations(range(len(load)), 2):
        if load[second] < _APART * load[first]:
            continue
        slope = (lost[second] - lost[first]) / (load[second] - load[first])
        line = lost[first] + slope * (load - load[first])
        if line.min() <= 0.0:
            continue
        pauses = np.clip(np.round(lost / line), 1.0, _MOST_PAUSES)
        pauses[np.abs(lost - pauses * line) > _PAUSE_ERROR * np.median(lost)] = 0.0
        if _weight(pauses) > _weight(best):
            best = pauses
    return best


def _weight(pauses: Array) -> float:
    """How many losses of one pause weigh as much as these."""
    return float(np.sum(1.0 / pauses[pauses > 0.0]))


def crossing(counts: TrialCounts, ratio: float) -> float | None:
    """The load in frames per second at which a line reaches a loss ratio; None: no loss, or no growth of it.

    The logarithm of the loss ratio is a line over 1/load (a Poisson regression), as for pauses of random length. It
    uses trials that lose little.
    """
    load, lost, sent = (
        column[counts.is_little] for column in (counts.load, counts.lost, counts.sent)
    )
    if not lost.any():
        return None

    middle = float(load[lost > 0.0].min())
    x = middle / load - 1.0

    def too_low(slope: float) -> float:
        """How far the mean place of the losses that a slope expects is from the one that is seen."""
        expected = sent * np.exp(slope * x - (slope * x).max())
        return float(expected @ x / expected.sum() - lost @ x / lost.sum())

    slope = -_STEEPEST
    if too_low(0.0) <= 0.0:
        return None
    if too_low(slope) < 0.0:
        slope = float(scipy.optimize.brentq(too_low, slope, 0.0))
    most = float((slope * x).max())
    level = math.log(lost.sum() / (sent * np.exp(slope * x - most)).sum()) - most
    place = 1.0 + (math.log(ratio) - level) / slope
    return middle / place if place > 0.0 else None
