"""Telemetry: the DUTs' answers about one trial after a search."""

from lossratio.measurements.telemetry.measure import TELEMETRY_DURATION, TelemetryRequest, add_telemetry
from lossratio.measurements.telemetry.result import TelemetryTrial, describe_telemetry
