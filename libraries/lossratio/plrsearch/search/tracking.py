"""The posteriors of a search, kept up to date at little cost for each trial."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lossratio.plrsearch.estimate import IntervalAfterTrial, evidence_weights
from lossratio.plrsearch.model import CriticalLoadQuestion, LikelihoodName, Weighting, from_rows
from lossratio.plrsearch.quadrature import Posterior, posteriors, quantiles_of_nodes, updated

_GROWTH = 1.5
"""Growth of the number of trials after which the posteriors are integrated anew in any case."""
_STEP = 1.02
"""Growth of the number of trials after which the posteriors are updated: choices do not change faster."""
_FEW_TRIALS, _FEW_LOSSY = 25, 8
"""With fewer trials, or fewer with loss, a choice is not based on a varying capacity: it takes long, and trials do not
show it yet."""


class Tracker:
    """Posteriors to choose loads and to show progress. They depend on the trials and their order only.

    Attributes:
        trials: How many trials are in the posteriors.
        posteriors: The fitting functions' posteriors; empty before the first trial.
    """

    def __init__(self, question: CriticalLoadQuestion, likelihood: LikelihoodName, weighting: Weighting) -> None:
        self._question, self._wanted, self._weighting = question, likelihood, weighting
        self._likelihood = likelihood
        self._integrated: tuple[Posterior, ...] = ()
        self._integrated_trials = 0
        self.trials = 0
        self.posteriors: tuple[Posterior, ...] = ()

    def follow(self, rows: Sequence[tuple[float, float, float]]) -> bool:
        """Adds the new trials, if they are enough; returns whether they were.

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
            evidence_weights([posterior.log_evidence for posterior in self.posteriors])
            if self._weighting is Weighting.EVIDENCE
            else [1.0 / len(self.posteriors)] * len(self.posteriors)
        )
        low, high = quantiles_of_nodes(self.posteriors, weights, np.array([0.025, 0.975]))
        mean = sum(weight * posterior.moments.mean for weight, posterior in zip(weights, self.posteriors, strict=True))
        return IntervalAfterTrial(self.trials, elapsed, float(mean), float(low), float(high))

    def _add(self, rows: Sequence[tuple[float, float, float]]) -> bool:
        """Adds trials at the same nodes; returns whether these nodes are still good enough."""
        after = [
            updated(before, integrated, from_rows(rows), self._likelihood)
            for before, integrated in zip(self.posteriors, self._integrated, strict=True)
        ]
        known = tuple(posterior for posterior in after if posterior is not None)
        if len(known) < len(after):
            return False
        self.posteriors = known
        return True
