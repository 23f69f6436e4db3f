"""Frame loss rate over load (RFC 2544, section 26.3)."""

from lossratio.measurements.frame_loss.measure import (
    FrameLossRate as FrameLossRate,
    FrameLossRequest as FrameLossRequest,
    FrameLossResult as FrameLossResult,
    measure_frame_loss_rate as measure_frame_loss_rate,
)

KIND = FrameLossRate
"""The class of the kind, for the registry."""
