"""Latency in result files: of each direction, at each load that it was measured at."""

from __future__ import annotations

from pydantic import Field, model_validator

from lossratio.records import FrameCount, Rate, Ratio, Record, Seconds
from lossratio.results.conditions import Conditions
from lossratio.results.histograms import Histogram
from lossratio.trials import LatencyCounters, LatencyOutput

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99)
"""Percentiles that are written down, where there are enough frames to tell them."""


class DirectionLatency(Record):
    """The one-way latency of one direction; one that was not measured has an error, and null for every latency."""

    direction: str
    """The direction, e.g. ``port0>port1``."""
    least_us: float | None = Field(ge=0.0)
    """Smallest latency, microseconds."""
    mean_us: float | None = Field(ge=0.0)
    """Mean latency, microseconds."""
    most_us: float | None = Field(ge=0.0)
    """Largest latency, microseconds."""
    jitter_us: float | None = Field(default=None, ge=0.0)
    """Mean difference between the latencies of successive frames, microseconds."""
    percentiles_us: dict[str, float]
    """Latency by percentile, e.g. ``99.9``, microseconds; none for which there are too few frames."""
    histogram: str | None
    """All latencies as an HdrHistogram, compressed and in base64; null: there are none."""
    histogram_unit_us: float = Field(default=1.0, gt=0.0)
    """What the histogram counts in, microseconds."""
    resolution_us: float | None = Field(default=None, gt=0.0)
    """Difference of latencies that the generator can tell, microseconds; null: not known."""
    sent_frames: FrameCount | None = None
    """Latency frames sent."""
    received_frames: FrameCount | None = None
    """Latency frames received, each counted once."""
    out_of_order_frames: FrameCount | None = None
    """Latency frames that arrived after one that was sent later."""
    duplicate_frames: FrameCount | None = None
    """Latency frames that arrived once more."""
    error: str | None = None
    """Why the latency was not measured; null if it was."""

    @model_validator(mode="after")
    def _an_error_has_no_latency(self) -> DirectionLatency:
        if (self.error is None) != (None not in (self.least_us, self.mean_us, self.most_us)):
            raise ValueError("a direction has its latencies, or an error that says why not")
        return self


class LatencyAtLoad(Record):
    """Latency at one load."""

    goal: str | None
    """The goal whose relevant lower bound the load is a share of; null: the load was given."""
    share_ratio: Ratio | None
    """The share; 0: the minimum load; null: the load was given."""
    load: Rate
    """The load, latency frames included."""
    duration_s: Seconds | None = None
    """Duration of the trial."""
    loss_ratio: Ratio | None = None
    """Loss ratio of the trial, of all its frames; null: it failed."""
    unsent_frames: FrameCount | None = None
    """Frames that the generator could not send; null: the trial failed."""
    directions: tuple[DirectionLatency, ...]
    """Latency by direction; empty: the trial failed."""
    error: str | None = None
    """Why the trial failed; null if it did not."""

    @model_validator(mode="after")
    def _a_failed_trial_has_an_error(self) -> LatencyAtLoad:
        if (self.error is None) != bool(self.directions):
            raise ValueError("a load has its directions, or an error that says why not")
        return self

    @property
    def faults(self) -> tuple[str, ...]:
        """What was not measured, and why."""
        if self.error is not None:
            return (self.error,)
        return tuple(f"{each.direction}: {each.error}" for each in self.directions if each.error is not None)

    @property
    def is_measured(self) -> bool:
        """Whether there is a latency at all."""
        return any(each.error is None for each in self.directions)


def direction_latency(counters: LatencyCounters) -> DirectionLatency:
    """The latency of one direction, with its percentiles."""
    histogram = _histogram(counters)
    return DirectionLatency(
        direction=counters.name,
        least_us=counters.minimum,
        mean_us=counters.average,
        most_us=counters.maximum,
        jitter_us=counters.jitter,
        percentiles_us={} if histogram is None else percentiles_of(histogram, counters.maximum),
        histogram=None if histogram is None else histogram.encode(),
        histogram_unit_us=1.0 if histogram is None else histogram.unit,
        resolution_us=counters.resolution,
        sent_frames=counters.sent,
        received_frames=counters.received,
        out_of_order_frames=counters.out_of_order,
        duplicate_frames=counters.duplicates,
        error=counters.error,
    )


def latency_at_load(
    conditions: Conditions,
    load: float,
    duration: float,
    outcome: LatencyOutput | str,
    *,
    loss_ratio: float | None = None,
    goal: str | None = None,
    share: float | None = None,
) -> LatencyAtLoad:
    """What one latency trial gave.

    Args:
        conditions: Under which it was measured.
        load: Frames per second, per interface.
        duration: Seconds of the trial.
        outcome: What was measured, or why it failed.
        loss_ratio: Loss ratio of the trial; None if it failed.
        goal: Name of the goal whose relevant lower bound the load is a share of; None: of none.
        share: The share.
    """
    measured = None if isinstance(outcome, str) else outcome
    return LatencyAtLoad(
        goal=goal,
        share_ratio=share,
        load=conditions.rate(load),
        duration_s=duration,
        loss_ratio=loss_ratio,
        unsent_frames=None if measured is None else sum(each.unsent for each in measured.directions),
        directions=() if measured is None else tuple(direction_latency(each) for each in measured.latency),
        error=outcome if isinstance(outcome, str) else None,
    )


def percentiles_of(histogram: Histogram, most: float | None) -> dict[str, float]:
    """Latency by percentile, microseconds; none above the largest one, which a histogram of three digits may round up.

    Args:
        histogram: The latencies.
        most: The largest one, microseconds; None: not known.
    """
    found = histogram.percentiles(PERCENTILES)
    return found if most is None else {name: min(value, most) for name, value in found.items()}


def _histogram(counters: LatencyCounters) -> Histogram | None:
    if counters.hdr is not None:
        return Histogram.decode(counters.hdr)
    return Histogram.of(counters.histogram, unit=counters.resolution) if counters.histogram else None
