"""How far search goals comply with RFC 2544 throughput."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from lossratio.measurements.throughput.result import Goal, GoalsResult
from lossratio.measurements.throughput.settings import EARLY_VERDICT

_RFC2544_DURATION_S = 60.0


class Compliance(str, Enum):
    """How far a search goal complies with RFC 2544 throughput, by RFC 9971's conditions and further departures."""

    UNCONDITIONAL = "unconditionally compliant with RFC 2544"
    """No loss in any trial of 60 s."""
    CONDITIONAL = "conditionally compliant with RFC 2544"
    """No loss in any trial, but trials are shorter than 60 s, or those with loss end early."""
    NONE = "not compliant with RFC 2544"
    """Loss is allowed."""


@dataclass(frozen=True)
class ComplianceStatement:
    """A report's statement on a goal and RFC 2544."""

    goal: str
    """Name of the goal."""
    compliance: Compliance
    """The degree of compliance."""
    reasons: tuple[str, ...]
    """Why compliance is not unconditional, and departures from RFC 2544 that do not depend on the goal."""


def compliance_of(result: GoalsResult) -> list[ComplianceStatement]:
    """A statement for each goal, in the goals' order.

    The timing of trials departs from RFC 2544 for all goals alike.
    """
    steps = [deviation.step for deviation in result.conditions.timing.deviations]
    timing: tuple[str, ...] = ()
    if steps:
        timing = (f"the trial departs from section 23: {', '.join(steps)}",)

    early: tuple[str, ...] = ()
    if result.settings.get(EARLY_VERDICT):
        early = ("high-loss trials end early",)

    statements = []
    for report in result.goals:
        departures = list(_departures(report.goal))
        short = list(_short_durations(report.goal))
        compliance = Compliance.UNCONDITIONAL
        if departures:
            compliance = Compliance.NONE
        elif short or early:
            compliance = Compliance.CONDITIONAL
        reasons = (*(departures or short), *early, *timing)
        statements.append(ComplianceStatement(report.goal.name, compliance, reasons))

    return statements


def _departures(goal: Goal) -> Iterator[str]:
    """Why a goal does not comply with RFC 2544 at all."""
    if goal.loss_ratio > 0.0:
        yield f"a loss ratio of {goal.loss_ratio:g} is allowed"
    if goal.stream is not None:
        yield f"only the loss of {goal.part} counts"
    if goal.exceed_ratio > 0.0:
        yield f"more may be lost in {goal.exceed_ratio:g} of the trials' time"


def _short_durations(goal: Goal) -> Iterator[str]:
    """Which durations of a goal are shorter than a trial of RFC 2544."""
    durations = {"final trial": goal.final_trial_duration_s, "duration sum": goal.duration_sum_s}
    for name, seconds in durations.items():
        if seconds < _RFC2544_DURATION_S:
            yield f"the {name} is {seconds:g} s"
