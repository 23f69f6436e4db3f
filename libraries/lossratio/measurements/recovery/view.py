"""How a recovery time is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, JsonValue

from lossratio.measurements import CsitExportError
from lossratio.measurements.recovery.result import RecoveryResult
from lossratio.results import LABEL_WIDTH, Finding, View, failure_line, rate_line
from lossratio.units import Unit, format_milliseconds

RECOVERY = "system recovery"
"""The quantity."""


class RecoveryView(View[RecoveryResult]):
    """How a recovery time is shown."""

    def unit(self, quantity: str) -> Unit:
        """Seconds; the shorter time is the better one."""
        return Unit("s", lower_is_better=True)

    def lines(self, result: RecoveryResult) -> Iterator[str]:
        """The average, its spread, and the loads."""
        if result.error is not None:
            yield failure_line(result)
            return
        yield f"system recovery (RFC 2544, section 26.5), {result.settings.repeats} repetitions" + (
            "" if result.reason is None else f", irregular: {result.reason}"
        )
        yield rate_line("throughput", result.throughput)
        if result.recovery is None:
            return
        yield rate_line(f"overload for {result.settings.overload_s:g} s", result.overload)
        yield rate_line("then", result.after)
        values = result.recovery
        if values.average_s is not None and values.least_s is not None and values.most_s is not None:
            yield f"  {'average':<{LABEL_WIDTH}}  {format_milliseconds(values.average_s)}"
            spread = (values.least_s, values.most_s, values.stdev_s or 0.0)
            yield f"  {'min, max, stddev':<{LABEL_WIDTH}}  {', '.join(map(format_milliseconds, spread))}"
        each = ", ".join(
            "not recovered" if time.recovery_s is None else format_milliseconds(time.recovery_s)
            for time in values.times
        )
        yield f"  {'times':<{LABEL_WIDTH}}  {each}"
        if result.resolution_s is not None:
            yield f"  {'resolution':<{LABEL_WIDTH}}  {format_milliseconds(result.resolution_s)}"

    def findings(self, result: RecoveryResult) -> Iterator[Finding]:
        """The average; only a lower bound where the DUT did not recover."""
        values = result.recovery
        if values is None:
            yield Finding(result, RECOVERY, result.outcome, result.error or result.reason)
        elif values.average_s is None:
            yield Finding(result, RECOVERY, result.outcome, result.reason, lower_bound=result.settings.limit_s)
        else:
            yield Finding(result, RECOVERY, result.outcome, result.reason, values.average_s, deviation=values.stdev_s)

    def aspects(self, result: RecoveryResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The overload, and its time."""
        return {"goal": {"overload_ratio": result.settings.overload_ratio, "overload_s": result.settings.overload_s}}

    def csit(self, result: RecoveryResult) -> BaseModel:
        """CSIT has no such test case."""
        raise CsitExportError(f"{result.test.full_name} is a system recovery, which CSIT does not have.")
