"""Frame loss rate over load (RFC 2544, section 26.3)."""

from lossratio.measurements.frame_loss.measure import (
    LARGEST_STEP,
    TRIAL_DURATION,
    FrameLossRequest,
    measure_frame_loss_rate,
)
from lossratio.measurements.frame_loss.picture import draw_frame_loss

__all__ = [
    "LARGEST_STEP",
    "TRIAL_DURATION",
    "FrameLossRequest",
    "draw_frame_loss",
    "measure_frame_loss_rate",
]
