"""Reset: the time without forwarding after a reset (RFC 6201)."""

from lossratio.measurements.reset.measure import (
    DEVICES as DEVICES,
    Reset as Reset,
    ResetRequest as ResetRequest,
    ResetResult as ResetResult,
    command_reset as command_reset,
    measure_reset as measure_reset,
)

KIND = Reset
"""The class of the kind, for the registry."""
