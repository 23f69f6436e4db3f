"""Reset: the time without forwarding after a reset (RFC 6201)."""

from lossratio.measurements.reset.measure import DEVICES, Reset, ResetRequest, ResetResult, command_reset, measure_reset

KIND = Reset
"""The class of the kind, for the registry."""

__all__ = ["DEVICES", "KIND", "Reset", "ResetRequest", "ResetResult", "command_reset", "measure_reset"]
