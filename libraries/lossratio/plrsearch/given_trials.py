"""What the counts of trials say that something else chose."""

from collections.abc import Iterable

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.by_counts import SearchByCounts
from lossratio.plrsearch.counted_load import CountedLoad
from lossratio.plrsearch.counts import why_set_aside
from lossratio.plrsearch.options import LikelihoodName
from lossratio.trials import TrialResult
from lossratio.values import checked


@checked(SearchError)
def load_by_counts(
    results: Iterable[TrialResult],
    *,
    target_loss_ratio: float,
    min_load: float,
    max_load: float,
    likelihood: LikelihoodName = LikelihoodName.LINE,
) -> CountedLoad:
    """What the counts of any trials say about the critical load.

    Args:
        results: Trials with counts of sent and lost frames, at any loads.
        target_loss_ratio: Loss ratio at the critical load, between 0 and 1, exclusive.
        min_load: Smallest possible answer, in frames per second.
        max_load: Largest possible answer, in frames per second.
        likelihood: The model of the estimate beside the verified load.

    Raises:
        SearchError: If an argument makes no sense, or a trial has no counts, or no trial counts.
    """
    trials = list(results)
    usual = float(np.median([trial.duration for trial in trials])) if trials else None
    search = SearchByCounts(
        target_loss_ratio, min_load, max_load, likelihood=likelihood, duration=usual
    )
    reasons = [why_set_aside(trial) for trial in trials]
    if trials and all(reasons):
        raise SearchError(f"No trial says anything about the SUT. In the first one, {reasons[0]}.")
    for trial in trials:
        search.record(trial)
    return search.result()
