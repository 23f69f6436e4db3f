"""Soak test: the critical load, found by PLRsearch."""

from lossratio.measurements.soak.measure import (
    TARGET_LOSS_RATIO,
    SoakProgress,
    SoakRequest,
    find_critical_load,
    warm_start_from,
)
from lossratio.measurements.soak.picture import draw_soak

__all__ = [
    "TARGET_LOSS_RATIO",
    "SoakProgress",
    "SoakRequest",
    "draw_soak",
    "find_critical_load",
    "warm_start_from",
]
