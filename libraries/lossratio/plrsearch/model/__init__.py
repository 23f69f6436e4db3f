"""The model: what a trial counts, how much is lost at a load, and which load is critical.

- `functions`: the two fitting functions, mean loss as a function of the load;
- `curves`: the same, averaged over a capacity that varies from trial to trial;
- `critical_loads`: the load at which the mean loss ratio is the target;
- `prior`: how probable parameters are before the first trial;
- `counts`: load, exposure and lost frames of each trial, and which trials are evidence;
- `options`: the names of likelihoods, weightings and selections.
"""

from lossratio.plrsearch.model.counts import TrialCounts, collect, count, from_rows, merged, why_set_aside
from lossratio.plrsearch.model.critical_loads import CriticalLoadQuestion, critical_load, mrr_of_critical_load
from lossratio.plrsearch.model.curves import Curves, Indices
from lossratio.plrsearch.model.functions import FUNCTIONS, Array, FittingFunction
from lossratio.plrsearch.model.options import LikelihoodName, SelectionName, StopReason, Weighting, chosen
from lossratio.plrsearch.model.prior import Prior

__all__ = [
    "FUNCTIONS",
    "Array",
    "CriticalLoadQuestion",
    "Curves",
    "FittingFunction",
    "Indices",
    "LikelihoodName",
    "Prior",
    "SelectionName",
    "StopReason",
    "TrialCounts",
    "Weighting",
    "chosen",
    "collect",
    "count",
    "critical_load",
    "from_rows",
    "merged",
    "mrr_of_critical_load",
    "why_set_aside",
]
