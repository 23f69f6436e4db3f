"""From what a search or a measurement left behind to the result that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from lossratio.mlrsearch import GoalResult, SearchGoal
from lossratio.plrsearch import why_set_aside
from lossratio.records import Rate
from lossratio.results.conditions import Conditions, MaxLoad
from lossratio.results.model import (
    Goal,
    GoalOutcome,
    GoalReport,
    MrrResult,
    Outcome,
    ReconfigurationResult,
    SoakResult,
    TestIdentity,
    ThroughputResult,
    outcome_of,
)
from lossratio.results.mrr import NOTHING_LOST, maximum_receive_rate
from lossratio.results.reconfiguration import ReconfigurationLoss
from lossratio.results.soak import CriticalLoad
from lossratio.results.trials import describe_trials
from lossratio.results.verdict import judge
from lossratio.trials import JournalEntry, TrialResult


@dataclass(frozen=True)
class TestRun:
    """Which test was run, when, and under what conditions.

    Attributes:
        test: Which test it was.
        started: When it began; with a time zone.
        ended: When it ended; with a time zone.
        conditions: What was measured, where and how.
        remarks: What a reader of the numbers should know besides.
        error: Why the measurement failed; None if it did not.
        late_frames: Frames of the last trial that came back too late; None: not known.
        guilty: Whose fault it is that the measurement failed, if it did: ``TG``, ``wire`` or ``DUT``; None: not known.
    """

    __test__ = False

    test: TestIdentity
    started: datetime
    ended: datetime
    conditions: Conditions
    remarks: tuple[str, ...] = ()
    error: str | None = None
    late_frames: int | None = None
    guilty: str | None = None

    def stated(self, *more_remarks: str) -> dict[str, Any]:
        """What results of all kinds say about their test, as the fields of `lossratio.results.model.TestResult`."""
        return {
            "test": self.test,
            "started": self.started,
            "ended": self.ended,
            "error": self.error,
            "remarks": (*self.remarks, *more_remarks),
            "conditions": self.conditions,
            "late_frames": self.late_frames,
            "guilty": self.guilty,
        }


@dataclass(frozen=True)
class SearchSetup:
    """What a search was asked for.

    Attributes:
        algorithm: Name of the search algorithm, e.g. ``MLRsearch``.
        settings: The algorithm's other settings.
        goals: The goals.
        min_load: The smallest load, frames per second per interface.
        max_load: The largest load.
        warm_ups: How many of the first trials are a warm-up, whose results are no evidence.
    """

    algorithm: str
    settings: Mapping[str, JsonValue]
    goals: Sequence[SearchGoal]
    min_load: float
    max_load: MaxLoad
    warm_ups: int = 0


@dataclass(frozen=True)
class SoakSetup:
    """What a search for a critical load was asked for.

    Attributes:
        target_loss_ratio: The loss ratio at the critical load.
        settings: The search's other settings.
        min_load: The smallest load, frames per second per interface.
        max_load: The largest load.
    """

    target_loss_ratio: float
    settings: Mapping[str, JsonValue]
    min_load: float
    max_load: MaxLoad


def throughput_result(
    run: TestRun,
    search: SearchSetup,
    results: Mapping[SearchGoal, GoalResult],
    entries: Sequence[JournalEntry],
) -> ThroughputResult:
    """Puts the result of a search together; what is the generator's limit is called so.

    Args:
        run: The test.
        search: What the search was asked for.
        results: What it found, e.g. a `lossratio.mlrsearch.SearchResult`. Not looked at if the run has an error.
        entries: All its trials.
    """
    evidence = [entry.result for entry in entries[search.warm_ups :]]
    found = [
        None if run.error is not None else _goal_outcome(results[goal], evidence, run, search) for goal in search.goals
    ]
    return ThroughputResult(
        **run.stated(),
        outcome=Outcome.FAILED if run.error is not None else outcome_of(found),
        trials=describe_trials(entries, warm_ups=search.warm_ups),
        algorithm=search.algorithm,
        settings=dict(search.settings),
        min_load=run.conditions.rate(search.min_load),
        max_load=search.max_load,
        goals=tuple(
            GoalReport(goal=describe_goal(goal), result=result)
            for goal, result in zip(search.goals, found, strict=True)
        ),
    )


def mrr_result(run: TestRun, max_load: MaxLoad, entries: Sequence[JournalEntry]) -> MrrResult:
    """Puts the result of a measurement of the maximum receive rate together.

    Args:
        run: The test.
        max_load: The load of all trials.
        entries: All its trials.

    Raises:
        SearchError: If there is no trial although the run has no error.
    """
    mrr = None
    if run.error is None:
        mrr = maximum_receive_rate([entry.result for entry in entries], run.conditions)
    remarks = (NOTHING_LOST,) if mrr is not None and mrr.lost_frames == 0 else ()
    return MrrResult(
        **run.stated(*remarks),
        outcome=Outcome.FAILED if mrr is None else Outcome.MEASURED,
        trials=describe_trials(entries),
        max_load=max_load,
        mrr=mrr,
    )


def soak_result(
    run: TestRun, search: SoakSetup, critical_load: CriticalLoad | None, entries: Sequence[JournalEntry]
) -> SoakResult:
    """Puts the result of a soak test together.

    Args:
        run: The test.
        search: What the search was asked for.
        critical_load: What it found; not looked at if the run has an error.
        entries: All its trials.
    """
    outcome = Outcome.FAILED
    if run.error is None and critical_load is not None:
        outcome = Outcome.MEASURED if critical_load.reason is None else Outcome.IRREGULAR
    return SoakResult(
        **run.stated(),
        outcome=outcome,
        trials=describe_trials(entries, why_set_aside=why_set_aside),
        target_loss_ratio=search.target_loss_ratio,
        settings=dict(search.settings),
        min_load=run.conditions.rate(search.min_load),
        max_load=search.max_load,
        critical_load=critical_load if run.error is None else None,
    )


def reconfiguration_result(
    run: TestRun, max_load: MaxLoad, loss: ReconfigurationLoss | None, entries: Sequence[JournalEntry]
) -> ReconfigurationResult:
    """Puts the result of a reconfiguration test together.

    Args:
        run: The test.
        max_load: The largest load that was allowed.
        loss: What was lost; not looked at if the run has an error.
        entries: Its trials: those of the search for the load, if there was one.
    """
    return ReconfigurationResult(
        **run.stated(),
        outcome=Outcome.MEASURED if run.error is None else Outcome.FAILED,
        trials=describe_trials(entries),
        max_load=max_load,
        loss=loss if run.error is None else None,
    )


def describe_goal(goal: SearchGoal) -> Goal:
    """A search goal with every attribute, also those with default values."""
    return Goal(
        name=str(goal),
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        final_trial_duration_s=goal.final_trial_duration,
        duration_sum_s=goal.duration_sum,
        initial_trial_duration_s=goal.first_duration,
        width_ratio=goal.width,
    )


def _goal_outcome(result: GoalResult, trials: Sequence[TrialResult], run: TestRun, search: SearchSetup) -> GoalOutcome:
    verdict = judge(result, trials, max_load_origin=search.max_load.origin)

    def rate(load: float | None) -> Rate | None:
        return None if load is None else run.conditions.rate(load)

    return GoalOutcome(
        regular=verdict.regular,
        reason=verdict.reason,
        relevant_lower_bound=rate(result.relevant_lower_bound),
        relevant_upper_bound=rate(result.relevant_upper_bound),
        conditional_throughput=rate(result.conditional_throughput),
    )
