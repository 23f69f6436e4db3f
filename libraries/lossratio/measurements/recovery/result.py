"""System recovery: the time from the end of an overload to the last lost frame (RFC 2544, section 26.5).

``recovery time = B - A``: A is the moment when the load drops, B the moment when the last lost frame was sent. The text
of the RFC has the two the other way round, which would be negative.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from lossratio.records import FrameCount, Rate, Record, Seconds
from lossratio.results import MaxLoad, Outcome, TestResult, TestRun, describe_trials
from lossratio.trials import JournalEntry, Timeline

QUIET_RATIO = 0.1
"""The last share of the time after the change; a loss in it means that the DUT has not recovered yet."""


class RecoveryTime(Record):
    """One repetition; the direction that took longest."""

    direction: str
    """The direction, e.g. ``port0>port1``."""
    overload_lost_frames: FrameCount
    """Frames lost in the overload."""
    after_lost_frames: FrameCount
    """Frames lost after the change."""
    recovery_s: Seconds | None
    """Time from the change to the last lost frame; null: it did not recover within the limit."""


class RecoveryValues(Record):
    """All repetitions, and their average."""

    times: tuple[RecoveryTime, ...] = Field(min_length=1)
    """The repetitions."""
    average_s: Seconds | None
    """The benchmark: mean of the recovery times; null: in a repetition the DUT did not recover."""
    least_s: Seconds | None
    """The shortest recovery time; null as for the average."""
    most_s: Seconds | None
    """The longest one; null as for the average."""
    stdev_s: Seconds | None
    """Standard deviation (over N - 1; 0 if there is one repetition); null as for the average."""


class RecoverySettings(Record):
    """The parameters of the test."""

    overload_s: Seconds
    """Time of the overload."""
    overload_ratio: float = Field(gt=1.0)
    """The overload over the throughput, unless the maximum load is less."""
    limit_s: Seconds
    """Time after the change in which the DUT is watched."""
    repeats: int = Field(ge=1)
    """Number of repetitions."""


class RecoveryResult(TestResult):
    """The result of a measurement of system recovery."""

    kind: Literal["recovery"] = "recovery"
    """The kind of the result."""
    max_load: MaxLoad
    """The largest load that was allowed."""
    throughput: Rate
    """The throughput (without loss) that was measured before."""
    overload: Rate
    """The load of the overload."""
    after: Rate
    """The load after the change: half of the overload."""
    settings: RecoverySettings
    """The parameters of the test."""
    resolution_s: Seconds | None
    """The send time of a frame may be wrong by this; null: there was no trial."""
    recovery: RecoveryValues | None
    """The recovery times; null if the measurement failed, or there is no overload."""
    reason: str | None
    """Why the result is irregular; null: it is not."""

    @model_validator(mode="after")
    def _an_outcome_for_each_case(self) -> RecoveryResult:
        if (self.outcome is Outcome.IRREGULAR) != (self.reason is not None):
            raise ValueError("a result has a reason if and only if it is irregular")
        if self.outcome is Outcome.MEASURED and (self.recovery is None or self.recovery.average_s is None):
            raise ValueError("a measured result has recovery times")
        if self.outcome is Outcome.FAILED and self.recovery is not None:
            raise ValueError("a failed measurement has no recovery times")
        return self


def recovery_time(timelines: Sequence[Timeline]) -> RecoveryTime:
    """The recovery time of one repetition: that of the direction that took longest.

    Args:
        timelines: The course of each direction, with the overload as the first step and half of it as the second one.
    """
    times = [_of_direction(timeline) for timeline in timelines]
    return max(times, key=lambda time: float("inf") if time.recovery_s is None else time.recovery_s)


def _of_direction(timeline: Timeline) -> RecoveryTime:
    overload, after = timeline.steps
    quiet_from = after.start + (1.0 - QUIET_RATIO) * after.elapsed
    has_recovered = after.last_lost is None or after.last_lost < quiet_from
    return RecoveryTime(
        direction=timeline.name,
        overload_lost_frames=overload.lost,
        after_lost_frames=after.lost,
        recovery_s=timeline.recovery_time() if has_recovered else None,
    )


def recovery_values(times: Sequence[RecoveryTime]) -> RecoveryValues:
    """Computes the average and the spread of all repetitions."""
    known = [time.recovery_s for time in times if time.recovery_s is not None]
    if len(known) < len(times):
        return RecoveryValues(times=tuple(times), average_s=None, least_s=None, most_s=None, stdev_s=None)
    return RecoveryValues(
        times=tuple(times),
        average_s=statistics.fmean(known),
        least_s=min(known),
        most_s=max(known),
        stdev_s=statistics.stdev(known) if len(known) > 1 else 0.0,
    )


def recovery_result(
    run: TestRun,
    max_load: MaxLoad,
    throughput: float,
    overload: float,
    settings: RecoverySettings,
    entries: Sequence[JournalEntry],
) -> RecoveryResult:
    """Makes the result of a measurement of system recovery.

    Args:
        run: The test.
        max_load: The largest load that was allowed.
        throughput: The throughput that was measured before, frames per second per interface.
        overload: The load of the overload, likewise.
        settings: The parameters of the test.
        entries: All trials; none if there is no overload.
    """
    outputs = [entry.result.output for entry in entries]
    values, reason = None, None
    if run.error is None:
        values = recovery_values([recovery_time(output.timelines) for output in outputs]) if outputs else None
        reason = _reason(values, settings)
    outcome = Outcome.FAILED if run.error is not None else Outcome.IRREGULAR if reason else Outcome.MEASURED
    resolutions = [timeline.resolution for output in outputs for timeline in output.timelines]
    return RecoveryResult(
        **run.stated(),
        outcome=outcome,
        trials=describe_trials(entries),
        max_load=max_load,
        throughput=run.conditions.rate(throughput),
        overload=run.conditions.rate(overload),
        after=run.conditions.rate(overload / 2.0),
        settings=settings,
        resolution_s=max(resolutions, default=None),
        recovery=values,
        reason=reason,
    )


def _reason(values: RecoveryValues | None, settings: RecoverySettings) -> str | None:
    if values is None:
        return "not overloaded: the throughput is the maximum load"
    if any(time.recovery_s is None for time in values.times):
        return (
            f"it did not recover within the limit: frames were lost in the last {QUIET_RATIO:.0%} of "
            f"{settings.limit_s:g} s after the change. Raise limit to see when it recovers"
        )
    if any(time.overload_lost_frames == 0 for time in values.times):
        return "not overloaded: a repetition lost no frame in the overload. Is the throughput too low?"
    return None
