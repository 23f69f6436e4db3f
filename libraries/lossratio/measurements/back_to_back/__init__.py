"""Back-to-back frames (RFC 2544, section 26.4, by the procedure of RFC 9004)."""

from lossratio.measurements.back_to_back.measure import (
    BackToBack as BackToBack,
    BackToBackRequest as BackToBackRequest,
    BackToBackResult as BackToBackResult,
    BackToBackValues as BackToBackValues,
    BufferTime as BufferTime,
    BurstSearch as BurstSearch,
    measure_back_to_back as measure_back_to_back,
)

KIND = BackToBack
"""The class of the kind, for the registry."""
