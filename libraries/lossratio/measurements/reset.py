"""Reset: the time without forwarding after a reset (RFC 6201), by time stamps and by frame loss."""

from __future__ import annotations

import shlex
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lossratio import measurements
from lossratio.dut import BLACK_BOX
from lossratio.errors import DutError, SearchError, TrafficError
from lossratio.files import said_by
from lossratio.measurements.reset_times import ResetTime, reset_time
from lossratio.mlrsearch import Forecast
from lossratio.results import USUAL, MaxLoad, NoteKind, doubt, head, headline, numbers, value_line
from lossratio.trials import (
    Measurer,
    StepCounters,
    Timeline,
    TrialInput,
    TrialOutput,
    TrialResult,
    output_from_counters,
    with_late_frames,
)
from lossratio.values import (
    LONGEST_TRIAL,
    LONGEST_WAIT,
    Duration,
    Rate,
    Repeats,
    Seconds,
    counted,
    format_precise_time,
    format_ratio,
    trials_counted,
)

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Ready, Testbed, TrafficSource


class ResetValues(measurements.Spread):
    """All repetitions, and their average by the time stamp method."""

    times: tuple[ResetTime, ...] = Field(min_length=1)
    """The repetitions; the DUT did not come back in a repetition without a time."""
    average_by_loss_s: Seconds
    """Mean by the frame loss method."""
    average_lost_frames: float = Field(ge=0.0)
    """Mean of the frames lost in the outages."""


DEVICES = "software reset of the devices"
"""The reset of requests that name no other reset."""


class ResetRequest(measurements.AfterThroughput):
    """Measures how long a device forwards nothing after a reset (RFC 6201), and returns the result.

    Traffic flows at ``throughput`` or less for the time ``lead``. Then the device is reset, and traffic continues for
    the time ``limit``. The result contains the time without forwarding, by time stamps and by frame loss. By default,
    the reset is a software reset of each device that lossratio has set up: programs are killed and restarted, a bridge
    goes down and up. You can give another reset. ``command`` is your own command on this machine, such as a command
    that switches a power socket or logs in to the device. If the command fails, the measurement fails. ``keyword`` is
    your own keyword.

    | `Measure Reset Time`    frame_size=64B    throughput=100 kfps
    | `Measure Reset Time`    64B    throughput=1 Mfps    command=ssh admin@box reload    limit=2 min
    """

    watches = True

    reset: Annotated[
        Callable[[], object] | None, measurements.NOT_IN_FILES, measurements.Audience.SCRIPTS
    ] = None
    """Resets the DUT, and returns after the reset. None: a software reset of each device that lossratio has set up, or
    of the model of a simulated testbed."""
    reset_name: Annotated[str, measurements.Audience.SCRIPTS] = DEVICES
    """A description of the reset. RFC 6201 asks reports to name everything that may influence the time."""
    hitless: bool = False
    """Whether a reset without loss is a result. Otherwise it is an error, because the reset may have had no effect."""
    repeats: Repeats = 5
    """Number of repetitions; RFC 6201 recommends several."""
    lead: Annotated[Duration, Field(gt=0.0, le=LONGEST_WAIT)] = 15.0
    """Seconds of forwarding before the reset; the default is the minimum of RFC 6201, section 4."""
    limit: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = 10.0
    """Seconds after the reset in which the DUT is watched."""

    def forecast(self, loads: LoadRange, waits: float) -> Forecast:
        """The time of all repetitions.

        Args:
            loads: The range of the loads of its trials.
            waits: Seconds that each trial takes besides its traffic.
        """
        seconds = self.repeats * (self.lead + self.limit + waits)
        return Forecast(seconds, seconds, seconds)


class ResetResult(measurements.FoundResult):
    """The result of a measurement of the reset time."""

    found = "reset"
    kind: Literal["reset"] = "reset"
    load: Rate
    """The load during the reset."""
    settings: measurements.SettingsOf[ResetRequest]
    """The parameters of the test."""
    resolution_s: Seconds | None
    """The largest error of a frame's time, besides the distance between two frames; null: there was no trial."""
    reset: ResetValues | None
    """The reset times; null if the measurement failed."""
    reason: str | None
    """Why the result is irregular; null: it is not."""


LATE_WAIT = 0.5
"""Seconds to wait for late frames at the end."""


def command_reset(command: str, timeout: float = 60.0) -> Callable[[], None]:
    """A reset by a command on this machine, for black boxes: it switches a power socket, or logs in to the device.

    Args:
        command: The command and its arguments; no shell interprets it.
        timeout: Seconds that it may take.

    Returns:
        The reset. It raises `DutError` if the command cannot be run, fails, or takes too long.

    Raises:
        SearchError: If the command has no words, an unclosed quote, or a program that does not exist on this machine.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SearchError(
            f"The reset command {command!r} cannot be read: {error}. Correct its quotes."
        ) from error
    if not words:
        raise SearchError("The reset command is empty. Name a program and its arguments.")
    if shutil.which(words[0]) is None:
        raise SearchError(
            f"The reset command cannot be run: {command}: there is no program {words[0]!r} on this machine. Correct "
            "the command."
        )

    def reset() -> None:
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except (OSError, ValueError) as error:
            raise DutError(
                f"The reset command cannot be run: {command}: {error}. Correct the command."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise DutError(
                f"The reset command took longer than {timeout:g} s: {command}."
            ) from error

        if done.returncode != 0:
            said = said_by(done.stdout, done.stderr)
            raise DutError(
                f"The reset command failed with exit status {done.returncode}: {command}: {said}."
            )

    return reset


class ResettingMeasurer:
    """Performs trials with a reset in each; a `lossratio.trials.Measurer`.

    The timelines of its answers have two steps: before and after the reset.
    """

    def __init__(
        self, source: TrafficSource, reset: Callable[[], object], request: ResetRequest
    ) -> None:
        self._source = source
        self._reset = reset
        self._request = request

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Sends, resets, watches, and locates the outage.

        Raises:
            TrafficError: If no frame was lost after the reset, and the request does not allow a hitless reset.
            DutError: If the reset fails.
        """
        source = self._source
        begun = source.now()
        source.start_traffic(trial.load, watch=True)
        source.wait(self._request.lead)
        moment = source.now()
        self._reset()
        source.wait(self._request.limit)
        stopped = source.stop_traffic(LATE_WAIT)
        elapsed = source.now() - begun
        timelines = tuple(_with_reset(timeline, moment) for timeline in stopped.timelines)

        if not self._request.hitless and not reset_time(timelines).outages:
            quiet = max(
                (silence.duration for line in timelines for silence in line.silences), default=0.0
            )
            if quiet:
                kept = f", or buffered frames during a gap of {format_precise_time(quiet)}"
            else:
                kept = ""

            raise TrafficError(
                f"No frame was lost after the reset ({self._request.reset_name}): it had no effect, or the device "
                f"kept forwarding{kept}. Check that the reset reaches the device. If the device forwards during "
                "resets, set hitless=True: then the result is 'no loss'."
            )

        # The actual time counts: no direction had to keep sending until the last direction ended.
        flowed = min(
            timeline.steps[-1].start + timeline.steps[-1].elapsed for timeline in timelines
        )
        asked = TrialInput(flowed, trial.load)
        output = output_from_counters(
            asked, stopped.directions, negative_loss="csit", elapsed=elapsed
        )
        return replace(with_late_frames(output, stopped.late), timelines=timelines)


def _with_reset(timeline: Timeline, moment: float) -> Timeline:
    (whole,) = timeline.steps
    at = max(0.0, moment - timeline.began)
    share = min(1.0, at / whole.elapsed)
    lost = sum(outage.frames for outage in timeline.outages if outage.first_sent < at)
    before = StepCounters(0.0, at, round(whole.intended * share), round(whole.sent * share), lost)
    after = StepCounters(
        at,
        max(0.0, whole.elapsed - at),
        whole.intended - before.intended,
        whole.sent - before.sent,
        max(0, whole.lost - lost),
        whole.last_lost,
    )
    return replace(timeline, steps=(before, after))


def reset_of(
    command: str | None, keyword: str | None, run: Callable[..., object]
) -> dict[str, Any]:
    """The fields of a reset by a command on this machine, or by a keyword that `run` runs; none if both are missing.

    Raises:
        SearchError: If both are given, or the command cannot be run.
        AssertionError: If there is no such keyword.
    """
    if command is not None and keyword is not None:
        raise SearchError("A reset is either a command or a keyword. Give one of them.")
    if command is not None:
        return {"reset": command_reset(command), "reset_name": f"command: {command}"}
    if keyword is not None:
        # This comes before the measurement, which would be in vain if the keyword did not exist.
        run("Keyword Should Exist", keyword)
        return {"reset": partial(run, keyword), "reset_name": f"keyword: {keyword}"}
    return {}


class Reset(measurements.PlannedKind[ResetRequest, ResetResult]):
    """The kind: reset."""

    keyword = "Measure Reset Time"
    method = "reset_time"
    noun = "reset time"
    work = "Measuring the"
    algorithm = "reset"

    def asked(
        self,
        suite: measurements.Suite,
        fields: Mapping[str, Any],
        *,
        command: str | None = None,
        keyword: str | None = None,
    ) -> ResetRequest:
        """The request with the reset: a command on this machine, a keyword of the suite, or the devices' own reset."""
        request: ResetRequest = suite.request({**fields, **reset_of(command, keyword, suite.run)})
        return request

    def controller(self, request: ResetRequest, loads: LoadRange) -> measurements.PlannedTrials:
        """Trials at one load; they end if the DUT does not come back."""

        def is_gone(results: Sequence[TrialResult]) -> bool:
            return bool(results) and reset_time(results[-1].output.timelines).time_stamp_s is None

        load = min(request.known_throughput, loads.max_load)
        return measurements.PlannedTrials(
            [TrialInput(request.lead + request.limit, load)] * request.repeats, is_gone
        )

    def measurer(self, request: ResetRequest, testbed: Testbed, ready: Ready) -> Measurer:
        """Resets the devices that lossratio set up, or a simulated one, in each trial.

        Raises:
            DutError: If there are none.
        """
        source = ready.source
        model = getattr(ready.source, "reset", None)
        if request.reset is not None:
            return ResettingMeasurer(source, request.reset, request)
        if not testbed.duts and model is None:
            raise DutError(
                "There is no DUT that lossratio can reset: name its kind when you set up the testbed, or give a "
                "command or a keyword that resets the device."
            )
        if not getattr(source, "minds_resets", True):
            # A model without an outage forwards through resets.
            request = request.but(hitless=True)

        def reset() -> None:
            for dut in testbed.duts:
                dut.restart()
            if model is not None:
                model()

        return ResettingMeasurer(source, reset, request)

    def fields(
        self, measured: measurements.Measurement[Any], request: ResetRequest, max_load: MaxLoad
    ) -> Mapping[str, Any]:
        """The load, and the error of times."""
        load = min(request.known_throughput, max_load.rate.per_interface_fps)
        return {"load": measured.run.conditions.rate(load), "resolution_s": measured.resolution}

    def found_in(self, result: ResetResult, trials: Sequence[TrialResult]) -> ResetValues:
        """The reset times of the trials, or of a result that was read, with their averages."""
        read = result.reset
        if read:
            times = read.times
        else:
            times = tuple(reset_time(trial.output.timelines) for trial in trials)

        return ResetValues(
            times=times,
            average_by_loss_s=statistics.fmean(time.loss_method_s for time in times),
            average_lost_frames=statistics.fmean(time.lost_frames for time in times),
            **measurements.Spread.of([time.time_stamp_s for time in times]),
        )

    def irregular(self, result: ResetResult, found: ResetValues) -> str | None:
        """The reason: the device did not come back."""
        if found.average_s is not None:
            return None
        limit = result.settings.limit_s
        way_out = "Raise limit to see when it comes back"
        ours = [
            f"{name} ({kind})"
            for name, facts in result.conditions.duts.items()
            if (kind := facts.get("kind", BLACK_BOX)) != BLACK_BOX
        ]
        if ours and result.settings.reset_name != DEVICES:
            way_out += (
                f". If the reset was a reboot, it never does: a reboot takes away what lossratio set up on "
                f"{', '.join(ours)}. Then measure a device that sets itself up when it boots (dut={BLACK_BOX})"
            )
        return f"it did not come back within the limit of {limit:g} s after the reset. {way_out}"


measure_reset = partial(measurements.measure, Reset())
LEAST_BESIDE = 0.01
"""If the frames lost outside of the outages exceed this share of the frames lost in them, there is a doubt."""


@headline
def _found(result: ResetResult) -> Iterator[str]:
    """How long the reset stops the traffic."""
    values = result.reset
    if values is None:
        return
    if values.average_s is None:
        down = f"the device does not forward again within {result.settings.limit_s:g} s"
    elif not values.most_s:
        down = "no frame is lost"
    else:
        down = f"frames are lost for {format_precise_time(values.average_s)} on average"
    yield f"Reset ({result.settings.reset_name}): {down}."


@numbers
def _numbers(result: ResetResult) -> Iterator[str]:
    """The averages by both methods, the spread, and all repetitions."""
    values = result.reset
    if values is None:
        return

    trials = trials_counted(len(values.times))
    yield head(result, f"reset (RFC 6201): {result.settings.reset_name}, {trials}")
    yield value_line("load", result.load)
    yield from values.lines("by time stamps", none="no loss")
    lost = f"{format_precise_time(values.average_by_loss_s)} ({values.average_lost_frames:,.1f} frames on average)"
    yield value_line("by frame loss", lost)
    yield from (
        value_line(f"{number}", _in_words(time))
        for number, time in enumerate(values.times, start=1)
    )
    yield from measurements.resolution_lines(
        1.0 / result.load.per_interface_fps, result.resolution_s
    )


@doubt(
    NoteKind.LOSS_BESIDE_RESET,
    "The timelines of the trials show losses outside of the longest outages: more than "
    f"{format_ratio(LEAST_BESIDE)} of the frames that were lost within them.",
)
def _lost_beside(result: ResetResult) -> Iterator[str]:
    """The resets are not the only cause of loss. Frames that the SUT did not lose cause no doubt."""
    times = () if result.reset is None else result.reset.times
    lost = sum(time.lost_frames for time in times)
    not_by_sut = sum(trial.missing.late + trial.missing.generator_drops for trial in result.trials)
    beside = sum(time.lost_beside_frames for time in times) - not_by_sut
    if beside > LEAST_BESIDE * lost and beside > 0:
        yield (
            f"{beside:,} frames were lost before the resets or outside their outages, which lost {lost:,}: the "
            "load is above what the DUT forwards, or a reset causes several outages. Measure at a smaller load to "
            "tell which"
        )


class ResetView(measurements.TimesView[ResetResult]):
    """How a reset time is shown."""

    rules = (_found, _numbers, _lost_beside, *USUAL)
    goal_fields = MappingProxyType({"reset": "settings.reset_name"})


def _in_words(time: ResetTime) -> str:
    if time.time_stamp_s is None:
        return f"{time.direction}: did not come back"
    sent_in = format_precise_time(time.loss_method_s)
    lost = f"{counted(time.lost_frames, 'frame')} lost, as many as are sent in {sent_in}"
    several = time.outages > 1 and time.whole_s is not None
    if several:
        more = f"; the longest of {time.outages} outages over {format_precise_time(time.whole_s or 0.0)}"
    else:
        more = ""

    return (
        f"{time.direction}: {format_precise_time(time.time_stamp_s)} by time stamps; {lost}{more}"
    )
