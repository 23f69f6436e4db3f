"""Telemetry of the DUTs around a trial: an addition to the result of a search."""

from lossratio.measurements.telemetry.measure import (
    TELEMETRY_DURATION as TELEMETRY_DURATION,
    TelemetryRequest as TelemetryRequest,
    TelemetryTrial as TelemetryTrial,
    add_telemetry as add_telemetry,
    describe_telemetry as describe_telemetry,
    telemetry_doubts as telemetry_doubts,
)
