"""The search by counts: finds and verifies the critical load without any model.

The search brackets the load, looks at how much trials in overload forward, and then holds the highest load that has not
failed until counts verify it (see `counting`). What fails sends it down, and what is verified sends it up to the middle
of the bracket. Nothing that is seen in overload is a ceiling for good: the same overload is measured again later. If
another rate is forwarded then, the past is forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

import numpy as np

from lossratio.checked_arguments import checked
from lossratio.errors import SearchError
from lossratio.plrsearch.bounds import LossBounds
from lossratio.plrsearch.bracketing import HALF, bracket, bracketed, losing_little
from lossratio.plrsearch.counted_load import CountedLoad, LimitReached, SeenBucketRate
from lossratio.plrsearch.counting import FINE, NEAR, Evidence, FixedPause
from lossratio.plrsearch.counts import OVERLOAD, Row, count, why_set_aside
from lossratio.plrsearch.options import CriticalLoadQuestion, LikelihoodName, StopReason
from lossratio.plrsearch.poisson import poisson_estimate
from lossratio.plrsearch.statement import LEAST_TRIALS
from lossratio.trials import TrialInput, TrialResult, sendable

_DURATION = 2.0
"""Seconds of a trial, if the user does not say."""
TIMEOUT = 1800.0
"""Seconds of a soak test, as in FD.io CSIT."""
TIME_FOR_RARE = 6.0
"""Seconds of a search per second between the losses that it has to see: half of its time or more is near the stated
load, and three of them have to be expected there (see `CountedLoad.rarest_s`)."""
_LONG, _LONG_SHARE = 20.0, 1.0 / 12.0
"""Seconds of a long trial, and its largest share of the search's time."""
_STEP, _EVENT_STEP, _LONGEST_STEP = 0.005, 0.05, 0.2
"""The first step down, as a share of the load, where the load decides about losses, and where events do: fewer than
half of the trials lose frames. Each further step is twice as long, up to the longest one."""
_AIM = 0.35
"""The next load should lose this share of the target."""
_REFERENCE = 1.1
"""The overload that is measured again and again, as a multiple of the forwarded rate."""
_REFERENCES, _REFERENCE_SHARE = 3, 0.1
"""Trials in this overload, and their share of the search's trials."""
_CHECKS = (0.4, 0.75)
"""Shares of the search's time after which they are repeated."""
_CHANGE, _SPREADS = 0.001, 4.0
"""A device has changed if it forwards more or less by this share, and by this many standard deviations."""
_TAIL, _LEAST = 8.0, 0.96
"""Where the capacity varies, this many standard deviations below its mean are held, but no less than this share of the
least capacity seen."""
_FEW = 5
"""Short trials at a load before a long one."""
_ONCE_ROOM = 1.25
"""Frames that are lost once may be this many times as many as those seen."""
_LONG_TARGETS, _CHANCE = 3.0, 3.0
"""Targets that a long trial may lose, and frames by chance."""
_ALIKE = 0.8
"""Losses that differ by less are alike."""
_LOOKS = 10
"""Looks at a load that is held: so many bounds hold at once."""
_PATIENCE = 0.5
"""A load fails if it takes more than this share of the remaining trials to verify it, if they lose nothing."""
_SEEN = 3.0
"""Losses that occur this many times on average are seen with a probability of 95 %."""


class _Purpose(str, Enum):
    BRACKET = "where the critical load may be"
    ONCE = "whether a trial loses frames once"
    REFERENCE = "how much the device forwards in overload"
    LONG = "whether the load passes in the long run"
    HOLD = "whether the load is verified"


@checked(SearchError)
class SearchByCounts:
    """Searches for the critical load by counts; a `lossratio.trials.trial.Controller`.

    Trials may also be recorded without `next_trial`. A trial that `why_set_aside` rejects only takes time.

    Attributes:
        elapsed: Seconds that the recorded trials took, on the measurer's clock.
        trials: Number of recorded trials.
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

        self._target, self._load_step = target_loss_ratio, load_step
        self._likelihood = LikelihoodName(likelihood)
        self._timeout, self._precision = timeout, precision
        self._duration = duration or _DURATION
        self._long_duration = min(_LONG, _LONG_SHARE * timeout)
        self._warm_loads = sorted({self._clamped(float(load)) for load in warm_start}, reverse=True)
        self.elapsed = 0.0
        self.trials = 0
        self._rows: list[Row] = []
        self._once: float | None = None
        self._pause: FixedPause | None = None
        self._bucket: SeenBucketRate | None = None
        self._changes: tuple[float, ...] = ()
        self._checks_left = list(_CHECKS)
        self._next: tuple[TrialInput, _Purpose] | None = None
        self._stopped_by: StopReason | None = None
        self._forget(max_load)

    def _forget(self, begin: float) -> None:
        """Begins a new bracket at a load, without the trials so far."""
        self._since = len(self._rows)
        self._begin = self._clamped(begin)
        self._held: float | None = None
        self._ceiling = math.inf
        self._cap = math.inf
        self._downs = 0
        self._reference: float | None = None
        self._goodputs: list[float] = []
        self._longs: list[Row] = []

    def _clamped(self, load: float) -> float:
        return sendable(self._question.clamped(load), self._load_step)

    @property
    def purpose(self) -> str | None:
        """Why the trial of `next_trial` was chosen; None if there is none."""
        return None if self._next is None else self._next[1].value

    def next_trial(self) -> TrialInput | None:
        """See `Controller.next_trial`."""
        if self._next is None and self._stopped_by is None:
            self._stopped_by = self._reason_to_stop()
            if self._stopped_by is None:
                load, purpose = self._chosen()
                is_long = purpose in (_Purpose.LONG, _Purpose.ONCE)
                seconds = self._long_duration if is_long else self._duration
                seconds = min(seconds, self._timeout - self.elapsed)
                self._next = TrialInput(seconds, load, keeps_unsent=is_long), purpose
        return None if self._next is None else self._next[0]

    @checked(SearchError)
    def record(self, result: TrialResult) -> None:
        """See `Controller.record`.

        Raises:
            SearchError: If the trial has no counts of frames, or they make no sense.
        """
        purpose = None if self._next is None else self._next[1]
        if why_set_aside(result) is None:
            self._count(count(result, self.elapsed), purpose)
        self.trials += 1
        self.elapsed += result.elapsed
        self._next = None

    def _count(self, row: Row, purpose: _Purpose | None) -> None:
        """Takes in a trial. What a long trial loses says nothing about short ones."""
        if purpose is _Purpose.ONCE:
            self._see_once(row)
            return

        if purpose is _Purpose.LONG:
            self._longs.append(row)
        if purpose is not _Purpose.LONG or not self._is_lossy(row):
            self._rows.append(row)
        if purpose is _Purpose.REFERENCE:
            self._compare(row)

    @property
    def _evidence(self) -> Evidence:
        free = 0.0 if self._pause is None else self._pause.free_load
        return Evidence.of(self._rows[self._since :], self._target, self._once or 0.0, free)

    def _reason_to_stop(self) -> StopReason | None:
        if self._timeout - self.elapsed < self._duration and self.trials:
            return StopReason.TIMEOUT
        if self._held is None:
            return None
        if self._held <= self._question.min_load:
            lowest = self._evidence.at(self._held, _LOOKS)
            if lowest.trials >= LEAST_TRIALS and lowest.least > self._target:
                return StopReason.MIN_LOAD
        is_precise = self._is_narrow and self._counted().long_s is not None
        return StopReason.PRECISION if is_precise else None

    @property
    def _is_narrow(self) -> bool:
        """Whether the verified and the contradicted load are as near each other as requested."""
        if self._precision is None:
            return False
        found = self._counted()
        highest = (1.0 + self._precision) * (found.verified or 0.0)
        return (found.contradicted or math.inf) <= highest

    @property
    def passed_and_failed(self) -> tuple[float | None, float | None]:
        """The highest load that passed so far, and the lowest one that did not; in frames per second."""
        return bracket(self._evidence)

    def _chosen(self) -> tuple[float, _Purpose]:
        """The next trial's load in frames per second, and its purpose."""
        evidence = self._evidence
        if self.trials < len(self._warm_loads):
            return self._warm_loads[self.trials], _Purpose.BRACKET
        if self._held is None:
            found = self._before_holding(evidence)
            if found is not None:
                return found
            self._hold(evidence)

        held = self._held or self._question.min_load
        is_due = bool(self._checks_left) and self.elapsed > self._checks_left[0] * self._timeout
        if self._reference is not None and is_due:
            return self._reference, _Purpose.REFERENCE
        if self._wants_long(evidence, held):
            return held, _Purpose.LONG
        return self._kept(evidence, held), _Purpose.HOLD

    def _before_holding(self, evidence: Evidence) -> tuple[float, _Purpose] | None:
        """The next trial of the bracket, or in overload; None: both are known."""
        load = bracketed(evidence, self._begin)
        if load is not None and self._clamped(load) not in evidence.loads:
            few = losing_little(evidence)
            can_ask = self._once is None and self._timeout - self.elapsed > self._long_duration
            if few is not None and can_ask:
                return few, _Purpose.ONCE
            return self._clamped(load), _Purpose.BRACKET

        counts = evidence.counts
        if counts.is_overload.any() and self._reference is None:
            most = float(counts.forwarding_rate[counts.is_overload].max())
            ceiling = bracket(evidence)[1] or 0.0
            self._reference = self._clamped(max(_REFERENCE * most, ceiling))
        affordable = int(_REFERENCE_SHARE * self._timeout * self.trials / self.elapsed)
        if self._reference is None or len(self._goodputs) >= min(_REFERENCES, max(affordable, 2)):
            return None
        return self._reference, _Purpose.REFERENCE

    def _see_once(self, row: Row) -> None:
        """Compares what a long trial lost with short trials at loads that lose a little."""
        counts = self._evidence.counts
        little = counts.lost[counts.lost < NEAR * OVERLOAD * counts.sent]
        once = row[2] < HALF * row[4] / self._duration * float(little.mean())
        self._once = once * _ONCE_ROOM * max(float(little.max()), row[2])

    def _compare(self, row: Row) -> None:
        """Compares a trial in overload with earlier ones. If the device has changed, the past is forgotten."""
        load, exposure, lost, *_ = row
        goodput = load - lost / exposure
        mean = float(np.mean(self._goodputs or [goodput]))
        change = goodput / mean - 1.0
        spread = self._spread
        self._goodputs.append(goodput)
        if self._held is None:
            if lost <= self._target * load * exposure:
                self._forget(load)
            return

        self._checks_left = self._checks_left[1:]
        if abs(change) > max(_CHANGE, _SPREADS * spread / mean):
            self._changes += (change,)
            self._forget((1.0 + change) * self._held)

    @property
    def _spread(self) -> float:
        """Standard deviation of what is forwarded in overload, in frames per second."""
        return float(np.std(self._goodputs, ddof=1)) if len(self._goodputs) > 1 else 0.0

    # The load that is held.

    def _hold(self, evidence: Evidence) -> None:
        """Begins to hold the highest load that passed."""
        floor, ceiling = bracket(evidence)
        self._ceiling = ceiling or math.inf
        if self._reference is not None and evidence.varies(self._reference):
            mean = float(np.mean(self._goodputs))
            self._cap = max(mean - _TAIL * self._spread, _LEAST * min(self._goodputs))
        self._held = self._clamped(min(floor or self._question.min_load, self._cap))

    def _wants_long(self, evidence: Evidence, held: float) -> bool:
        """Whether a long trial at the held load is due: at first, at the end, if only it is missing, or lost frames."""
        left = self._timeout - self.elapsed
        passed = any(row[0] >= held and not self._is_lossy(row) for row in self._longs)
        at_held = sum(row[0] == held for row in self._longs)
        if passed or at_held >= 2 or left < self._long_duration:
            return False
        if self._longs and left >= 4.0 * self._long_duration and self._bucket is None:
            return at_held > 0 or self._is_narrow
        return int(np.count_nonzero(evidence.within(held, held))) >= _FEW

    def _is_lossy(self, row: Row) -> bool:
        load, exposure, lost, *_ = row
        lost -= self._once or 0.0
        return lost > _LONG_TARGETS * self._target * load * exposure + _CHANCE

    def _kept(self, evidence: Evidence, held: float) -> float:
        """The load to hold next: lower if it failed, higher if it is verified."""
        here = evidence.at(held, _LOOKS)
        longs = [row for row in self._longs if row[0] == held and self._is_lossy(row)]
        if len(longs) >= 2 or (longs and self._bucket is not None):
            self._held = self._in_long_run(held, longs, here)
        elif self._is_failed(here):
            self._held = self._lowered(evidence, held, here)
        elif evidence.is_verified(held):
            return self._raised(evidence, held)
        return self._held or held

    def _in_long_run(self, held: float, longs: list[Row], short: LossBounds) -> float:
        """The load to hold after long trials have lost frames: the rate in the long run, if a bucket explains them."""
        lost = [row[2] for row in longs]
        self._ceiling = held
        self._cap = self._step_below(held, _STEP)
        goodput = float(np.mean(self._goodputs or [math.inf]))
        is_alike = min(lost) > _ALIKE * max(lost) and not short.lossy
        if is_alike and held > (1.0 - 2.0 * FINE) * goodput and self._bucket is None:
            in_short = goodput * self._duration
            in_long = (held - lost[-1] / longs[-1][1]) * self._long_duration
            long_run = (in_long - in_short) / (self._long_duration - self._duration)
            self._bucket = SeenBucketRate(long_run, in_short - long_run * self._duration)
            self._cap = (1.0 - 0.02 * FINE) * long_run
        return self._clamped(self._cap)

    def _is_failed(self, here: LossBounds) -> bool:
        """Whether the trials at a load lose too much to verify it."""
        if here.least > self._target or here.lost <= self._target * here.frames:
            return here.least > self._target
        clumps = LossBounds.most_of(here.lost / here.burst)
        left = (self._timeout - self.elapsed) / max(self.elapsed / self.trials, self._duration)
        frames = here.burst * clumps / self._target - here.frames
        return frames > _PATIENCE * left * here.frames / here.trials

    def _step_below(self, held: float, step: float) -> float:
        """A load below the held one, in frames per second; the next step is twice as long."""
        self._downs += 1
        return held * (1.0 - min(step * 2.0 ** (self._downs - 1), _LONGEST_STEP))

    def _lowered(self, evidence: Evidence, held: float, here: LossBounds) -> float:
        """A lower load to hold: a step down, or where lines point to."""
        is_event = here.lossy <= HALF * here.trials
        lower = self._step_below(held, _EVENT_STEP if is_event else _STEP)
        self._ceiling = held
        pause = evidence.fixed_pause() if is_event else None
        crossing = None if is_event else evidence.crossing(_AIM * self._target)
        if pause is not None:
            self._pause = pause
            self._cap = min(self._cap, pause.free_load)
            lower = self._cap if held > self._cap else lower
        if crossing is not None:
            lower = min(max(crossing, held - 4.0 * (held - lower)), (1.0 - _STEP) * held)
        return self._clamped(lower)

    def _raised(self, evidence: Evidence, held: float) -> float:
        """The load of the next trial after the held load is verified: the middle of the bracket, or its upper end."""
        self._downs = 0
        if self._ceiling <= held:
            self._ceiling = math.inf
        ceiling = min(self._ceiling, self._question.max_load)
        middle = min(HALF * (held + ceiling), self._cap)
        if ceiling - held > FINE * ceiling and middle > (1.0 + 0.25 * FINE) * held:
            self._held = self._clamped(middle)
        elif self._ceiling < self._cap == math.inf:
            return self._just_above(evidence, held)
        return self._held or held

    def _just_above(self, evidence: Evidence, held: float) -> float:
        """A load just above the held, verified one: until it is contradicted, and so the verified one the highest."""
        higher = self._clamped((1.0 + FINE) * held)
        above = evidence.at(higher)
        if above.least > self._target:
            return held
        if evidence.is_verified(higher):
            self._held = higher
        elif above.trials < max(LEAST_TRIALS, HALF * evidence.at(held).trials):
            return higher
        elif self._precision is not None:
            self._held = self._clamped(HALF * (held + higher))
        return self._held or held

    def result(self) -> CountedLoad:
        """See `Controller.result`."""
        found = self._counted()
        if self._likelihood is LikelihoodName.LINE:
            return found
        return replace(found, model=poisson_estimate(self._evidence.counts, self._question))

    def _counted(self) -> CountedLoad:
        evidence = self._evidence
        passed = [
            load for load in evidence.loads if load <= self._cap and evidence.is_verified(load)
        ]
        verified = max(passed, default=None)
        stated = verified or self._held or bracket(evidence)[0] or self._question.min_load
        higher = (load for load in evidence.loads if load > stated)
        contradicted = (load for load in higher if evidence.at(load).least > self._target)
        near = evidence.within(stated, (1.0 + HALF * NEAR) * stated) & evidence.is_quiet
        passed_long = (row[0] for row in self._longs if not self._is_lossy(row))
        has_long = max(passed_long, default=0.0) >= (1.0 - 1e-9) * stated

        # Record: what is stated.
        return CountedLoad(
            target=self._target,
            stated=stated,
            verified=verified,
            contradicted=min(contradicted, default=None),
            statement=evidence.statement(stated, self._duration),
            limit=self._limit(stated, verified),
            line=evidence.crossing(self._target),
            clump=evidence.clump(stated),
            rarest_s=float(evidence.counts.duration[near].sum()) / _SEEN,
            trial_s=self._duration,
            long_s=self._long_duration if has_long else None,
            changes=self._changes,
            bucket=self._bucket,
            pause=self._pause,
            batch=evidence.batch(stated),
            once=self._once or 0.0,
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
