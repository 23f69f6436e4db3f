"""Back-to-back frames (RFC 2544, section 26.4, by the procedure of RFC 9004)."""

from lossratio.measurements.back_to_back.measure import (
    BackToBack,
    BackToBackRequest,
    BackToBackResult,
    BackToBackValues,
    BufferTime,
    BurstSearch,
    measure_back_to_back,
)

KIND = BackToBack
"""The class of the kind, for the registry."""

__all__ = [
    "KIND",
    "BackToBack",
    "BackToBackRequest",
    "BackToBackResult",
    "BackToBackValues",
    "BufferTime",
    "BurstSearch",
    "measure_back_to_back",
]
