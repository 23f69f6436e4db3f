"""Latency in result files: of each direction, at each load that it was measured at, with its histogram."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from lossratio.measurements.latency.histogram import DIGITS, Histogram
from lossratio.results import (
    ROUNDING,
    LatencyPoint,
    MaxLoad,
    Offered,
    Outcome,
    TestResult,
    TestRun,
    Trial,
    describe_trials,
    faulty_in_words,
)
from lossratio.trials import (
    JournalEntry,
    LatencyCounters,
    Microseconds,
    MissingFrames,
    OneWayLatency,
    TrialResult,
)
from lossratio.values import (
    FrameCount,
    Rate,
    Ratio,
    Record,
    Seconds,
    counted,
    format_frame_rate,
    format_ratio,
    left_out_if_empty,
)

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99)
"""Percentiles that are reported if there are enough frames for them."""
_VARIATION = "99.9"
"""The percentile whose distance from the smallest latency is the variation of the delay."""
PURPOSE = "latency"
"""The purpose of a latency trial."""
LEAST_LOST = 10
"""A latency trial that lost fewer frames is not said to have lost any: its loss ratio may be rounded by as much."""
LEAST_RECORDED = 0.999
"""A generator's own histogram must hold at least this share of the received frames to give the percentiles of all
frames."""
_TITLE = "latency"
_COLUMNS = ("least", "mean", *(f"{percent:g} %" for percent in PERCENTILES), "most", "jitter")
_COLUMN = 9
_INDENT = 2


@dataclass(frozen=True, kw_only=True)
class DirectionLatency(OneWayLatency):
    """The one-way latency of one direction. If it was not measured, there is an error, and every latency is null."""

    variation_us: Microseconds | None = None
    """99.9th percentile of the latencies minus the smallest one (PDV of RFC 5481), microseconds; null: there are too
    few frames, or the value is smaller than an interval of the histogram (intervals are a share of the latency)."""
    percentiles_us: dict[str, float]
    """Latency by percentile, e.g. ``99.9``, microseconds; percentiles with too few frames are left out."""
    histogram: str | None
    """All latencies as an HdrHistogram, compressed and in base64; null: there are none."""
    histogram_unit_us: Annotated[float, Field(gt=0.0)] = 1.0
    """Unit of the histogram, microseconds."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.direction


@dataclass(frozen=True, kw_only=True)
class StreamLatency(DirectionLatency):
    """The one-way latency of a stream in one direction."""

    stream: str
    """The stream's name."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.direction} {self.stream}"


class LatencyAtLoad(Record):
    """Latency at one load."""

    goal: str | None
    """The goal; the load is a share of the goal's relevant lower bound. null: the load was given."""
    share_ratio: Ratio | None
    """The share; 0: the minimum load; null: the load was given."""
    is_raised: bool = False
    """Whether the load is the minimum load because the share is below it; left out: it is not."""
    load: Rate
    """The load, latency frames included."""
    duration_s: Seconds | None = None
    """Duration of the trial."""
    loss_ratio: Ratio | None = None
    """Loss ratio of the trial, of all its frames; null: it failed."""
    unsent_frames: FrameCount | None = None
    """Frames that the generator could not send; null: the trial failed."""
    generator_drop_frames: FrameCount = 0
    """Frames that came back but that the generator itself dropped; the loss ratio counts them as lost. Left out:
    none."""
    late_frames: FrameCount = 0
    """Frames that came back after the wait for frames in flight; the loss ratio counts them as lost. Left out: none."""
    surplus_frames: FrameCount = 0
    """Frames that came back in directions that received more than was sent, beyond the sent ones; the loss ratio counts
    them as lost. Left out: none."""
    directions: tuple[DirectionLatency, ...]
    """Latency by direction; empty: the trial failed."""
    by_stream: tuple[StreamLatency, ...] = ()
    """Latency of each stream of the traffic profile, by direction; left out: it has no streams, or the generator does
    not distinguish their latencies."""
    error: str | None = None
    """Why the trial failed; null if it did not."""

    _leave_out = left_out_if_empty(
        "is_raised", "generator_drop_frames", "late_frames", "surplus_frames", "by_stream"
    )

    @model_validator(mode="after")
    def _a_failed_trial_has_an_error(self) -> "LatencyAtLoad":
        if (self.error is None) != bool(self.directions):
            raise ValueError("a load has either directions or an error")
        return self

    @property
    def faults(self) -> tuple[str, ...]:
        """The missing measurements, with the reasons."""
        if self.error is not None:
            return (self.error,)
        return tuple(
            f"{one.direction}: {one.error}" for one in self.directions if one.error is not None
        )

    @property
    def offered(self) -> Offered | None:
        """The traffic of the trial; None: the trial failed, or its duration is not known."""
        if self.duration_s is None or self.loss_ratio is None:
            return None

        known = MissingFrames(
            late=self.late_frames,
            unsent=self.unsent_frames or 0,
            generator_drops=self.generator_drop_frames,
        )
        intended = round(self.load.aggregate_fps * self.duration_s)
        sent = max(0, intended - known.unsent)
        missing = round(self.loss_ratio * (sent + known.unsent))
        lost = max(0, missing - self.surplus_frames - known.total)
        return Offered(self.load.per_interface_fps, sent, replace(known, lost_by_sut=lost))

    @property
    def missing_ratio(self) -> float | None:
        """The share of the frames that did not come back; None: it is not known."""
        if self.offered is None or not self.surplus_frames:
            return self.loss_ratio
        return self.offered.missing.total / self.offered.intended

    @property
    def is_measured(self) -> bool:
        """Whether there is a latency at all."""
        return any(direction.error is None for direction in self.directions)

    def takes(self) -> str:
        """How long a frame takes, in the slower direction."""
        ways = [one for one in self.directions if one.error is None]
        means = [one.mean_us for one in ways if one.mean_us is not None]
        most = [one.most_us for one in ways if one.most_us is not None]
        slower = " in the slower direction" if len(ways) > 1 else ""

        times = []
        if means:
            times.append(f"{format_microseconds(max(means))} on average{slower}")
        if most:
            times.append(f"{format_microseconds(max(most))} at most")
        return f"a frame takes {' and '.join(times) or 'an unknown time'}"

    def line(self, faulty: str = "") -> str:
        """A load in words, with the frames that are missing in its trial.

        Frames that were not sent, that the generator dropped, that came late or with a fault are not called lost.
        Missing frames are a share of all frames, and lost ones are a share of those that were sent.

        Args:
            faulty: The frames of its trial that came back with a fault, in words; empty: none is known.
        """
        line = f"latency at {name_load(self)}"
        if self.loss_ratio is None:
            return line

        share = format_ratio(self.missing_ratio or 0.0)
        surplus = ""
        if self.surplus_frames:
            surplus = f"; {counted(self.surplus_frames, 'more frame')} came back than were sent"
        causes = {
            "unsent": self.unsent_frames or 0,
            "dropped by the generator": self.generator_drop_frames,
            "late": self.late_frames,
        }
        known = [f"{frames:,} {cause}" for cause, frames in causes.items() if frames]
        if faulty:
            known.append(faulty)
        if not known:
            return f"{line}; loss {share}{surplus}"

        offered = self.offered
        if offered is not None and offered.missing.lost_by_sut >= LEAST_LOST and not faulty:
            share_of_sent = format_ratio(offered.missing.lost_by_sut / offered.sent)
            known.append(f"{share_of_sent} of the sent ones lost")
        return f"{line}; {share} of the frames are missing ({', '.join(known)}){surplus}"


class LatencyResult(TestResult):
    """The result of a measurement of latency at given loads."""

    kind: Literal["latency"] = "latency"
    """The kind of the result."""
    max_load: MaxLoad
    """The largest load."""
    latency: tuple[LatencyAtLoad, ...] = Field(min_length=1)
    """Latency at each load, in the order of measurement."""

    @model_validator(mode="after")
    def _outcome_is_that_of_the_loads(self) -> "LatencyResult":
        if (self.outcome is Outcome.FAILED) == any(at_load.is_measured for at_load in self.latency):
            raise ValueError("a latency measurement failed if and only if it has no values")
        if self.outcome is Outcome.MEASURED and any(at_load.faults for at_load in self.latency):
            raise ValueError("a latency measurement is irregular if values are missing")
        return self


def direction_latency(counters: LatencyCounters) -> DirectionLatency:
    """The latency of one direction, with its percentiles."""
    return DirectionLatency(**_described(counters))


def stream_latencies(directions: Iterable[LatencyCounters]) -> Iterator[StreamLatency]:
    """The latency of each stream in each direction, with its percentiles."""
    for direction in directions:
        for one in direction.by_stream:
            yield StreamLatency(**_described(one), stream=one.stream)


def _described(counters: LatencyCounters) -> dict[str, Any]:
    """The fields of a latency."""
    histogram = None
    mean = counters.mean_us
    low = counters.least_us or 0.0
    high = math.inf if counters.most_us is None else counters.most_us

    if counters.hdr is not None:
        decoded = Histogram.decode(counters.hdr)
        # The missing frames may be the slowest ones, or frames that seem to have arrived before they left.
        if decoded.count >= LEAST_RECORDED * counters.received_frames:
            histogram = decoded
            # TRex averages over successive seconds, and gives more weight to the last ones.
            mean = max(low, min(histogram.mean, high or math.inf))
    elif counters.histogram:
        histogram = Histogram.of(counters.histogram, unit=counters.resolution_us)

    percentiles = {} if histogram is None else histogram.percentiles(PERCENTILES)
    # A histogram of three digits may round them.
    percentiles = {name: max(low, min(value, high)) for name, value in percentiles.items()}
    slow = percentiles.get(_VARIATION)
    least = counters.least_us
    most = counters.most_us
    variation = None

    if slow is not None and least is not None and most is not None:
        # The error of the percentile is at most an interval, and the percentile lies between the minimum and the
        # maximum.
        error = min(slow * max(counters.interval_ratio, 10.0**-DIGITS), most - least)
        if 2.0 * error <= max(slow - least, counters.resolution_us):
            variation = slow - least

    one_way = {field.name: getattr(counters, field.name) for field in fields(OneWayLatency)}
    one_way["mean_us"] = mean
    return {
        **one_way,
        "variation_us": variation,
        "percentiles_us": percentiles,
        "histogram": None if histogram is None else histogram.encode(),
        "histogram_unit_us": 1.0 if histogram is None else histogram.unit,
    }


def latency_result(
    run: TestRun, max_load: MaxLoad, latency: Sequence[LatencyAtLoad], trials: Sequence[TrialResult]
) -> LatencyResult:
    """Makes the result of a measurement of latency: failed if there is no latency at all."""
    faults = faults_in_words(latency)
    outcome = Outcome.MEASURED if not faults else Outcome.IRREGULAR
    if not any(at_load.is_measured for at_load in latency):
        outcome = Outcome.FAILED
    return LatencyResult(
        **{**run.stated(), "error": faults if outcome is Outcome.FAILED else None},
        outcome=outcome,
        trials=describe_trials([JournalEntry.of(trial, PURPOSE) for trial in trials]),
        max_load=max_load,
        latency=tuple(latency),
    )


def faults_in_words(latency: Iterable[LatencyAtLoad]) -> str:
    """The missing measurements of all loads, with the reasons; empty: there are none."""
    faults = [f"{name_load(at_load)}: {fault}" for at_load in latency for fault in at_load.faults]
    # Each reason is a sentence.
    return " ".join(f"{fault.removesuffix('.')}." for fault in faults).removesuffix(".")


def latency_lines(latency: Sequence[LatencyAtLoad], trials: Sequence[Trial] = ()) -> Iterator[str]:
    """Latency as a table: the names of its columns, then a line for each load, with its directions below it.

    Args:
        latency: The latency at each load.
        trials: The trials in which it was measured, in the same order; empty: they are not known.
    """
    with_trial = [at_load for at_load in latency if at_load.error is None]
    faulty = [faulty_in_words([trial]) for trial in trials]
    if len(faulty) != len(with_trial):
        faulty = [""] * len(with_trial)
    directions = [one for at_load in latency for one in (*at_load.directions, *at_load.by_stream)]
    rows = [_columns(one) for one in directions if one.error is None]
    known = {name for row in rows for name, value in row.items() if value is not None}
    columns = [name for name in _COLUMNS if name in known]
    width = max((len(one.name) for one in directions), default=0)

    if rows:
        heads = "".join(f"{name:>{_COLUMN}}" for name in columns)
        yield f"{_TITLE:<{width + _INDENT}}{heads}"
    for at_load in latency:
        yield at_load.line(faulty.pop(0) if at_load.error is None else "")
        if at_load.error is not None:
            yield f"  failed: {at_load.error}"
        for one in (*at_load.directions, *at_load.by_stream):
            yield f"  {one.name:<{width}}{_cells(one, columns)}"

    resolutions = [one.resolution_us for one in directions if one.resolution_us is not None]
    if resolutions:
        yield f"The resolution of these latencies is {max(resolutions):g} µs."
    clock_error = max((one.clock_error_us for one in directions), default=0.0)
    if clock_error:
        yield (
            "The two ends have separate clocks. According to chrony at both ends, each latency is correct to within "
            f"±{format_microseconds(clock_error)}."
        )


def latency_points(latency: Iterable[LatencyAtLoad]) -> Iterator[LatencyPoint]:
    """The latencies of all directions at all loads, without those that were not measured."""
    for at_load in latency:
        # A share of a bound has the same name every night, although the rate changes.
        name = name_load(at_load)
        load = name if at_load.share_ratio is None else name.partition(",")[0]
        for direction in at_load.directions:
            if direction.error is None:
                p50, p90, p99 = (
                    direction.percentiles_us.get(percentile) for percentile in ("50", "90", "99")
                )
                yield LatencyPoint(load, direction.direction, p50, p90, p99, direction.most_us)


def name_load(latency: LatencyAtLoad) -> str:
    """The load in words, e.g. ``90 % of PDR, 135.00 kfps per interface``."""
    load = f"{format_frame_rate(latency.load.per_interface_fps)} per interface"
    if latency.share_ratio is None:
        return load
    if not latency.share_ratio:
        return f"minimum load, {load}"
    raised = ", raised to the minimum load" if latency.is_raised else ""
    return f"{100 * latency.share_ratio:g} % of {latency.goal}{raised}, {load}"


def format_microseconds(value: float) -> str:
    """A latency with as many digits as matter, e.g. ``9.3 µs``, ``135 µs`` or ``12.4 ms``."""
    if value >= 10_000:
        return f"{value / 1000:.3g} ms"
    if value < 100:
        return f"{value:.1f} µs"
    return f"{value:.0f} µs"


def _columns(direction: DirectionLatency) -> dict[str, float | None]:
    """The columns of a direction's row, microseconds."""
    percentiles = {f"{name} %": value for name, value in direction.percentiles_us.items()}
    return {
        "least": direction.least_us,
        "mean": direction.mean_us,
        **percentiles,
        "most": direction.most_us,
        "jitter": direction.jitter_us,
    }


def _cells(direction: DirectionLatency, columns: Sequence[str]) -> str:
    """A direction's row, followed by the frames that came back in another order, or more than once."""
    if direction.error is not None:
        return f"  not measured: {direction.error}"

    values = _columns(direction)
    cells = []
    for name in columns:
        value = values.get(name)
        cell = "-" if value is None else format_microseconds(value)
        cells.append(f"{cell:>{_COLUMN}}")

    counts = {
        "out of order": direction.out_of_order_frames,
        "duplicates": direction.duplicate_frames,
    }
    notes = [f"  {count:,} {what}" for what, count in counts.items() if count]
    return "".join(cells + notes)


def latency_contradictions(latency: LatencyAtLoad, name: str) -> Iterator[str]:
    """Numbers at one load that contradict each other."""
    for direction in (*latency.directions, *latency.by_stream):
        place = f"{name} of {direction.name}"
        known = [
            value
            for value in [direction.least_us, direction.mean_us, direction.most_us]
            if value is not None
        ]
        if any(value > larger * (1.0 + ROUNDING) for value, larger in pairwise(known)):
            yield f"{place}: smallest, mean and largest latency are out of order: {known}"
