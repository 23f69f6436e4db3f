"""Estimates: what the trials and the posteriors say about the critical load.

- `result`: the load that is verified, and the critical load: the result of PLRsearch;
- `guard`: the highest load that is verified without any model;
- `bounds`: the bounds of a loss ratio from counts alone;
- `history`: the estimates during a search;
- `misfit`: whether the model fits the trials, and how frames are lost.
"""

from lossratio.plrsearch.estimate.bounds import TAIL, LossBounds
from lossratio.plrsearch.estimate.guard import (
    LEAST_TRIALS,
    NEAR,
    UP_TO,
    GuardStatement,
    Verdict,
    is_refuted,
    target_in_words,
)
from lossratio.plrsearch.estimate.history import CsitEstimate, IntervalPoint
from lossratio.plrsearch.estimate.misfit import FitCheck, Misfit
from lossratio.plrsearch.estimate.result import (
    TIME_FOR_RARE,
    CriticalLoadEstimate,
    estimate,
    estimate_from_counts,
)
