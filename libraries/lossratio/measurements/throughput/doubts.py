"""Doubts about a search: whether the SUT stayed the same, the load causes the loss, and chance does not decide."""

import math
from collections.abc import Iterator

from lossratio import mlrsearch
from lossratio.measurements.telemetry import uneven_loads
from lossratio.measurements.throughput.later_trials import LEAST_CHANGE
from lossratio.measurements.throughput.limits import is_bound_of_bursts, level_in_words
from lossratio.measurements.throughput.result import GoalsResult
from lossratio.results import (
    OF_STALLS,
    UNEVEN_TIMES,
    NoteKind,
    doubt,
    drift,
    erratic,
    faulty_in_words,
    spells,
    stalls_that_decided,
)
from lossratio.values import format_ratio


@doubt(
    NoteKind.DRIFT,
    (
        f"{drift.evidence} Or earlier and later trials at the same loads differ in their losses, as if "
        "the knee had moved."
    ),
)
def drift_of_search(result: GoalsResult) -> Iterator[str]:
    """The SUT changes over time; if it warms up, what would help."""
    general = [*drift(result)]
    found = _inconstancy(result)
    if found is not None and found.change is not mlrsearch.Change.REMEMBERS_LOSS:
        elapsed = sum(trial.elapsed_s for trial in result.trials)
        is_spell = any(spells(result))
        if _warms_up(found, elapsed) if general else not is_spell:
            general = [_trend(found, elapsed)]
    yield from general


@doubt(
    NoteKind.MEMORY, "Trials right after a loss lost more than others at the same or a higher load."
)
def memory_of_search(result: GoalsResult) -> Iterator[str]:
    """The SUT remembers a loss for longer than the rest between trials."""
    found = _inconstancy(result)
    if found is not None and found.change is mlrsearch.Change.REMEMBERS_LOSS:
        yield _memory(found)


def _inconstancy(result: GoalsResult) -> "mlrsearch.Inconstancy | None":
    """How the SUT changed during the search, or remembers a loss; None: neither was seen."""
    warm_ups = {number for number, trial in enumerate(result.trials) if not trial.is_evidence}
    return mlrsearch.inconstancy_in([trial.as_result() for trial in result.trials], warm_ups)


@doubt(
    NoteKind.LOSS_AT_ANY_LOAD,
    "Trials at small and large loads all lost the same share or number of frames, or the frames that arrive in the "
    "same length of time.",
)
def loss_at_any_load(result: GoalsResult) -> Iterator[str]:
    """The load is not the cause of the loss."""
    level = mlrsearch.level_loss_in([trial.as_result() for trial in result.evidence])
    if level is None:
        return
    said = f"{level_in_words(level, result.written)}; the load is not the cause"
    faulty = faulty_in_words(result.evidence)
    if result.passed_before is not None:
        said += f". But {result.passed_before}: look for what is used up, such as credits, a table or a license"
    elif faulty:
        said += f". Look at the frames with a fault, which count as lost: {faulty}"
    yield said


@doubt(NoteKind.ERRATIC, erratic.evidence)
def erratic_of_search(result: GoalsResult) -> Iterator[str]:
    """The load does not explain the loss, and neither does what is known: time, memory, or a loss at any load."""
    if _inconstancy(result) is None and not any(loss_at_any_load(result)):
        yield from erratic(result)


@doubt(
    NoteKind.CHANCE,
    f"In a range of loads wider than {format_ratio(LEAST_CHANGE)}, 30 to 70 % of the trials lose too many frames.",
)
def chance(result: GoalsResult) -> Iterator[str]:
    """Another search may not find the bounds of a goal, because only chance decides around them.

    Where losses are erratic, chance decides at all loads.
    """
    for report in () if any(erratic_of_search(result)) else result.goals:
        zone = report.zone
        if zone is None or zone.width <= LEAST_CHANGE:
            continue
        ends = result.written(*(end.per_interface_fps for end in zone.ends))
        yield (
            f"from {ends}, 30 to 70 % of trials lose more than {report.goal.name} allows: another search may find any "
            f"load in this zone, and a change of {format_ratio(LEAST_CHANGE)} would go unnoticed. Compare zones, or "
            "choose another goal"
        )


@doubt(
    NoteKind.UNEVEN,
    f"In the newest telemetry trial, a worker or receive queue of a device had at least {UNEVEN_TIMES:g} times its "
    "share.",
)
def uneven(result: GoalsResult) -> Iterator[str]:
    """A DUT is not one SUT: the load of its workers or receive queues is uneven."""
    for dut in result.telemetry[-1].duts if result.telemetry else ():
        yield from uneven_loads(dut.node, dut.workers, dut.queues)


@doubt(NoteKind.GENERATOR_STALLS, OF_STALLS)
def stalls(result: GoalsResult) -> Iterator[str]:
    """Stalls decided the result. Without them, some upper bound would not be an upper bound."""
    is_proved = all(
        report.result.relevant_upper_bound is not None
        and not is_bound_of_bursts(result, report.result.relevant_upper_bound, report.goal)
        for report in result.goals
        if report.result is not None
    )
    if not is_proved:
        allowed = [report.goal.loss_ratio for report in result.goals]
        yield from stalls_that_decided(result.evidence, allowed)


def _memory(found: "mlrsearch.Inconstancy") -> str:
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


def _warms_up(found: "mlrsearch.Inconstancy", elapsed: float) -> bool:
    """Whether the SUT is slower only in the first half of a search, so that a warm-up would help."""
    return found.change is mlrsearch.Change.FASTER and found.after <= elapsed / 2.0


def _trend(found: "mlrsearch.Inconstancy", elapsed: float) -> str:
    """How earlier and later trials differ, in words. `elapsed` is the time that the search took, in seconds."""
    less = f"forward up to {format_ratio(found.less)} less than {found.strong}"
    if found.change is mlrsearch.Change.SLOWER:
        return f"{found.weak} trials {less} earlier ones at the same loads: the SUT gets slower"
    if not _warms_up(found, elapsed):
        return f"{found.weak} trials {less} later ones at the same loads: the SUT gets faster"
    return (
        f"{found.weak} trials in the first {found.after:.3g} s {less} later ones at the same loads: the SUT warms "
        f"up; warm_up={found.after:.3g} s would help"
    )
