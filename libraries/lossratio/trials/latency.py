"""The one-way latency of a trial's frames."""

from dataclasses import dataclass

from lossratio.trials.record import Frames, Microseconds, Observed
from lossratio.trials.trial import DirectionCounters


@dataclass(frozen=True)
class OneWayLatency(Observed):
    """The one-way latency of one direction in one trial.

    A direction whose latency was not measured has an error, and None for every latency.

    Raises:
        ValueError: If it has neither latencies nor an error, or both.
    """

    direction: str
    """The direction, e.g. ``port0>port1``."""
    sent_frames: Frames
    """Latency frames sent."""
    received_frames: Frames
    """Latency frames received, each counted once."""
    out_of_order_frames: Frames
    """Latency frames that arrived after one that was sent later."""
    duplicate_frames: Frames
    """Latency frames that arrived once more."""
    least_us: Microseconds | None
    """Smallest latency."""
    mean_us: Microseconds | None
    """Mean latency."""
    most_us: Microseconds | None
    """Largest latency."""
    jitter_us: Microseconds | None
    """Mean difference (absolute) between the latencies of successive frames, the mean of RFC 5481's IPDV: smoothed as
    in RFC 3550, or over the whole trial, as the generator reports it."""
    resolution_us: float
    """Smallest difference of latencies that the generator can measure; the least width of the histogram's intervals."""
    error: str | None
    """Why the latency was not measured; None if it was."""
    middle_us: Microseconds | None = None
    """Latency of the first frame that was sent after the middle of the trial and came back: the single tagged frame of
    RFC 2544, section 26.2; None: the generator does not report it."""

    def __post_init__(self) -> None:
        if (self.error is None) != (None not in (self.least_us, self.mean_us, self.most_us)):
            raise ValueError("a direction has its latencies, or an error that says why not")


@dataclass(frozen=True, kw_only=True)
class LatencyCounters(OneWayLatency):
    """The one-way latency of one direction, as a generator measured it."""

    hdr: str | None
    """All latencies in microseconds as an HdrHistogram, compressed and in base64; None where the generator gives a
    `histogram`."""
    histogram: tuple[tuple[float, int], ...]
    """All latencies: one in each interval in microseconds with the number of frames in it; empty where the generator
    gives an `hdr`, or the latencies could not be measured."""
    interval_ratio: float = 0.0
    """Width of the histogram's intervals as a share of the latency, where that is more."""


@dataclass(frozen=True)
class LatencyOutput:
    """The output of one latency trial."""

    directions: tuple[DirectionCounters, ...]
    """The counters of all frames, of the load and for latency together."""
    latency: tuple[LatencyCounters, ...]
    """The latency of each direction."""
