"""The results of searches and their proof from the trials: fields, and contradictions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeVar

from pydantic import ValidationError

from lossratio import mlrsearch, results
from lossratio.errors import SearchError
from lossratio.measurements.latency.result import latency_contradictions
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
from lossratio.mlrsearch import GoalBounds, GoalResult, IrregularReason, SearchGoal, goal_result
from lossratio.trials import JournalContents, JournalEntry, TrialResult
from lossratio.values import Rate

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
    zone = mlrsearch.zone_in(result.goal, evidence, least, max_load.rate.per_interface_fps)
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

    def warm_ups(self, settings: Mapping[str, Any]) -> int:
        """1 if the settings have a warm-up, otherwise 0."""
        return warm_ups_in(settings)

    def contradictions(self, result: ResultT, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Contradictions in the result of a search: its bounds and verdicts must follow from its trials."""
        yield from _loads_outside(result, trials)
        if result.algorithm == ALGORITHM:
            evidence = trials[warm_ups_in(result.settings) :]
            for report in result.goals:
                yield from _contradictions_of_goal(result, report, evidence)
        for place, at_load in enumerate(result.latency):
            yield from latency_contradictions(at_load, f"latency[{place}]")

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


def _loads_outside(result: GoalsResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    """The trials whose loads are outside of the search's range."""
    least = result.min_load.per_interface_fps
    most = result.max_load.rate.per_interface_fps
    lowest = least * (1.0 - results.ROUNDING)
    highest = most * (1.0 + results.ROUNDING)
    for place, trial in enumerate(trials, start=1):
        if not lowest <= trial.load <= highest:
            yield f"trial {place}: its load of {trial.load!r} is outside of the search's {least!r} to {most!r}"


def _contradictions_of_goal(
    result: GoalsResult, report: GoalReport, evidence: Sequence[TrialResult]
) -> Iterator[str]:
    """Contradictions between the result of a goal and the trials that count."""
    searched = search_goal(report.goal)
    said = report.result
    name = report.goal.name
    if said is None:
        return
    if report.is_as_before:
        # The result follows from earlier results.
        found = [field for field in _RATES if getattr(said, field) is not None]
        yield from (f"goal {name}: has {field}, although there was no search" for field in found)
        return

    least = result.min_load.per_interface_fps
    most = result.max_load.rate.per_interface_fps
    made = goal_result(searched, evidence, min_load=least, max_load=most)
    for field in _RATES:
        given = results.number_of(getattr(said, field))
        load = getattr(made, field)
        if not results.same_value(given, load):
            yield f"goal {name}: {field}.per_interface_fps is {given!r}, but its trials give {load!r}"

    if said.zone is not None:
        zone = mlrsearch.zone_in(searched, evidence, least, most)
        if _shares_of(said.zone) != _shares_of(zone):
            yield f"goal {name}: its zone of chance does not follow from the trials"

    yield from _contradictions_of_reason(name, said, made, evidence, result.max_load.origin)


def _shares_of(zone: "ZoneOfChance | mlrsearch.Zone | None") -> list[tuple[int, int, int]]:
    """The counts of each load of a zone of chance; none without a zone."""
    if zone is None:
        return []
    return [(share.trials, share.lossy, share.longest_run) for share in zone.shares]


def _contradictions_of_reason(
    name: str,
    said: GoalOutcome,
    made: GoalResult,
    evidence: Sequence[TrialResult],
    max_load_origin: results.LoadOrigin,
) -> Iterator[str]:
    """Contradictions between the trials and the result of a goal: in the reason, or in whether it is regular."""
    reason = judge(made, evidence, max_load_origin=max_load_origin)
    if said.regular != (reason is None):
        yield f"goal {name}: regular is {said.regular}, but the trials give {not said.regular}"
    # The trials do not show why a search ended early.
    elif made.reason is not IrregularReason.STOPPED_EARLY and said.reason != reason:
        yield f"goal {name}: reason is {said.reason!r}, but the trials give {reason!r}"
