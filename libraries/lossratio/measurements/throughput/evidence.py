"""The results of searches from their trials, and what the trials of an interrupted search show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeVar

from pydantic import ValidationError

from lossratio import results
from lossratio.errors import SearchError
from lossratio.measurements.throughput.bounds import BoundsSoFar
from lossratio.measurements.throughput.limits import judge
from lossratio.measurements.throughput.result import (
    Goal,
    GoalOutcome,
    GoalReport,
    GoalsResult,
    LossyShare,
    ZoneOfChance,
    describe_goal,
    outcome_of,
    search_goal,
)
from lossratio.measurements.throughput.settings import ALGORITHM, EARLY_VERDICT, warm_ups_in
from lossratio.mlrsearch import GoalBounds, GoalResult, SearchGoal, zone_in
from lossratio.records import Rate
from lossratio.trials import JournalContents, JournalEntry, TrialResult

_RATES = ("relevant_lower_bound", "relevant_upper_bound", "conditional_throughput")

ResultT = TypeVar("ResultT", bound=GoalsResult)


def search_fields(
    run: results.TestRun,
    max_load: results.MaxLoad,
    search: Mapping[str, Any],
    found: Mapping[SearchGoal, GoalResult],
    entries: Sequence[JournalEntry],
) -> dict[str, Any]:
    """The fields of the result of a search. Limits of the generator are marked in them.

    The search is described by the header of its journal, with ``settings`` and ``min_load_fps``. The results of the
    goals are ignored if the run has an error.
    """
    settings = search["settings"]
    least = search["min_load_fps"]
    warm_ups = warm_ups_in(settings)
    evidence = [entry.result for entry in entries[warm_ups:]]
    if settings.get(EARLY_VERDICT):
        run = replace(run, conditions=run.conditions.with_early_verdicts())

    outcomes: list[GoalOutcome | None] = []
    if run.error is None:
        for result in found.values():
            outcomes.append(_outcome(result, evidence, run.conditions, least, max_load))
        outcome = outcome_of(outcomes)
    else:
        outcome = results.Outcome.FAILED

    goals = tuple(
        GoalReport(goal=describe_goal(goal), result=one)
        for goal, one in zip_longest(found, outcomes)
    )
    # Record: the fields of a result.
    return {
        **run.stated(),
        "outcome": outcome,
        "trials": results.describe_trials(entries, warm_ups=warm_ups),
        "algorithm": ALGORITHM,
        "settings": dict(settings),
        "min_load": run.conditions.rate(least),
        "max_load": max_load,
        "goals": goals,
    }


def _outcome(
    result: GoalResult,
    evidence: Sequence[TrialResult],
    conditions: results.Conditions,
    least: float,
    max_load: results.MaxLoad,
) -> GoalOutcome:
    """The outcome of a goal, judged as if only the SUT had limited the search."""

    def rate(load: float | None) -> Rate | None:
        if load is None:
            return None
        return conditions.rate(load)

    reason = judge(result, evidence, max_load_origin=max_load.origin)
    zone = zone_in(result.goal, evidence, least, max_load.rate.per_interface_fps)
    if zone is None or not zone.shares:
        described = None
    else:
        shares = (LossyShare(**vars(one) | {"load": rate(one.load)}) for one in zone.shares)
        described = ZoneOfChance(shares=tuple(shares))

    return GoalOutcome(
        regular=reason is None,
        reason=reason,
        **{name: rate(getattr(result, name)) for name in _RATES},
        zone=described,
    )


class SearchKind(results.Kind[ResultT]):
    """What all searches with goals share: their journals and results."""

    def known_so_far(self, journal: JournalContents) -> Iterator[str]:
        """The bounds of each goal."""
        try:
            goals = [
                search_goal(Goal.model_validate(fields))
                for fields in journal.search.get("goals", ())
            ]
        except (ValidationError, SearchError):
            return
        so_far = BoundsSoFar(goals)
        warm_ups = warm_ups_in(journal.search.get("settings") or {})
        bounds: tuple[GoalBounds, ...] = ()
        for result in journal.results[warm_ups:]:
            bounds = so_far.add(result)

        for goal_bounds in bounds:
            interval = results.format_interval(goal_bounds.leaning.lower, goal_bounds.leaning.upper)
            yield f"{goal_bounds.goal}: so far {interval} per interface, not proved"
