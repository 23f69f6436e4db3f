"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .bounds import LossBounds as LossBounds
from .by_counts import SearchByCounts as SearchByCounts
from .counted_load import CountedLoad as CountedLoad, LimitReached as LimitReached
from .counting import FINE as FINE
from .counts import sent_too_few as sent_too_few, why_set_aside as why_set_aside
from .csit import CsitSearch as CsitSearch, csit_estimates as csit_estimates
from .csit_estimate import CsitEstimate as CsitEstimate
from .given_trials import load_by_counts as load_by_counts
from .options import (
    TIME_FOR_RARE as TIME_FOR_RARE,
    TIMEOUT as TIMEOUT,
    LikelihoodName as LikelihoodName,
    SelectionName as SelectionName,
    StopReason as StopReason,
)
from .poisson import FunctionEstimate as FunctionEstimate, PoissonEstimate as PoissonEstimate
from .statement import (
    CountedStatement as CountedStatement,
    Verdict as Verdict,
    target_in_words as target_in_words,
)
