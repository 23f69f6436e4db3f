"""Soak test: the critical load, found by PLRsearch."""

from lossratio.measurements.soak.measure import (
    TARGET_LOSS_RATIO,
    Soak,
    SoakPreset,
    SoakProgress,
    SoakRequest,
    find_critical_load,
    warm_start_from,
)
from lossratio.measurements.soak.result import SoakResult

KIND = Soak
"""The class of the kind, for the registry."""

__all__ = [
    "KIND",
    "TARGET_LOSS_RATIO",
    "Soak",
    "SoakPreset",
    "SoakProgress",
    "SoakRequest",
    "SoakResult",
    "find_critical_load",
    "warm_start_from",
]
