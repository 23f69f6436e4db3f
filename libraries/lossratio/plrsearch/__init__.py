"""PLRsearch: probabilistic loss ratio search (draft-vpolak-bmwg-plrsearch), with an exact posterior.

`estimate` computes the critical load from trials; `PLRsearch` also chooses the trials. Both return a
`CriticalLoadEstimate`:

- `verified`: the highest load that is verified without any model, or None; `guard` says which frames verify it, with a
  `Verdict`, and `rarest_s` says how rare losses must be to remain unseen by these frames;
- `median`, `mean`, `stdev`, `interval(0.95)`: the critical load by the model; `combined` also has `quantile(p)` and the
  probabilities of the limits, and `description.mixed` has the same for either `Weighting`;
- `functions`: the critical load under each fitting function, ``stretch`` and ``erf``, or by the line near the target,
  ``local``, with the likeliest curve, `loss_ratio(loads)`;
- `misfit`: `fits`, and `reasons` in words if the model does not fit;
- `sentences`: how frames are lost, such as in batches, with a varying capacity, or differently since a change;
- `description`: which trials are described, and how;
- `limits`: sentences, if the critical load may be beyond a limit; `is_at_least_max_load`, `is_at_most_min_load`,
  `is_beyond_trials`;
- `stopped_by`: a `StopReason`, None if the search is not finished;
- `history`: the estimates during the search, as `IntervalPoint`.

`SearchByCounts` is a search without any model, beside the others: it returns a `CountedLoad`.

`why_set_aside` says why a trial whose generator did not offer the load is no evidence.

The folders are `model`, `likelihood`, `quadrature`, `variation` and `estimate`; each imports only the folders before
it. `selection` chooses loads, and `controller` brings everything together. `csit` is FD.io CSIT's own search, which
differs from all this: `csit_estimates` computes what CSIT's code reports for the same trials.
"""

from lossratio.plrsearch.by_counts import SearchByCounts as SearchByCounts
from lossratio.plrsearch.controller import TIMEOUT as TIMEOUT, PLRsearch as PLRsearch
from lossratio.plrsearch.counted_load import CountedLoad as CountedLoad
from lossratio.plrsearch.csit import csit_estimates as csit_estimates
from lossratio.plrsearch.estimate import (
    TIME_FOR_RARE as TIME_FOR_RARE,
    CriticalLoadEstimate as CriticalLoadEstimate,
    CsitEstimate as CsitEstimate,
    FitCheck as FitCheck,
    GuardStatement as GuardStatement,
    IntervalPoint as IntervalPoint,
    LossBounds as LossBounds,
    Misfit as Misfit,
    Verdict as Verdict,
    estimate as estimate,
    target_in_words as target_in_words,
)
from lossratio.plrsearch.model import (
    LONG as LONG,
    OVERLOAD as OVERLOAD,
    LikelihoodName as LikelihoodName,
    SelectionName as SelectionName,
    StopReason as StopReason,
    Weighting as Weighting,
    sent_too_few as sent_too_few,
    why_set_aside as why_set_aside,
)
from lossratio.plrsearch.quadrature import Posterior as Posterior
from lossratio.plrsearch.variation import (
    Change as Change,
    Description as Description,
    LocalFit as LocalFit,
    Pauses as Pauses,
    Replicates as Replicates,
    Scatter as Scatter,
)
