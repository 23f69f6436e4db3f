"""The search by counts: finds and verifies the critical load without any model.

The search brackets the load, looks at how much trials in overload forward, and then holds the highest load that has not
failed until counts verify it (see `counting`). What fails sends it down, and what is verified sends it up to the middle
of the bracket. Long trials count as any others. Nothing that is seen in overload is a ceiling for good: the same
overload is measured again later. If another rate is forwarded then, the past is forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lossratio.checked_arguments import checked
from lossratio.errors import SearchError
from lossratio.plrsearch.bounds import LossBounds
from lossratio.plrsearch.bracketing import FEW, HALF, bracket, bracketed, losing_little
from lossratio.plrsearch.counted_load import CountedLoad, LimitReached
from lossratio.plrsearch.counting import FINE, NEAR, Evidence
from lossratio.plrsearch.counts import Row, count, why_set_aside
from lossratio.plrsearch.losses import (
    FixedPause,
    SeenBucketRate,
    batch,
    bucket,
    changed,
    crossing,
    fixed_pause,
    is_near_knee,
)
from lossratio.plrsearch.options import CriticalLoadQuestion, LikelihoodName, StopReason
from lossratio.plrsearch.poisson import poisson_estimate
from lossratio.plrsearch.statement import LEAST_TRIALS
from lossratio.trials import TrialInput, TrialResult, sendable

_DURATION = 2.0
"""Seconds of a trial, if the user does not say."""
TIMEOUT = 1800.0
"""Seconds of a soak test, as in FD.io CSIT."""
TIME_FOR_RARE = 7.5
"""Seconds of a search per second between the losses that it has to see: about half of its time is at the stated load,
and 3.7 of them have to be expected there, so that one is seen with a probability of 97.5 %."""
_LONG = 20.0
"""Seconds of a long trial. If the usual trials are as long, there are no others."""
_LONG_SHARE = 1.0 / 12.0
"""Its largest share of the search's time."""
_STEP = 0.0025
"""Half of the first step down, as a share of the load. Each further step is twice as long."""
_EVENT_DOWNS = 4
"""Where events and not the load lose frames, the first step down is as long as this step."""
_REFERENCE = 1.1
"""The overload that is measured again and again, as a multiple of the forwarded rate."""
_REFERENCES = 3
"""Trials in this overload at first; fewer, if the search takes less than two minutes: one for each minute begun."""
_CHECKS = (0.4, 0.75)
"""Shares of the search's time after which they are repeated."""
_TAIL = 8.0
"""Where the capacity varies, this many standard deviations below its mean are held. A normal capacity with a mean loss
of 1e-7 is about 5 of them above the load, and three trials estimate them with an error of half."""
_ONCE_ROOM = 1.25
"""Frames that are lost once may be this many times as many as those seen."""

_BRACKET = "where the critical load may be"
_OVERLOAD = "how much the device forwards in overload"
_LONG_RUN = "whether the load passes in the long run"
_HOLD = "whether the load is verified"


@checked(SearchError)
class SearchByCounts:
    """Searches for the critical load by counts; a `lossratio.trials.trial.Controller`.

    Trials may also be recorded without `next_trial`. A trial that `why_set_aside` rejects only takes time.

    Attributes:
        elapsed: Seconds that the recorded trials took, on the measurer's clock.
        trials: Number of recorded trials.
        purpose: Why the trial of `next_trial` was chosen; None: there is none.
    """

    def __init__(
        self,
        target_loss_ratio: float,
        min_load: float,
        max_load: float,
        *,
        timeout: float = TIMEOUT,
        precision: float | None = None,
        likelihood: LikelihoodName = LikelihoodName.LINE,
        duration: float | None = None,
        warm_start: Iterable[float] = (),
        load_step: float = 0.0,
    ) -> None:
        """Prepares a search.

        Args:
            target_loss_ratio: Loss ratio at the critical load, between 0 and 1, exclusive.
            min_load: Smallest load of a trial, in frames per second per interface.
            max_load: Largest load of a trial, in frames per second per interface.
            timeout: Seconds of trials.
            precision: The search ends when a load is verified, and another one contradicted that is higher by at most
                this share. None: only time ends it.
            likelihood: What the estimate beside the verified load is computed from.
            duration: Seconds of a trial; None: 2.
            warm_start: Loads of the first trials in frames per second.
            load_step: The generator sends multiples of this load, in frames per second; 0: any load.

        Raises:
            SearchError: If a value makes no sense.
        """
        self._question = CriticalLoadQuestion(target_loss_ratio, min_load, max_load)
        for name, seconds in (("search's timeout", timeout), ("trial's duration", duration)):
            if seconds is not None and not 0.0 < seconds < math.inf:
                raise SearchError(
                    f"A {name} must be a positive number of seconds, not {seconds!r}."
                )
        if precision is not None and not 0.0 < precision < 1.0:
            raise SearchError(
                f"The precision must be a share of the load between 0 and 1, not {precision!r}."
            )

        self._target = target_loss_ratio
        self._load_step = load_step
        self._likelihood = LikelihoodName(likelihood)
        self._timeout = timeout
        self._precision = precision
        self._duration = duration or _DURATION
        self._long_duration = max(min(_LONG, _LONG_SHARE * timeout), self._duration)
        self.elapsed = 0.0
        self.trials = 0
        self._changes: tuple[float, ...] = ()
        self.purpose: str | None = None
        self._next: TrialInput | None = None
        self._stopped_by: StopReason | None = None
        self._begin(*sorted(warm_start, reverse=True) or [max_load])

    def _begin(self, *loads: float) -> None:
        """Begins a new bracket at some loads, without the trials so far."""
        self._first = [self._clamped(load) for load in loads]
        self._rows: list[Row] = []
        self._held: float | None = None
        self._ceiling = math.inf
        self._highest = self._question.max_load
        self._downs = 0
        self._reference: float | None = None
        self._goodputs: list[float] = []
        self._once = 0.0
        self._bucket: SeenBucketRate | None = None
        self._pause: FixedPause | None = None

    def _clamped(self, load: float) -> float:
        return sendable(self._question.clamped(load), self._load_step)

    def next_trial(self) -> TrialInput | None:
        """See `Controller.next_trial`."""
        if self._next is None and self._stopped_by is None:
            self._stopped_by = self._reason_to_stop()
            if self._stopped_by is None:
                load, self.purpose = self._chosen()
                is_long = self.purpose == _LONG_RUN
                seconds = self._long_duration if is_long else self._duration
                seconds = min(seconds, self._timeout - self.elapsed)
                self._next = TrialInput(seconds, load, keeps_unsent=is_long)
        return self._next

    @checked(SearchError)
    def record(self, result: TrialResult) -> None:
        """See `Controller.record`.

        Raises:
            SearchError: If the trial has no counts of frames, or they make no sense.
        """
        if why_set_aside(result) is None:
            self._count(count(result, self.elapsed))
        self.trials += 1
        self.elapsed += result.elapsed
        self.purpose = None
        self._next = None

    def _count(self, row: Row) -> None:
        self._first = self._first[1:]
        if self.purpose == _LONG_RUN and self._held is None:
            self._see_once(row)
        self._rows.append(row)
        if self.purpose == _OVERLOAD:
            self._compare(row)

    @property
    def _evidence(self) -> Evidence:
        return Evidence.of(self._rows, self._target, self._once)

    def _reason_to_stop(self) -> StopReason | None:
        if self._timeout - self.elapsed < self._duration and self.trials:
            return StopReason.TIMEOUT
        evidence = self._evidence
        lowest = evidence.at(self._question.min_load)
        if lowest.trials >= LEAST_TRIALS and lowest.least > self._target:
            return StopReason.MIN_LOAD
        if self._precision is None:
            return None
        verified, contradicted = self._verified_and_contradicted(evidence)
        highest = (1.0 + self._precision) * (verified or 0.0)
        is_narrow = (contradicted or math.inf) <= highest
        needs_long = self._has_long_trials and self._long_s(evidence, verified or 0.0) is None
        return StopReason.PRECISION if is_narrow and not needs_long else None

    @property
    def _has_long_trials(self) -> bool:
        """Whether there are trials that are longer than the usual ones."""
        return self._long_duration > self._duration

    def _long_s(self, evidence: Evidence, load: float) -> float | None:
        """Seconds of the long trials that passed at a load or above; None: none did."""
        passed = (evidence.counts.duration > self._duration) & ~evidence.is_lossy
        highest = float(evidence.counts.load[passed].max(initial=0.0))
        return self._long_duration if highest >= (1.0 - 1e-9) * load else None

    def _verified_and_contradicted(self, evidence: Evidence) -> tuple[float | None, float | None]:
        """The highest verified load, and the lowest one above the stated load that loses more than the target."""
        allowed = (load for load in evidence.loads if load <= self._highest)
        verified = max(filter(evidence.is_verified, allowed), default=None)
        stated = verified or self._held or bracket(evidence)[0] or self._question.min_load
        higher = (load for load in evidence.loads if load > stated)
        over = (load for load in higher if evidence.at(load).least > self._target)
        return verified, min(over, default=None)

    @property
    def passed_and_failed(self) -> tuple[float | None, float | None]:
        """The highest load that passed so far, and the lowest one that did not; in frames per second."""
        return bracket(self._evidence)

    def _chosen(self) -> tuple[float, str]:
        """The next trial's load in frames per second, and its purpose."""
        if self._first:
            return self._first[0], _BRACKET
        evidence = self._evidence
        found = self._bracketing(evidence) if self._held is None else None
        if found is not None:
            return found

        due = min(_REFERENCES, 1 + int(self._timeout / 60.0))
        due += sum(self.elapsed > share * self._timeout for share in _CHECKS)
        if self._reference is not None and len(self._goodputs) < due:
            return self._reference, _OVERLOAD
        held = self._held or self._hold(evidence)
        if self._wants_long(evidence, held):
            return held, _LONG_RUN
        return self._kept(evidence, held), _HOLD

    def _bracketing(self, evidence: Evidence) -> tuple[float, str] | None:
        """The next trial of the bracket; None: it is narrow."""
        load = bracketed(evidence)
        if load is None or self._clamped(load) in evidence.loads:
            if self._reference is None and evidence.counts.is_overload.any():
                most = float(evidence.counts.forwarding_rate[evidence.counts.is_overload].max())
                self._reference = self._clamped(max(_REFERENCE * most, bracket(evidence)[1] or 0.0))
            return None
        few = losing_little(evidence)
        has_long = evidence.counts.duration.max() > self._duration
        can_ask = self._has_long_trials and self._timeout - self.elapsed >= self._long_duration
        if few is None or has_long or not can_ask:
            return self._clamped(load), _BRACKET
        return few, _LONG_RUN

    def _see_once(self, row: Row) -> None:
        """Compares what a long trial lost with short trials at loads that lose a little."""
        counts = self._evidence.counts
        little = counts.lost[counts.lost < NEAR * counts.overload * counts.sent]
        most = _ONCE_ROOM * float(little.max())
        if row[2] <= most:
            self._once = _ONCE_ROOM * most

    def _compare(self, row: Row) -> None:
        """Compares a trial in overload with earlier ones. If the device has changed, the past is forgotten."""
        load, exposure, lost, *_ = row
        goodput = load - lost / exposure
        before = self._goodputs
        self._goodputs = [*before, goodput]
        if not before and goodput >= (1.0 - self._target) * load:
            self._begin(load)
        change = changed(before, goodput)
        if change is not None:
            self._changes += (change,)
            self._begin(goodput)

    # The load that is held.

    def _hold(self, evidence: Evidence) -> float:
        """Begins to hold the highest load that passed."""
        floor, ceiling = bracket(evidence)
        self._ceiling = ceiling or math.inf
        if len(self._goodputs) > 1 and evidence.varies(self._reference or 0.0):
            below = _TAIL * float(np.std(self._goodputs, ddof=1))
            self._highest = self._clamped(float(np.mean(self._goodputs)) - below)
        self._held = min(self._clamped(floor or self._question.min_load), self._highest)
        return self._held

    def _wants_long(self, evidence: Evidence, held: float) -> bool:
        """Whether a long trial at the held load is due: after a few short ones, and again if a bucket may lose."""
        if not self._has_long_trials or self._timeout - self.elapsed < self._long_duration:
            return False
        at_held = evidence.counts.duration[evidence.within(held, held)]
        longs = int(np.count_nonzero(at_held > self._duration))
        most = 1 + is_near_knee(held, self._goodputs)
        return len(at_held) >= FEW and longs < most and self._long_s(evidence, held) is None

    def _kept(self, evidence: Evidence, held: float) -> float:
        """The load of the next trial: lower than the held one if that failed, higher if it is verified."""
        here = evidence.at(held)
        if self._is_failed(here):
            self._ceiling = held
            self._see_losses(evidence, held)
        elif not evidence.is_verified(held):
            return held
        verified, _ = self._verified_and_contradicted(evidence)
        if self._highest < held:
            self._held = self._highest
        elif verified is not None:
            return self._raised(evidence, verified)
        else:
            self._downs += 1
            if here.lossy <= HALF * here.trials:
                self._downs = max(self._downs, _EVENT_DOWNS)
            self._held = self._clamped(held * (1.0 - min(_STEP * 2.0**self._downs, 2.0 * NEAR)))
        return self._held

    def _is_failed(self, here: LossBounds) -> bool:
        """Whether a load loses too much, or half of the remaining trials without loss would be too few to verify it."""
        if here.least > self._target or here.lost <= self._target * here.frames:
            return here.least > self._target
        clumps = LossBounds.most_of(here.lost / here.burst)
        left = (self._timeout - self.elapsed) / max(self.elapsed / self.trials, self._duration)
        frames = here.burst * clumps / self._target - here.frames
        return frames > HALF * left * here.frames / here.trials

    def _see_losses(self, evidence: Evidence, held: float) -> None:
        """Sees how frames are lost at a load that failed, and up to which load they are not."""
        lengths = self._duration, self._long_duration
        self._bucket = bucket(evidence, held, self._goodputs, lengths) or self._bucket
        self._pause = fixed_pause(evidence.counts) or self._pause
        for seen in (self._bucket, self._pause):
            if seen is not None:
                self._highest = min(self._highest, self._clamped(seen.free_load))

    def _raised(self, evidence: Evidence, verified: float) -> float:
        """The load of the next trial if a load is verified: the middle of the bracket, or its ends if it is narrow."""
        self._downs = 0
        if self._ceiling <= verified:
            self._ceiling = math.inf
        ceiling = min(self._ceiling, self._highest)
        if ceiling > (1.0 + FINE) * verified:
            self._held = self._clamped(HALF * (verified + ceiling))
            return self._held
        self._held = verified
        higher = self._clamped((1.0 + FINE) * verified)
        above = evidence.at(higher)
        enough = max(LEAST_TRIALS, HALF * evidence.at(verified).trials)
        is_open = above.least <= self._target and above.trials < enough
        return higher if is_open and verified < self._highest else verified

    def result(self) -> CountedLoad:
        """See `Controller.result`."""
        found = self._counted()
        if self._likelihood is LikelihoodName.LINE:
            return found
        return replace(found, model=poisson_estimate(self._evidence.counts, self._question))

    def _counted(self) -> CountedLoad:
        evidence = self._evidence
        verified, contradicted = self._verified_and_contradicted(evidence)
        stated = verified or self._held or bracket(evidence)[0] or self._question.min_load
        long_s = self._long_s(evidence, stated)
        around = evidence.within((1.0 - NEAR) * stated, (1.0 + NEAR) * stated)

        # Record: what is stated.
        return CountedLoad(
            target=self._target,
            stated=stated,
            verified=verified,
            contradicted=contradicted,
            statement=evidence.statement(stated),
            limit=self._limit(stated, verified),
            line=crossing(evidence.counts, self._target),
            clump=evidence.clump(stated),
            trial_s=self._duration,
            long_s=long_s,
            changes=self._changes,
            bucket=self._bucket if long_s else None,
            pause=self._pause,
            batch=batch(evidence.counts.lost[around & ~evidence.counts.is_overload]),
            once=self._once,
            stopped_by=self._stopped_by,
        )

    def _limit(self, stated: float, verified: float | None) -> LimitReached | None:
        """The limit of the loads that the stated load has reached."""
        if stated >= self._question.max_load:
            return LimitReached.AT_LEAST
        here = self._evidence.at(stated)
        is_lossy = verified is None and here.lost > self._target * here.frames
        is_lowest = stated <= self._question.min_load
        return LimitReached.AT_MOST if is_lowest and is_lossy else None
