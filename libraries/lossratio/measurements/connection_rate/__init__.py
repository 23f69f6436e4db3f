"""Connections per second that a device establishes, found by MLRsearch."""

from lossratio.measurements.connection_rate.measure import (
    ConnectionRate as ConnectionRate,
    ConnectionRateRequest as ConnectionRateRequest,
    ConnectionRateResult as ConnectionRateResult,
    find_connection_rate as find_connection_rate,
)
