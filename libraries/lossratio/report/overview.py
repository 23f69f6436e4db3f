"""The overview of a run: one row for each goal of each test, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lossratio.records import Rate
from lossratio.results import Finding, Outcome, TestResult, Traffic, findings_of, format_frames_per_second, view_of
from lossratio.units import Unit, format_bit_rate, format_ratio

NOTHING = "–"
"""The text for a missing value."""


@dataclass(frozen=True)
class OverviewRow:
    """One row: the values of one goal of one test, or of its MRR, as texts; `NOTHING` for a missing value.

    Attributes:
        place: Position of the row's result among the results, from 1.
        test: Name of the test.
        frame_size: Sizes of the frames, in bytes.
        goal: Name of the goal, or ``MRR``.
        outcome: Whether the quantity was measured, is irregular, or failed.
        state: The outcome in words, with the reason.
        lower_bound: Relevant lower bound, per interface.
        upper_bound: Relevant upper bound, per interface.
        value: Conditional throughput (of MRR: the mean with its standard deviation), per interface; or the value in
            another unit.
        aggregate: The rate as an aggregate, with the factor between both.
        bandwidth: The rate as aggregate bandwidth on the wire.
        share: The rate as a share of the link limit (what the links can carry).
        trials: Number of trials of the test.
        duration: Time of all trials together, on the measurer's clock.
    """

    place: int
    test: str
    frame_size: str
    goal: str
    outcome: Outcome
    state: str
    lower_bound: str
    upper_bound: str
    value: str
    aggregate: str
    bandwidth: str
    share: str
    trials: str
    duration: str


def overview(results: Iterable[TestResult]) -> list[OverviewRow]:
    """Makes the rows of all results, in the order of the results."""
    return [_row(finding) for finding in findings_of(results)]


def describe_frame_size(traffic: Traffic) -> str:
    """Formats the sizes of the frames, e.g. ``64 B``, or ``64, 570, 1518 B (353.83 B on average)``."""
    sizes = ", ".join(str(size.size_bytes) for size in traffic.frame_sizes)
    average = f" ({traffic.average_frame_size_bytes:.2f} B on average)" if len(traffic.frame_sizes) > 1 else ""
    return f"{sizes} B{average}"


def _row(finding: Finding) -> OverviewRow:
    result, deviation = finding.result, finding.deviation
    rate = finding.value if isinstance(finding.value, Rate) else None
    factor = result.conditions.load.aggregate_factor
    share = finding.theoretical_share
    return OverviewRow(
        place=finding.place,
        test=result.test.name,
        frame_size=describe_frame_size(result.conditions.traffic),
        goal=finding.quantity,
        outcome=finding.outcome,
        state=_state(finding),
        lower_bound=_in_words(finding.lower_bound, finding.unit),
        upper_bound=_in_words(finding.upper_bound, finding.unit),
        value=_in_words(finding.value, finding.unit)
        + ("" if deviation is None else f" ± {_in_words(deviation, finding.unit)}"),
        aggregate=NOTHING if rate is None else f"{format_frames_per_second(rate.aggregate_fps)} (x {factor:g})",
        bandwidth=NOTHING if rate is None else format_bit_rate(rate.aggregate_l1_bps),
        share=NOTHING if share is None else format_ratio(share),
        trials=str(len(result.trials)),
        duration=f"{sum(trial.elapsed_s for trial in result.trials):.1f} s",
    )


def _state(finding: Finding) -> str:
    if finding.outcome is Outcome.FAILED:
        return "failed: no result"
    if finding.outcome is Outcome.IRREGULAR:
        return "irregular" if finding.reason is None else f"irregular: {finding.reason}"
    return view_of(finding.result).in_order


def _in_words(value: Rate | float | None, unit: Unit) -> str:
    """A value with its unit; of a rate the value per interface."""
    if isinstance(value, Rate):
        return format_frames_per_second(value.per_interface_fps)
    return NOTHING if value is None else unit.format(value)
