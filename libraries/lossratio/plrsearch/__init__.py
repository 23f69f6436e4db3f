"""PLRsearch: probabilistic loss ratio search (draft-vpolak-bmwg-plrsearch), with an exact posterior.

`estimate` computes the critical load from trials; `PLRsearch` chooses the trials, too. Both return a
`CriticalLoadEstimate`:

- `mean`, `stdev`, `interval(0.95)`: the critical load; `combined` has also `quantile(p)` and the
  probabilities of the limits, `description.mixed` the same by either `Weighting`;
- `functions["stretch"]`, `functions["erf"]`: the critical load under each fitting function, with the likeliest curve,
  `loss_ratio(loads)`;
- `misfit`: `fits`, and `reasons` in words if the model does not fit;
- `description`: which trials are described, and how: replicates, drift, correlation;
- `guard`: what frames at and just below that load say without any model, with a `Verdict`;
- `limits`: in words, if the critical load may be beyond one; `is_at_least_max_load`, `is_at_most_min_load`,
  `is_beyond_trials`;
- `stopped_by`: a `StopReason`, None if the search is not finished;
- `history`: the estimates during the search, as `IntervalPoint`.

`why_set_aside` gives the reason why a trial whose generator did not offer the load is no evidence.

The folders, each of which imports only those before it: `model`, `likelihood`, `quadrature`, `variation`,
`estimate`. `selection` chooses loads, and `controller` brings all together. `csit`
is FD.io CSIT's own search, which differs from all that: `csit_estimates` computes what CSIT's code reports for the
same trials.
"""

from lossratio.plrsearch.controller import TIMEOUT as TIMEOUT, PLRsearch as PLRsearch
from lossratio.plrsearch.csit import csit_estimates as csit_estimates
from lossratio.plrsearch.estimate import (
    OPEN_TAILS as OPEN_TAILS,
    CriticalLoadEstimate as CriticalLoadEstimate,
    CsitEstimate as CsitEstimate,
    FitCheck as FitCheck,
    GuardStatement as GuardStatement,
    IntervalPoint as IntervalPoint,
    LossBounds as LossBounds,
    Misfit as Misfit,
    Verdict as Verdict,
    estimate as estimate,
)
from lossratio.plrsearch.model import (
    LikelihoodName as LikelihoodName,
    SelectionName as SelectionName,
    StopReason as StopReason,
    Weighting as Weighting,
    why_set_aside as why_set_aside,
)
from lossratio.plrsearch.quadrature import Posterior as Posterior
from lossratio.plrsearch.variation import (
    CapacityVariation as CapacityVariation,
    Description as Description,
    Order as Order,
    Replicates as Replicates,
)
