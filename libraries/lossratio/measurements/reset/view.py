"""How a reset time is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, JsonValue

from lossratio.measurements import CsitExportError
from lossratio.measurements.reset.result import ResetResult, ResetTime
from lossratio.results import LABEL_WIDTH, Finding, View, failure_line, rate_line
from lossratio.units import Unit, format_milliseconds

RESET = "reset"
"""The quantity."""


class ResetView(View[ResetResult]):
    """How a reset time is shown."""

    def unit(self, quantity: str) -> Unit:
        """Seconds; the shorter time is the better one."""
        return Unit("s", lower_is_better=True)

    def lines(self, result: ResetResult) -> Iterator[str]:
        """The averages by both methods, the spread, and all repetitions."""
        values = result.reset
        if values is None:
            yield failure_line(result)
            return
        number = len(values.times)
        yield f"reset (RFC 6201): {result.settings.reset}, {number} {'trial' if number == 1 else 'trials'}" + (
            "" if result.reason is None else f", irregular: {result.reason}"
        )
        yield rate_line("load", result.load)
        if values.average_s is not None and values.least_s is not None and values.most_s is not None:
            average = "no loss" if not values.most_s else format_milliseconds(values.average_s)
            yield f"  {'by time stamps':<{LABEL_WIDTH}}  {average}"
            spread = (values.least_s, values.most_s, values.stdev_s or 0.0)
            yield f"  {'min, max, stddev':<{LABEL_WIDTH}}  {', '.join(map(format_milliseconds, spread))}"
        lost = f"{format_milliseconds(values.average_by_loss_s)} ({values.average_lost_frames:,.1f} frames on average)"
        yield f"  {'by frame loss':<{LABEL_WIDTH}}  {lost}"
        yield from (
            f"  {number:<{LABEL_WIDTH}}  {_in_words(time)}" for number, time in enumerate(values.times, start=1)
        )
        if result.resolution_s is not None:
            yield f"  {'resolution':<{LABEL_WIDTH}}  {format_milliseconds(result.resolution_s)}"

    def caveats(self, result: ResetResult) -> Iterator[str]:
        """Loss that is not due to the reset."""
        before = 0 if result.reset is None else sum(time.lost_before_frames for time in result.reset.times)
        if before:
            yield f"{before:,} frames were lost before the resets: the load is above what the DUT forwards"

    def findings(self, result: ResetResult) -> Iterator[Finding]:
        """The average by time stamps; only a lower bound where the DUT did not come back."""
        values = result.reset
        if values is None:
            yield Finding(result, RESET, result.outcome, result.error)
        elif values.average_s is None:
            yield Finding(result, RESET, result.outcome, result.reason, lower_bound=result.settings.limit_s)
        else:
            yield Finding(result, RESET, result.outcome, result.reason, values.average_s, deviation=values.stdev_s)

    def aspects(self, result: ResetResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The reset."""
        return {"goal": {"reset": result.settings.reset}}

    def csit(self, result: ResetResult) -> BaseModel:
        """CSIT has no such test case."""
        raise CsitExportError(f"{result.test.full_name} is a reset, which CSIT does not have.")


def _in_words(time: ResetTime) -> str:
    if time.time_stamp_s is None:
        return f"{time.direction}: did not come back"
    if time.outages > 1 and time.whole_s is not None:
        more = f" in {time.outages} outages over {format_milliseconds(time.whole_s)}"
    else:
        more = ""
    lost = f"{time.lost_frames:,} frames lost{more}, {format_milliseconds(time.loss_method_s)} of them"
    return f"{time.direction}: {format_milliseconds(time.time_stamp_s)} by time stamps; {lost}"
