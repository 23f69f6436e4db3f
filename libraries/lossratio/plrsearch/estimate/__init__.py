"""Estimates: what the trials and the posteriors say about the critical load.

- `result`: the load that is verified, and the critical load: the result of PLRsearch;
- `guard`: the highest load that is verified without any model;
- `misfit`: whether the model fits the trials, and how frames are lost.
"""

from lossratio.plrsearch.estimate.guard import (
    LEAST_TRIALS,
    LONG_TRIALS,
    NEAR,
    GuardStatement,
    LossBounds,
    Verdict,
    is_refuted,
    target_in_words,
)
from lossratio.plrsearch.estimate.misfit import FitCheck, Misfit
from lossratio.plrsearch.estimate.result import (
    TIME_FOR_RARE,
    CriticalLoadEstimate,
    CsitEstimate,
    IntervalPoint,
    estimate,
    estimate_from_counts,
)
