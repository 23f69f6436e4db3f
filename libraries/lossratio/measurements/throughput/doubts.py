"""Doubts about a search: whether the SUT stayed the same, the load causes the loss, and chance does not decide."""

import math
from collections.abc import Iterator, Sequence

from lossratio import mlrsearch
from lossratio.measurements.throughput.later_trials import LEAST_CHANGE
from lossratio.measurements.throughput.limits import level_in_words
from lossratio.measurements.throughput.rest import passed_after_rest
from lossratio.measurements.throughput.result import GoalsResult
from lossratio.results import (
    LOOK_FOR_DECLINE,
    LOOK_FOR_GAIN,
    Doubt,
    DoubtKind,
    Trial,
    faulty_in_words,
    format_interval,
    time_dependence_in,
)
from lossratio.trials import TrialResult
from lossratio.units import format_frame_rate, format_ratio


def doubts_of_search(result: GoalsResult) -> Iterator[Doubt]:
    """The doubts that the trials and bounds of a search raise."""
    rested = _rested(result)
    for doubt in _constancy_doubts(result.trials, result.passed_before):
        if rested is None or doubt.kind is not rested.kind:
            yield doubt
    if rested is not None:
        yield rested
    yield from _chance(result)


def _evidence(result: GoalsResult) -> list[TrialResult]:
    """The trials that count."""
    return [trial.as_result() for trial in result.trials if trial.is_evidence]


def _constancy_doubts(trials: Sequence[Trial], passed_before: str | None) -> Iterator[Doubt]:
    """The doubts whether the SUT stayed the same during the search, and whether the load is the cause of the loss."""
    evidence = [trial for trial in trials if trial.is_evidence]
    results = [trial.as_result() for trial in trials]
    warm_ups = {number for number, trial in enumerate(trials) if not trial.is_evidence}
    found = mlrsearch.inconstancy_in(results, warm_ups)
    if found is not None and found.change is mlrsearch.Change.REMEMBERS_LOSS:
        yield Doubt(DoubtKind.MEMORY, _memory(found))
    elif found is not None:
        elapsed = sum(result.elapsed for result in results)
        general = time_dependence_in(evidence)
        is_drift = general is not None and general.kind is DoubtKind.DRIFT
        if general is None or (is_drift and _warms_up(found, elapsed)):
            yield Doubt(DoubtKind.DRIFT, _trend(found, elapsed))

    level = mlrsearch.level_loss_in([trial.as_result() for trial in evidence])
    if level is not None:
        faulty = faulty_in_words(evidence)
        look = "Look for loss on a link, a dead queue, and stalls"
        if faulty:
            look = f"Look at the frames with a fault, which count as lost: {faulty}"
        if passed_before is not None:
            look = f"But {passed_before}: look for what is used up, such as credits, a table or a license"
        yield Doubt(
            DoubtKind.LOSS_AT_ANY_LOAD,
            f"{level_in_words(level)}; the load is not the cause. {look}",
        )


def _rested(result: GoalsResult) -> Doubt | None:
    """The doubt that the SUT passes more after a rest, based on the trial at the end of the search."""
    passed = passed_after_rest(_evidence(result), _upper_bounds(result))
    if passed is None:
        return None
    trial, upper = passed
    rest = trial.input.rest
    return Doubt(
        DoubtKind.MEMORY,
        f"a trial of {trial.duration:g} s at {format_frame_rate(trial.load)} per interface, "
        f"{format_ratio(trial.load / upper - 1.0)} above the upper bound, passed after a rest of {rest:g} s: the SUT "
        f"may remember a loss for longer than the rest between trials, or the trial passed by chance. rest={rest:g} s "
        "between trials would show which",
    )


def _upper_bounds(result: GoalsResult) -> Iterator[tuple[float, float]]:
    """The upper bounds that were found, in frames per second per interface, each with the loss ratio of its goal."""
    for report in result.goals:
        upper = report.bounds[1]
        if upper is not None:
            yield upper.per_interface_fps, report.goal.loss_ratio


def _chance(result: GoalsResult) -> Iterator[Doubt]:
    """The doubt, for each goal, whether another search finds its bounds, because only chance decides around them."""
    for report in result.goals:
        if report.result is None:
            continue
        zone = report.result.zone
        if zone is not None and zone.width > LEAST_CHANGE:
            if any(bound is not None for bound in report.bounds):
                found = f"found the bounds {format_interval(*report.bounds)}, but another search"
            else:
                found = "found no bounds, and another search"

            yield Doubt(
                DoubtKind.CHANCE,
                f"from {format_interval(*zone.ends)} per interface, 30 to 70 % of trials lose more than "
                f"{report.goal.name} allows. This search {found} may find any load in this zone. A change of "
                f"{format_ratio(LEAST_CHANGE)} would go unnoticed; results repeat only outside the zone. Compare "
                "zones, or choose another goal",
            )


def _memory(found: mlrsearch.Inconstancy) -> str:
    """How trials after a loss differ from others, in words."""
    if found.after == 0.0:
        weak = "right after a loss"
    else:
        weak = f"up to {found.after:.3g} s after a loss"

    if math.isinf(found.until):
        strong = "before any loss"
        way_out = "a longer rest between trials may help"
    else:
        strong = f"{found.until:.3g} s after a loss or later"
        way_out = f"rest={found.until:.3g} s between trials would help"

    return (
        f"{found.weak} trials that began {weak} forward up to {format_ratio(found.less)} less than {found.strong} that "
        f"began {strong}, at the same or a higher load; {way_out}"
    )


def with_one_drift(doubts: Sequence[Doubt]) -> tuple[Doubt, ...]:
    """The doubts with only the last drift: if a search has a drift of its own, this one also says what would help."""
    drifts = [doubt for doubt in doubts if doubt.kind is DoubtKind.DRIFT]
    return tuple(doubt for doubt in doubts if doubt not in drifts[:-1])


def _warms_up(found: mlrsearch.Inconstancy, elapsed: float) -> bool:
    """Whether the SUT is slower only in the first half of a search, so that a warm-up would help."""
    return found.change is mlrsearch.Change.FASTER and found.after <= elapsed / 2.0


def _trend(found: mlrsearch.Inconstancy, elapsed: float) -> str:
    """How earlier and later trials differ, in words. `elapsed` is the time that the search took, in seconds."""
    less = f"forward up to {format_ratio(found.less)} less than {found.strong}"
    if found.change is mlrsearch.Change.SLOWER:
        return f"{found.weak} trials {less} earlier ones at the same loads: the SUT gets slower. {LOOK_FOR_DECLINE}"
    if not _warms_up(found, elapsed):
        return f"{found.weak} trials {less} later ones at the same loads: the SUT gets faster. {LOOK_FOR_GAIN}"
    return (
        f"{found.weak} trials in the first {found.after:.3g} s {less} later ones at the same loads: the SUT warms "
        f"up; warm_up={found.after:.3g} s would help"
    )
