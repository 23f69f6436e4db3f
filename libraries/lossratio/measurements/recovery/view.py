"""How a recovery time is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from lossratio.measurements import SECONDS
from lossratio.measurements.recovery.measure import RecoveryResult
from lossratio.results import LABEL_WIDTH, Finding, View, failure_line, rate_line
from lossratio.units import format_milliseconds


class RecoveryView(View[RecoveryResult]):
    """How a recovery time is shown."""

    quantity = "system recovery"
    has_value = True
    measured_in = SECONDS

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
        yield rate_line(f"overload for {result.settings.duration_s:g} s", result.overload)
        yield rate_line("then", result.after)
        values = result.recovery
        yield from values.lines("average")
        each = ", ".join(
            "not recovered" if time.recovery_s is None else format_milliseconds(time.recovery_s)
            for time in values.times
        )
        yield f"  {'times':<{LABEL_WIDTH}}  {each}"
        if result.resolution_s is not None:
            yield f"  {'resolution':<{LABEL_WIDTH}}  {format_milliseconds(result.resolution_s)}"

    def values(self, result: RecoveryResult) -> Mapping[str, Any]:
        """The average; only a lower bound where the DUT did not recover."""
        return {} if result.recovery is None else result.recovery.values(result.settings.limit_s)

    def aspects(self, result: RecoveryResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The overload, and its time."""
        return {"goal": {"overload_ratio": result.settings.overload_ratio, "overload_s": result.settings.duration_s}}
