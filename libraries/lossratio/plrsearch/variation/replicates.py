"""What trials at equal loads show without any model: whether counts differ by chance, in batches, or by more."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, TrialCounts

_ENOUGH = 5
"""Minimum degrees of freedom with which counts at equal loads decide."""
_ENOUGH_EACH = 3
"""The same for loads that lose much, and for loads that lose little."""
_UNLIKE_FEW = 0.05
"""Largest probability of a smaller dispersion in overload, if there are fewer degrees of freedom."""
_ALIKE = 1.5
"""Largest chi-squared per degree of freedom of counts that differ by chance only."""
_IMPROBABLE = 1e-3
"""Largest probability of counts that chance does not explain."""
_GROWS = 2.0
"""Minimum factor by which the dispersion must differ between loads that lose much and loads that lose little."""
_OF_BATCHES = 3.0
"""Batches explain a dispersion of at most this many times their size."""
_UNLIKE = 0.01
"""Largest probability of such a factor that chance does not explain."""
_LEAST_MEAN = 1.0
"""Minimum mean number of lost frames at a load. With fewer, the scatter shows little and has no chi-squared
distribution."""
_MANY = 20.0
"""Minimum number of batches that a trial loses where much is lost."""
_STEADY = 0.5
"""Minimum dispersion by the differences of successive trials, as a share of the whole dispersion, of a SUT that does
not change slowly."""
LARGEST_BATCH = 512.0
"""Maximum number of frames that a device handles at once. A larger dispersion at one scale of loss does not count as a
batch."""
_OVERLOAD = 1e-4
"""Above this loss ratio, trials lose much in any case."""
_PAIRS = 3
"""Minimum number of pairs of trials that show the usual dispersion. One of fewer pairs may be a change of the SUT."""
_MEDIAN = 0.455
"""Median of chi-squared with one degree of freedom."""
_SURELY = 16.0
"""Counts are multiples of a batch if it is less likely by this many nats that they are by chance."""
_TRIALS, _PASSED, _APART = 6, 3, 0.005
"""Minimum number of different trials whose counts are multiples, because the counts of fewer trials often are also
multiples of two or three batches. They must have passed at least the second number of different numbers of frames: if a
device always passes the same number, round loads alone make its losses multiples. Their loads must differ by the third
number, as a share, because losses by equal pauses are multiples of one number only at nearly equal loads."""
_MOST_TRIALS = 2.0 / 3.0
"""Minimum share of different trials whose counts are multiples of a batch, because a trial that lacks a few frames
splits a batch."""
_MUCH = 0.1
"""Minimum loss ratio of trials that may also have lost their last batch."""
_LEAST_BATCH = 8
"""Smallest batch that counts without the dispersion, because trials of 2 s may lose even numbers of frames."""


class Scatter(str, Enum):
    """How counts of lost frames differ at equal loads."""

    UNKNOWN = "unknown"
    """The trials at equal loads are too few."""
    CHANCE = "chance"
    """By chance only: the capacity is constant."""
    BATCHES = "batches"
    """By a dispersion that does not grow with the count: frames are lost in batches."""
    EVENTS = "events"
    """By a dispersion that falls with the count: some trials have losses that do not come from the load."""
    VARYING = "varying"
    """By a dispersion that grows with the count: the capacity varies."""


@dataclass(frozen=True)
class Replicates:
    """How counts of lost frames scatter at equal loads."""

    chi_squared: float = 0.0
    """Pearson's chi-squared around the mean of each load."""
    freedom: int = 0
    """Its degrees of freedom: the number of trials minus the number of loads, among loads with lost frames."""
    growth: float | None = None
    """Dispersion of loads that lose much, divided by that of loads that lose little; None: one of the two is not known,
    or chance explains the difference."""
    much: float = 0.0
    """Dispersion of loads that lose much."""
    usual: float = 0.0
    """Frames that a trial loses at these loads."""
    successive: float = 0.0
    """Dispersion by the differences of successive trials. It is smaller if the SUT changes slowly."""
    multiple: int = 1
    """The number of which all counts of lost frames are multiples, or most of them if they differ."""
    typical: float = 1.0
    """Dispersion of most trials that lose little. Rare losses are not in it."""
    overload: float = 0.0
    """Dispersion of loads at which each trial is in overload; 0: no such load has several trials."""
    is_final: bool = False
    """Whether no more trials follow."""

    @classmethod
    def of(cls, counts: TrialCounts) -> Replicates:
        """The scatter of trials at equal loads.

        If there are enough trials, the one that differs most is left out, because one trial proves nothing.
        """
        found = cls._of_all(counts)
        if found.freedom <= _ENOUGH or not found.differ:
            return found
        expected = _expected(counts)
        beyond = (counts.lost - expected) ** 2 / np.maximum(expected, 1.0)
        return cls._of_all(counts.at(np.arange(len(counts)) != np.argmax(beyond)))

    @classmethod
    def _of_all(cls, counts: TrialCounts) -> Replicates:
        expected = _expected(counts)
        _, group, trials = np.unique(counts.load, return_inverse=True, return_counts=True)
        lost = np.bincount(group, counts.lost)

        used = (trials > 1) & (lost >= _LEAST_MEAN * trials)
        chi_squared = np.bincount(
            group, (counts.lost - expected) ** 2 / np.maximum(expected, 1e-300)
        )
        order = np.argsort((lost / trials)[used], kind="stable")
        scatter = np.asarray(chi_squared[used][order], dtype=float)
        freedom = (trials - 1)[used][order]

        multiple = _multiple(counts)
        sent = np.bincount(group, counts.sent)
        ratio = np.asarray((lost / sent)[used][order], dtype=float)
        is_few = _lose_little(freedom, ratio)
        growth, much = _growth(scatter, freedom, is_few)

        least = np.full(len(trials), np.inf)
        np.minimum.at(least, group, counts.lost / counts.sent)
        is_overload = least[used][order] > _OVERLOAD
        overload = float(scatter[is_overload].sum() / max(freedom[is_overload].sum(), 1))

        usual = float(np.median((lost / trials)[used][order][~is_few])) if used.any() else 0.0
        differences = Differences.of(counts.at(used[group]))
        successive = float(differences.squared.mean()) if len(differences.squared) else 0.0
        # A rare loss is seldom in both trials of a pair.
        is_usual = (differences.ratio <= _OVERLOAD) & (differences.least > 0.0)
        # Record: the scatter of all loads.
        return cls(
            float(scatter.sum()),
            int(freedom.sum()),
            growth,
            much,
            usual,
            successive,
            multiple,
            differences.dispersion(is_usual, 1.0),
            overload,
        )

    @property
    def ratio(self) -> float | None:
        """Chi-squared per degree of freedom: about 1 if counts only differ by chance; None if it is not known."""
        if self.freedom:
            return self.chi_squared / self.freedom
        return None

    @property
    def differ(self) -> bool:
        """Whether chance does not explain how trials at equal loads differ."""
        surprising = scipy.special.chdtrc(max(self.freedom, 1), self.chi_squared) < _IMPROBABLE
        return bool(surprising) and self.chi_squared > _ALIKE * self.freedom

    @property
    def _surely_varies(self) -> bool:
        """Whether a few trials in overload already differ by more than batches do: the capacity varies.

        There is no such conclusion during a search, because a SUT that has just changed looks the same until there are
        more trials.
        """
        is_few = self.is_final and self.freedom < _ENOUGH and self.growth is None
        return is_few and self.overload > LARGEST_BATCH and self.differ

    @property
    def scatter(self) -> Scatter:
        """How counts at equal loads differ."""
        if self.freedom < _ENOUGH:
            return Scatter.VARYING if self._surely_varies else Scatter.UNKNOWN
        if not self.differ:
            return Scatter.CHANCE
        if self.growth is None:
            dispersion = self.chi_squared / self.freedom
            if dispersion > LARGEST_BATCH:
                return Scatter.VARYING
            # A few large losses at low loads look like batches, and so does a SUT that changes slowly in overload.
            is_steady = self.usual >= _MANY * dispersion and self.successive > _STEADY * dispersion
            return Scatter.BATCHES if self.has_multiples or is_steady else Scatter.UNKNOWN

        if self._has_even_batches:
            return Scatter.BATCHES

        # In overload, each trial shows a varying capacity, and a rare loss is hidden among many lost frames.
        return (
            Scatter.VARYING if max(self.growth, self.much / LARGEST_BATCH) > 1.0 else Scatter.EVENTS
        )

    @property
    def _has_even_batches(self) -> bool:
        """Whether batches explain how trials that lose little differ, and trials that lose much differ less.

        A device with a constant capacity loses the same number of batches in each trial in overload.
        """
        if self.growth is None or self.growth > 1.0 or not self.has_multiples:
            return False
        return self.much < _OF_BATCHES * self.multiple * self.growth

    @property
    def batch(self) -> float:
        """Number of frames that are lost at once; 1 if they are lost one by one, or the number is not known."""
        has_batches = self.scatter is Scatter.BATCHES
        if self.has_multiples or (has_batches and self.multiple > 1):
            return float(self.multiple)
        return self.chi_squared / self.freedom if has_batches else 1.0

    @property
    def has_multiples(self) -> bool:
        """Whether nearly all counts of lost frames are multiples of a number. This number is the size of a batch."""
        return self.multiple >= _LEAST_BATCH


def _expected(counts: TrialCounts) -> NDArray[np.float64]:
    """The mean number of lost frames of each trial, by all trials at its load."""
    _, group = np.unique(counts.load, return_inverse=True)
    rate = np.bincount(group, counts.lost) / np.bincount(group, counts.exposure)
    return np.asarray(rate[group] * counts.exposure)


@dataclass(frozen=True)
class Differences:
    """Differences between successive trials at equal loads. Pairs without loss are left out."""

    ratio: Array
    """The loss ratio of both trials of a pair together."""
    squared: Array
    """The squared difference of their loss ratios in units of chance."""
    least: Array
    """The smaller number of lost frames."""

    @classmethod
    def of(cls, counts: TrialCounts) -> Differences:
        """The differences of trials in the order of measurement."""
        _, group = np.unique(counts.load, return_inverse=True)
        order = np.argsort(group, kind="stable")
        pairs = np.flatnonzero(np.diff(group[order]) == 0)
        one = counts.at(order[pairs])
        other = counts.at(order[pairs + 1])
        is_lossy = one.lost + other.lost > 0.0
        one = one.at(is_lossy)
        other = other.at(is_lossy)

        sent = one.sent
        others = other.sent
        ratio = (one.lost + other.lost) / (sent + others)
        variance = ratio * (1.0 / sent + 1.0 / others)
        squared = (one.lost / sent - other.lost / others) ** 2 / variance
        return cls(ratio, squared, np.minimum(one.lost, other.lost))

    def dispersion(self, which: NDArray[np.bool_], unknown: float) -> float:
        """The usual dispersion of some pairs, by the median; or an answer if there are too few such pairs.

        A rare loss, or a change of the SUT, is only in few pairs.
        """
        if np.count_nonzero(which) < _PAIRS:
            return unknown
        return max(float(np.median(self.squared[which])) / _MEDIAN, 1.0)


def _multiple(counts: TrialCounts) -> int:
    """The number of which nearly all counts of lost frames are multiples; 1 if there is no such number.

    If there are several, the answer is the number that chance explains least.
    """
    is_lossy = counts.lost > 0.0
    lost = np.round(counts.lost[is_lossy]).astype(np.int64)
    sent = np.round(counts.sent[is_lossy]).astype(np.int64)
    # A constant device loses the same number again and again, so equal trials count only once.
    (sent, lost), first = np.unique(np.stack([sent, lost]), axis=1, return_index=True)
    load = counts.load[is_lossy][first]
    if not len(lost):
        return 1
    sizes = np.arange(2, int(LARGEST_BATCH) + 1)
    passed = sent - lost
    # If much is lost, the last batch of a trial, which may not be full, is often lost: a multiple passed.
    has_rest = (lost > _MUCH * sent)[:, np.newaxis] & (sent[:, np.newaxis] % sizes > 0)
    is_multiple = (lost[:, np.newaxis] % sizes == 0) | (
        has_rest & (passed[:, np.newaxis] % sizes == 0)
    )
    found = np.count_nonzero(is_multiple, axis=0)
    others = len(lost) - found
    # Formula: the logarithm of C(n, k) / m^k, the chance that k of n counts are multiples of m; 2/m with a rest.
    ways = -scipy.special.betaln(found + 1, others + 1) - np.log(len(lost) + 1)
    nats = np.log(sizes) - np.log(2.0) * has_rest
    improbable = np.where(is_multiple, nats, 0.0).sum(axis=0) - ways

    place = int(np.argmax(np.where(found >= _MOST_TRIALS * len(lost), improbable, -np.inf)))
    those = is_multiple[:, place]
    is_shown = improbable[place] >= _SURELY and found[place] >= _TRIALS
    if not is_shown or len(np.unique(passed[those])) < _PASSED or len(np.unique(lost[those])) < 2:
        return 1
    if load[those].max() < (1.0 + _APART) * load[those].min():
        return 1
    # Shares of round numbers of frames are multiples, too, but shares of other numbers are not.
    is_uneven = sent % sizes[place] > 0
    if np.count_nonzero(those & is_uneven) < _MOST_TRIALS * np.count_nonzero(is_uneven):
        return 1
    return int(sizes[place])


def _lose_little(freedom: NDArray[np.int_], ratio: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which loads lose little, in the order of their losses: loads below overload, or those with half the freedom."""
    is_few = ratio < _OVERLOAD
    if min(freedom[is_few].sum(), freedom[~is_few].sum()) >= 1:
        return is_few
    return np.asarray(np.cumsum(freedom) - 0.5 * freedom < 0.5 * freedom.sum())


def _growth(
    scatter: NDArray[np.float64], freedom: NDArray[np.int_], is_few: NDArray[np.bool_]
) -> tuple[float | None, float]:
    """The dispersion of loads that lose much, divided by that of the others, and the undivided dispersion.

    None instead of the factor: chance explains the factor, or a part is too small.
    """
    few, many = int(freedom[is_few].sum()), int(freedom[~is_few].sum())
    if not min(few, many):
        return None, 0.0

    # Rounding and regular pauses make counts more even than chance, but this does not mean that the others vary.
    low = max(float(scatter[is_few].sum()) / few, 1.0)
    high = max(float(scatter[~is_few].sum()), 1e-300) / many
    growth = high / low
    test = scipy.special.fdtrc if growth > 1.0 else scipy.special.fdtr
    unlike = _UNLIKE
    if min(few, many) < _ENOUGH_EACH:
        unlike = 0.0 if growth > 1.0 else _UNLIKE_FEW
    if test(many, few, growth) < unlike and not 1.0 / _GROWS < growth < _GROWS:
        return growth, high
    return None, high
