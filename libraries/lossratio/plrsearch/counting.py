"""What counts of lost frames say about loads without a model: verified, failed, and how frames are lost.

Nothing here depends on how trials were chosen. A load is *verified* if its trials, and perhaps those just above, show a
loss ratio of at most the target (97.5 %), and neither lower loads nor rare events just above speak against it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

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
_BATCH = 300.0
"""Frames: losses that are larger than any batch of software are events, or a capacity that varies."""
_EVENT = 10.0
"""A trial that loses this many targets near a load at which most trials lose fewer has seen an event."""
_LEAST_BATCH, _MULTIPLES, _ALIKE = 4.0, 8.0, 3
"""Frames of the smallest batch, the most batches that a trial loses for its count to show their size, and the least
number of such trials."""
_UNSEEN = -math.log(TAIL)
"""Events that are expected this many times are seen with a probability of 97.5 %."""
_EVENTS, _SHARE_ON_LINE, _PAUSE_ERROR, _APART = 3, 0.65, 0.003, 1.03
"""Pauses are known from this many losses on a line, or this share of them, with this relative error, at loads of which
one is at least this many times another."""
_PAUSE_FRAMES = 16.0
"""A pause loses more frames than this in a trial."""
_FREE = 0.998
"""At this share of the load that fills the ring in a pause, pauses lose nothing."""
_STEEPEST = 1e5
"""The loss ratio grows by at most this power of the load."""
_SAME = 1e-9
"""Relative distance of equal loads."""


@dataclass(frozen=True)
class FixedPause:
    """Pauses of one length, seen by what they lose at several loads."""

    length_s: float
    """Seconds of a pause."""
    ring_frames: float
    """Frames that wait in the meantime; the others are lost."""

    @property
    def free_load(self) -> float:
        """The load, in frames per second, up to which pauses lose nothing."""
        return _FREE * self.ring_frames / self.length_s


@dataclass(frozen=True)
class Evidence:
    """The trials that count."""

    counts: TrialCounts
    """Their counts."""
    target: float
    """The target loss ratio."""
    free_load: float = 0.0
    """Load in frames per second up to which events are known not to occur."""

    @classmethod
    def of(
        cls, rows: Sequence[Row], target: float, once: float = 0.0, free_load: float = 0.0
    ) -> Evidence:
        """The evidence of trials of which each loses some frames once, which do not count."""
        counts = from_rows(rows)
        lost = np.maximum(counts.lost - once, 0.0)
        return cls(replace(counts, lost=lost), target, free_load)

    @property
    def loads(self) -> list[float]:
        """The loads of the trials in frames per second, from the lowest on."""
        return [float(load) for load in np.unique(self.counts.load)]

    @property
    def is_quiet(self) -> NDArray[np.bool_]:
        """Which trials were not in overload."""
        return ~self.counts.is_overload

    def within(self, low: float, high: float) -> NDArray[np.bool_]:
        """Which trials had loads between these, in frames per second; both are included."""
        load = self.counts.load
        return (load >= low * (1.0 - _SAME)) & (load <= high * (1.0 + _SAME))

    def at(self, load: float, looks: int = 1) -> LossBounds:
        """The bounds of the loss ratio at a load, of which all hold at once if there are several looks."""
        return self._bounds(load, load, self.clump(load), looks)

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
        return size if size <= _BATCH else 1.0

    def varies(self, load: float) -> bool:
        """Whether trials at a load in overload scatter more than batches explain: the capacity varies."""
        squares, freedom = self._scatter(self.within(load, load))
        return squares > _BATCH * freedom

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

    def statement(self, load: float, seconds: float) -> CountedStatement:
        """What the trials that verify a load say about it, or if there are none, those up to 10 % below it.

        Args:
            load: The load in frames per second.
            seconds: Seconds of most trials.
        """
        verifying = self._verifying(load)
        if verifying is None:
            loads = (1.0 - NEAR) * load, load
            bounds = self._bounds(*loads, self.clump(load))
            is_over = self.at(load).least > self.target
            verdict = Verdict.CONTRADICTED if is_over else Verdict.EXTRAPOLATED
        else:
            loads = load, verifying
            bounds = self._bounds(*loads, self.clump(load))
            verdict = Verdict.VERIFIED
        tried = self.counts.load[self.within(*loads)]
        ends = float(tried.min(initial=load)), float(tried.max(initial=load))
        return CountedStatement.of(verdict, self.target, ends, bounds).of_trials(seconds)

    def _verifying(self, load: float) -> float | None:
        """The highest load of the trials that verify a load with those at it; None: it is not verified."""
        batch = self.clump(load)
        low = (1.0 - NEAR) * load
        if self._bounds(low, load * (1.0 - 2.0 * _SAME), batch).least > self.target:
            return None

        needed = max(LEAST_TRIALS, self._needed_for_events(load))
        for high in (load, (1.0 + FINE) * load, (1.0 + 0.5 * NEAR) * load, (1.0 + NEAR) * load):
            above = self._bounds(load, high, batch)
            enough = above.trials >= (LEAST_TRIALS if above.lossy else needed)
            if enough and above.most <= self.target:
                everything = self._bounds(low, high, batch)
                if everything.lost <= self.target * everything.frames:
                    return high
        return None

    def _needed_for_events(self, load: float) -> float:
        """Number of trials without loss that show that rare events just above a load do not occur at it; 0: none."""
        near = (
            self.within(load, (1.0 + NEAR) * load)
            & (self.counts.load > load * (1.0 + _SAME))
            & self.is_quiet
        )
        lost, sent = self.counts.lost[near], self.counts.sent[near]
        events = int(np.count_nonzero(lost > _EVENT * self.target * sent + 1.0))
        if not events or 2 * events > len(lost) or load <= self.free_load:
            return 0.0
        return _UNSEEN * len(lost) / events

    def _bounds(self, low: float, high: float, batch: float, looks: int = 1) -> LossBounds:
        here = self.within(low, high)
        return LossBounds.of(self.counts.sent[here], self.counts.lost[here], looks, batch)

    def batch(self, load: float) -> float | None:
        """Number of frames that are lost at a time near a load: all counts are its multiples. None: they are not."""
        near = self.within((1.0 - NEAR) * load, (1.0 + NEAR) * load) & self.is_quiet
        lost = np.sort(self.counts.lost[near & (self.counts.lost > 0.0)])
        if len(lost) < _ALIKE or lost[0] < _LEAST_BATCH or lost[0] > _BATCH:
            return None
        times = lost[lost <= _MULTIPLES * lost[0]] / lost[0]
        is_multiple = np.abs(times - np.round(times)) < 1e-3
        return float(lost[0]) if len(times) >= _ALIKE and is_multiple.all() else None

    def fixed_pause(self) -> FixedPause | None:
        """The pauses that explain the events: their losses grow with the load along a line. None: they do not."""
        events = (self.counts.lost > _PAUSE_FRAMES) & self.is_quiet
        lowest = np.argsort(self.counts.load[events], kind="stable")[: 3 * _EVENTS]
        load, lost = self.counts.load[events][lowest], self.counts.lost[events][lowest]
        # The line through two losses that has the most others on it: some trials see two pauses, or lose more frames.
        on_line = np.zeros(len(load), dtype=bool)
        for first, second in combinations(range(len(load)), 2):
            if load[second] < _APART * load[first]:
                continue
            slope = (lost[second] - lost[first]) / (load[second] - load[first])
            near = (
                np.abs(lost - lost[first] - slope * (load - load[first]))
                <= _PAUSE_ERROR * lost.mean()
            )
            if near.sum() > on_line.sum():
                on_line = near
        if on_line.sum() < max(_EVENTS, _SHARE_ON_LINE * len(load)):
            return None

        length, negative_ring = np.polyfit(load[on_line], lost[on_line], 1)
        if length <= 0.0 or negative_ring >= 0.0:
            return None
        return FixedPause(float(length), -float(negative_ring))

    def crossing(self, ratio: float) -> float | None:
        """The load in frames per second at which a line reaches a loss ratio; None: no loss, or no growth of it.

        The logarithm of the loss ratio is a line over 1/load (a Poisson regression), as for pauses of random length. It
        uses trials that lose little.
        """
        little = self.counts.lost < 0.1 * OVERLOAD * self.counts.sent
        load, lost, sent = (
            column[little] for column in (self.counts.load, self.counts.lost, self.counts.sent)
        )
        if not lost.any():
            return None

        middle = float(load[lost > 0.0].min())
        x = middle / load - 1.0

        def too_low(slope: float) -> float:
            """How far the mean place of the losses that a slope expects is from the one that is seen."""
            expected = sent * np.exp(slope * x - (slope * x).max())
            return float(expected @ x / expected.sum() - lost @ x / lost.sum())

        slope = -_STEEPEST
        if too_low(0.0) <= 0.0:
            return None
        if too_low(slope) < 0.0:
            slope = float(scipy.optimize.brentq(too_low, slope, 0.0))
        most = float((slope * x).max())
        level = math.log(lost.sum() / (sent * np.exp(slope * x - most)).sum()) - most
        place = 1.0 + (math.log(ratio) - level) / slope
        return middle / place if place > 0.0 else None
