"""Estimates: what the posteriors say about the critical load.

- `result`: the critical load of each fitting function and of both together: the result of PLRsearch;
- `guard`: what frames at and just below the reported load say without any model;
- `misfit`: whether the model fits the trials.
"""

from lossratio.plrsearch.estimate.guard import NEAR, GuardStatement, LossBounds, Verdict
from lossratio.plrsearch.estimate.misfit import TRIALS_FOR_TAILS, FitCheck, Misfit
from lossratio.plrsearch.estimate.result import (
    CombinedEstimate,
    CriticalLoadEstimate,
    CsitEstimate,
    IntervalPoint,
    estimate,
    estimate_from_counts,
)
