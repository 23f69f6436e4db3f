"""Whether the SUT changed during the search, so that earlier trials say nothing about its present state.

The mean loss ratio does not fall with the load. So a trial is contradicted if later trials at the same load or more
lost less, or if later trials at the same load or less lost more. After a change, nearly all trials before it are
contradicted, and nearly none after it. If a rare loss or a capacity that varies contradicts trials, these are anywhere.

A SUT that slowly warms up contradicts few trials, because each trial differs little from the next. The trend of what it
loses in overload shows such a change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, TrialCounts
from lossratio.plrsearch.variation.replicates import LARGEST_BATCH, Differences

_BY_CHANCE = 3e-4
"""Largest probability, at the best place, of a change of a SUT that stays the same."""
_LEAST = 4
"""Minimum number of trials before and after a change."""
_LEAST_SHARE = 0.1
"""Minimum number of trials after a change, as a share of all trials. Fewer trials would show too little."""
_MOST = 4
"""Number of changes that are looked for, one after the other."""
_PLACES = 60
"""Number of places of a change that are tried at first."""
_ALIKE = 1.0
"""Places are equally probable if the logarithms of their probabilities differ by at most this."""
_SURE = 4.0
"""Standard deviations beyond chance of a trial, and of the trials that contradict it."""
_NEARLY_ALL, _NEARLY_NONE = 2.0 / 3.0, 0.1
"""Minimum share of trials before a change, and maximum share of trials after it, that later trials contradict."""
_BATCHES = 2.0
"""Where later trials lost nothing, a trial that lost more than so many batches is contradicted. A single trial may have
lost so many by chance, but only the order of several contradicted trials shows a change."""
_DRIFTS, _STAYS = 4.0, 1.6
"""Minimum number of standard deviations of a trend, and the number below which there is none."""
_FAR, _NEAR = 0.01, 0.0025
"""Minimum change of the loss ratio by such a trend, and the change below which a trend does not matter."""
_TOGETHER = 2
"""Minimum number of trials that show that more is lost."""
_MUCH = 1e-4
"""Trials that lose a larger share scatter as the capacity varies, and others by chance or in batches."""


@dataclass(frozen=True)
class Change:
    """The last change of the SUT."""

    trials: int
    """Number of trials before it."""
    earliest: float
    """Seconds from the beginning of the search to the middle of the last trial that is certainly before it."""
    latest: float
    """Seconds from the beginning of the search to the middle of the first trial that is certainly after it."""
    loses_more: bool
    """Whether the SUT has lost more since then."""

    @classmethod
    def of(cls, counts: TrialCounts) -> Change | None:
        """The last change that the order of the trials shows beyond chance; None if there is none."""
        found = None
        for _ in range(_MOST):
            begin = 0 if found is None else found.trials
            after = max(_LEAST, int(_LEAST_SHARE * len(counts)))
            rest = counts.at(np.arange(begin, len(counts)))
            later = _first(rest, after) or _settled(rest, after)
            if later is None:
                break
            found = replace(later, trials=begin + later.trials)
        return found

    def after(self, counts: TrialCounts) -> TrialCounts:
        """The trials after it."""
        return counts.at(np.arange(self.trials, len(counts)))

    def is_later(self, trials: int) -> bool:
        """Whether it is later than a change after this many trials. The place of a change is known to a few trials."""
        return self.trials >= trials + _LEAST

    def __str__(self) -> str:
        """What changed, in one line."""
        way = "more" if self.loses_more else "fewer"
        return (
            f"Since some time between {self.earliest:,.0f} s and {self.latest:,.0f} s after the beginning, trials lose "
            f"{way} frames than before at the same loads, so the first {self.trials} trials are not counted"
        )


def _first(counts: TrialCounts, after: int) -> Change | None:
    """The first change of the SUT with at least so many trials after it; None if there is none."""
    last = len(counts) - after
    if last < _LEAST:
        return None

    compared = _Compared.of(counts)
    places = np.arange(_LEAST, last + 1)
    step = max(1, len(places) // _PLACES)
    chances = {at: compared.log_chances(at) for at in places[::step].tolist()}
    near = _latest(chances)
    for at in range(max(near - step, _LEAST), min(near + step, last) + 1):
        if at not in chances:
            chances[at] = compared.log_chances(at)

    if min(map(min, chances.values())) > np.log(_BY_CHANCE):
        return None
    best = _latest(chances)
    fewer, more = chances[best]
    loses_more = more < fewer
    before = np.flatnonzero(compared.contradicted(best)[loses_more][:best])
    earliest = counts.time[before[-1]]
    latest = counts.time[best]
    return Change(best, float(earliest), float(latest), loses_more)


def _settled(counts: TrialCounts, after: int) -> Change | None:
    """Where a SUT that slowly becomes faster or slower stays about the same; None if it does not drift.

    Trials at equal loads in overload show it.
    """
    in_overload = np.flatnonzero(counts.is_overload)
    places = in_overload[1:]
    places = places[(places >= _LEAST) & (places <= len(counts) - after)]
    if not len(places):
        return None
    drift = _Drift.of(counts.at(in_overload))
    if abs(drift.trend) < _DRIFTS or drift.change < _FAR:
        return None

    place = places[-1]
    for earlier in places:
        rest = _Drift.of(counts.at(in_overload[in_overload >= earlier]))
        if abs(rest.trend) < _STAYS or rest.change < _NEAR:
            place = earlier
            break
    before = in_overload[in_overload < place]
    earliest = float(counts.time[before[-1]])
    latest = float(counts.time[place])
    return Change(int(place), earliest, latest, loses_more=drift.trend > 0.0)


@dataclass(frozen=True)
class _Drift:
    """How the loss at equal loads rises or falls in the order of measurement."""

    trend: float
    """How far it rises beyond chance, in standard deviations; negative if it falls."""
    change: float
    """The largest difference between two loss ratios at a load."""

    @classmethod
    def of(cls, counts: TrialCounts) -> _Drift:
        """The drift of these trials, of which those of equal loads and durations are compared.

        Formula: the trend test of Mann (1945) and Kendall, whose statistics are added up.
        """
        pairs = np.stack([counts.load, counts.duration], axis=1)
        _, group = np.unique(pairs, axis=0, return_inverse=True)
        ratios = counts.lost / counts.sent
        rises = variance = change = 0.0
        for number in range(int(group.max()) + 1):
            ratio = ratios[group == number]
            rises += _rises(ratio)
            variance += _variance_of_rises(ratio)
            change = max(change, float(np.ptp(ratio)))
        if not variance:
            return cls(0.0, change)
        beyond = max(abs(rises) - 1.0, 0.0) / math.sqrt(variance)
        return cls(math.copysign(beyond, rises), change)


def _rises(values: Array) -> float:
    """The number of pairs of values of which the later one is larger, minus that of the other pairs."""
    signs = np.sign(values[np.newaxis, :] - values[:, np.newaxis])
    return float(np.triu(signs, 1).sum())


def _variance_of_rises(values: Array) -> float:
    """The variance of that number if all orders of the values are equally probable. Some values may be equal."""
    _, equal = np.unique(values, return_counts=True)
    numbers = np.array([len(values), *equal], dtype=float)
    parts = numbers * (numbers - 1.0) * (2.0 * numbers + 5.0) / 18.0
    return float(parts[0] - parts[1:].sum())


def _latest(chances: Mapping[int, tuple[float, float]]) -> int:
    """The latest of the most probable places of a change. Trials that may be before it do not count, either."""
    least = min(min(chance) for chance in chances.values())
    return max(at for at, chance in chances.items() if min(chance) <= least + _ALIKE)


@dataclass(frozen=True)
class _Compared:
    """Trials, each of which may be contradicted by later ones."""

    group: NDArray[np.intp]
    """The index of each trial's load among all loads, from the lowest one on."""
    sent: Array
    """Sent frames."""
    lost: Array
    """Lost frames."""
    dispersion: Array
    """How much more than by chance each trial scatters; infinite for trials that are not compared."""

    @classmethod
    def of(cls, counts: TrialCounts) -> _Compared:
        """The trials in the order of measurement."""
        _, group = np.unique(counts.load, return_inverse=True)
        sent = counts.sent
        return cls(group, sent, counts.lost, _dispersions(counts))

    def log_chances(self, at: int) -> tuple[float, float]:
        """Logarithms of the probabilities that so many contradicted trials are before a place by chance."""
        loses_more, loses_less = self.contradicted(at)
        loses_much = self.lost > _MUCH * self.sent
        # Trials with more load that lose little, or with less load that lose much, show the SUT as well, but only where
        # the load decides: no later trial loses much with less load, or little with more.
        is_later = np.arange(len(self.lost)) >= at
        lossy = self.group[is_later & loses_much].min(initial=len(self.lost))
        quiet = self.group[is_later & ~loses_much].max(initial=-1)
        above = (self.group > self.group[loses_more].max(initial=0)) & (self.group < lossy)
        below = self.group < self.group[loses_less].min(initial=self.group.max())
        below &= self.group > quiet
        return (
            self._log_chance(loses_more, at, above & ~loses_much),
            self._log_chance(loses_less, at, below & loses_much),
        )

    def contradicted(self, at: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which trials lost more than the trials after a place, and which lost fewer frames."""
        is_later = np.arange(len(self.lost)) >= at
        most, least = self._bounds(is_later & np.isfinite(self.dispersion))
        error = _SURE * np.sqrt(self.dispersion * np.maximum(self.lost, 1.0))
        expected = most[self.group] * self.sent
        above = _SURE * np.sqrt(self.dispersion * expected) + _BATCHES * self.dispersion
        loses_more = self.lost > expected + above
        loses_less = self.lost + error < least[self.group] * self.sent
        return loses_more, loses_less

    def _bounds(self, later: NDArray[np.bool_]) -> tuple[Array, Array]:
        """The highest and the lowest loss ratio at each load that is compatible with later trials.

        A single trial may have a rare loss, so it takes two trials to show that more is lost.
        """
        number = int(self.group.max()) + 1
        group = self.group[later]
        lost = self.lost[later]
        sent = self.sent[later]
        dispersion = self.dispersion[later]

        together = np.bincount(group, lost, number)
        error = _SURE * np.sqrt(np.bincount(group, dispersion * np.maximum(lost, 1.0), number))
        frames = np.bincount(group, sent, number)
        most = np.full(number, np.inf)
        most[frames > 0.0] = (together + error)[frames > 0.0] / frames[frames > 0.0]

        surely = (lost - _SURE * np.sqrt(dispersion * np.maximum(lost, 1.0))) / sent
        least = _second_highest(surely, group, number)
        return np.minimum.accumulate(most[::-1])[::-1], least

    def _log_chance(
        self, contradicted: NDArray[np.bool_], at: int, others: NDArray[np.bool_]
    ) -> float:
        """The logarithm of the probability that so many of the contradicted trials are before a place.

        They are compared with trials at such loads, and with others.
        """
        before = int(np.count_nonzero(contradicted[:at]))
        if not before:
            return 0.0

        groups = self.group[:at][contradicted[:at]]
        is_near = (self.group >= groups.min()) & (self.group <= groups.max())
        if not self._is_lasting(contradicted, is_near, at):
            return 0.0
        is_near |= others
        # Where there are no later trials, nothing may contradict an earlier trial. But if one at a load is
        # contradicted, the others there might have been.
        is_repeated = np.isin(self.group[:at], self.group[at:])
        is_near[:at] &= is_repeated | np.isin(self.group[:at], groups)

        return _log_chance(
            before,
            drawn=int(np.count_nonzero(is_near[:at])),
            special=int(np.count_nonzero(contradicted & is_near)),
            number=int(np.count_nonzero(is_near)),
        )

    def _is_lasting(
        self, contradicted: NDArray[np.bool_], is_near: NDArray[np.bool_], at: int
    ) -> bool:
        """Whether nearly all trials before a place are contradicted, and nearly none after it.

        If not, the SUT was as after the place for a time before it, or it is as before again. Trials before the place
        show it if there are several trials at their load after it.
        """
        later = np.bincount(self.group[at:], minlength=int(self.group.max()) + 1)
        is_shown = is_near[:at] & (later[self.group[:at]] >= _TOGETHER)
        is_shown |= contradicted[:at]
        before = int(np.count_nonzero(contradicted[:at]))
        after = int(np.count_nonzero(contradicted[at:] & is_near[at:]))

        is_begun = before >= _NEARLY_ALL * int(np.count_nonzero(is_shown))
        return is_begun and after <= _NEARLY_NONE * int(np.count_nonzero(is_near[at:]))


def _second_highest(values: Array, group: NDArray[np.intp], number: int) -> Array:
    """The second-highest value up to each group; minus infinity: there are no two values."""
    if len(values) < _TOGETHER:
        return np.full(number, -np.inf)
    order = np.argsort(group, kind="stable")
    ordered = values[order]
    highest = np.maximum.accumulate(ordered)
    second = np.maximum.accumulate(np.minimum(ordered[1:], highest[:-1]))
    second = np.concatenate([[-np.inf, -np.inf], second])
    return np.asarray(second[np.searchsorted(group[order], np.arange(number), side="right")])


def _log_chance(together: int, *, drawn: int, special: int, number: int) -> float:
    """The logarithm of the probability of so many special items among those drawn; 0 if that is usual.

    Formula: hypergeometric.
    """
    if together * number <= drawn * special:
        return 0.0
    ways = _log_ways(special, together) + _log_ways(number - special, drawn - together)
    return ways - _log_ways(number, drawn)


def _log_ways(number: int, chosen: int) -> float:
    """The logarithm of a binomial coefficient."""
    return math.lgamma(number + 1) - math.lgamma(chosen + 1) - math.lgamma(number - chosen + 1)


def _dispersions(counts: TrialCounts) -> Array:
    """How much more than by chance trials scatter, by the differences of successive trials at equal loads.

    If only one trial of a pair loses much, the SUT may have changed. Without other pairs, trials that lose much scatter
    as if the largest batches were lost. Short trials are not compared with others, because losses that come once in
    each trial are a larger share of what they send.
    """
    differences = Differences.of(counts)
    is_much = differences.ratio > _MUCH
    much = differences.dispersion(is_much & (differences.least > 0.0), LARGEST_BATCH)
    little = differences.dispersion(~is_much, much)
    usual = np.where(counts.lost > _MUCH * counts.sent, much, little)
    return np.where(counts.is_short, np.inf, usual)
