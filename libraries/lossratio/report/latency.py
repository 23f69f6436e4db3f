"""Latency in result files: at loads that are shares of what a search found."""

from __future__ import annotations

from pydantic import Field

from lossratio.report.record import Rate, Ratio, Record


class DirectionLatency(Record):
    """The latency of one direction."""

    direction: str
    """The direction, e.g. ``port0>port1``."""
    least_us: float = Field(ge=0.0)
    """Smallest latency, microseconds."""
    mean_us: float = Field(ge=0.0)
    """Mean latency, microseconds."""
    most_us: float = Field(ge=0.0)
    """Largest latency, microseconds."""
    percentiles_us: dict[str, float]
    """Latency by percentile, e.g. ``99.9``, microseconds."""
    histogram: str | None
    """All latencies as an HdrHistogram, compressed and in base64; null: the generator gives none."""


class LatencyAtLoad(Record):
    """Latency at one load."""

    goal: str
    """The goal whose relevant lower bound the load is a share of."""
    share_ratio: Ratio
    """The share; 0: the minimum load."""
    load: Rate
    """The load."""
    directions: tuple[DirectionLatency, ...] = Field(min_length=1)
    """Latency by direction."""
