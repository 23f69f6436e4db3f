"""What was found, as one list for results of all kinds: a finding for each goal of each test, or for its MRR.

Tables, comparisons and histories are made of findings, so that they all mean the same by a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lossratio.records import Rate
from lossratio.results.model import (
    FrameLossResult,
    GoalReport,
    LatencyResult,
    MrrResult,
    Outcome,
    Result,
    SoakResult,
    ThroughputResult,
)

MRR = "MRR"
"""The quantity of a maximum receive rate; that of a search is the name of its goal."""

CRITICAL_LOAD = "critical load"
"""The quantity of a soak test."""

FRAME_LOSS = "frame loss rate"
"""The quantity of a measurement of the frame loss rate over load."""

LATENCY = "latency"
"""The quantity of a measurement of latency alone."""

RECONFIGURATION = "reconfiguration"
"""The quantity of a reconfiguration test."""


@dataclass(frozen=True)
class Finding:
    """What was found for one goal of one test, or as its maximum receive rate.

    Attributes:
        result: The result that it belongs to.
        place: Place of that result among the results, from 1.
        quantity: Name of the goal, or `MRR`.
        outcome: Whether it was measured, is irregular, or failed.
        reason: Why it is irregular or failed; None if it was measured.
        value: Conditional throughput, mean maximum receive rate, or mean critical load; None: there is none.
        lower_bound: Relevant lower bound; None: there is none.
        upper_bound: Relevant upper bound; None: there is none.
        deviation: Standard deviation of the value's parts; None: it has none.
    """

    result: Result
    place: int
    quantity: str
    outcome: Outcome
    reason: str | None
    value: Rate | None = None
    lower_bound: Rate | None = None
    upper_bound: Rate | None = None
    deviation: Rate | None = None

    @property
    def has_rate(self) -> bool:
        """Whether a result of this kind comes to a single rate, so that its value can be compared."""
        return isinstance(self.result, ThroughputResult | MrrResult | SoakResult)

    @property
    def theoretical_share(self) -> float | None:
        """The value as a share of what the links can carry; None: not known."""
        maximum = self.result.max_load.theoretical_maximum
        return None if self.value is None or maximum is None else self.value.aggregate_fps / maximum.aggregate_fps


def findings_of(results: Iterable[Result]) -> Iterator[Finding]:
    """The findings of some results, in their order."""
    for place, result in enumerate(results, start=1):
        if isinstance(result, ThroughputResult):
            for report in result.goals:
                yield _goal_finding(result, place, report)
        elif isinstance(result, MrrResult):
            yield _mrr_finding(result, place)
        elif isinstance(result, SoakResult):
            yield _soak_finding(result, place)
        elif isinstance(result, FrameLossResult):
            # A curve, of which no single rate could be told from another one.
            yield Finding(result, place, FRAME_LOSS, result.outcome, result.error)
        elif isinstance(result, LatencyResult):
            faults = [fault for each in result.latency for fault in each.faults]
            yield Finding(result, place, LATENCY, result.outcome, "; ".join(faults) or None)
        else:
            # What a reconfiguration loses is no rate, so there is an outcome only.
            yield Finding(result, place, RECONFIGURATION, result.outcome, result.error)


def _goal_finding(result: ThroughputResult, place: int, report: GoalReport) -> Finding:
    found, name = report.result, report.goal.name
    if found is None:
        return Finding(result, place, name, Outcome.FAILED, result.error)
    return Finding(
        result,
        place,
        name,
        Outcome.MEASURED if found.regular else Outcome.IRREGULAR,
        found.reason,
        found.conditional_throughput,
        found.relevant_lower_bound,
        found.relevant_upper_bound,
    )


def _mrr_finding(result: MrrResult, place: int) -> Finding:
    if result.mrr is None:
        return Finding(result, place, MRR, Outcome.FAILED, result.error)
    return Finding(result, place, MRR, result.outcome, None, result.mrr.mean, deviation=result.mrr.stdev)


def _soak_finding(result: SoakResult, place: int) -> Finding:
    found = result.critical_load
    if found is None:
        return Finding(result, place, CRITICAL_LOAD, Outcome.FAILED, result.error)
    return Finding(
        result,
        place,
        CRITICAL_LOAD,
        result.outcome,
        found.reason,
        found.mean,
        found.least_95,
        found.most_95,
        found.stdev,
    )
