"""The model: the counts of a trial, how much is lost at a load, and which load is critical.

- `functions`: the two fitting functions, mean loss as a function of the load;
- `critical_loads`: the same, averaged over a capacity that varies from trial to trial, and the load at which the mean
  loss ratio is the target;
- `counts`: load, exposure and lost frames of each trial, and which trials are evidence;
- `options`: the names of likelihoods, weightings and selections.
"""

from lossratio.plrsearch.model.counts import (
    LONG,
    LONG_TRIALS,
    OVERLOAD,
    Columns,
    Row,
    TrialCounts,
    collect,
    count,
    from_rows,
    merged,
    sent_too_few,
    why_set_aside,
)
from lossratio.plrsearch.model.critical_loads import (
    CriticalLoadQuestion,
    Curves,
    Indices,
    critical_load,
    mrr_of_critical_load,
    root,
)
from lossratio.plrsearch.model.functions import FUNCTIONS, Array, FittingFunction
from lossratio.plrsearch.model.options import (
    LikelihoodName,
    SelectionName,
    StopReason,
    Weighting,
    chosen,
)
