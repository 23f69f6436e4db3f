"""The time that a search will still take, from the trials so far.

It is cheap enough to be computed after every trial. The minimum time left is the time of the proof: the trials that the
expected bounds need if every trial turns out as expected. Real searches need more time, because loads near a bound are
only sometimes lossy, and because expected bounds move. How much more was measured on simulated SUTs of many kinds. The
figures are below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from lossratio.mlrsearch.bursts import bounds_of_bursts, trials_foreseen, trials_left
from lossratio.mlrsearch.classification import Bound
from lossratio.trials import TrialResult

if TYPE_CHECKING:
    from lossratio.mlrsearch.rules import GoalView

# Table: three figures for each kind of search.
BANDS: Mapping[tuple[bool, bool, bool], tuple[float, float, float]] = MappingProxyType(
    {
        (False, False, True): (0.57, 1.1, 1.62),
        (False, False, False): (0.99, 1.2, 1.6),
        (False, True, True): (0.42, 1.1, 2.1),
        (False, True, False): (0.97, 1.6, 3.0),
        (True, False, True): (0.95, 1.5, 2.6),
        (True, False, False): (0.99, 1.2, 2.0),
        (True, True, True): (0.86, 1.5, 3.2),
        (True, True, False): (0.90, 1.3, 1.6),
    }
)
"""Time really left, as a multiple of the minimum time left: its 10th percentile, mean and 90th percentile. The figures
depend on three questions. Do short trials come first, which long trials may contradict? Do failing trials end early? Do
single short trials still look for a bound, as before the first trial? If not, only the proof is left."""

FAILS_AFTER = 0.1
"""An early verdict ends a failing trial after this share of its duration."""

MOST_SEARCH_TRIALS = 4.0
"""Number of trials that the search for the bounds takes in any interval, in addition to the proof. The number is small
because overload shows where to look."""


@dataclass(frozen=True)
class Forecast:
    """How much longer a search will take."""

    seconds: float
    """The expected time left, in seconds."""
    low: float
    """Seconds; only one search in ten takes less."""
    high: float
    """Seconds; only one search in ten takes more."""


class Pace:
    """How much longer than their duration trials take, and count, on average."""

    def __init__(self) -> None:
        self._trials = 0
        self._elapsed = 0.0
        self._effective = 0.0

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        self._trials += 1
        # Only the missing part of a rest was spent in the trial.
        self._elapsed += max(0.0, result.elapsed - result.traffic_duration - result.input.rest)
        self._effective += result.effective_duration - result.duration

    def elapsed(self, duration: float) -> float:
        """Seconds that a trial of this duration is expected to take."""
        return max(0.0, duration + self._elapsed / max(1, self._trials))

    def effective(self, duration: float) -> float:
        """Seconds that a trial of this duration is expected to count."""
        return max(duration / 100.0, duration + self._effective / max(1, self._trials))


def forecast(views: Iterable[GoalView], pace: Pace, sure: float = 0.0) -> Forecast:
    """The time that goals still need. A trial serves all goals, so each load counts once.

    Args:
        views: What is known for each goal.
        pace: The time that trials take.
        sure: Further seconds that the search certainly takes.
    """
    search = 0.0
    proof = dict[int, float]()
    growing = fails_soon = looking = False

    for view in views:
        if not view.intervals[-1].open:
            continue

        coarsest = view.intervals[0]
        first_duration = view.stages[0].target.trial_duration
        if coarsest.open:
            trials = min(MOST_SEARCH_TRIALS, math.log2(max(1.0, coarsest.steps / view.width)))
            search = max(search, trials * pace.elapsed(first_duration))

        for index, bound in zip(_pair(view), (Bound.LOWER, Bound.UPPER), strict=True):
            if 0 <= index <= view.grid.top:
                seconds = _time_to_prove(view, view.grid.load(index), bound, pace)
                proof[index] = max(proof.get(index, 0.0), seconds)

        growing |= first_duration < view.stages[-1].target.trial_duration
        fails_soon = view.fails_soon
        looking = looking or coarsest.open

    least = search + sum(proof.values())
    low, usual, high = BANDS[growing, fails_soon, looking]
    return Forecast(sure + least * usual, sure + least * low, sure + least * high)


def forecast_of_bursts(
    views: Iterable[GoalView], results: Mapping[float, Sequence[TrialResult]], pace: Pace
) -> Forecast:
    """The time of the trials that test upper bounds for bursts, once these are proved. A trial serves all goals.

    Args:
        views: What is known for each goal.
        results: The trials at each load, in order.
        pace: The time that trials take.
    """
    every = list(views)
    goals = [view.goal for view in every]
    proved = [view for view in every if not view.intervals[-1].open]
    expected: dict[float, float] = {}
    most: dict[float, float] = {}
    for goal, upper in bounds_of_bursts(proved, goals, results):
        each = pace.elapsed(goal.final_trial_duration)
        usual, limit = trials_left(goal, results[upper])
        expected[upper] = max(expected.get(upper, 0.0), usual * each)
        most[upper] = max(most.get(upper, 0.0), limit * each)

    for view in every:
        bound = expected_upper_bound(view) if view.intervals[-1].open else None
        if bound is not None and bound[0] in results:
            upper, proof = bound
            trials = trials_foreseen(view.goal, results[upper], proof)
            foreseen = trials * pace.elapsed(view.goal.final_trial_duration)
            expected[upper] = max(expected.get(upper, 0.0), foreseen)
            most[upper] = max(most.get(upper, 0.0), foreseen)
    # One more steady trial may decide, or show that the steady ones are too few.
    return Forecast(sum(expected.values()), 0.0, sum(most.values()))


def expected_upper_bound(view: GoalView) -> tuple[float, float] | None:
    """The expected upper bound, and how many trials its proof still takes; None: no upper bound is expected."""
    _, index = _pair(view)
    if not 0 <= index <= view.grid.top:
        return None
    load = view.grid.load(index)
    missing = view.stages[-1].evidence.missing(load, Bound.UPPER)
    return load, missing / view.stages[-1].target.trial_duration


def _pair(view: GoalView) -> tuple[int, int]:
    """Grid indexes of the expected bounds; just outside the grid for a bound that is not expected."""
    first = view.intervals[0].first
    last = view.intervals[0].last
    expected = view.expectation.position
    if not view.intervals[0].open:
        return first - 1, last + 1
    if expected is None:
        # Nothing is known. The bounds of goals that allow more loss are assumed to be higher by exactly that loss.
        expected = (first + last) / 2.0 + view.grid.steps_of_loss(view.goal.loss_ratio)
    lower = min(max(math.floor(expected), first - 1), last)
    return lower, min(lower + view.width, last + 1)


def _time_to_prove(view: GoalView, load: float, bound: Bound, pace: Pace) -> float:
    """Seconds of trials until a load is the expected bound for the goal; 0 if it already is."""
    evidence = view.stages[-1].evidence
    duration = view.stages[-1].target.trial_duration
    share = FAILS_AFTER if bound is Bound.UPPER and view.fails_soon else 1.0
    if evidence.bound(load) is bound:
        return 0.0
    if bound is Bound.UPPER and evidence.short_trials_refute:
        # If no trial may exceed the loss ratio, one lossy trial of any duration is enough.
        return pace.elapsed(share * view.stages[0].target.trial_duration)

    trials = max(1, math.ceil(evidence.missing(load, bound) / pace.effective(duration)))
    seconds = trials * pace.elapsed(share * duration)
    if bound is Bound.LOWER:
        shorter = (
            s for s in view.stages if s.target.trial_duration < duration and load not in s.passed
        )
        seconds += sum(pace.elapsed(stage.target.trial_duration) for stage in shorter)

    return seconds
