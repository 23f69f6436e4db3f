"""Reset: the time without forwarding after a reset (RFC 6201), by both of its methods.

Time stamp method: ``B - A``, A the receipt of the last frame before the loss, B that of the first one after it. A
device may keep some frames while it is reset, and send them when it goes on. Then these come right before the gap, and
A is the receipt of the last frame before the silence in which frames were lost. Frame loss method: frames lost over the
rate. Where there are several outages, the first method gives the longest one, and the second one sums them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from lossratio.records import FrameCount, Rate, Record, Seconds
from lossratio.results import MaxLoad, Outcome, TestResult, TestRun, describe_trials
from lossratio.trials import JournalEntry, Outage, Silence, Timeline

EARLY = 0.01
"""Seconds before the reset in which an outage may begin that belongs to it, besides the error of the clocks.

Loss for so many seconds in the very end does not mean that a device which came back before is gone."""


class ResetTime(Record):
    """One repetition; the direction with the longest outage."""

    direction: str
    """The direction, e.g. ``port0>port1``."""
    lost_before_frames: FrameCount
    """Frames lost before the reset; they do not count."""
    lost_frames: FrameCount
    """Frames lost since the reset."""
    outages: int = Field(ge=0)
    """Number of outages since the reset; 0: no loss."""
    loss_method_s: Seconds
    """Reset time by the frame loss method: frames lost over the rate."""
    time_stamp_s: Seconds | None
    """Reset time by the time stamp method, of the longest outage, or of the silence in which its frames were lost if
    that is longer; 0: no loss; null: it did not come back within the limit, or no frame came before."""
    whole_s: Seconds | None
    """Time from the beginning of the first outage to the end of the last one, with the forwarding between them; null as
    before."""


class ResetValues(Record):
    """All repetitions, and their average."""

    times: tuple[ResetTime, ...] = Field(min_length=1)
    """The repetitions."""
    average_s: Seconds | None
    """The benchmark: mean by the time stamp method; null: in a repetition the DUT did not come back."""
    average_by_loss_s: Seconds
    """Mean by the frame loss method."""
    average_lost_frames: float = Field(ge=0.0)
    """Mean of the lost frames."""
    least_s: Seconds | None
    """The shortest reset time; null as for the average."""
    most_s: Seconds | None
    """The longest one; null as for the average."""
    stdev_s: Seconds | None
    """Standard deviation (over N - 1; 0 if there is one repetition); null as for the average."""


class ResetSettings(Record):
    """The parameters of the test."""

    reset: str
    """The reset, in words: RFC 6201 wants what may influence the time reported."""
    lead_s: Seconds
    """Time of forwarding before the reset."""
    limit_s: Seconds
    """Time after the reset in which the DUT is watched."""
    repeats: int = Field(ge=1)
    """Number of repetitions."""


class ResetResult(TestResult):
    """The result of a measurement of the reset time."""

    kind: Literal["reset"] = "reset"
    """The kind of the result."""
    max_load: MaxLoad
    """The largest load that was allowed."""
    load: Rate
    """The load during the reset."""
    settings: ResetSettings
    """The parameters of the test."""
    resolution_s: Seconds | None
    """The time of a frame may be wrong by this, and by the distance of two frames; null: there was no trial."""
    reset: ResetValues | None
    """The reset times; null if the measurement failed."""
    reason: str | None
    """Why the result is irregular; null: it is not."""

    @model_validator(mode="after")
    def _an_outcome_for_each_case(self) -> ResetResult:
        if (self.outcome is Outcome.IRREGULAR) != (self.reason is not None):
            raise ValueError("a result has a reason if and only if it is irregular")
        if self.outcome is Outcome.MEASURED and (self.reset is None or self.reset.average_s is None):
            raise ValueError("a measured result has reset times")
        if self.outcome is Outcome.FAILED and self.reset is not None:
            raise ValueError("a failed measurement has no reset times")
        return self


def reset_time(timelines: Sequence[Timeline]) -> ResetTime:
    """The reset time of one repetition: that of the direction with the longest outage.

    Args:
        timelines: The course of each direction; its second step begins with the reset.
    """
    times = [_of_direction(timeline) for timeline in timelines]
    return max(times, key=lambda time: float("inf") if time.time_stamp_s is None else time.time_stamp_s)


def _of_direction(timeline: Timeline) -> ResetTime:
    moment = timeline.steps[1].start - timeline.clock_error - EARLY
    outages = [outage for outage in timeline.outages if outage.last_sent >= moment]
    lost = sum(outage.frames for outage in outages)
    pauses = _pauses(outages, timeline.silences)
    return ResetTime(
        direction=timeline.name,
        lost_before_frames=timeline.lost - lost,
        lost_frames=lost,
        outages=len(outages),
        loss_method_s=lost / timeline.rate if timeline.rate else 0.0,
        time_stamp_s=None if pauses is None else max((end - start for start, end in pauses), default=0.0),
        whole_s=None if pauses is None else _whole(pauses),
    )


def _pauses(outages: Sequence[Outage], silences: Sequence[Silence]) -> list[tuple[float, float]] | None:
    """Beginning and end of the time without forwarding of each outage; None: one of them is not known."""
    pauses: list[tuple[float, float]] = []
    for place, outage in enumerate(outages):
        if outage.end is None and place and outage.last_sent - outage.first_sent <= EARLY:
            # The very last frames were lost, long after the device came back: the load is too high for it.
            continue
        if outage.start is None or outage.end is None:
            return None
        around = (
            (silence.start, silence.end)
            for silence in silences
            if silence.start <= outage.last_sent and outage.first_sent <= silence.end
        )
        pauses.append(max(((outage.start, outage.end), *around), key=lambda pause: pause[1] - pause[0]))
    return pauses


def _whole(pauses: Sequence[tuple[float, float]]) -> float:
    return max(end for _, end in pauses) - min(start for start, _ in pauses) if pauses else 0.0


def reset_values(times: Sequence[ResetTime]) -> ResetValues:
    """Computes the averages and the spread of all repetitions."""
    known = [time.time_stamp_s for time in times if time.time_stamp_s is not None]
    complete = len(known) == len(times)
    return ResetValues(
        times=tuple(times),
        average_s=statistics.fmean(known) if complete else None,
        average_by_loss_s=statistics.fmean(time.loss_method_s for time in times),
        average_lost_frames=statistics.fmean(time.lost_frames for time in times),
        least_s=min(known) if complete else None,
        most_s=max(known) if complete else None,
        stdev_s=(statistics.stdev(known) if len(known) > 1 else 0.0) if complete else None,
    )


def reset_result(
    run: TestRun, max_load: MaxLoad, load: float, settings: ResetSettings, entries: Sequence[JournalEntry]
) -> ResetResult:
    """Makes the result of a measurement of the reset time.

    Args:
        run: The test.
        max_load: The largest load that was allowed.
        load: The load during the reset, frames per second per interface.
        settings: The parameters of the test.
        entries: All trials.
    """
    outputs = [entry.result.output for entry in entries]
    values = reset_values([reset_time(output.timelines) for output in outputs]) if run.error is None else None
    reason = None
    if values is not None and values.average_s is None:
        reason = (
            f"it did not come back within the limit of {settings.limit_s:g} s after the reset. Raise limit to see when "
            "it does"
        )
    outcome = Outcome.FAILED if run.error is not None else Outcome.IRREGULAR if reason else Outcome.MEASURED
    resolutions = [timeline.resolution for output in outputs for timeline in output.timelines]
    return ResetResult(
        **run.stated(),
        outcome=outcome,
        trials=describe_trials(entries),
        max_load=max_load,
        load=run.conditions.rate(load),
        settings=settings,
        resolution_s=max(resolutions, default=None),
        reset=values,
        reason=reason,
    )
