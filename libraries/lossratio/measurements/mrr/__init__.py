"""Maximum receive rate: trials at maximum load."""

from lossratio.measurements.mrr.measure import (
    MRR_TRIAL_DURATION as MRR_TRIAL_DURATION,
    MaximumReceiveRate as MaximumReceiveRate,
    MrrRequest as MrrRequest,
    MrrResult as MrrResult,
    measure_mrr as measure_mrr,
)

KIND = MaximumReceiveRate
"""The class of the kind, for the registry."""
