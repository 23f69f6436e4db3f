"""Reset: the time without forwarding after a reset (RFC 6201)."""

from lossratio.measurements.reset.measure import (
    DEVICES,
    RESET_LEAD,
    RESET_LIMIT,
    RESET_REPEATS,
    Reset,
    ResetRequest,
    command_reset,
    measure_reset,
)
from lossratio.measurements.reset.result import ResetResult

KIND = Reset
"""The class of the kind, for the registry."""

__all__ = [
    "DEVICES",
    "KIND",
    "RESET_LEAD",
    "RESET_LIMIT",
    "RESET_REPEATS",
    "Reset",
    "ResetRequest",
    "ResetResult",
    "command_reset",
    "measure_reset",
]
