"""System recovery: the time from the end of an overload to the last lost frame (RFC 2544, section 26.5).

``recovery time = B - A``: A is the moment when the load drops, B the moment when the last lost frame was sent. The text
of the RFC swaps the two, which would make the time negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lossratio.measurements import (
    AfterThroughput,
    FoundResult,
    Measurement,
    PlannedKind,
    PlannedTrials,
    SettingsOf,
    Spread,
    TimesView,
    measure,
    resolution_lines,
    time_in_words,
)
from lossratio.mlrsearch import Forecast
from lossratio.results import (
    LEAST_UNSENT,
    ROUNDING,
    USUAL,
    MaxLoad,
    head,
    headline,
    numbers,
    value_line,
)
from lossratio.trials import Step, Timeline, TrialInput, TrialOutput, TrialResult, known_missing
from lossratio.values import (
    LONGEST_TRIAL,
    Duration,
    FrameCount,
    Rate,
    Record,
    Repeats,
    Seconds,
    Share,
    counted,
    format_ratio,
)

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange


QUIET_RATIO = 0.1
"""The last part of the time after the change, as a share. A loss in it means that the DUT has not recovered."""


class RecoveryTime(Record):
    """One repetition, in the direction that took longest."""

    direction: str
    """The direction, e.g. ``port0>port1``."""
    overload_lost_frames: FrameCount
    """Frames lost in the overload."""
    overload_unsent_frames: FrameCount = 0
    """Frames of the overload that the generator could not send."""
    after_lost_frames: FrameCount
    """Frames lost after the change."""
    recovery_s: Seconds | None
    """Time from the change to the last lost frame; null: it did not recover within the limit."""
    generator_drop_frames: FrameCount = 0
    """Frames that came back but that the generator itself dropped, over all directions; they count as lost."""
    late_frames: FrameCount = 0
    """Frames that came back after the wait for frames in flight, over all directions; they count as lost."""


class RecoveryValues(Spread):
    """The times of all repetitions, and their average."""

    times: tuple[RecoveryTime, ...] = Field(min_length=1)
    """The repetitions; the DUT did not recover in a repetition without a time."""


class RecoveryRequest(AfterThroughput):
    """Measures how long frames are lost after an overload (RFC 2544, section 26.5), and returns the result.

    For ``duration``, the load is ``overload`` times the throughput, but at most ``max_load``. Half of that load follows
    without a gap, for the time ``limit``. The recovery time is the time from this change until the last lost frame was
    sent. If a device still loses frames at the end of the limit, it has no recovery time, and the result is irregular.
    The result is also irregular if there is no overload because the throughput is the maximum load.

    | `Find Conditional Throughput`    RFC2544    frame_size=64B
    | `Measure System Recovery`    frame_size=64B
    | `Measure System Recovery`    64B    throughput=1 Mfps    duration=5 s    limit=2 s
    """

    repeats: Repeats = 5
    """Number of repetitions. RFC 2544 asks for several, and gives no number."""
    overload: Annotated[Share, Field(gt=1.0)] = 1.1
    """The overload, as a multiple of the throughput. It is at most the maximum load."""
    duration: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = 60.0
    """Seconds of the overload. RFC 2544 asks for at least 60 s."""
    limit: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = 10.0
    """Seconds after the change in which the DUT is watched. RFC 2544 has no limit."""

    def forecast(self, loads: LoadRange, waits: float) -> Forecast:
        """The time of all repetitions; 0 if there is no overload.

        Args:
            loads: The range of the loads of its trials.
            waits: Seconds that each trial takes besides its traffic.
        """
        seconds = self.repeats * (self.duration + self.limit + waits)
        return Forecast(seconds, 0.0, seconds)

    def overload_below(self, max_load: float) -> float:
        """The load of the overload, frames per second per interface; 0: no overload is possible below the maximum load.

        Args:
            max_load: Frames per second per interface.
        """
        throughput = self.known_throughput
        if throughput >= max_load * (1.0 - ROUNDING):
            return 0.0
        return min(self.overload * throughput, max_load)


class RecoveryResult(FoundResult):
    """The result of a measurement of system recovery."""

    found = "recovery"
    kind: Literal["recovery"] = "recovery"
    throughput: Rate
    """The throughput without loss, measured earlier."""
    overload: Rate
    """The load of the overload."""
    after: Rate
    """The load after the change: half of the overload."""
    settings: SettingsOf[RecoveryRequest]
    """The parameters of the test."""
    resolution_s: Seconds | None
    """The largest error of a frame's send time; null: there was no trial."""
    recovery: RecoveryValues | None
    """The recovery times; null if the measurement failed, or there is no overload."""
    reason: str | None
    """Why the result is irregular; null: it is not."""

    @property
    def frame_spacing_s(self) -> float:
        """Seconds between two frames after the change. Recovery times have no finer resolution."""
        return 1.0 / self.after.per_interface_fps


def recovery_time(timelines: Sequence[Timeline]) -> RecoveryTime:
    """The recovery time of one repetition (an overload, then half of it), in the direction that took longest."""
    times = [_of_direction(timeline) for timeline in timelines]
    return max(times, key=lambda time: float("inf") if time.recovery_s is None else time.recovery_s)


def _of_direction(timeline: Timeline) -> RecoveryTime:
    overload, after = timeline.steps
    has_recovered = (
        after.last_lost is None
        or after.last_lost < after.start + (1.0 - QUIET_RATIO) * after.elapsed
    )
    return RecoveryTime(
        direction=timeline.name,
        overload_lost_frames=overload.lost,
        overload_unsent_frames=max(0, overload.intended - overload.sent),
        after_lost_frames=after.lost,
        recovery_s=timeline.recovery_time() if has_recovered else None,
    )


def _repetition(output: TrialOutput) -> RecoveryTime:
    missing = known_missing(output)
    counts = {"generator_drop_frames": missing.generator_drops, "late_frames": missing.late}
    return recovery_time(output.timelines).model_copy(update=counts)


def average_in_words(result: RecoveryResult) -> str:
    """The average recovery time, as far as the spacing of frames shows it; empty: there is no average."""
    if result.recovery is None:
        return ""
    if result.recovery.average_s is None:
        return "none"
    return time_in_words(result.recovery.average_s, result.frame_spacing_s)


class Recovery(PlannedKind[RecoveryRequest, RecoveryResult]):
    """The kind: system recovery."""

    keyword = "Measure System Recovery"
    method = "recovery"
    noun = "system recovery"

    def controller(self, request: RecoveryRequest, loads: LoadRange) -> PlannedTrials:
        """Trials of two steps without a gap; no trials if there is no overload."""
        overload = request.overload_below(loads.max_load)
        if not overload:
            return PlannedTrials([])
        steps = Step(request.duration, overload), Step(request.limit, overload / 2.0)
        return PlannedTrials([TrialInput.schedule(*steps)] * request.repeats)

    def fields(
        self, measured: Measurement[Any], request: RecoveryRequest, max_load: MaxLoad
    ) -> Mapping[str, Any]:
        """The loads, and the error of send times."""
        throughput = request.known_throughput
        rate = measured.run.conditions.rate
        overload = request.overload_below(max_load.rate.per_interface_fps) or throughput
        loads = {
            "throughput": rate(throughput),
            "overload": rate(overload),
            "after": rate(overload / 2.0),
        }
        return {**loads, "resolution_s": measured.resolution}

    def found_in(
        self, result: RecoveryResult, trials: Sequence[TrialResult]
    ) -> RecoveryValues | None:
        """The times of the trials, or of a result that was read, with their averages; none if there is no overload."""
        read = result.recovery
        if read:
            times = read.times
        else:
            times = tuple(_repetition(trial.output) for trial in trials)

        if times:
            return RecoveryValues(times=times, **Spread.of([time.recovery_s for time in times]))
        return None

    def irregular(self, result: RecoveryResult, found: RecoveryValues | None) -> str | None:
        """The reason: there was no overload, or no recovery within the limit."""
        if found is None:
            return "not overloaded: the throughput is the maximum load. Raise max_load if the generator can send more"

        dropped = sum(time.generator_drop_frames for time in found.times)
        if dropped:
            return (
                f"the generator itself dropped {dropped:,} frames that came back, so the time of recovery is not "
                "known. Measure at a lower load"
            )
        unfinished = [time for time in found.times if time.recovery_s is None]
        late = sum(time.late_frames for time in unfinished)
        if late:
            return (
                f"{late:,} frames were only late, not lost, so it is not known when the SUT "
                "recovered. Increase the generator's 'settle' in the topology file: a longer "
                "wait would count them as received"
            )
        if unfinished:
            return (
                f"it did not recover within the limit: it lost frames in the last {format_ratio(QUIET_RATIO)} of "
                f"{result.settings.limit_s:g} s after the change. Raise limit to see when it recovers"
            )
        if any(time.overload_lost_frames == 0 for time in found.times):
            intended = result.overload.per_interface_fps * result.settings.duration_s
            unsent = max(time.overload_unsent_frames for time in found.times) / intended
            if unsent > LEAST_UNSENT:
                why = f"The generator left up to {format_ratio(unsent)} of its frames unsent"
            else:
                why = "Check the given throughput: it may be too low"
            return f"not overloaded: a repetition lost no frame in the overload. {why}"

        return None


measure_recovery = partial(measure, Recovery())


@headline
def _found(result: RecoveryResult) -> Iterator[str]:
    """How long frames are lost after an overload."""
    values = result.recovery
    if values is None or values.average_s is None or result.reason is not None:
        yield "System recovery: the time until no more frames are missing is not known."
        return

    after = f"after {result.settings.duration_s:g} s of overload"
    if not values.most_s:
        yield f"System recovery: {after}, no frame is lost once the load is halved."
    else:
        yield (
            f"System recovery: {after}, frames are lost for {average_in_words(result)} more on average once the "
            "load is halved."
        )


@numbers
def _numbers(result: RecoveryResult) -> Iterator[str]:
    """The average, its spread, and the loads."""
    repetitions = counted(result.settings.repeats, "repetition")
    yield head(result, f"system recovery (RFC 2544, section 26.5), {repetitions}")
    yield value_line("throughput", result.throughput)
    if result.recovery is None:
        return

    yield value_line(f"overload for {result.settings.duration_s:g} s", result.overload)
    yield value_line("then", result.after)
    values = result.recovery
    finest = result.frame_spacing_s
    yield from values.lines("average", finest=finest)
    times = (time.recovery_s for time in values.times)
    each = ("not recovered" if time is None else time_in_words(time, finest) for time in times)
    yield value_line("times", ", ".join(each))
    yield from resolution_lines(finest, result.resolution_s)


class RecoveryView(TimesView[RecoveryResult]):
    """How a recovery time is shown."""

    quantity = "system recovery"
    goal_fields = MappingProxyType(
        {"overload_ratio": "settings.overload_ratio", "overload_s": "settings.duration_s"}
    )
    rules = (_found, _numbers, *USUAL)
