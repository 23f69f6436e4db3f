"""Estimates: what the posteriors say about the critical load.

- `result`: the critical load of each fitting function and of both together: the result of PLRsearch;
- `guard`: what frames at and just below the reported load say without any model;
- `misfit`: whether the model fits the trials;
- `tails`: whether capacities may have heavier tails than a normal distribution's.
"""

from lossratio.plrsearch.estimate.guard import NEAR, GuardStatement, LossBounds, Verdict
from lossratio.plrsearch.estimate.misfit import (
    TRIALS_FOR_TAILS,
    FitCheck,
    Misfit,
    rare_stalls,
    tails_of,
)
from lossratio.plrsearch.estimate.result import (
    CriticalLoadEstimate,
    CsitEstimate,
    IntervalPoint,
    estimate,
    estimate_from_counts,
)
from lossratio.plrsearch.estimate.tails import OPEN_TAILS
