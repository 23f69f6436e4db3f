"""Telemetry of the DUTs around a trial."""

from lossratio.measurements.telemetry.measure import (
    TELEMETRY_DURATION,
    TelemetryRequest,
    add_telemetry,
    describe_telemetry,
    relevant_load,
)

__all__ = [
    "TELEMETRY_DURATION",
    "TelemetryRequest",
    "add_telemetry",
    "describe_telemetry",
    "relevant_load",
]
