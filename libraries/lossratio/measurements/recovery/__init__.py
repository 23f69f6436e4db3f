"""System recovery: the time from the end of an overload to the last lost frame (RFC 2544, section 26.5)."""

from lossratio.measurements.recovery.measure import (
    Recovery as Recovery,
    RecoveryRequest as RecoveryRequest,
    RecoveryResult as RecoveryResult,
    measure_recovery as measure_recovery,
)

KIND = Recovery
"""The class of the kind, for the registry."""
