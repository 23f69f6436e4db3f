"""Maximum receive rate: trials at maximum load."""

from lossratio.measurements.mrr.measure import MaximumReceiveRate, MrrRequest, measure_mrr
from lossratio.measurements.mrr.result import MRR_TRIAL_DURATION, MRR_TRIALS, MrrResult

KIND = MaximumReceiveRate
"""The class of the kind, for the registry."""

__all__ = [
    "KIND",
    "MRR_TRIALS",
    "MRR_TRIAL_DURATION",
    "MaximumReceiveRate",
    "MrrRequest",
    "MrrResult",
    "measure_mrr",
]
