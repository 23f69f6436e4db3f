"""Back-to-back frames: the longest bursts without loss, and the buffer time that follows from them (RFC 9004).

All lengths are frames of each transmitting interface, and all rates are per transmitting interface.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from lossratio.records import FrameCount, Rate, Record, Seconds
from lossratio.results import MaxLoad, Outcome, TestResult, TestRun, describe_trials
from lossratio.trials import JournalEntry

NO_BUFFER_FILLS = "the throughput is the rate of the bursts, so no buffer fills (RFC 9004, section 6.1)"
"""The reason of a result without bursts."""


class BurstFound(Record):
    """The end of one search for the longest burst without loss."""

    longest_frames: FrameCount
    """The longest burst that lost nothing; 0: every burst lost frames."""
    shortest_lossy_frames: FrameCount | None
    """The shortest burst that lost frames; null: the longest burst of the tester lost none."""
    trials: int = Field(ge=1)
    """Number of trials of the search."""


class BufferTime(Record):
    """The buffer time by RFC 9004, section 6.4."""

    implied_s: Seconds
    """The time in which the average burst is sent: frames over the rate of the burst."""
    corrected_s: Seconds
    """The implied time without the share of frames that the DUT forwards meanwhile."""
    buffer_frames: float = Field(ge=0.0)
    """Frames that the corrected time stands for."""


class BackToBackValues(Record):
    """The longest bursts of all searches, and the values that follow from them."""

    searches: tuple[BurstFound, ...] = Field(min_length=1)
    """The searches, each independent of the others."""
    average_frames: float = Field(ge=0.0)
    """The benchmark: mean of the longest bursts."""
    least_frames: FrameCount
    """The shortest of the longest bursts."""
    most_frames: FrameCount
    """The longest one."""
    stdev_frames: float = Field(ge=0.0)
    """Standard deviation (over N - 1, as the searches are a sample; 0 if there is one search)."""
    is_at_limit: bool
    """Whether a search ended at the longest burst of the tester: then the values are "at least"."""
    buffer_time: BufferTime
    """The buffer time of the average burst."""


class BackToBackSettings(Record):
    """The parameters of the search, as RFC 9004 wants them reported."""

    repeats: int = Field(ge=1)
    """Number of searches, N."""
    step_frames: int = Field(ge=1)
    """The search ends when the bounds are this close."""
    longest_burst_s: Seconds
    """Time of the longest burst."""
    longest_burst_frames: FrameCount
    """Frames of the longest burst."""
    loss_verification: bool
    """Whether a burst with loss is sent once more, and only loss in both counts (ETSI GS NFV-TST 009)."""
    settle_s: Seconds
    """Least time without traffic after each burst, in which the buffer drains."""


class BackToBackResult(TestResult):
    """The result of a measurement of back-to-back frames."""

    kind: Literal["back_to_back"] = "back_to_back"
    """The kind of the result."""
    max_load: MaxLoad
    """The rate of the bursts."""
    throughput: Rate
    """The throughput (without loss) that was measured before."""
    settings: BackToBackSettings
    """The parameters of the search."""
    kept_rate: Rate | None
    """The rate that the tester kept in its slowest burst; null: it is not known."""
    back_to_back: BackToBackValues | None
    """The bursts; null if the measurement failed, or no buffer fills."""
    reason: str | None
    """Why the result is irregular; null: it is not."""

    @model_validator(mode="after")
    def _an_outcome_for_each_case(self) -> BackToBackResult:
        if (self.outcome is Outcome.IRREGULAR) != (self.reason is not None):
            raise ValueError("a result has a reason if and only if it is irregular")
        if (self.outcome is Outcome.MEASURED) and self.back_to_back is None:
            raise ValueError("a measured result has bursts")
        if (self.outcome is Outcome.FAILED) and self.back_to_back is not None:
            raise ValueError("a failed measurement has no bursts")
        return self


def buffer_time(average_frames: float, throughput: float, rate: float) -> BufferTime:
    """Computes the buffer time (RFC 9004, section 6.4).

    ``implied = average / rate``, and ``corrected = implied - implied * throughput / rate``.

    Args:
        average_frames: The average of the longest bursts, frames.
        throughput: The measured throughput, frames per second.
        rate: The rate of the bursts, frames per second; the RFC has the maximum theoretical frame rate.
    """
    implied = average_frames / rate
    corrected = max(0.0, implied - implied * throughput / rate)
    return BufferTime(implied_s=implied, corrected_s=corrected, buffer_frames=corrected * rate)


def back_to_back_values(searches: Sequence[BurstFound], throughput: float, rate: float) -> BackToBackValues:
    """Computes the values of RFC 9004, section 6.4, from all searches.

    Args:
        searches: The ends of all searches.
        throughput: The measured throughput, frames per second.
        rate: The rate of the bursts, frames per second.
    """
    longest = [search.longest_frames for search in searches]
    average = statistics.fmean(longest)
    return BackToBackValues(
        searches=tuple(searches),
        average_frames=average,
        least_frames=min(longest),
        most_frames=max(longest),
        stdev_frames=statistics.stdev(longest) if len(longest) > 1 else 0.0,
        is_at_limit=any(search.shortest_lossy_frames is None for search in searches),
        buffer_time=buffer_time(average, throughput, rate),
    )


def back_to_back_result(
    run: TestRun,
    max_load: MaxLoad,
    throughput: Rate,
    settings: BackToBackSettings,
    searches: Sequence[BurstFound],
    entries: Sequence[JournalEntry],
) -> BackToBackResult:
    """Makes the result of a measurement of back-to-back frames.

    Args:
        run: The test.
        max_load: The rate of the bursts.
        throughput: The throughput that was measured before.
        settings: The parameters of the search.
        searches: The ends of all searches; none if no buffer fills.
        entries: All trials.
    """
    values, reason = None, None
    if run.error is None:
        rate = max_load.rate.per_interface_fps
        values = back_to_back_values(searches, throughput.per_interface_fps, rate) if searches else None
        reason = _reason(values, settings)
    lines = [line for entry in entries for line in entry.result.output.timelines]
    kept = [line.rate for line in lines if line.rate is not None]
    outcome = Outcome.FAILED if run.error is not None else Outcome.IRREGULAR if reason else Outcome.MEASURED
    return BackToBackResult(
        **run.stated(),
        outcome=outcome,
        trials=describe_trials(entries),
        max_load=max_load,
        throughput=throughput,
        settings=settings,
        kept_rate=None if not kept else run.conditions.rate(min(kept)),
        back_to_back=values,
        reason=reason,
    )


def _reason(values: BackToBackValues | None, settings: BackToBackSettings) -> str | None:
    if values is None:
        return NO_BUFFER_FILLS
    if values.is_at_limit:
        return (
            f"no burst lost a frame, up to {settings.longest_burst_frames:,} frames ({settings.longest_burst_s:g} s): "
            "this is a lower bound. Raise longest_burst (30 s at most) for a value"
        )
    if values.least_frames == 0:
        return "even the shortest burst lost frames: look whether the DUT forwards at all"
    return None
