"""Search results: the outcome for each goal, from a set of trials.

`goal_result` needs only trials, so a report or an independent reader can compute the result of a search again from its
journal.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from lossratio.mlrsearch.classification import conditional_throughput
from lossratio.mlrsearch.evidence import Evidence, evidence_of
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.trials import TrialResult


class IrregularReason(str, Enum):
    """Why a goal result is irregular."""

    MAX_LOAD_IS_LOWER_BOUND = "the maximum load is a lower bound"
    MIN_LOAD_IS_UPPER_BOUND = "the minimum load is an upper bound"
    OTHER_GOAL_FAILED = (
        "the search ended early: the minimum load is an upper bound for another goal"
    )
    TIMEOUT = "the time ran out"
    STALLED = "the trials' effective durations are too short to classify a load"
    COIN = "chance decides: trials pass and fail at random over a range wider than the goal's width"
    AS_BEFORE = "the SUT is as before, so there was no search"
    STOPPED_EARLY = "the search was stopped before its end"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class GoalResult:
    """The result of a search for one goal (RFC 9971, goal result)."""

    goal: SearchGoal
    """The search goal."""
    regular: bool
    """Whether both relevant bounds exist and are no farther apart than the goal's width."""
    relevant_lower_bound: float | None
    """The largest lower bound below the relevant upper bound, in frames per second per interface; None if there is
    none."""
    relevant_upper_bound: float | None
    """The smallest upper bound, in frames per second per interface; None if there is none. If the maximum load is a
    lower bound, the upper bound is also the maximum load: a result of zero width, which `reason` marks as irregular."""
    conditional_throughput: float | None
    """The typical forwarding rate at the relevant lower bound, in frames per second per interface; None without one."""
    reason: IrregularReason | None = None
    """Why the result is irregular; None if it is regular."""


class SearchResult(Mapping[SearchGoal, GoalResult]):
    """The result of a search: a mapping from each goal to its result (RFC 9971, search result).

    Attributes:
        finished: Whether the controller had nothing more to measure, and was not out of time.
        elapsed: Seconds that all trials took, by the measurer's clock.
        trials: How many trials were recorded, a warm-up included.
    """

    def __init__(
        self, goal_results: Iterable[GoalResult], *, finished: bool, elapsed: float, trials: int
    ) -> None:
        self.finished = finished
        self.elapsed = elapsed
        self.trials = trials
        self._goal_results = {result.goal: result for result in goal_results}

    def __getitem__(self, goal: SearchGoal) -> GoalResult:
        return self._goal_results[goal]

    def __iter__(self) -> Iterator[SearchGoal]:
        return iter(self._goal_results)

    def __len__(self) -> int:
        return len(self._goal_results)

    def __repr__(self) -> str:
        return f"SearchResult({list(self._goal_results.values())!r}, finished={self.finished})"


def within_width(width: float, lower: float, upper: float) -> bool:
    """Whether two loads are no farther apart than a width, relative to the upper one."""
    return upper - lower <= width * upper


def goal_result(
    goal: SearchGoal,
    results: Iterable[TrialResult],
    *,
    min_load: float,
    max_load: float,
    unfinished: IrregularReason = IrregularReason.STOPPED_EARLY,
) -> GoalResult:
    """Computes a goal's result from trials (RFC 9971, relevant bounds).

    Args:
        goal: The search goal.
        results: All trials that count (not a warm-up), at any loads. They may be in any order.
        min_load: Smallest load of the search, frames per second per interface.
        max_load: Largest load of the search, frames per second per interface.
        unfinished: The reason to give if a bound is still missing.
    """
    evidence = evidence_of(goal)
    by_load = defaultdict[float, list[TrialResult]](list)
    for result in results:
        evidence.add(goal.seen(result))
        by_load[result.load].append(result)
    return result_of(goal, evidence, by_load, (min_load, max_load), unfinished)


def result_of(
    goal: SearchGoal,
    evidence: Evidence,
    by_load: Mapping[float, Iterable[TrialResult]],
    limits: tuple[float, float],
    unfinished: IrregularReason,
) -> GoalResult:
    """Makes a goal's result from the evidence of all trials; see `goal_result`.

    `by_load` has the trials of each load; `limits` are the smallest and the largest load of the search.
    """
    lower, upper = evidence.relevant_bounds()
    min_load, max_load = limits
    throughput = None if lower is None else conditional_throughput(goal, lower, by_load[lower])
    if lower is not None and upper is not None and within_width(goal.width, lower, upper):
        return GoalResult(goal, True, lower, upper, throughput)

    reason = unfinished
    if lower is not None and lower >= max_load:
        reason = IrregularReason.MAX_LOAD_IS_LOWER_BOUND
        upper = lower if upper is None else upper
    elif upper is not None and upper <= min_load:
        reason = IrregularReason.MIN_LOAD_IS_UPPER_BOUND

    return GoalResult(goal, False, lower, upper, throughput, reason)
