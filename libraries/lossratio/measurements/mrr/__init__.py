"""Maximum receive rate: trials at maximum load."""

from lossratio.measurements.mrr.measure import MrrRequest, measure_mrr

__all__ = [
    "MrrRequest",
    "measure_mrr",
]
