"""Frame loss rate over load (RFC 2544, section 26.3)."""

from lossratio.measurements.frame_loss.measure import (
    FrameLossRate,
    FrameLossRequest,
    FrameLossResult,
    measure_frame_loss_rate,
)

KIND = FrameLossRate
"""The class of the kind, for the registry."""

__all__ = ["KIND", "FrameLossRate", "FrameLossRequest", "FrameLossResult", "measure_frame_loss_rate"]
