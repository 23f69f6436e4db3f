"""Frame loss rate over load (RFC 2544, section 26.3)."""

from lossratio.measurements.frame_loss.measure import (
    LARGEST_STEP,
    TRIAL_DURATION,
    FrameLossRate,
    FrameLossRequest,
    measure_frame_loss_rate,
)
from lossratio.measurements.frame_loss.result import FrameLossResult

KIND = FrameLossRate
"""The class of the kind, for the registry."""

__all__ = [
    "KIND",
    "LARGEST_STEP",
    "TRIAL_DURATION",
    "FrameLossRate",
    "FrameLossRequest",
    "FrameLossResult",
    "measure_frame_loss_rate",
]
