"""Soak test: the critical load, found by PLRsearch."""

from lossratio.measurements.soak.measure import (
    TARGET_LOSS_RATIO,
    SoakProgress,
    SoakRequest,
    find_critical_load,
    warm_start_from,
)
from lossratio.measurements.soak.picture import draw_soak
from lossratio.measurements.soak.replay import ReplayRequest, describe_estimate, estimate_from

__all__ = [
    "TARGET_LOSS_RATIO",
    "ReplayRequest",
    "SoakProgress",
    "SoakRequest",
    "describe_estimate",
    "draw_soak",
    "estimate_from",
    "find_critical_load",
    "warm_start_from",
]
