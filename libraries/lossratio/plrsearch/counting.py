"""What counts of lost frames say about loads without a model: verified or failed.

Nothing here depends on how trials were chosen. A load is *verified* if its trials show a loss ratio of at most the
target (97.5 %), and lower loads do not speak against it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.bounds import TAIL, LossBounds
from lossratio.plrsearch.counts import OVERLOAD, Array, Row, TrialCounts, from_rows
from lossratio.plrsearch.statement import LEAST_TRIALS, CountedStatement, Verdict

FINE = 0.005
"""Loads that differ by this share are not told apart."""
NEAR = 0.1
"""Loads that differ by this share or less are near each other: what is seen at one may occur at the other."""
BATCH = 300.0
"""Frames: losses that are larger than any batch of software are events, or a capacity that varies."""
_OVERLOAD_TARGETS = 100.0
"""A trial in overload loses at least so many targets: single events lose fewer."""
_TARGETS = 3.0
"""Targets that a trial may lose, and frames by chance, before it is lossy."""
_SCATTER = 0.0005
"""The forwarded rates of a device whose capacity varies differ by more than this share of the overload."""
_SAME = 1e-9
"""Relative distance of equal loads."""


@dataclass(frozen=True)
class Evidence:
    """The trials that count."""

    counts: TrialCounts
    """Their counts."""
    target: float
    """The target loss ratio."""
    reference: float = 0.0
    """The overload that is measured again and again, in frames per second; 0: none is yet."""

    @classmethod
    def of(
        cls, rows: Sequence[Row], target: float, once: float = 0.0, reference: float = 0.0
    ) -> Evidence:
        """The evidence of trials of which each loses some frames once, which do not count."""
        counts = from_rows(rows)
        lost = np.maximum(counts.lost - once, 0.0)
        overload = max(OVERLOAD, min(_OVERLOAD_TARGETS * target, 0.5))
        return cls(replace(counts, lost=lost, overload=overload), target, reference)

    @property
    def loads(self) -> list[float]:
        """The loads of the trials in frames per second, from the lowest on."""
        return [float(load) for load in np.unique(self.counts.load)]

    @property
    def goodputs(self) -> Array:
        """Frames per second that the trials at the reference load forwarded."""
        return self.counts.forwarding_rate[self.within(self.reference, self.reference)]

    @property
    def has_scatter(self) -> bool:
        """Whether the trials at the reference load forwarded different rates."""
        rates = self.goodputs
        return bool(
            rates.max(initial=0.0) - rates.min(initial=math.inf) > _SCATTER * self.reference
        )

    @property
    def is_lossy(self) -> NDArray[np.bool_]:
        """Which trials lost more than a few targets, and more than a few frames by chance."""
        return self.counts.lost > _TARGETS * (self.target * self.counts.sent + 1.0)

    def within(self, low: float, high: float) -> NDArray[np.bool_]:
        """Which trials had loads between these, in frames per second; both are included."""
        load = self.counts.load
        return (load >= low * (1.0 - _SAME)) & (load <= high * (1.0 + _SAME))

    def at(self, load: float) -> LossBounds:
        """The bounds of the loss ratio at a load."""
        return self._bounds(load, load)

    def clump(self, load: float) -> float:
        """Number of frames that are lost at a time, by the scatter of counts at equal loads.

        Trials in overload show it, unless they show that the capacity varies. Without them, those near the load do.
        """
        is_overload = self.counts.is_overload
        near = self.within((1.0 - NEAR) * load, (1.0 + NEAR) * load) & ~is_overload
        which = is_overload if is_overload.any() else near
        _, group = np.unique(self.counts.load[which], return_inverse=True)
        lost = np.bincount(group, self.counts.lost[which])
        ratio = lost / np.bincount(group, self.counts.sent[which])
        expected = self.counts.sent[which] * ratio[group]
        squares = (self.counts.lost[which] - expected) ** 2 / np.maximum(expected, 1e-300)
        freedom = max(np.count_nonzero(expected) - np.count_nonzero(lost), 1)
        is_chance = scipy.special.chdtrc(freedom, squares.sum()) > TAIL
        size = float(squares.sum()) / freedom
        return 1.0 if is_chance or size > BATCH else size

    def is_verified(self, load: float) -> bool:
        """Whether at most the target is lost at a load, and lower loads do not speak against it."""
        here = self.at(load)
        is_shown = here.trials >= LEAST_TRIALS and here.most <= self.target
        return is_shown and self._bounds((1.0 - NEAR) * load, load).ratio <= self.target

    def highest_verified(self, highest: float) -> float | None:
        """The highest verified load up to one in frames per second; None: no load is verified."""
        return max(
            (load for load in self.loads if load <= highest and self.is_verified(load)),
            default=None,
        )

    def longest_passed(self, load: float) -> float:
        """Seconds of the longest trial, at a load or above, that lost little; 0: there is none."""
        passed = self.within(load, math.inf) & ~self.is_lossy
        return float(self.counts.duration[passed].max(initial=0.0))

    def statement(self, load: float) -> CountedStatement:
        """What the trials at a load say about it or, if they do not verify it, those up to 10 % below it, too."""
        verdict = Verdict.EXTRAPOLATED
        low = (1.0 - NEAR) * load
        if self.is_verified(load):
            verdict = Verdict.VERIFIED
            low = load
        elif self.at(load).least > self.target:
            verdict = Verdict.CONTRADICTED

        which = self.within(low, load)
        tried = self.counts.load[which]
        ends = float(tried.min(initial=load)), float(tried.max(initial=load))
        bounds = self._bounds(low, load)
        seconds = float(self.counts.duration[which].sum()) / max(len(tried), 1)
        return CountedStatement.of(verdict, self.target, ends, bounds).of_trials(seconds)

    def _bounds(self, low: float, high: float) -> LossBounds:
        here = self.within(low, high)
        return LossBounds.of(self.counts.sent[here], self.counts.lost[here], batch=self.clump(high))
