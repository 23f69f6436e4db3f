"""The search by counts: finds and verifies the critical load without any model.

The search brackets the load, looks at how much trials in overload forward, and then holds the highest load that has not
failed until counts verify it (see `held_load` and `counting`). Long trials count as any others. Nothing that is seen in
overload is a ceiling for good: the same overload is measured again later. If another rate is forwarded then, the past
is forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from lossratio.errors import SearchError
from lossratio.plrsearch.bracketing import bracket, bracketed, losing_little
from lossratio.plrsearch.counted_load import CountedLoad, LimitReached
from lossratio.plrsearch.counting import NEAR, Evidence
from lossratio.plrsearch.counts import Row, count, why_set_aside
from lossratio.plrsearch.held_load import HeldLoad
from lossratio.plrsearch.losses import batch, changed, crossing
from lossratio.plrsearch.options import TIMEOUT, CriticalLoadQuestion, LikelihoodName, StopReason
from lossratio.plrsearch.poisson import poisson_estimate
from lossratio.plrsearch.statement import LEAST_TRIALS
from lossratio.trials import TrialInput, TrialResult, sendable
from lossratio.values import checked

_DURATION = 2.0
"""Seconds of a trial, if the user does not say."""
_LONG = 20.0
"""Seconds of a long trial. If the usual trials are as long, there are no others."""
_LONG_SHARE = 1.0 / 12.0
"""Its largest share of the search's time."""
_REFERENCE = 1.1
"""The overload that is measured again and again, as a multiple of the forwarded rate."""
_REFERENCES = 3
"""Trials in this overload at first, or ten, if their rates scatter; fewer, if the search is short: one for each minute,
and one."""
_CHECKS = (0.4, 0.75)
"""Shares of the search's time after which they are repeated."""
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
            likelihood: The model of the estimate beside the verified load.
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
        self._precision = precision or 0.0
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
        self._held = HeldLoad(
            self._clamped, (self._duration, self._long_duration), self._question.max_load
        )
        self._reference = 0.0
        self._once = 0.0

    def _clamped(self, load: float) -> float:
        return sendable(self._question.clamped(load), self._load_step)

    def next_trial(self) -> TrialInput | None:
        """See `Controller.next_trial`."""
        if self._next is None and self._stopped_by is None:
            self._stopped_by = self._reason_to_stop()
            if self._stopped_by is None:
                load, self.purpose = self._chosen()
                is_long = self.purpose == _LONG_RUN
                usual = self._long_duration if is_long else self._duration
                self._next = TrialInput(
                    min(usual, self._timeout - self.elapsed), load, keeps_unsent=is_long
                )
        return self._next

    @checked(SearchError)
    def record(self, result: TrialResult) -> None:
        """See `Controller.record`.

        Raises:
            SearchError: If the trial has no counts of frames, or they make no sense.
        """
        if why_set_aside(result) is None:
            row = count(result, self.elapsed)
            self._first = self._first[1:]
            if self.purpose == _LONG_RUN and not self._held.load:
                self._see_once(row)
            self._rows.append(row)
            if row[0] == self._reference:
                self._compare()
        self.trials += 1
        self.elapsed += result.elapsed
        self.purpose = None
        self._next = None

    @property
    def _evidence(self) -> Evidence:
        return Evidence.of(self._rows, self._target, self._once, self._reference)

    def _reason_to_stop(self) -> StopReason | None:
        if self._timeout - self.elapsed < self._duration and self.trials:
            return StopReason.TIMEOUT
        evidence = self._evidence
        lowest = evidence.at(self._question.min_load)
        if lowest.trials >= LEAST_TRIALS and lowest.least > self._target:
            return StopReason.MIN_LOAD
        if not self._precision:
            return None
        stated, verified, contradicted = self._loads(evidence)
        is_narrow = verified and contradicted and contradicted <= (1.0 + self._precision) * verified
        passed = evidence.longest_passed(stated) >= self._long_duration
        return StopReason.PRECISION if is_narrow and passed else None

    def _loads(self, evidence: Evidence) -> tuple[float, float | None, float | None]:
        """The stated load, the highest verified one, and the lowest above the first that loses more than the target."""
        verified = evidence.highest_verified(self._held.highest)
        stated = (
            verified
            or self._held.load
            or bracket(evidence)[0]
            or self._clamped(self._bracketed(evidence) or 0.0)
        )
        over = (
            load
            for load in evidence.loads
            if load > stated and evidence.at(load).least > self._target
        )
        return stated, verified, min(over, default=None)

    @property
    def passed_and_failed(self) -> tuple[float | None, float | None]:
        """The highest load that passed so far, and the lowest one that did not; in frames per second."""
        return bracket(self._evidence)

    def _chosen(self) -> tuple[float, str]:
        """The next trial's load in frames per second, and its purpose."""
        if self._first:
            return self._first[0], _BRACKET
        evidence = self._evidence
        found = None if self._held.load else self._bracketing(evidence)
        if found is not None:
            return found

        most = LEAST_TRIALS if evidence.has_scatter else _REFERENCES
        due = min(most, 1 + int(self._timeout / 60.0))
        due += sum(self.elapsed > share * self._timeout for share in _CHECKS)
        if self._reference and len(evidence.goodputs) < due:
            return self._reference, _OVERLOAD
        if not self._held.load:
            self._held.hold_first(evidence)
        time_left = self._timeout - self.elapsed
        if time_left >= self._long_duration and self._held.wants_long(evidence):
            return self._held.load, _LONG_RUN
        return self._held.next_load(evidence, time_left * self.trials / self.elapsed), _HOLD

    def _bracketed(self, evidence: Evidence) -> float | None:
        return bracketed(evidence, self.elapsed / self._timeout)

    def _bracketing(self, evidence: Evidence) -> tuple[float, str] | None:
        """The next trial of the bracket; None: it is narrow."""
        load = self._bracketed(evidence)
        if load is None or self._clamped(load) in evidence.loads:
            if not self._reference and evidence.counts.is_overload.any():
                most = float(evidence.counts.forwarding_rate[evidence.counts.is_overload].max())
                self._reference = self._clamped(max(_REFERENCE * most, bracket(evidence)[1] or 0.0))
            return None
        few = losing_little(evidence)
        if few is None or self._timeout - self.elapsed < self._long_duration:
            return self._clamped(load), _BRACKET
        return few, _LONG_RUN

    def _see_once(self, row: Row) -> None:
        """Compares what a long trial lost with the short trials that lost a little near its load."""
        counts = self._evidence.counts
        is_near = counts.is_little & (counts.load <= (1.0 + NEAR) * row[0])
        near = _ONCE_ROOM * float(counts.lost[is_near].max())
        most = _ONCE_ROOM * float(counts.lost[counts.is_little].max())
        self._once = _ONCE_ROOM * most if row[2] <= near else 0.0

    def _compare(self) -> None:
        """Compares a trial in overload with earlier ones. If the device has changed, the past is forgotten."""
        *before, goodput = map(float, self._evidence.goodputs)
        if not before and goodput >= (1.0 - self._target) * self._reference:
            self._begin(self._reference)
        change = changed(before, goodput)
        if change is not None:
            self._changes += (change,)
            self._begin((1.0 + change) * self._loads(self._evidence)[0])

    def result(self) -> CountedLoad:
        """See `Controller.result`."""
        evidence = self._evidence
        stated, verified, contradicted = self._loads(evidence)
        longest = evidence.longest_passed(stated)
        has_long = longest > self._duration
        around = evidence.within((1.0 - NEAR) * stated, (1.0 + NEAR) * stated)

        model = None
        if self._likelihood is LikelihoodName.POISSON:
            model = poisson_estimate(evidence.counts, self._question)

        # Record: what is stated.
        return CountedLoad(
            target=self._target,
            stated=stated,
            verified=verified,
            contradicted=contradicted,
            statement=evidence.statement(stated),
            limit=self._limit(stated),
            line=crossing(evidence.counts, self._target),
            model=model,
            clump=evidence.clump(stated),
            trial_s=self._duration,
            long_s=longest if has_long else None,
            changes=self._changes,
            bucket=self._held.bucket if has_long else None,
            pause=self._held.pause,
            batch=batch(evidence.counts.lost[around & ~evidence.counts.is_overload]),
            once=self._once,
            stopped_by=self._stopped_by,
        )

    def _limit(self, stated: float) -> LimitReached | None:
        """The limit of the loads that the stated load has reached."""
        if stated >= self._question.max_load:
            return LimitReached.AT_LEAST
        if stated <= self._question.min_load and self._evidence.at(stated).ratio > self._target:
            return LimitReached.AT_MOST
        return None
