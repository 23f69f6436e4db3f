"""What counts of lost frames say about loads without a model: verified or failed.

Nothing here depends on how trials were chosen. A load is *verified* if its trials, and perhaps those just above, show a
loss ratio of at most the target (97.5 %), and neither lower loads nor rare events at higher loads speak against it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.bounds import TAIL, LossBounds
from lossratio.plrsearch.counts import OVERLOAD, Row, TrialCounts, from_rows
from lossratio.plrsearch.statement import LEAST_TRIALS, CountedStatement, Verdict

FINE = 0.005
"""Loads that differ by this share are not told apart."""
NEAR = 0.1
"""Loads that differ by this share or less are near each other: what is seen at one may occur at the other."""
BATCH = 300.0
"""Frames: losses that are larger than any batch of software are events, or a capacity that varies."""
_OVERLOAD_TARGETS = 100.0
"""A trial in overload loses at least so many targets: single events lose fewer."""
_EVENT = 10.0
"""A trial has seen an event if it loses more than the target by so many deviations of single frames (square roots of
what the target allows), and a trial at its load or above does not: neither chance nor small batches lose so many."""
_UNSEEN = -math.log(TAIL)
"""Events that are expected this many times are seen with a probability of 97.5 %."""
_TARGETS = 3.0
"""Targets that a trial may lose, and frames by chance, before it is lossy."""
_SAME = 1e-9
"""Relative distance of equal loads."""


@dataclass(frozen=True)
class Evidence:
    """The trials that count."""

    counts: TrialCounts
    """Their counts."""
    target: float
    """The target loss ratio."""

    @classmethod
    def of(cls, rows: Sequence[Row], target: float, once: float = 0.0) -> Evidence:
        """The evidence of trials of which each loses some frames once, which do not count."""
        counts = from_rows(rows)
        lost = np.maximum(counts.lost - once, 0.0)
        overload = max(OVERLOAD, min(_OVERLOAD_TARGETS * target, 0.5))
        return cls(replace(counts, lost=lost, overload=overload), target)

    @property
    def loads(self) -> list[float]:
        """The loads of the trials in frames per second, from the lowest on."""
        return [float(load) for load in np.unique(self.counts.load)]

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
        return self._bounds(load, load, self.clump(load))

    def mean_ratio(self, load: float) -> float:
        """The loss ratio of all trials at a load."""
        here = self.within(load, load)
        return float(self.counts.lost[here].sum() / self.counts.sent[here].sum())

    def clump(self, load: float) -> float:
        """Number of frames that are lost at a time, by the scatter of counts at equal loads.

        Trials in overload show it, unless they show that the capacity varies. Without them, those near the load do.
        """
        is_overload = self.counts.is_overload
        near = self.within((1.0 - NEAR) * load, (1.0 + NEAR) * load) & ~is_overload
        squares, freedom = self._scatter(is_overload if is_overload.any() else near)
        if not freedom or scipy.special.chdtrc(freedom, squares) > TAIL:
            return 1.0
        size = squares / freedom
        return size if size <= BATCH else 1.0

    def varies(self, load: float) -> bool:
        """Whether trials at a load in overload scatter more than batches explain: the capacity varies."""
        squares, freedom = self._scatter(self.within(load, load))
        return squares > BATCH * freedom

    def _scatter(self, which: NDArray[np.bool_]) -> tuple[float, float]:
        """Chi-squared of trials at equal loads, and its degrees of freedom."""
        squares = freedom = 0.0
        loads = self.counts.load[which]
        for load in np.unique(loads):
            lost = self.counts.lost[which][loads == load]
            if len(lost) == 1 or not lost.any():
                continue
            sent = self.counts.sent[which][loads == load]
            expected = sent * (lost.sum() / sent.sum())
            squares += float(((lost - expected) ** 2 / expected).sum())
            freedom += len(lost) - 1.0
        return squares, freedom

    def is_verified(self, load: float) -> bool:
        """Whether at most the target is lost at a load, by its trials or with those up to 10 % above it."""
        return self._verifying(load) is not None

    def highest_verified(self, highest: float) -> float | None:
        """The highest verified load up to one in frames per second; None: no load is verified."""
        allowed = (load for load in self.loads if load <= highest)
        return max(filter(self.is_verified, allowed), default=None)

    def passed_long(self, load: float, usual: float) -> bool:
        """Whether a trial of more than the usual seconds, at a load or above, lost little."""
        passed = (self.counts.duration > usual) & ~self.is_lossy
        return float(self.counts.load[passed].max(initial=0.0)) >= (1.0 - _SAME) * load

    def statement(self, load: float) -> CountedStatement:
        """What the trials that verify a load say about it, or if there are none, those up to 10 % below it."""
        verifying = self._verifying(load)
        loads = (1.0 - NEAR) * load, load
        verdict = Verdict.EXTRAPOLATED
        if verifying is not None:
            loads = load, verifying
            verdict = Verdict.VERIFIED
        elif self.at(load).least > self.target:
            verdict = Verdict.CONTRADICTED

        which = self.within(*loads)
        tried = self.counts.load[which]
        ends = float(tried.min(initial=load)), float(tried.max(initial=load))
        bounds = self._bounds(*loads, self.clump(load))
        seconds = float(self.counts.duration[which].sum()) / max(len(tried), 1)
        return CountedStatement.of(verdict, self.target, ends, bounds).of_trials(seconds)

    def _verifying(self, load: float) -> float | None:
        """The highest load of the trials that verify a load with those at it; None: it is not verified."""
        batch = self.clump(load)
        low = (1.0 - NEAR) * load
        least_s = self._seconds_for_events(load)
        for high in (load, (1.0 + FINE) * load, (1.0 + 0.5 * NEAR) * load, (1.0 + NEAR) * load):
            above = self._bounds(load, high, batch)
            is_long = self.counts.duration[self.within(load, high)].sum() >= least_s
            if above.trials >= LEAST_TRIALS and is_long and above.most <= self.target:
                everything = self._bounds(low, high, batch)
                if everything.lost <= self.target * everything.frames:
                    return high
        return None

    def _seconds_for_events(self, load: float) -> float:
        """Seconds of trials that show that rare events at higher loads do not occur at it; 0: there are none."""
        counts = self.counts
        allowed = self.target * counts.sent
        is_event = counts.lost > allowed + _EVENT * np.sqrt(allowed) + 1.0
        quiet = float(counts.load[~is_event].max(initial=0.0))
        above = self.within(load * (1.0 + 2.0 * _SAME), quiet) & ~counts.is_overload
        lowest = float(counts.load[is_event & above].min(initial=math.inf))
        above &= self.within(lowest, math.inf)
        events = max(int(np.count_nonzero(is_event & above)), 1)
        return _UNSEEN * float(counts.duration[above].sum()) / events

    def _bounds(self, low: float, high: float, batch: float) -> LossBounds:
        here = self.within(low, high)
        return LossBounds.of(self.counts.sent[here], self.counts.lost[here], batch=batch)
