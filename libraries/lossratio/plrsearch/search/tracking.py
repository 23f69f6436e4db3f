"""Keeps the posteriors of a search up to date while trials come in, at little cost for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lossratio.plrsearch.estimate import IntervalAfterTrial, evidence_weights
from lossratio.plrsearch.model import CriticalLoadQuestion, LikelihoodName, Weighting, from_rows
from lossratio.plrsearch.quadrature import Posterior, posteriors, quantiles_of_nodes, updated

_GROWTH = 1.5
"""How many times more trials there must be until the posteriors are integrated anew in any case."""
_STEP = 1.02
"""How many times more trials there must be for the posteriors to follow: choices do not change that fast."""
_FEW_TRIALS, _FEW_LOSSY = 25, 8
"""Trials, and those with loss, up to which a varying capacity is not inferred for a choice: it takes long, and there is
nothing to infer it from."""


class Tracker:
    """Posteriors for choosing loads and for progress. They depend on the trials and their order only.

    Attributes:
        trials: How many trials the posteriors know.
        posteriors: The fitting functions' posteriors; none before the first trial.
    """

    def __init__(self, question: CriticalLoadQuestion, likelihood: LikelihoodName, weighting: Weighting) -> None:
        self._question, self._wanted, self._weighting = question, likelihood, weighting
        self._likelihood = likelihood
        self._integrated: tuple[Posterior, ...] = ()
        self._integrated_trials = 0
        self.trials = 0
        self.posteriors: tuple[Posterior, ...] = ()

    def follow(self, rows: Sequence[tuple[float, float, float]]) -> bool:
        """Takes in the trials that are new, if they are enough; says whether they were.

        Args:
            rows: Load, exposure and lost frames of all trials so far.
        """
        if self.posteriors and len(rows) < max(self.trials + 1.0, _STEP * self.trials):
            return False
        likelihood = self._wanted
        lossy = sum(lost > 0.0 for _, _, lost in rows)
        if likelihood is LikelihoodName.VARYING and (len(rows) < _FEW_TRIALS or lossy < _FEW_LOSSY):
            likelihood = LikelihoodName.GEOMETRIC
        few_new = self.posteriors and len(rows) < max(self._integrated_trials + 1.0, _GROWTH * self._integrated_trials)
        if not (few_new and likelihood is self._likelihood and self._add(rows[self.trials :])):
            self._likelihood = likelihood
            self._integrated = posteriors(from_rows(rows), self._question, likelihood, for_selection=True)
            self.posteriors, self._integrated_trials = self._integrated, len(rows)
        self.trials = len(rows)
        return True

    def interval(self, elapsed: float) -> IntervalAfterTrial:
        """The estimate now.

        Args:
            elapsed: Seconds that the trials took.
        """
        weights = (
            evidence_weights([each.log_evidence for each in self.posteriors])
            if self._weighting is Weighting.EVIDENCE
            else [1.0 / len(self.posteriors)] * len(self.posteriors)
        )
        low, high = quantiles_of_nodes(self.posteriors, weights, np.array([0.025, 0.975]))
        mean = sum(weight * each.moments.mean for weight, each in zip(weights, self.posteriors, strict=True))
        return IntervalAfterTrial(self.trials, elapsed, float(mean), float(low), float(high))

    def _add(self, rows: Sequence[tuple[float, float, float]]) -> bool:
        """Adds trials, if the nodes still do."""
        after = [
            updated(before, integrated, from_rows(rows), self._likelihood)
            for before, integrated in zip(self.posteriors, self._integrated, strict=True)
        ]
        known = tuple(each for each in after if each is not None)
        if len(known) < len(after):
            return False
        self.posteriors = known
        return True
