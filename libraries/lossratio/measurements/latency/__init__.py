"""Latency at given loads, and after a search."""

from lossratio.measurements.latency.delays import delays_of as delays_of
from lossratio.measurements.latency.measure import (
    LATENCY_DURATION as LATENCY_DURATION,
    LATENCY_SHARES as LATENCY_SHARES,
    Latency as Latency,
    LatencyPoint as LatencyPoint,
    LatencyRequest as LatencyRequest,
    add_latency as add_latency,
    measure_latency as measure_latency,
    measure_latency_once as measure_latency_once,
    points_of as points_of,
)
from lossratio.measurements.latency.result import (
    DirectionLatency as DirectionLatency,
    LatencyAtLoad as LatencyAtLoad,
    LatencyResult as LatencyResult,
    latency_lines as latency_lines,
    name_load as name_load,
)
