"""Whether trials show a SUT that changes (it remembers loss, or has a trend), or one that loses at any load.

The loss ratio of a SUT that stays the same does not fall as the load grows. So two trials are a *contradiction* if one
of them loses more than the other, although its load is not higher. Noise makes contradictions in either order. Time
makes them all in one order: the trials that lose more came soon after loss, or later, or earlier.

A loss that does not grow with load also makes contradictions, and a search that goes down puts them all in one order.
Long trials may lose more than short ones, and a search ends with long ones. So a trend needs a control: contradictions
of trials at the same load, in which the trial that lost more was not longer. Only frames that the SUT lost count here.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, groupby, pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from lossratio.trials import TrialResult, sut_loss_ratio

LEAST_DIFFERENCE = 0.002
"""Minimum difference of loss ratios in a contradiction. A smaller difference may be a few frames by chance."""

LEAST_FRAMES = 3.0
"""Minimum difference of losses in a contradiction, in frames per interface.

Example: on a slow link with 150 frames, one frame that is rounded away is a loss of 0.7 %.
"""

LEAST_SIZE = 0.005
"""Minimum difference of loss ratios, in the largest contradiction, that is worth mentioning."""

LEAST_TRIALS = 5
"""Minimum number of trials on either side of the contradictions.

Example: a noisy SUT fails three times after loss, and passes twice after a rest. That happens by chance in one search
of ten.
"""

LEAST_AT_ONE_LOAD = 3
"""The same for a trend, which needs contradictions between trials at the same load.

Example: 430 frames are lost in each trial, and the loads fall from 28 to 9 kfps. The lost share rises from trial to
trial. Only a load that is measured again shows that the SUT is the same.
"""

MOST_UNEXPLAINED = 0.02
"""Largest share of the contradictions, by size, that may be in the opposite order.

For example, on a jittery SUT, half of the contradictions are in each order.
"""

MOST_TRIALS = 1_000
"""Maximum number of trials that are all compared with each other. Longer searches are sampled, always in the same
way."""

LEVEL_SPAN = 4.0
"""Minimum ratio of the highest to the lowest load at which the loss is the same.

Example: a SUT that is overloaded and loses 10 % at 100 kfps loses 77 % at 400 kfps.
"""

LEVEL_MANY, LEVEL_SPAN_OF_MANY = 30.0, 2.0
"""The number of frames from which on the loss is not chance, and the minimum ratio of loads in this case.

Example: 430 frames are lost at 9 kfps and at 28 kfps. If chance took 4.8 % of the frames, it would take 1,340 there.
"""

LEVEL_TRIALS, LEVEL_FEWEST = 4, 3
"""Minimum number of these loads, and the minimum if a search has no other load with loss."""

LEVEL_MOST = 0.75
"""Minimum share of the loads between the lowest and the highest one at which the loss must be the same."""

LEVEL_TOLERANCE = 0.1
"""How much the losses may differ, relative to the loss at the lowest load. For shares, also relative to the share that
is not lost."""

LEVEL_SPREADS = 2.0
"""Shares may also differ by this many standard deviations of the lost frames, as if each frame were lost by chance.

Example: 3 % of 9,000 frames are 270 lost frames, or by chance 302 or 238.
"""

OVERLOADED = 0.5
"""From this loss ratio on, a number of lost frames says nothing about smaller loads."""


class Change(Enum):
    """How the SUT changed."""

    REMEMBERS_LOSS = "remembers loss"
    SLOWER = "slower"
    FASTER = "faster"


@dataclass(frozen=True)
class Inconstancy:
    """A change of the SUT that explains the contradictions of its trials."""

    change: Change
    """What happened."""
    weak: int
    """Number of trials that lost more than others; for a trend, more than others at the same load."""
    strong: int
    """Number of these other trials, whose load was not lower; for a trend, which were not shorter either."""
    less: float
    """The largest shortfall in the forwarding of a weak trial compared with a strong one, as a share."""
    after: float
    """Seconds from the last loss to the beginning of the weak trial that is farthest from it; for other changes, from
    the first trial to the end of the last weak one."""
    until: float
    """Seconds from the last loss to the beginning of the strong trial that was closest to it; for other changes, from
    the first trial to the beginning of the first strong one."""


@dataclass(frozen=True)
class _Contradictions:
    """Pairs of trials in which the easier trial lost more; the arrays have an item for each pair."""

    weak: NDArray[np.intp]
    """Numbers of the trials that lost more."""
    strong: NDArray[np.intp]
    """Numbers of the other trials."""
    sizes: NDArray[np.float64]
    """Differences of their loss ratios."""

    def size(self, chosen: NDArray[np.bool_]) -> float:
        """The sum of the largest chosen contradiction of each weak trial."""
        largest = np.zeros(self.weak.max(initial=-1) + 1)
        np.maximum.at(largest, self.weak[chosen], self.sizes[chosen])
        return float(largest.sum())


def inconstancy_in(
    results: Sequence[TrialResult], passed_over: Collection[int] = ()
) -> Inconstancy | None:
    """The change of the SUT that the trials of a search show; None if they show none.

    Args:
        results: All trials, in the order measured.
        passed_over: Numbers, from 0, of trials that are no evidence, such as a warm-up. The SUT may remember their
            loss.
    """
    found = _contradictions(results, passed_over)
    if found.sizes.max(initial=0.0) < LEAST_SIZE:
        return None

    rests = np.array([*(result.input.rest for result in results), 0.0])
    starts = np.array([0.0, *accumulate(result.elapsed for result in results)]) + rests
    ends = starts[:-1] + [result.traffic_duration for result in results]
    # The maximum loss in trials that lost more than others, and the minimum loss in these others.
    most = np.array([result.load * (1.0 - sut_loss_ratio(result)) for result in results])
    least = np.array([result.load * (1.0 - result.loss_ratio) for result in results])
    loads = np.array([result.load for result in results])
    durations = np.array([result.duration for result in results])
    gaps = _times_since_loss(results, starts)
    whole = found.size(np.full(len(found.sizes), True))
    # If two changes explain the same contradictions, trials that ended early decide, by the share lost until then.
    is_early = any(result.is_early for result in results)
    with_early = _contradictions(results, passed_over, of_sent=True) if is_early else found
    best: tuple[tuple[float, int, float], Inconstancy] | None = None

    for change, explains in _explanations(found, gaps):
        explained = explains(found)
        weak, strong = np.unique(found.weak[explained]), np.unique(found.strong[explained])
        left = found.size(~explained) / whole
        if min(len(weak), len(strong)) < LEAST_TRIALS or left > MOST_UNEXPLAINED:
            continue

        shown = explained
        if change is not Change.REMEMBERS_LOSS:
            is_control = (loads[found.weak] == loads[found.strong]) & (
                durations[found.weak] <= durations[found.strong]
            )
            shown = explained & is_control
            if not _is_trend(found, shown, is_control):
                continue

        key = left, -len(weak), with_early.size(~explains(with_early))
        if best is not None and key >= best[0]:
            continue

        less = np.max(1.0 - most[found.weak[shown]] / least[found.strong[shown]])
        if change is Change.REMEMBERS_LOSS:
            after, until = gaps[weak].max(), gaps[strong].min()
        else:
            after, until = ends[weak].max(), starts[strong].min()

        counts = len(np.unique(found.weak[shown])), len(np.unique(found.strong[shown]))
        best = key, Inconstancy(change, *counts, float(less), float(after), float(until))

    return None if best is None else best[1]


def _is_trend(
    found: _Contradictions, shown: NDArray[np.bool_], is_control: NDArray[np.bool_]
) -> bool:
    """Whether enough trials at the same loads contradict each other, and nearly all in the order of a trend."""
    fewest = min(len(np.unique(found.weak[shown])), len(np.unique(found.strong[shown])))
    unexplained = found.size(is_control & ~shown)
    return fewest >= LEAST_AT_ONE_LOAD and unexplained <= MOST_UNEXPLAINED * found.size(is_control)


def _contradictions(
    results: Sequence[TrialResult], passed_over: Collection[int], *, of_sent: bool = False
) -> _Contradictions:
    """The pairs of trials in which the easier trial lost more. What an early verdict leaves open contradicts nothing.

    Args:
        results: All trials.
        passed_over: See `inconstancy_in`.
        of_sent: Whether a trial that ended early counts with its loss as a share of the frames sent.
    """
    numbers = np.array(
        [number for number in range(len(results)) if number not in passed_over], dtype=np.intp
    )
    if len(numbers) > MOST_TRIALS:
        numbers = np.sort(np.random.default_rng(0).choice(numbers, MOST_TRIALS, replace=False))
    trials = [results[number] for number in numbers]
    loads = np.array([trial.load for trial in trials])
    durations = np.array([trial.duration for trial in trials])
    # The minimum and the maximum that the SUT lost. Frames that were not sent count for neither side.
    shares = [trial.duration / trial.traffic_duration if of_sent else 1.0 for trial in trials]
    losses = np.array(
        [sut_loss_ratio(trial) * share for trial, share in zip(trials, shares, strict=True)]
    )
    at_most = np.array(
        [trial.loss_ratio * share for trial, share in zip(trials, shares, strict=True)]
    )
    is_early = np.array([trial.is_early for trial in trials], dtype=bool)
    most = losses - LEAST_DIFFERENCE - LEAST_FRAMES / (loads * durations)
    # Most trials are in no contradiction.
    rows = np.flatnonzero(most > 0.0)
    columns = np.flatnonzero((at_most < most.max(initial=0.0)) & ~is_early)
    lost_more = most[rows, None] > at_most[columns]
    row, column = np.nonzero(lost_more & (loads[rows, None] <= loads[columns]))
    weak, strong = rows[row], columns[column]

    return _Contradictions(numbers[weak], numbers[strong], losses[weak] - at_most[strong])


def _times_since_loss(
    results: Sequence[TrialResult], starts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Seconds from the last lossy trial's end to each trial's beginning; infinite if there was none."""
    gaps = []
    loss_ended = float("-inf")
    for start, result in zip(starts, results, strict=False):
        gaps.append(start - loss_ended)
        if sut_loss_ratio(result) > 0.0:
            loss_ended = start + result.traffic_duration
    return np.array(gaps)


def _explanations(
    found: _Contradictions, gaps: NDArray[np.float64]
) -> Iterator[tuple[Change, Callable[[_Contradictions], NDArray[np.bool_]]]]:
    yield Change.SLOWER, lambda pairs: pairs.weak > pairs.strong
    yield Change.FASTER, lambda pairs: pairs.weak < pairs.strong
    # Memory cannot explain a weak trial that was no closer to the last loss.
    if found.size(gaps[found.weak] >= gaps[found.strong]) > MOST_UNEXPLAINED * found.size(
        found.sizes > 0.0
    ):
        return
    seen = np.unique(gaps[np.concatenate([found.weak, found.strong])])
    for shorter, longer in pairwise(seen):
        yield (
            Change.REMEMBERS_LOSS,
            _remembered(gaps, (shorter + longer) / 2.0 if longer < np.inf else longer),
        )


def _remembered(
    gaps: NDArray[np.float64], memory: float
) -> Callable[[_Contradictions], NDArray[np.bool_]]:
    return lambda pairs: (gaps[pairs.weak] < memory) & (memory <= gaps[pairs.strong])


class LossUnit(Enum):
    """The quantity that is the same in all trials that lose at any load."""

    SHARE = "share"
    SECONDS = "seconds"
    FRAMES = "frames"


@dataclass(frozen=True)
class LevelLoss:
    """A loss that does not depend on load."""

    unit: LossUnit
    """The quantity that is the same at all loads. If all trials have one length, seconds mean the same as a share."""
    lost: float
    """Number of frames per interface, seconds of traffic, or share of the frames."""
    loads: int
    """Number of loads."""
    lowest: float
    """The lowest of the loads, in frames per second per interface."""
    highest: float
    """The highest of the loads, in frames per second per interface."""


def level_loss_in(results: Sequence[TrialResult]) -> LevelLoss | None:
    """The loss that the trials of a search have at any load, from the lowest load on; None if there is no such loss.

    The same share is looked for first, and another unit only if it holds at more loads.

    Args:
        results: The trials that are evidence.
    """
    at_loads = _median_trials(results)
    levels = [level for unit in LossUnit if (level := _level_of(unit, at_loads)) is not None]
    return max(levels, key=attrgetter("loads"), default=None)


def _median_trials(results: Iterable[TrialResult]) -> list[TrialResult]:
    """For each load and duration, the trial with the median loss, from the lowest load on.

    Trials that an early verdict leaves open are left out.
    """
    whole = [result for result in results if not result.is_early]
    medians = []
    for _, alike in groupby(sorted(whole, key=_load_and_duration), _load_and_duration):
        by_loss = sorted(alike, key=sut_loss_ratio)
        medians.append(by_loss[(len(by_loss) - 1) // 2])
    return medians


def _load_and_duration(result: TrialResult) -> tuple[float, float]:
    return result.load, result.duration


def _level_of(unit: LossUnit, trials: Sequence[TrialResult]) -> LevelLoss | None:
    """The loss in one unit that is the same at the lowest lossy load and at others; None: there is none."""
    is_share = unit is LossUnit.SHARE
    lossy = [
        trial for trial in trials if 0.0 < sut_loss_ratio(trial) < (1.0 if is_share else OVERLOADED)
    ]
    if not lossy:
        return None

    lowest = lossy[0]
    level = _lost(lowest, unit)
    scale = min(level, 1.0 - level) if is_share else level
    alike = {
        trial.load
        for trial in lossy
        if abs(_lost(trial, unit) - level) <= scale * _tolerance(unit, lowest, trial)
    }
    highest = max(alike)

    for trial in trials:
        if trial.load < lowest.load and _frames_of(level, unit, trial) >= LEAST_FRAMES:
            # Nothing was lost there, although such a loss would have been seen.
            return None

    measured = {trial.load for trial in trials if lowest.load <= trial.load <= highest}
    if len(alike) < LEVEL_MOST * len(measured):
        return None

    has_more = {trial.load for trial in lossy} > alike
    if len(alike) < (LEVEL_TRIALS if has_more else LEVEL_FEWEST):
        return None

    is_many = unit is LossUnit.FRAMES and level >= LEVEL_MANY
    if highest < (LEVEL_SPAN_OF_MANY if is_many else LEVEL_SPAN) * lowest.load:
        return None
    return LevelLoss(unit, level, len(alike), lowest.load, highest)


def _tolerance(unit: LossUnit, one: TrialResult, other: TrialResult) -> float:
    """How much the losses of two trials may differ, as a share of the loss."""
    fewest = min(_lost(one, LossUnit.FRAMES), _lost(other, LossUnit.FRAMES))
    if unit is LossUnit.FRAMES or fewest < LEVEL_MANY:
        return LEVEL_TOLERANCE
    return LEVEL_TOLERANCE + LEVEL_SPREADS / math.sqrt(fewest)


def _lost(result: TrialResult, unit: LossUnit) -> float:
    share = sut_loss_ratio(result)
    if unit is LossUnit.SHARE:
        return share
    seconds = share * result.duration
    if unit is LossUnit.FRAMES:
        return seconds * result.load
    return seconds


def _frames_of(level: float, unit: LossUnit, trial: TrialResult) -> float:
    """How many frames per interface a trial loses if the loss in a unit is the same in all trials."""
    if unit is LossUnit.FRAMES:
        return level
    seconds = level * trial.duration if unit is LossUnit.SHARE else level
    return seconds * trial.load
