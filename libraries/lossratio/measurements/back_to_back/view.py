"""How back-to-back frames are shown: the table of RFC 9004, section 7, and the buffer time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from lossratio.measurements.back_to_back.measure import BackToBackResult
from lossratio.results import LABEL_WIDTH, Finding, View, failure_line, rate_line, value_line
from lossratio.units import Unit, format_milliseconds

FRAMES = Unit("frames")
"""The unit of bursts; the longer one is the better one."""


class BackToBackView(View[BackToBackResult]):
    """How back-to-back frames are shown."""

    quantity = "back-to-back"
    has_value = True
    measured_in = FRAMES

    def lines(self, result: BackToBackResult) -> Iterator[str]:
        """The average, its spread, and the buffer time."""
        if result.error is not None:
            yield failure_line(result)
            return
        yield f"back-to-back frames (RFC 9004), {result.settings.repeats} searches" + (
            "" if result.reason is None else f", irregular: {result.reason}"
        )
        yield rate_line("rate of the bursts", result.max_load.rate)
        if result.kept_rate is not None:
            yield rate_line("kept by the tester", result.kept_rate)
        yield rate_line("throughput", result.throughput)
        values = result.back_to_back
        if values is None:
            return
        yield value_line("at least" if values.is_at_limit else "average", values.average_frames, FRAMES)
        spread = f"{values.least_frames:,}, {values.most_frames:,}, {values.stdev_frames:.4g} frames"
        yield f"  {'min, max, stddev':<{LABEL_WIDTH}}  {spread}"
        times = values.buffer_time
        least = "at least " if values.is_at_limit else ""
        yield f"  {'implied buffer time':<{LABEL_WIDTH}}  {least}{format_milliseconds(times.implied_s)}"
        corrected = f"{least}{format_milliseconds(times.corrected_s)} ({times.buffer_frames:,.1f} frames)"
        yield f"  {'corrected buffer time':<{LABEL_WIDTH}}  {corrected}"

    def caveats(self, result: BackToBackResult) -> Iterator[str]:
        """A rate that is not known."""
        if result.back_to_back is not None and result.kept_rate is None:
            yield (
                "the generator does not report at which rate each burst left: in software mode TRex sends the frames "
                "of its first milliseconds at once, and the longest burst is that much too short"
            )

    def values(self, result: BackToBackResult) -> Mapping[str, Any]:
        """The average; only a lower bound where no burst lost a frame."""
        values = result.back_to_back
        if values is None:
            return {}
        if values.is_at_limit:
            return {"lower_bound": float(values.least_frames)}
        return {"value": values.average_frames, "deviation": values.stdev_frames}

    def aspects(self, result: BackToBackResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The rate of the bursts, and the step."""
        rate = result.max_load.rate.per_interface_fps
        return {"goal": {"burst_rate_per_interface_fps": rate, "step_frames": result.settings.step_frames}}

    def is_at_limit(self, result: BackToBackResult, finding: Finding) -> bool:
        """Whether the tester's longest burst lost nothing."""
        return result.back_to_back is not None and result.back_to_back.is_at_limit
