"""Trials that verify a load without a model: at a load just below the estimate, then lower until a load is verified."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import scipy

from lossratio.plrsearch.estimate import LEAST_TRIALS, UP_TO, LossBounds, is_refuted
from lossratio.plrsearch.model import (
    LONG_TRIALS,
    OVERLOAD,
    Array,
    CriticalLoadQuestion,
    critical_load,
)
from lossratio.plrsearch.variation import Description

_KNOWN = 0.002
"""Largest standard deviation of the critical load, as a share of its mean, for verifying it early."""
_EARLY, _LATEST = 9, 0.35
"""Number of trials before the first one that verifies a load, and the share of the time after which this trial comes at
the latest."""
_JUST_BELOW, _BATCHES_BELOW = 0.2, 0.04
"""Share of the target that the curve loses at the load to verify, in general and if frames are lost in batches. With
batches, more trials are necessary to show that there are few batches."""
_STEP = 0.95
"""The next load to try, as a share of a load that cannot be verified."""
_APART = 0.98
"""If a verified load is below this share of a load that fails, a load halfway is tried."""
_OF_PAUSES, _FARTHEST = 0.97, 0.75
"""The load to try, as a share of the load at which pauses lose the target; and its minimum, as a share of the previous
load."""
_ENOUGH = 120
"""After this many trials at a load, no more are added while other trials show more."""
_OTHERS, _AFTERWARDS = 1, 4
"""Number of other trials between two trials at the load to verify, before there are enough trials there and afterwards.
This does not apply until there are as few as verify a load. Only the other trials show whether the SUT changes."""
_OF_TIME = 0.5
"""Maximum share of the remaining trials that one load takes to be verified, if that is more than `_ENOUGH`."""
_PATIENCE, _PLAUSIBLE = 0.1, 0.3
"""A load that lost more than the target is kept for this share of the remaining trials, if the second number is less
than the probability that it loses less in the long run. A single rare loss says little."""
_BEFORE_RAISING = 1.0 / 12.0
"""Minimum number of trials at a verified load before a higher load is tried, as a share of all trials. In fewer trials,
rare losses may be missing."""
_PROMISING, _SEVERAL = 0.95, 12
"""Trials at a load and above are promising if they lose at most this many targets together, and if at least so many of
them lost frames."""
_ALLOWED = 0.7
"""A load is worthwhile if all future trials there may lose at most this share of the target."""
_CHANCE = 3.0
"""So few lost frames say nothing about a load."""
_MUCH = 2.0
"""Two trials must not both lose this many times the target."""
_FEW = 3
"""Minimum number of trials that together show that more than the target is lost."""
_BEGUN, _MOST_MOVES = 2, 4
"""A higher load may replace a load that has at most this many trials. It does so at most as often as the second number,
because the estimate rises with each load that loses nothing."""
_MUCH_HIGHER, _LITTLE_TIME = 0.01, 2.0
"""Minimum difference of such a load, as a share of the load, if less than this many times the number of trials that
verify a load are left."""
_HIGHER = 5e-4
"""Minimum difference of another load that is worth trying, as a share of the load."""
_LOWER = 1e-3
"""The same for a lower load, before there are enough trials at this load."""
_GRID = 2e-5
"""Minimum distance between loads that are tried, as a share, so that equal loads are frequent."""


class Verifying:
    """Chooses trials that verify a load. Each trial must be recorded once, in order.

    Attributes:
        load: The load that is being verified, in frames per second; None: the critical load is not known well enough.
    """

    def __init__(self, question: CriticalLoadQuestion) -> None:
        """Begins without trials. The question has the target and the limits."""
        self._question = question
        self._rows: list[tuple[float, float, float]] = []
        self._long: list[tuple[float, float, float]] = []
        self._begin = 0
        self._before_change: float | None = None
        self._is_passed_tried = self._is_once = False
        self.load: float | None = None
        self._restart()

    def _restart(self) -> None:
        """Forgets which loads were tried."""
        self.load = None
        self._lowest_failed = np.inf
        self._is_raised = False
        self._moves = 0

    def record(
        self, load: float, frames: float, lost: float, *, is_long: bool, is_short: bool = False
    ) -> None:
        """Takes in a trial that is evidence."""
        if is_long:
            self._long.append((load, frames, lost))
        is_usual = not is_long and not is_short
        self._rows.append((load, frames, lost) if is_usual else (0.0, frames, 0.0))

    def wanted(self, known: Description, left: float) -> float | None:
        """The load of the next trial, if this trial should verify a load; None if another trial is needed more.

        Args:
            known: The description of the trials.
            left: The approximate number of trials that there is time for.
        """
        self._forget(known)
        if not self._is_ready(known, left):
            return None
        self._follow(known, left)
        if self.load is None:
            return None

        frames, _ = self._at(self.load, self._rows[self._begin :], known)
        bounds = self._bounds(self.load, known)
        missing = bounds.missing_frames(self._question.target_loss_ratio)
        each = float(frames.mean()) if len(frames) else np.inf
        is_soon = missing is not None and 0.0 < missing <= left * each
        if len(frames) >= LEAST_TRIALS and not is_soon:
            is_enough = len(frames) >= _ENOUGH or (missing == 0.0 and known.local is None)
            others = _AFTERWARDS if is_enough else _OTHERS
            if any(row[0] == self.load for row in self._rows[-others:]):
                return None
        return self.load

    def sustained(self, known: Description, left: float) -> float | None:
        """The load of a long trial at the end; None if enough long trials agree, or no load is being verified."""
        self._forget(known)
        if self.load is None:
            return None
        self._follow(known, left)
        there = LossBounds.of(*self._long_at(self.load, known), batch=known.batch)
        if is_refuted(there, self._question.target_loss_ratio, known.batch):
            passed = min((1.0 - there.lost / there.frames) * self.load, known.in_long_run)
            passed = self._below(passed, known.batch)
            # Shorter trials just below such a load show as little as those at this load.
            self._lower(
                known, passed, verified=self._highest_verified(known, below=_STEP * self.load)
            )
            if not self._is_passed_tried and there.lost > OVERLOAD * there.frames:
                # A bucket or a buffer passes its rate in the long run.
                self._is_passed_tried = True
                self.load = max(self.load, passed)
        elif there.trials >= LONG_TRIALS:
            return None
        return self.load

    def _forget(self, known: Description) -> None:
        """Begins again if the SUT has changed, and goes back if later trials show that it has not.

        It also begins again as soon as losses are known to come once in each trial.
        """
        if known.once is not None and not self._is_once:
            self._is_once = True
            self._restart()
        is_new = known.change is not None and known.change.is_later(self._begin)
        is_disproved = known.change is None and self._begin > 0
        self._begin = 0 if known.change is None else known.change.trials
        if is_new:
            self._before_change = self.load
            self._restart()
        elif is_disproved:
            self.load = self._before_change

    def _is_ready(self, known: Description, left: float) -> bool:
        if self.load is not None:
            return True
        if known.local is not None and not known.local.is_known:
            return False
        mixed = known.reported[0]
        trials = len(self._rows) - self._begin
        is_known = mixed.stdev <= _KNOWN * mixed.mean and trials >= _EARLY
        return is_known or trials >= _LATEST * (trials + left)

    def _follow(self, known: Description, left: float) -> None:
        """Puts the load where the estimate is, or lower if it cannot be verified."""
        is_known = known.local is None or known.local.is_known
        place = self._place(known) if is_known or self.load is None else self.load
        limit = self._limit(known)
        place = min(place, limit)
        if self.load is None:
            self.load = place
        if self.load > known.most_without_pauses:
            self.load = limit
        frames, lost = self._at(self.load, self._rows[self._begin :], known)
        batch = known.batch
        bounds = self._bounds(self.load, known)
        target = self._question.target_loss_ratio

        least = float((lost / np.maximum(frames, 1.0)).min(initial=1.0))
        all_lose = len(frames) > 1 and least > _MUCH * target
        is_hopeless = self._is_hopeless(bounds, left, all_lose=all_lose, few=_CHANCE * batch)
        if is_hopeless and not self._is_promising(known):
            passed = self._below((1.0 - float((lost / frames).max())) * self.load, batch)
            self._lower(known, passed, verified=self._highest_verified(known, below=self.load))
        elif bounds.trials >= LEAST_TRIALS and bounds.most <= target:
            self._raise_to(place, known, left)
        elif bounds.trials < LEAST_TRIALS < left and not np.isfinite(self._lowest_failed):
            # Trials that were not described yet when the load was chosen are described now.
            higher = _HIGHER if left > _LITTLE_TIME * LEAST_TRIALS else _MUCH_HIGHER
            is_higher = place > (1.0 + higher) * self.load and bounds.trials <= _BEGUN
            is_lower = place < (1.0 - _LOWER) * self.load and not self._is_raised
            if self._moves < _MOST_MOVES and (is_higher or is_lower):
                self._moves += is_higher
                self.load = place

    def _is_hopeless(self, bounds: LossBounds, left: float, *, all_lose: bool, few: float) -> bool:
        """Whether it is too late to verify the load in the remaining time; few lost frames say nothing."""
        if bounds.lost <= few:
            return False
        target = self._question.target_loss_ratio
        certain = bounds.trials >= _FEW and bounds.least > target
        if certain or all_lose:
            return True
        if bounds.trials >= LEAST_TRIALS and left >= LEAST_TRIALS:
            missing = bounds.missing_frames(target)
            each = bounds.frames / bounds.trials
            most = max(min(left, _ENOUGH), _OF_TIME * left)
            if missing is not None and missing <= most * each:
                return False
            is_patient = bounds.trials < min(_PATIENCE * left, _ENOUGH)
            return not (is_patient and _is_plausible(bounds, target))

        most = min(bounds.trials + left, max(float(_ENOUGH), bounds.trials))
        allowed = _ALLOWED * target * bounds.frames * most / bounds.trials
        if bounds.trials >= _ENOUGH // 2 and bounds.lost > _ALLOWED * target * bounds.frames:
            return True
        return bounds.lost > few + allowed

    def _lower(self, known: Description, passed: float, *, verified: float) -> None:
        """Moves to the next load below, to what passed or to what pauses allow, but not below a verified load."""
        if self.load is None:
            return
        self._lowest_failed = min(self._lowest_failed, self.load)
        lower = min(_STEP * self.load, max(passed, _FARTHEST * self.load))
        if known.pauses is not None:
            allowed = known.pauses_allow
            hinted = _OF_PAUSES * (allowed.likeliest if allowed.is_known else allowed.most)
            lower = min(lower, max(hinted, _FARTHEST * self.load))

        self.load = max(_on_grid(max(lower, verified), self._question), self._question.min_load)

    def _highest_verified(self, known: Description, *, below: float) -> float:
        """The highest verified load below a load that pauses and buckets may allow, in frames per second; 0: none."""
        rows = self._rows[self._begin :]
        trials = Counter(row[0] for row in rows if 0.0 < row[0] < below and row[0] <= known.most)
        for load in sorted(trials, reverse=True):
            if trials[load] < LEAST_TRIALS:
                continue
            if self._bounds(load, known).most <= self._question.target_loss_ratio:
                return load
        return 0.0

    def _bounds(self, load: float, known: Description) -> LossBounds:
        """The bounds by the trials at a load, or by those up to a higher load if only these verify the load."""
        there = self._bounds_up_to(load, load, known)
        if there.trials < LEAST_TRIALS or known.once is not None:
            return there
        for share in UP_TO:
            bounds = self._bounds_up_to(load, share * load, known)
            if bounds.most <= self._question.target_loss_ratio:
                return bounds
        return there

    def _is_promising(self, known: Description) -> bool:
        """Whether the trials from the load up to higher loads lose less than the target together.

        Then losses do not fall with the load, and more trials here show more than trials at lower loads.
        """
        if self.load is None or known.once is not None:
            return False
        bounds = self._bounds_up_to(self.load, UP_TO[-1] * self.load, known)
        allowed = _PROMISING * self._question.target_loss_ratio * bounds.frames
        return bounds.lossy >= _SEVERAL and bounds.lost < allowed

    def _bounds_up_to(self, load: float, highest: float, known: Description) -> LossBounds:
        """The bounds by the trials between two loads."""
        rows = self._rows[self._begin :]
        near = [(load, *row[1:]) for row in rows if load <= row[0] <= highest]
        return LossBounds.of(*self._at(load, near, known), batch=known.batch)

    def _raise_to(self, place: float, known: Description, left: float) -> None:
        """Moves up if there is time for a higher load: the estimate's, but at most halfway to a load that fails.

        If the load that fails is far away, the higher load is halfway in any case.
        """
        trials = len(self._rows)
        enough = max(LEAST_TRIALS, _BEFORE_RAISING * (trials + left))
        there = sum(row[0] == self.load for row in self._rows[self._begin :])
        if self.load is None or there < enough or left <= 1.5 * enough or trials <= left:
            return

        fails = min(self._lowest_failed, self._fails_probably(known))
        halfway = 0.5 * (self.load + fails)
        if self.load < _APART * fails < np.inf:
            place = min(halfway, known.most, self._limit(known))
        place = _on_grid(min(place, halfway), self._question)
        if place > (1.0 + _HIGHER) * self.load:
            self._is_raised = True
            self.load = place

    def _fails_probably(self, known: Description) -> float:
        """The load in frames per second that is expected to lose more than the target; infinite if trials disagree."""
        local = known.local
        if local is None:
            return known.reported[0].mean
        if local.is_line:
            return local.load_of(1.0)
        if local.above:
            return self._lowest_that_still_fails()
        return local.lossy or np.inf

    def _lowest_that_still_fails(self) -> float:
        """The lowest load above the one to verify at which not only early trials lost more than the target.

        If as many trials as verify a load lost no more since then, the SUT was slower when it began. Infinite: there is
        no such load, or losses came later.
        """
        target = self._question.target_loss_ratio
        rows = self._rows[self._begin :]
        loads = sorted({row[0] for row in rows if self.load is not None and row[0] > self.load})
        for load in loads:
            sent, lost = _counts_at(load, rows)
            failed = np.flatnonzero(lost > target * sent)
            if not len(failed):
                continue
            since = len(sent) - 1 - int(failed[-1])
            if since < LEAST_TRIALS:
                return load
        return np.inf

    def _limit(self, known: Description) -> float:
        """The highest load to verify if there are no pauses, in frames per second; infinite: all loads."""
        most = known.most_without_pauses
        return self._below(most, known.batch) if most < self._question.max_load else np.inf

    def _below(self, rate: float, batch: float) -> float:
        """A load that is surely below what passes in the long run, although this rate is not known exactly.

        If frames are lost in batches, losses begin well below the rate, and the bucket hides them.
        """
        share = 1.0 - _LOWER if batch == 1.0 else _STEP
        return _on_grid(share * rate, self._question)

    @staticmethod
    def _at(
        load: float, rows: Sequence[tuple[float, float, float]], known: Description
    ) -> tuple[Array, Array]:
        """Sent frames of the trials at a load, and their lost frames without those that each trial loses once."""
        sent, lost = _counts_at(load, rows)
        once = 0.0 if known.once is None else known.once.frames
        return sent, np.maximum(lost - once, 0.0)

    def _long_at(self, load: float, known: Description) -> tuple[Array, Array]:
        """The same for the long trials at a load."""
        sent, lost = _counts_at(load, self._long)
        if known.once is None:
            return sent, lost
        usual = np.array(self._rows[self._begin :])
        once = known.once.in_long(load, usual[:, 0], usual[:, 2])
        return sent, np.maximum(lost - once, 0.0)

    def _place(self, known: Description) -> float:
        """A load that is surely below the critical load, and loses little of the target according to the curve."""
        low = float(min(part.rough_quantiles([0.025])[0] for part in known.reported))
        if known.local is not None:
            below = _JUST_BELOW if known.batch == 1.0 else _BATCHES_BELOW
            place = min(low, known.local.load_of(below))
            return _on_grid(max(place, _STEP * known.local.quiet), self._question)
        posterior = known.best
        curves = posterior.curves.at(np.full(2, posterior.likeliest))
        targets = self._question.target_loss_ratio * np.array([1.0, _JUST_BELOW])
        there, below = critical_load(curves, self._question, targets)
        low = float(posterior.rough_quantiles([0.025])[0])
        load = low * float(below / there) * (1.0 - known.heavier_tails)
        return _on_grid(load, self._question)


def _is_plausible(bounds: LossBounds, target: float) -> bool:
    """Whether trials that lost more than the target may have lost so much by chance.

    Formula: the posterior of a Poisson rate (Jeffreys), up to the rate of trials with loss that the target allows.
    """
    allowed = bounds.lossy * target * bounds.frames / bounds.lost
    return bool(scipy.special.gammainc(bounds.lossy + 0.5, allowed) > _PLAUSIBLE)


def _counts_at(load: float, rows: Sequence[tuple[float, float, float]]) -> tuple[Array, Array]:
    """Sent and lost frames of the trials at a load."""
    counts = [row[1:] for row in rows if row[0] == load]
    sent, lost = np.array(counts, dtype=float).reshape(-1, 2).T
    return sent, lost


def _on_grid(load: float, question: CriticalLoadQuestion) -> float:
    """The load within the limits, or one slightly below."""
    load = clamped(load, question)
    step = grid_step(_GRID * load)
    return clamped(step * math.floor(load / step), question)


def grid_step(width: float) -> float:
    """The largest power of two that is at most `width`. The multiples of such steps are often equal loads."""
    return 2.0 ** math.floor(math.log2(width))


def clamped(load: float, question: CriticalLoadQuestion) -> float:
    """The load within the limits."""
    return min(max(load, question.min_load), question.max_load)
