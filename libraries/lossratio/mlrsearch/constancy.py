"""Whether trials show a SUT that does not stay the same: it remembers loss, or has a trend; or one that always loses.

The loss ratio of a SUT that stays the same does not fall with load, nor with the duration of trials. So a trial that
loses more than another one, which had no lower load and was no shorter, is a *contradiction*. Noise makes some, in
either order. Time makes them all in one order: the trials that lose more came soon after loss, or later, or earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, pairwise
from typing import NamedTuple

from lossratio.trials import TrialResult

LEAST_DIFFERENCE = 0.002
"""Least difference of loss ratios in a contradiction; a smaller one may be a few frames by chance."""

LEAST_FRAMES = 3.0
"""Frames per interface by which losses differ at least, besides.

A picture: of 150 frames of a slow link, one that is rounded away is a loss of 0.7 %.
"""

LEAST_SIZE = 0.005
"""Least difference of loss ratios, in the largest contradiction, that is worth a word."""

LEAST_TRIALS = 5
"""Least number of trials on either side of the contradictions.

A picture: a noisy SUT fails three times after loss, and passes twice after a rest. That is chance in one search of ten.
"""

MOST_UNEXPLAINED = 0.02
"""Largest share of the contradictions, by size, that may be in another order.

A picture: on a jittery SUT one half of the contradictions are in either order.
"""

LEVEL_SPAN = 8.0
"""Least ratio of the loads at which the same is lost."""

LEVEL_TRIALS = 4
"""Least number of these loads."""

LEVEL_TOLERANCE = 0.1
"""How much the losses may differ, relative to that at the lowest load."""

OVERLOADED = 0.5
"""From this loss ratio on, a loss says nothing about smaller loads."""


class Change(Enum):
    """How the SUT changed."""

    REMEMBERS_LOSS = "remembers loss"
    SLOWER = "slower"
    FASTER = "faster"


@dataclass(frozen=True)
class Inconstancy:
    """A change of the SUT that explains the contradictions of its trials.

    Attributes:
        change: What happened.
        weak: Number of trials that lost more than others.
        strong: Number of the others, which had no lower load and were no shorter.
        less: How much less was forwarded in a weak trial than in a strong one, at most; a share.
        after: Seconds from the last loss to the beginning of the weak trial that was farthest from it; for other
            changes, from the first trial to the end of the last weak one.
        until: Seconds from the last loss to the beginning of the strong trial that was closest to it; for other
            changes, from the first trial to the beginning of the first strong one.
    """

    change: Change
    weak: int
    strong: int
    less: float
    after: float
    until: float


class _Contradiction(NamedTuple):
    weak: int
    strong: int
    size: float


def inconstancy_in(results: Sequence[TrialResult], passed_over: Collection[int] = ()) -> Inconstancy | None:
    """The change of the SUT that the trials of a search show; None if they show none.

    Args:
        results: All trials, in the order measured.
        passed_over: Numbers, from 0, of trials that are no evidence, such as a warm-up. Their loss may be remembered.
    """
    contradictions = list(_contradictions(results, passed_over))
    if not contradictions or max(found.size for found in contradictions) < LEAST_SIZE:
        return None
    starts = [0.0, *accumulate(result.elapsed for result in results)]
    gaps = _times_since_loss(results, starts)
    whole = _size(contradictions)
    # Where two changes explain the same, trials that early verdicts ended decide, by the share that was lost so far.
    with_early = list(_contradictions(results, passed_over, of_sent=True))
    best: tuple[float, int, float, Inconstancy] | None = None
    for change, is_explained in _explanations(contradictions, gaps):
        explained: list[_Contradiction] = []
        unexplained: list[_Contradiction] = []
        for found in contradictions:
            (explained if is_explained(found) else unexplained).append(found)
        weak, strong = {found.weak for found in explained}, {found.strong for found in explained}
        if min(len(weak), len(strong)) < LEAST_TRIALS:
            continue
        left = _size(unexplained) / whole
        key = left, -len(weak), _size(found for found in with_early if not is_explained(found))
        if left > MOST_UNEXPLAINED or (best is not None and key >= best[:3]):
            continue
        less = max(1.0 - _forwarded(results[found.weak]) / _forwarded(results[found.strong]) for found in explained)
        if change is Change.REMEMBERS_LOSS:
            after, until = max(gaps[number] for number in weak), min(gaps[number] for number in strong)
        else:
            after = max(starts[number] + results[number].traffic_duration for number in weak)
            until = min(starts[number] for number in strong)
        best = *key, Inconstancy(change, len(weak), len(strong), less, after, until)
    return None if best is None else best[3]


def _contradictions(
    results: Sequence[TrialResult], passed_over: Collection[int], *, of_sent: bool = False
) -> Iterator[_Contradiction]:
    """All pairs of trials of which the easier one lost more. What an early verdict leaves open contradicts nothing.

    Args:
        results: All trials.
        passed_over: See `inconstancy_in`.
        of_sent: Whether a trial that ended early counts with its loss as a share of the frames sent.
    """
    trials = [
        (
            result.load,
            result.duration,
            result.loss_ratio * (result.duration / result.traffic_duration if of_sent else 1.0),
            result.is_early,
            number,
        )
        for number, result in enumerate(results)
        if number not in passed_over
    ]
    for weak_load, weak_duration, weak_loss, _, weak in trials:
        most = weak_loss - LEAST_DIFFERENCE - LEAST_FRAMES / (weak_load * weak_duration)
        if most <= 0.0:
            continue
        for load, duration, loss, is_early, number in trials:
            if weak_load <= load and weak_duration <= duration and loss < most and not is_early:
                yield _Contradiction(weak, number, weak_loss - loss)


def _times_since_loss(results: Sequence[TrialResult], starts: Sequence[float]) -> list[float]:
    """Seconds from the last lossy trial's end to each trial's beginning; infinite if there was none."""
    gaps, loss_ended = [], float("-inf")
    for start, result in zip(starts, results, strict=False):
        gaps.append(start - loss_ended)
        if result.loss_ratio > 0.0:
            loss_ended = start + result.traffic_duration
    return gaps


def _explanations(
    contradictions: Sequence[_Contradiction], gaps: Sequence[float]
) -> Iterator[tuple[Change, Callable[[_Contradiction], bool]]]:
    yield Change.SLOWER, lambda found: found.weak > found.strong
    yield Change.FASTER, lambda found: found.weak < found.strong
    seen = sorted({gaps[number] for found in contradictions for number in (found.weak, found.strong)})
    for shorter, longer in pairwise(seen):
        yield Change.REMEMBERS_LOSS, _remembered(gaps, (shorter + longer) / 2.0 if longer < float("inf") else longer)


def _remembered(gaps: Sequence[float], memory: float) -> Callable[[_Contradiction], bool]:
    return lambda found: gaps[found.weak] < memory <= gaps[found.strong]


def _size(contradictions: Iterable[_Contradiction]) -> float:
    """The sum over the weak trials of their largest contradiction."""
    largest: dict[int, float] = {}
    for found in contradictions:
        if found.size > largest.get(found.weak, 0.0):
            largest[found.weak] = found.size
    return sum(largest.values())


def _forwarded(result: TrialResult) -> float:
    return result.load * (1.0 - result.loss_ratio)


class LossUnit(Enum):
    """What is the same in all trials that lose at any load."""

    SHARE = "share"
    SECONDS = "seconds"
    FRAMES = "frames"


@dataclass(frozen=True)
class LevelLoss:
    """A loss that does not depend on load.

    Attributes:
        unit: What is the same at all loads. Where all trials had one length, seconds are the same as a share.
        lost: So many frames per interface; so many seconds of traffic; or such a share of the frames.
        loads: Number of loads.
        lowest: The lowest of the loads, in frames per second per interface.
        highest: The highest of them.
    """

    unit: LossUnit
    lost: float
    loads: int
    lowest: float
    highest: float


def level_loss_in(results: Sequence[TrialResult]) -> LevelLoss | None:
    """The loss that trials of a search have at any load, from the lowest one on; None if there is none.

    Args:
        results: The trials that are evidence.
    """
    lossy = [result for result in results if 0.0 < result.loss_ratio < OVERLOADED and not result.is_early]
    if not lossy:
        return None
    lowest = min(lossy, key=lambda result: result.load)
    levels = []
    for unit in LossUnit:
        level = _lost(lowest, unit)
        alike = {result.load for result in lossy if abs(_lost(result, unit) - level) <= LEVEL_TOLERANCE * level}
        if len(alike) >= LEVEL_TRIALS and max(alike) >= LEVEL_SPAN * lowest.load:
            levels.append(LevelLoss(unit, level, len(alike), lowest.load, max(alike)))
    return max(levels, key=lambda level: level.loads, default=None)


def _lost(result: TrialResult, unit: LossUnit) -> float:
    if unit is LossUnit.SHARE:
        return result.loss_ratio
    seconds = result.loss_ratio * result.duration
    return seconds * result.load if unit is LossUnit.FRAMES else seconds
