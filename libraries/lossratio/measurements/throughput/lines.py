"""The lines of a result's text: goals with their bounds."""

import statistics
from collections.abc import Iterator
from operator import attrgetter

from lossratio.measurements.latency.result import format_microseconds, latency_lines
from lossratio.measurements.throughput.result import (
    GoalOutcome,
    GoalReport,
    GoalsResult,
    ZoneOfChance,
    format_regularity,
)
from lossratio.measurements.throughput.sentence import made_by
from lossratio.results import (
    NoteKind,
    Trial,
    Weight,
    format_frames_per_second,
    format_interval,
    number_of,
    numbers,
    rate_in_words,
    rule,
    value_line,
)
from lossratio.trials import DirectionCounters
from lossratio.values import FRAMES_PER_SECOND, Rate, format_ratio, trials_counted


@numbers
def search_lines(result: GoalsResult) -> Iterator[str]:
    """Each goal, with its bounds; latency, if it was added."""
    for report in result.goals:
        yield from goal_lines(report, result)
    yield from latency_lines(result.latency)


_TERMS = {
    "NDR": "NDR is the non-drop rate: the most that is forwarded without loss",
    "PDR": "PDR is the partial drop rate: the most that is forwarded while a small share may be lost",
}
"""The meaning of goals, by the ends of their names, without a full stop."""
_EXCEPT_IN_SOME = ", except in as many trials as the goal allows (exceed ratio)"
"""What follows if a goal has an exceed ratio."""


@rule(Weight.PROVENANCE, NoteKind.TERM)
def terms(result: GoalsResult) -> Iterator[str]:
    """NDR and PDR, if the goals have these names, and allow loss as these terms say."""
    for end, term in _TERMS.items():
        allows_loss = end == "PDR"
        goals = [
            report.goal
            for report in result.goals
            if report.goal.name.endswith(end) and (report.goal.loss_ratio > 0.0) is allows_loss
        ]
        if any(goal.exceed_ratio for goal in goals):
            yield f"{term}{_EXCEPT_IN_SOME}."
        elif goals:
            yield f"{term}."


def goal_lines(report: GoalReport, result: GoalsResult) -> Iterator[str]:
    """A goal with its bounds and its value, or the reason why it has no value."""
    allowed = f"loss ratio at most {format_ratio(report.goal.loss_ratio)}"
    if report.goal.stream is not None:
        allowed = f"{report.goal.part}, {allowed}"
    yield f"{report.goal.name} ({allowed}): {format_regularity(report)}"

    if report.result is not None and not report.is_as_before:
        lower, upper = report.bounds
        yield _bound_line("offered load, lower", lower, result)
        yield _bound_line("offered load, upper", upper, result) + made_by(report, result)
        yield from _value_lines(report.result, result, is_of_part=bool(report.goal.part))
        yield from _latency_at(report.result.relevant_lower_bound, result)


def _value_lines(found: GoalOutcome, result: GoalsResult, *, is_of_part: bool) -> Iterator[str]:
    """The value of a goal, and, if only chance decides around this value, the loads of that zone."""
    rate = found.conditional_throughput
    value = _rate_line("conditional throughput", rate, result)
    if is_of_part and rate is not None:
        # The sum of all directions was offered, but nobody says that all of it passed.
        shown = f"{format_frames_per_second(rate.per_interface_fps):>14} per interface"
        value = value_line("conditional throughput", shown)
    if found.zone is None or result.unit is not FRAMES_PER_SECOND:
        yield value
        return

    yield value + _coin(found.zone)
    for share in found.zone.shares:
        trials = trials_counted(share.trials)
        lossy = f"{share.lossy} of {trials} lossy, {share.longest_run} in a row at most"
        load = f"{rate_in_words(share.load.per_interface_fps):>12} fps per interface"
        yield value_line("zone of chance", f"{load}: {lossy}")


def _coin(zone: ZoneOfChance) -> str:
    """The zone of chance in the line of a value."""
    return f"; chance decides from {format_interval(*zone.ends)} per interface ({format_ratio(zone.width)})"


def _bound_line(label: str, bound: Rate | None, result: GoalsResult) -> str:
    line = _rate_line(label, bound, result)
    if bound == result.max_load.rate:
        return f"{line} (the maximum load)"
    if bound == result.min_load:
        return f"{line} (the minimum load)"
    return line


def _rate_line(label: str, rate: Rate | None, result: GoalsResult) -> str:
    """The line of a rate: of frames with all units, or of what else a search varies."""
    if result.unit is FRAMES_PER_SECOND:
        return value_line(label, rate)
    return value_line(label, number_of(rate), result.unit)


def _latency_at(load: Rate | None, result: GoalsResult) -> Iterator[str]:
    """The latency of trials at a bound, in each trial's slower direction, if the latency of every frame is known."""
    trials = () if load is None else result.evidence_at(load)
    known = [one for one in map(_slower_direction, trials) if one is not None]
    if known:
        median = statistics.median(direction.latency_median_us or 0.0 for direction in known)
        of_99 = statistics.median(direction.latency_99_us or 0.0 for direction in known)
        most = max(direction.latency_most_us or 0.0 for direction in known)
        shown = zip(("50 %:", "99 %:", "most"), (median, of_99, most), strict=True)
        words = ", ".join(f"{name} {format_microseconds(value)}" for name, value in shown)
        of_trials = f"every frame; 50 and 99 %: median of {trials_counted(len(known))}"
        yield value_line("latency at lower bound", f"{words} ({of_trials})")


def _slower_direction(trial: Trial) -> DirectionCounters | None:
    """The direction with the longer latency; None: the latency of every frame is not known."""
    known = [one for one in trial.directions if one.latency_99_us is not None]
    return max(known, key=attrgetter("latency_99_us"), default=None)
