"""How a reset time is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from lossratio.measurements import SECONDS
from lossratio.measurements.reset.measure import ResetResult, ResetTime
from lossratio.results import LABEL_WIDTH, Doubt, DoubtKind, Finding, TestResult, View, failure_line, rate_line
from lossratio.units import format_milliseconds

LEAST_BESIDE = 0.01
"""Frames lost besides the outages of the resets, as a share of the outages' frames, from which on there is a doubt."""


class ResetView(View[ResetResult]):
    """How a reset time is shown."""

    has_value = True
    measured_in = SECONDS

    def lines(self, result: ResetResult) -> Iterator[str]:
        """The averages by both methods, the spread, and all repetitions."""
        values = result.reset
        if values is None:
            yield failure_line(result)
            return
        number = len(values.times)
        yield f"reset (RFC 6201): {result.settings.reset_name}, {number} {'trial' if number == 1 else 'trials'}" + (
            "" if result.reason is None else f", irregular: {result.reason}"
        )
        yield rate_line("load", result.load)
        yield from values.lines("by time stamps", none="no loss")
        lost = f"{format_milliseconds(values.average_by_loss_s)} ({values.average_lost_frames:,.1f} frames on average)"
        yield f"  {'by frame loss':<{LABEL_WIDTH}}  {lost}"
        yield from (
            f"  {number:<{LABEL_WIDTH}}  {_in_words(time)}" for number, time in enumerate(values.times, start=1)
        )
        if result.resolution_s is not None:
            yield f"  {'resolution':<{LABEL_WIDTH}}  {format_milliseconds(result.resolution_s)}"

    def doubts(self, result: ResetResult, results: Sequence[TestResult]) -> Iterator[Doubt]:
        """The doubt that the resets are not the only cause of loss."""
        times = () if result.reset is None else result.reset.times
        beside, lost = (sum(getattr(time, name) for time in times) for name in ("lost_beside_frames", "lost_frames"))
        if beside > LEAST_BESIDE * lost:
            yield Doubt(
                DoubtKind.LOSS_BESIDE_RESET,
                f"{beside:,} frames were lost before the resets or outside of their outages, which lost {lost:,}: "
                "the load is above what the DUT forwards, or a reset is more than one outage",
            )

    def values(self, result: ResetResult) -> Mapping[str, Any]:
        """The average by time stamps; only a lower bound where the DUT did not come back."""
        return {} if result.reset is None else result.reset.values(result.settings.limit_s)

    def aspects(self, result: ResetResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The reset."""
        return {"goal": {"reset": result.settings.reset_name}}


def _in_words(time: ResetTime) -> str:
    if time.time_stamp_s is None:
        return f"{time.direction}: did not come back"
    lost = f"{time.lost_frames:,} frames lost, {format_milliseconds(time.loss_method_s)} of them"
    several = time.outages > 1 and time.whole_s is not None
    more = f"; the longest of {time.outages} outages over {format_milliseconds(time.whole_s or 0.0)}" if several else ""
    return f"{time.direction}: {format_milliseconds(time.time_stamp_s)} by time stamps; {lost}{more}"
