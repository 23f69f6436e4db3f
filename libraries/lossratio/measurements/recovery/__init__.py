"""System recovery: the time from the end of an overload to the last lost frame (RFC 2544, section 26.5)."""

from lossratio.measurements.recovery.measure import Recovery, RecoveryRequest, RecoveryResult, measure_recovery

KIND = Recovery
"""The class of the kind, for the registry."""

__all__ = ["KIND", "Recovery", "RecoveryRequest", "RecoveryResult", "measure_recovery"]
