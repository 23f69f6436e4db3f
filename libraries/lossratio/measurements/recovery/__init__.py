"""System recovery: the time from the end of an overload to the last lost frame (RFC 2544, section 26.5)."""

from lossratio.measurements.recovery.measure import (
    OVERLOAD_DURATION,
    OVERLOAD_RATIO,
    RECOVERY_LIMIT,
    RECOVERY_REPEATS,
    Recovery,
    RecoveryRequest,
    measure_recovery,
)
from lossratio.measurements.recovery.result import RecoveryResult

KIND = Recovery
"""The class of the kind, for the registry."""

__all__ = [
    "KIND",
    "OVERLOAD_DURATION",
    "OVERLOAD_RATIO",
    "RECOVERY_LIMIT",
    "RECOVERY_REPEATS",
    "Recovery",
    "RecoveryRequest",
    "RecoveryResult",
    "measure_recovery",
]
