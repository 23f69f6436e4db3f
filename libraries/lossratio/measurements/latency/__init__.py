"""Latency at given loads, and after a search."""

from lossratio.measurements.latency.measure import (
    LATENCY_DURATION,
    LATENCY_SHARES,
    Latency,
    LatencyPoint,
    LatencyRequest,
    add_latency,
    measure_latency,
    points_of,
)
from lossratio.measurements.latency.result import (
    DirectionLatency,
    LatencyAtLoad,
    LatencyResult,
    latency_lines,
    name_load,
)

KIND = Latency
"""The class of the kind, for the registry."""

__all__ = [
    "KIND",
    "LATENCY_DURATION",
    "LATENCY_SHARES",
    "DirectionLatency",
    "Latency",
    "LatencyAtLoad",
    "LatencyPoint",
    "LatencyRequest",
    "LatencyResult",
    "add_latency",
    "latency_lines",
    "measure_latency",
    "name_load",
    "points_of",
]
