"""Back-to-back frames (RFC 2544, section 26.4, by the procedure of RFC 9004)."""

from lossratio.measurements.back_to_back.measure import (
    BURST_REPEATS,
    LONGEST_BURST,
    SETTLE_TIME,
    BackToBack,
    BackToBackRequest,
    BurstSearch,
    measure_back_to_back,
)
from lossratio.measurements.back_to_back.result import BackToBackResult, BufferTime

KIND = BackToBack
"""The class of the kind, for the registry."""

__all__ = [
    "BURST_REPEATS",
    "KIND",
    "LONGEST_BURST",
    "SETTLE_TIME",
    "BackToBack",
    "BackToBackRequest",
    "BackToBackResult",
    "BufferTime",
    "BurstSearch",
    "measure_back_to_back",
]
