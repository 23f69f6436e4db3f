"""Latency at given loads."""

from lossratio.measurements.latency.measure import (
    LATENCY_DURATION,
    LATENCY_SHARES,
    LatencyPoint,
    LatencyRequest,
    add_latency,
    measure_latency,
    points_of,
)
from lossratio.measurements.latency.picture import draw_latency

__all__ = [
    "LATENCY_DURATION",
    "LATENCY_SHARES",
    "LatencyPoint",
    "LatencyRequest",
    "add_latency",
    "draw_latency",
    "measure_latency",
    "points_of",
]
