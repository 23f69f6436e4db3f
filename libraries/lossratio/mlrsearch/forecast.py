"""The time that a search will still take, from the trials so far: cheap enough to be asked for after every trial.

The least time left is that of the proof: the trials that the expected bounds need if each turns out as expected. Real
searches need more, because loads near a bound are lossy only sometimes and expected bounds are moved. How much more
was measured on simulated SUTs of many kinds; the figures are below.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.stages import Interval, Stages
from lossratio.trials import TrialResult


class Band(NamedTuple):
    """Time really left, as a multiple of the least time left."""

    low: float
    """The 10th percentile."""
    usual: float
    """The mean."""
    high: float
    """The 90th percentile."""


class Stretch(NamedTuple):
    """How much longer than the least time searches of one kind take."""

    looking: Band
    """While single short trials still look for a bound, and before the first trial."""
    proving: Band
    """When all that is left is the proof."""


STRETCHES: Mapping[tuple[bool, bool], Stretch] = MappingProxyType(
    {
        (False, False): Stretch(Band(0.57, 1.1, 1.62), Band(0.99, 1.2, 1.6)),
        (False, True): Stretch(Band(0.42, 1.1, 2.1), Band(0.97, 1.6, 3.0)),
        (True, False): Stretch(Band(0.95, 1.5, 2.6), Band(0.99, 1.2, 2.0)),
        (True, True): Stretch(Band(0.86, 1.5, 3.2), Band(0.90, 1.3, 1.6)),
    }
)
"""By whether short trials come first, which long ones disappoint, and whether trials that fail end early."""

FAILS_AFTER = 0.1
"""Share of its duration after which an early verdict ends a trial that fails."""

MOST_SEARCH_TRIALS = 4.0
"""Trials beside the proof that finding the bounds takes, however large the interval: overload shows where to look."""


@dataclass(frozen=True)
class Forecast:
    """How long a search will take yet, in seconds."""

    seconds: float
    """The expected time left."""
    low: float
    """It will hardly be less (one search in ten)."""
    high: float
    """It will hardly be more (one search in ten)."""


class Pace:
    """The time that trials take and count beyond their duration, on average."""

    def __init__(self) -> None:
        self._trials = 0
        self._elapsed = 0.0
        self._effective = 0.0

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        self._trials += 1
        self._elapsed += result.elapsed - result.traffic_duration - result.input.rest
        self._effective += result.effective_duration - result.duration

    def elapsed(self, duration: float) -> float:
        """Seconds that a trial of this duration is expected to take."""
        return max(0.0, duration + self._elapsed / max(1, self._trials))

    def effective(self, duration: float) -> float:
        """Seconds that a trial of this duration is expected to count."""
        return max(duration / 100.0, duration + self._effective / max(1, self._trials))


@dataclass(frozen=True)
class Outlook:
    """The time that one goal still needs, if all goes as expected."""

    search: float
    """Seconds of single short trials until the bounds are found."""
    proof: dict[int, float]
    """Seconds of trials that prove them, by grid index of the load."""
    growing: bool
    """Whether short trials come first."""
    fails_soon: bool
    """Whether a trial ends as soon as it is certain to be a high-loss trial."""
    looking: bool
    """Whether the bounds are not found yet."""


def outlook(
    stages: Stages, grid: LoadGrid, width: int, expected: float, pace: Pace, *, fails_soon: bool = False
) -> Outlook:
    """The time that one goal still needs.

    Args:
        stages: What is known for the goal.
        grid: The loads.
        width: The goal's width in grid steps.
        expected: Where on the grid its bound is expected.
        pace: What trials take.
        fails_soon: Whether a trial ends as soon as it is certain to be a high-loss trial.
    """
    if not stages.intervals[-1].open:
        return Outlook(0.0, {}, growing=False, fails_soon=fails_soon, looking=False)
    coarsest = stages.intervals[0]
    lower, upper = _pair(coarsest, grid, width, expected)
    search = 0.0
    if coarsest.open:
        trials = min(MOST_SEARCH_TRIALS, math.log2(max(1.0, coarsest.steps / width)))
        search = trials * pace.elapsed(stages.stages[0].target.trial_duration)
    proof = {}
    if lower >= 0:
        proof[lower] = _time_to_prove(stages, grid.load(lower), Bound.LOWER, pace)
    if upper <= grid.top:
        share = FAILS_AFTER if fails_soon else 1.0
        proof[upper] = _time_to_prove(stages, grid.load(upper), Bound.UPPER, pace, share)
    durations = [stage.target.trial_duration for stage in stages.stages]
    growing = durations[0] < durations[-1]
    return Outlook(search, proof, growing=growing, fails_soon=fails_soon, looking=coarsest.open)


def forecast(outlooks: Iterable[Outlook], sure: float = 0.0) -> Forecast:
    """Puts the goals' outlooks together: a trial serves all goals, so each load is paid for once.

    Args:
        outlooks: What each goal still needs.
        sure: Seconds that the search takes besides, for certain.
    """
    search = 0.0
    proof: dict[int, float] = {}
    growing = fails_soon = looking = False
    for goal_outlook in outlooks:
        search = max(search, goal_outlook.search)
        growing |= goal_outlook.growing
        fails_soon |= goal_outlook.fails_soon
        looking |= goal_outlook.looking
        for index, seconds in goal_outlook.proof.items():
            proof[index] = max(proof.get(index, 0.0), seconds)
    least = search + sum(proof.values())
    stretch = STRETCHES[growing, fails_soon]
    band = stretch.looking if looking else stretch.proving
    return Forecast(sure + least * band.usual, sure + least * band.low, sure + least * band.high)


def _pair(interval: Interval, grid: LoadGrid, width: int, expected: float) -> tuple[int, int]:
    """Grid indexes of the expected bounds; just outside the grid where there will be none."""
    if not interval.open:
        return interval.first - 1, interval.last + 1
    lower = min(max(math.floor(expected), interval.first - 1), interval.last)
    return lower, min(lower + width, interval.last + 1)


def _time_to_prove(stages: Stages, load: float, bound: Bound, pace: Pace, share: float = 1.0) -> float:
    """Seconds of trials until a load is what it is expected to be for the goal; 0 if it is already.

    The traffic of these trials takes a share of their duration.
    """
    final = stages.stages[-1]
    if final.evidence.bound(load) is bound:
        return 0.0
    missing = final.evidence.missing(load, bound)
    duration = final.target.trial_duration
    if bound is Bound.UPPER and final.evidence.short_trials_refute:
        # Where no loss may be exceeded, one lossy trial of any duration is enough.
        return pace.elapsed(share * stages.stages[0].target.trial_duration)
    trials = max(1, math.ceil(missing / pace.effective(duration)))
    seconds = trials * pace.elapsed(share * duration)
    if bound is Bound.LOWER:
        shorter = (s for s in stages.stages if s.target.trial_duration < duration and load not in s.passed)
        seconds += sum(pace.elapsed(stage.target.trial_duration) for stage in shorter)
    return seconds
