"""What one latency trial measured: the counters of its load, and the latency of each direction."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.trials.trial import DirectionCounters


@dataclass(frozen=True)
class LatencyCounters:
    """The one-way latency of one direction in one trial; microseconds, unless said otherwise.

    A direction whose latency could not be measured has an `error`, and None for every latency.

    Attributes:
        name: The direction, e.g. ``port0>port1``.
        sent: Latency frames sent.
        received: Latency frames received, each counted once.
        out_of_order: Latency frames that arrived after one that was sent later.
        duplicates: Latency frames that arrived although they had arrived before.
        minimum: Smallest latency.
        average: Mean latency.
        maximum: Largest latency.
        jitter: Mean difference (absolute) between the latencies of successive frames, as RFC 3550 smooths it or over
            the whole trial: whatever the generator has.
        hdr: All latencies in microseconds as an HdrHistogram, compressed and in base64; None where the generator gives
            a `histogram`.
        histogram: All latencies: the lower edge of each interval with the number of frames in it; empty where the
            generator gives an `hdr`, or the latencies could not be measured.
        resolution: Difference of latencies that the generator can tell; the width of the histogram's intervals.
        error: Why the latency could not be measured; None if it could.
    """

    name: str
    sent: int
    received: int
    out_of_order: int
    duplicates: int
    minimum: float | None
    average: float | None
    maximum: float | None
    jitter: float | None
    resolution: float
    hdr: str | None = None
    histogram: tuple[tuple[float, int], ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class LatencyOutput:
    """What one latency trial measured.

    Attributes:
        directions: The counters of all frames, those of the load and those for latency together.
        latency: The latency of each direction.
    """

    directions: tuple[DirectionCounters, ...]
    latency: tuple[LatencyCounters, ...]
