"""Estimates: what the posteriors say about the critical load.

- `result`: the critical load of each fitting function and of both together: the result of PLRsearch;
- `guard`: what frames at and just below the reported load say without any model;
- `misfit`: whether the model fits the trials.
"""

from lossratio.plrsearch.estimate.guard import Guard, LossBounds, Verdict
from lossratio.plrsearch.estimate.misfit import Misfit
from lossratio.plrsearch.estimate.result import (
    CombinedEstimate,
    CriticalLoadEstimate,
    CsitEstimate,
    FunctionEstimate,
    IntervalAfterTrial,
    estimate,
    estimate_from_counts,
    evidence_weights,
)

__all__ = [
    "CombinedEstimate",
    "CriticalLoadEstimate",
    "CsitEstimate",
    "FunctionEstimate",
    "Guard",
    "IntervalAfterTrial",
    "LossBounds",
    "Misfit",
    "Verdict",
    "estimate",
    "estimate_from_counts",
    "evidence_weights",
]
