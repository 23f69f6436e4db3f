"""Maximum receive rate: trials at maximum load."""

from lossratio.measurements.mrr.measure import (
    MRR_TRIAL_DURATION,
    MaximumReceiveRate,
    MrrRequest,
    MrrResult,
    measure_mrr,
)

KIND = MaximumReceiveRate
"""The class of the kind, for the registry."""

__all__ = ["KIND", "MRR_TRIAL_DURATION", "MaximumReceiveRate", "MrrRequest", "MrrResult", "measure_mrr"]
