"""Telemetry of the DUTs around a trial: an addition to the result of a search."""

from lossratio.measurements.telemetry.measure import (
    TELEMETRY_DURATION,
    TelemetryRequest,
    TelemetryTrial,
    add_telemetry,
    describe_telemetry,
    telemetry_doubts,
)

__all__ = [
    "TELEMETRY_DURATION",
    "TelemetryRequest",
    "TelemetryTrial",
    "add_telemetry",
    "describe_telemetry",
    "telemetry_doubts",
]
