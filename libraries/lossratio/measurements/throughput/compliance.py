"""Whether a goal result is an RFC 2544 throughput: RFC 9971's conditions on the goal, and what else departs from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lossratio.results import Goal, ThroughputResult

_RFC2544_DURATION_S = 60.0


class Compliance(str, Enum):
    """How far a search goal complies with RFC 2544 throughput (RFC 9971, compliance)."""

    UNCONDITIONAL = "unconditionally compliant with RFC 2544"
    """No loss in any trial of 60 s."""
    CONDITIONAL = "conditionally compliant with RFC 2544"
    """No loss in any trial, and these are shorter than 60 s."""
    NONE = "not compliant with RFC 2544"
    """Loss is allowed."""


@dataclass(frozen=True)
class ComplianceStatement:
    """What a report says about a goal and RFC 2544.

    Attributes:
        goal: Name of the goal.
        compliance: How far the goal complies.
        reasons: Why it is not unconditional, and what departs from RFC 2544 whatever the goal is.
    """

    goal: str
    compliance: Compliance
    reasons: tuple[str, ...]


def compliance_of(result: ThroughputResult) -> list[ComplianceStatement]:
    """A statement for each goal, in their order; the trial's timing departs from RFC 2544 for all of them alike."""
    steps = [deviation.step for deviation in result.conditions.timing.deviations]
    timing = (f"the trial departs from section 23: {', '.join(steps)}",) if steps else ()
    return [_statement(report.goal, timing) for report in result.goals]


def _statement(goal: Goal, timing: tuple[str, ...]) -> ComplianceStatement:
    allowed = []
    if goal.loss_ratio > 0.0:
        allowed.append(f"a loss ratio of {goal.loss_ratio:g} is allowed")
    if goal.exceed_ratio > 0.0:
        allowed.append(f"{goal.exceed_ratio:g} of the trials' time may lose more")
    if allowed:
        return ComplianceStatement(goal.name, Compliance.NONE, (*allowed, *timing))
    durations = {"final trial": goal.final_trial_duration_s, "duration sum": goal.duration_sum_s}
    short = tuple(f"the {name} is {value:g} s" for name, value in durations.items() if value < _RFC2544_DURATION_S)
    compliance = Compliance.CONDITIONAL if short else Compliance.UNCONDITIONAL
    return ComplianceStatement(goal.name, compliance, (*short, *timing))
