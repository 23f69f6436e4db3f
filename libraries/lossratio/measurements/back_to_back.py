"""Back-to-back frames: the longest bursts without loss, and the buffer time that follows from them (RFC 9004).

All lengths are frames of each transmitting interface, and all rates are per transmitting interface.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lossratio import measurements
from lossratio.errors import SearchError
from lossratio.measurements.repeated_search import (
    MOST_UNKNOWN,
    RepeatedSearch,
    SizeFound,
    ending_where_unknown,
)
from lossratio.mlrsearch import Forecast
from lossratio.results import (
    ROUNDING,
    USUAL,
    MaxLoad,
    View,
    caveat,
    format_frames_per_second,
    head,
    headline,
    numbers,
    size_in_words,
    value_line,
    way_in_words,
)
from lossratio.trials import Measurer, TrialInput, TrialOutput, TrialResult, known_missing
from lossratio.values import (
    LONGEST_WAIT,
    Duration,
    FrameCount,
    Frames,
    Rate,
    Record,
    Repeats,
    Seconds,
    Unit,
    counted,
    format_precise_time,
)

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Ready, Testbed

NO_BUFFER_FILLS = "no buffer fills because the bursts are not sent faster than the throughput (RFC 9004, section 6.1)"
"""The reason given by a result without bursts."""


class BurstFound(Record):
    """The outcome of one search for the longest burst without loss."""

    longest_frames: FrameCount
    """The longest burst that lost nothing; 0: every burst lost frames."""
    shortest_lossy_frames: FrameCount | None
    """The shortest burst that lost frames; null: even the longest burst of the tester lost no frame."""
    trials: int = Field(ge=1)
    """Number of trials of the search."""


class BufferTime(Record):
    """The buffer time by RFC 9004, section 6.4."""

    implied_s: Seconds
    """The time in which the average burst is sent: its frames divided by its rate."""
    corrected_s: Seconds
    """The implied time, minus the share of frames that the DUT forwards in this time."""
    buffer_frames: float = Field(ge=0.0)
    """Frames that correspond to the corrected time."""


class BackToBackValues(Record):
    """The longest bursts of all searches, and the values that follow from them."""

    searches: tuple[BurstFound, ...] = Field(min_length=1)
    """The searches, each independent of the others."""
    average_frames: float = Field(ge=0.0)
    """The benchmark: mean of the longest bursts."""
    least_frames: FrameCount
    """The shortest of the longest bursts."""
    most_frames: FrameCount
    """The longest of the longest bursts."""
    stdev_frames: float = Field(ge=0.0)
    """Sample standard deviation (divided by N - 1); 0 if there is only one search."""
    is_at_limit: bool
    """Whether a search ended at the longest burst of the tester, so that the values are "at least"."""
    buffer_time: BufferTime
    """The buffer time of the average burst."""

    @property
    def spread(self) -> str:
        """Minimum, maximum and standard deviation, in words; empty: there is only one search."""
        if len(self.searches) == 1:
            return ""
        return f"{self.least_frames:,}, {self.most_frames:,}, {self.stdev_frames:.4g}"

    @property
    def prefix(self) -> str:
        """The words before each value: ``at least`` at the longest burst of the tester."""
        if self.is_at_limit:
            return "at least "
        return ""


class BackToBackRequest(measurements.AfterThroughput):
    """Measures the longest burst without loss (RFC 2544, section 26.4, by RFC 9004), and returns the result.

    Bursts have the rate ``max_load``. Each search is a bisection over the length of the burst. The result has the
    average, minimum, maximum and standard deviation of the searches, and the buffer time. If no burst loses a frame,
    the result says "at least", and is irregular.

    | `Find Conditional Throughput`    RFC2544    frame_size=64B
    | `Measure Back-To-Back Frames`    frame_size=64B
    | `Measure Back-To-Back Frames`    64B    throughput=1 Mfps    repeats=50
    """

    unused = frozenset({"min_load", "ramp", "rest", "warm_up"})

    repeats: Repeats = 10
    """Number of searches, N. RFC 9004 does not prescribe a number, but asks for it in the report; RFC 2544 has 50
    trials."""
    longest_burst: Annotated[Duration, Field(gt=0.0, le=30.0)] = 2.0
    """Seconds of the longest burst that is tried (RFC 9004, section 6.2)."""
    step: Annotated[Frames, Field(ge=1)] = 1
    """A search ends when its bounds are this close to each other."""
    settle: Annotated[Duration, Field(ge=0.0, le=LONGEST_WAIT)] = 2.0
    """Minimum seconds without traffic after each burst, in which the buffer drains (RFC 9004, section 6.2). After a
    longer burst, the settle time is as long as the burst. 0: no settle time."""
    loss_verification: bool = False
    """Whether a burst with loss is sent once more, and counts as lossy only if both lost frames (ETSI GS NFV-TST
    009)."""

    def forecast(self, loads: LoadRange, waits: float) -> Forecast:
        """The time of all searches; 0 if no buffer fills.

        Args:
            loads: The range of the loads of its trials.
            waits: Seconds that each trial takes in addition to its traffic.
        """
        trials = 1 + math.ceil(math.log2(max(2.0, self.longest_burst * loads.max_load)))
        # A search halves its bursts, unless none of them loses a frame. Its bursts together last as long as two of the
        # longest.
        seconds = self.repeats * (trials * (self.settle + waits) + 2.0 * self.longest_burst)
        return Forecast(seconds, 0.0, seconds)

    def longest_burst_frames(self, rate: float) -> int:
        """Frames of the longest burst at a rate.

        Args:
            rate: Frames per second per interface.
        """
        return math.floor(self.longest_burst * rate * (1.0 + ROUNDING))


class BackToBackResult(measurements.FoundResult):
    """The result of a measurement of back-to-back frames."""

    found = "back_to_back"
    kind: Literal["back_to_back"] = "back_to_back"
    max_load: MaxLoad
    """The rate of the bursts."""
    throughput: Rate
    """The throughput without loss, measured earlier."""
    settings: measurements.SettingsOf[BackToBackRequest]
    """The parameters of the search, which RFC 9004 requires in a report."""
    longest_burst_frames: FrameCount
    """Number of frames in the longest burst that is tried."""
    kept_rate: Rate | None
    """The rate that the tester kept in its slowest burst; null: not known."""
    back_to_back: BackToBackValues | None
    """The bursts; null if the measurement failed, or no buffer fills."""
    reason: str | None
    """Why the result is irregular; null: it is not."""


def back_to_back_values(
    searches: Sequence[SizeFound], throughput: float, rate: float
) -> BackToBackValues:
    """Computes the values of RFC 9004, section 6.4, from the outcomes of all searches. Rates are in frames per second.

    ``implied = average / rate``, and ``corrected = implied - implied * throughput / rate``.
    """
    longest = [search.lossless for search in searches]
    bursts = [
        BurstFound(longest_frames=lossless, shortest_lossy_frames=lossy, trials=trials)
        for lossless, lossy, trials in searches
    ]
    average = statistics.fmean(longest)
    implied = average / rate
    corrected = max(0.0, implied - implied * throughput / rate)

    # Record: the values of RFC 9004, section 6.4.
    return BackToBackValues(
        searches=tuple(bursts),
        average_frames=average,
        least_frames=min(longest),
        most_frames=max(longest),
        stdev_frames=statistics.stdev(longest) if len(longest) > 1 else 0.0,
        is_at_limit=any(search.lossy is None for search in searches),
        buffer_time=BufferTime(
            implied_s=implied, corrected_s=corrected, buffer_frames=corrected * rate
        ),
    )


def _spoilt_bursts(trial: TrialResult) -> str:
    missing = known_missing(trial.output)
    return (
        f"{MOST_UNKNOWN} bursts in a row say nothing about the SUT, because the generator left frames unsent or "
        f"dropped them when they came back ({missing.by_tester:,} in the last burst). Lower the rate (max_load)."
    )


def burst_search(
    rate: float, longest: int, *, step: int = 1, repeats: int = 1, loss_verification: bool = False
) -> RepeatedSearch:
    """Searches for the longest burst without loss, from the longest burst of the tester downwards.

    Args:
        rate: Frames per second per interface.
        longest: Frames of the longest burst of the tester.
        step: A search ends when its bounds are this close to each other.
        repeats: Number of searches.
        loss_verification: Whether a burst counts as lossy only if a second one lost frames, too.
    """

    def burst(size: int) -> TrialInput:
        return TrialInput.burst(size, rate)

    return RepeatedSearch(
        burst, longest, step=step, repeats=repeats, loss_verification=loss_verification
    )


class SettlingMeasurer:
    """Performs trials with a settle time after each, in which the buffer drains (RFC 9004, section 6.2)."""

    def __init__(self, ready: Ready, settle: float) -> None:
        self._ready = ready
        self._settle = settle

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs a trial, and waits."""
        output = self._ready.measurer.measure(trial)
        settle = max(self._settle, trial.duration) if self._settle else 0.0
        self._ready.source.wait(settle)
        return replace(output, elapsed=TrialResult(trial, output).elapsed + settle)


class BackToBack(
    measurements.MeasuredKind[
        BackToBackRequest, RepeatedSearch, measurements.Progress, BackToBackResult
    ]
):
    """The kind: back-to-back frames."""

    keyword = "Measure Back-To-Back Frames"
    method = "back_to_back"
    noun = "back-to-back frames"

    def controller(self, request: BackToBackRequest, loads: LoadRange) -> RepeatedSearch:
        """Bisections over burst length; no trials if no buffer fills.

        Raises:
            SearchError: If even the longest burst has no frame, or the throughput is not known.
        """
        rate, throughput = loads.max_load, request.known_throughput
        longest = request.longest_burst_frames(rate)
        if longest < 1:
            raise SearchError(
                f"A burst of {request.longest_burst:g} s at {format_frames_per_second(rate)} is less than one frame. "
                "Raise longest_burst."
            )

        repeats = request.repeats if throughput < rate * (1.0 - ROUNDING) else 0
        return burst_search(
            rate,
            longest,
            step=request.step,
            repeats=repeats,
            loss_verification=request.loss_verification,
        )

    def measurer(self, request: BackToBackRequest, testbed: Testbed, ready: Ready) -> Measurer:
        """Waits after each burst."""
        return SettlingMeasurer(ready, request.settle)

    def watch(self, request: BackToBackRequest, loads: LoadRange) -> Callable[[TrialResult], None]:
        """Ends a search whose generator spoils every burst, because such a search shows nothing about the SUT."""
        return ending_where_unknown(_spoilt_bursts)

    def fields(
        self, measured: measurements.Measurement[Any], request: BackToBackRequest, max_load: MaxLoad
    ) -> Mapping[str, Any]:
        """The throughput, the longest burst that is tried, and the rate that the tester kept."""
        lines = [line for entry in measured.entries for line in entry.result.output.timelines]
        kept = [line.rate for line in lines if line.rate is not None]
        rate = measured.run.conditions.rate
        return {
            "throughput": rate(request.known_throughput),
            "longest_burst_frames": request.longest_burst_frames(max_load.rate.per_interface_fps),
            "kept_rate": rate(min(kept)) if kept else None,
        }

    def found_in(
        self, result: BackToBackResult, trials: Sequence[TrialResult]
    ) -> BackToBackValues | None:
        """The bursts of the trials and their buffer times; None if no buffer fills."""
        if not trials and result.back_to_back is None:
            return None

        rate = result.max_load.rate.per_interface_fps
        search = burst_search(
            rate,
            result.longest_burst_frames,
            step=result.settings.step_frames,
            repeats=result.settings.repeats,
            loss_verification=result.settings.loss_verification,
        )
        bursts = search.all_found(trials, f"The back-to-back value of {result.test.full_name}")
        return back_to_back_values(bursts, result.throughput.per_interface_fps, rate)

    def irregular(self, result: BackToBackResult, found: BackToBackValues | None) -> str | None:
        """The reason: no buffer fills, or a value is only a limit."""
        if found is None:
            return NO_BUFFER_FILLS
        if found.is_at_limit:
            return (
                f"no burst lost a frame, up to {result.longest_burst_frames:,} frames "
                f"({result.settings.longest_burst_s:g} s): this is a lower bound. To find the value, raise "
                "longest_burst (30 s at most)"
            )
        if found.least_frames == 0:
            return "not even the shortest burst came back complete and in time"
        return None


measure_back_to_back = partial(measurements.measure, BackToBack())
FRAMES = Unit("frames")
"""The unit of bursts; a longer burst is better."""


@headline
def _found(result: BackToBackResult) -> Iterator[str]:
    """The longest burst that loses nothing, and the buffer that it shows."""
    values = result.back_to_back
    if values is None:
        return

    conditions = result.conditions
    if values.least_frames == 0:
        frames = f"{size_in_words(conditions)} {way_in_words(conditions)}"
        yield f"Back-to-back frames: even the shortest burst of {frames} does not always come back complete."
        return

    burst = f"{values.average_frames:,.0f} frames of {size_in_words(conditions)} {way_in_words(conditions)}"
    rate = f"{result.max_load.rate.per_interface_fps:,.0f} frames/s"
    buffer = format_precise_time(values.buffer_time.corrected_s)
    if values.least_frames < values.most_frames:
        ends = f"{values.least_frames:,} to {values.most_frames:,}"
        yield (
            f"Back-to-back frames: the longest burst without loss has {values.prefix}{burst} at {rate} on average "
            f"({ends}); if a buffer filled up, it holds {values.prefix}{buffer} of traffic."
        )
        return
    yield (
        f"Back-to-back frames: a burst of {values.prefix}{burst} at {rate} loses nothing; the buffer holds "
        f"{values.prefix}{buffer} of traffic."
    )


@numbers
def _numbers(result: BackToBackResult) -> Iterator[str]:
    """The average, its spread, and the buffer time."""
    yield head(
        result,
        f"back-to-back frames (RFC 9004), {counted(result.settings.repeats, 'search', 'searches')}",
    )
    yield value_line("rate of the bursts", result.max_load.rate)
    if result.kept_rate is not None:
        yield value_line("kept by the tester", result.kept_rate)
    yield value_line("throughput", result.throughput)
    values = result.back_to_back
    if values is None:
        return

    yield value_line(values.prefix.strip() or "average", values.average_frames, FRAMES)
    if values.spread:
        yield value_line("min, max, stddev", f"{values.spread} frames")
    times = values.buffer_time
    yield value_line(
        "implied buffer time", f"{values.prefix}{format_precise_time(times.implied_s)}"
    )
    corrected = f"{values.prefix}{format_precise_time(times.corrected_s)} ({times.buffer_frames:,.1f} frames)"
    yield value_line("corrected buffer time", corrected)


@caveat
def _caveat(result: BackToBackResult) -> Iterator[str]:
    """The caveat that a rate is not known."""
    if result.back_to_back is not None and result.kept_rate is None:
        yield (
            "the generator does not report the rate of each burst. In software mode, TRex sends the frames of "
            "its first milliseconds at once, which makes the longest burst that much too short"
        )


class BackToBackView(View[BackToBackResult]):
    """How back-to-back frames are shown."""

    quantity = "back-to-back"
    goal_fields = MappingProxyType(
        {
            "burst_rate_per_interface_fps": "max_load.rate.per_interface_fps",
            "step_frames": "settings.step_frames",
        }
    )
    has_value = True
    measured_in = FRAMES
    rules = (_found, _numbers, _caveat, *USUAL)

    def values(self, result: BackToBackResult) -> Mapping[str, Any]:
        """The average; only a lower bound if no burst lost a frame."""
        values = result.back_to_back
        if values is None:
            return {}
        if values.is_at_limit:
            return {"lower_bound": float(values.least_frames), "is_at_limit": True}
        if len(values.searches) == 1:
            return {"value": values.average_frames}
        return {"value": values.average_frames, "deviation": values.stdev_frames}
