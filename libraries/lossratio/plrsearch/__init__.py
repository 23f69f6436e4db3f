"""Searches for the critical load, the load at which the mean loss ratio is the target.

`SearchByCounts` chooses trials, and states what their counts show without any model; `load_by_counts` states the same
about trials that something else chose. Both give a `CountedLoad`:

- `stated`: the highest `verified` load or, if there is none, the load that nothing speaks against; `contradicted`: the
  lowest load above it that loses more than the target;
- `statement`: the frames behind the stated load, with a `Verdict`; `rarest_s`: how rare losses must be to remain
  unseen by them;
- `is_regular` and `reason`: whether the stated load may be wrong, and why;
- `sentences`, `batch`, `pause`, `bucket`, `changes`: how frames are lost;
- `line`: the critical load by a line through the trials that lose little, a model; `model`: with the likelihood
  ``poisson``, PLRsearch's estimate as in its draft (draft-vpolak-bmwg-plrsearch-02);
- `stopped_by`: a `StopReason`, None if the search is not finished.

`CsitSearch` chooses loads as FD.io CSIT's code does, and `csit_estimates` computes what that code reports.
`why_set_aside` says why a trial whose generator did not offer the load is no evidence.
"""

from lossratio.plrsearch.bounds import LossBounds as LossBounds
from lossratio.plrsearch.by_counts import (
    TIME_FOR_RARE as TIME_FOR_RARE,
    TIMEOUT as TIMEOUT,
    SearchByCounts as SearchByCounts,
)
from lossratio.plrsearch.counted_load import (
    CountedLoad as CountedLoad,
    LimitReached as LimitReached,
)
from lossratio.plrsearch.counting import FINE as FINE
from lossratio.plrsearch.counts import sent_too_few as sent_too_few, why_set_aside as why_set_aside
from lossratio.plrsearch.csit import CsitSearch as CsitSearch, csit_estimates as csit_estimates
from lossratio.plrsearch.csit_estimate import CsitEstimate as CsitEstimate
from lossratio.plrsearch.given_trials import load_by_counts as load_by_counts
from lossratio.plrsearch.options import (
    LikelihoodName as LikelihoodName,
    SelectionName as SelectionName,
    StopReason as StopReason,
)
from lossratio.plrsearch.poisson import (
    FunctionEstimate as FunctionEstimate,
    PoissonEstimate as PoissonEstimate,
)
from lossratio.plrsearch.statement import (
    CountedStatement as CountedStatement,
    Verdict as Verdict,
    target_in_words as target_in_words,
)
