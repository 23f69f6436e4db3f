"""Estimates: what the posteriors say about the critical load.

- `result`: the result of PLRsearch, from trials that any search chose;
- `combined`: the critical load of each fitting function, and of both together;
- `misfit`: whether the model fits the trials.
"""

from lossratio.plrsearch.estimate.combined import CombinedEstimate, FunctionEstimate, evidence_weights
from lossratio.plrsearch.estimate.misfit import Misfit
from lossratio.plrsearch.estimate.result import CriticalLoadEstimate, IntervalAfterTrial, estimate, estimate_from_counts

__all__ = [
    "CombinedEstimate",
    "CriticalLoadEstimate",
    "FunctionEstimate",
    "IntervalAfterTrial",
    "Misfit",
    "estimate",
    "estimate_from_counts",
    "evidence_weights",
]
