"""The PLRsearch controller: chooses trials until the time is over, or the interval is narrow enough.

In the meantime, it keeps the posteriors up to date, at little cost per trial.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from lossratio.checked_arguments import checked
from lossratio.errors import SearchError
from lossratio.plrsearch.csit import CsitSelection
from lossratio.plrsearch.estimate import CriticalLoadEstimate, IntervalPoint, estimate_from_counts
from lossratio.plrsearch.model import (
    Array,
    CriticalLoadQuestion,
    LikelihoodName,
    Row,
    SelectionName,
    StopReason,
    Weighting,
    chosen,
    count,
    from_rows,
    why_set_aside,
)
from lossratio.plrsearch.selection import Choice, PosteriorSelection
from lossratio.plrsearch.variation import Description, described
from lossratio.plrsearch.verifying import clamped
from lossratio.trials import TrialInput, TrialResult

_STEP = 1.02
"""Growth of the number of trials after which the description is updated, because choices do not change faster."""
_LONG, _LONG_SHARE = 20.0, 1.0 / 12.0
"""The maximum total time, in seconds and as a share of the search's time, of the long trials at the end. They show
whether a longer trial makes a difference."""
_TIMES_LONGER = 5.0
"""If these trials cannot be at least this many times as long as the others, they are left out."""
_FOR_LONG = 4.6
"""These trials begin this long before the end, as a multiple of their duration."""

TIMEOUT = 1800.0
"""Seconds of a soak test, as in FD.io CSIT."""

_MIN_TRIALS_TO_STOP = 12
_STOPPING = (1.1, 2.0)
"""Factor by which intervals whose width may end the search are widened: 1.1 plus 2 divided by the number of trials. A
search that checks the interval after each trial may end when the interval is narrow by chance. With this factor, 93 %
or more of the intervals contain the truth."""
_TRIALS_AT_MIN = 8
"""Trials in a row at the minimum load, all with loss, after which the search asks whether it can end."""


def stopping_factor(trials: float | Array) -> float | Array:
    """The factor by which an interval whose width may end the search is widened, after this many trials."""
    return _STOPPING[0] + _STOPPING[1] / trials


@checked(SearchError)
class PLRsearch:
    """Searches for the critical load; a `lossratio.trials.trial.Controller`.

    Trials recorded before the first `next_trial` count as evidence, but not towards the time. They must be of the same
    SUT and traffic. A trial that `lossratio.plrsearch.why_set_aside` rejects is no evidence. It only takes time, and
    another trial replaces it.

    Attributes:
        elapsed: Seconds that the trials of the search took so far, on the measurer's clock.
        trials: Number of recorded trials, including those before the first `next_trial` and those that were set aside.
        history: The estimates during the search, so far.
    """

    def __init__(
        self,
        target_loss_ratio: float,
        min_load: float,
        max_load: float,
        *,
        timeout: float = TIMEOUT,
        precision: float | None = None,
        stop_on_misfit: bool = False,
        likelihood: LikelihoodName | str = LikelihoodName.VARYING,
        weighting: Weighting | str = Weighting.EVIDENCE,
        selection: SelectionName | str = SelectionName.POSTERIOR,
        initial_duration: float | None = None,
        warm_start: Iterable[float] = (),
    ) -> None:
        """Prepares a search.

        Args:
            target_loss_ratio: Loss ratio at the critical load, between 0 and 1, exclusive.
            min_load: Smallest load of a trial, in frames per second per interface; the critical load is not below it.
            max_load: Largest load of a trial, in frames per second per interface; the critical load is not above it.
            timeout: Seconds of trials. A trial that would end later does not begin. It is not shortened either, because
                a SUT with memory, such as a policer, has another capacity in a shorter trial. Only the first trial may
                be shortened. With CSIT's selection, the last trial begins before this time and ends after it.
            precision: Width of the 95 % interval, as a share of the mean, that ends the search if the model fits (under
                ``varying``, a load must also be verified). With a precision, all intervals are wider. None: only time
                ends the search.
            stop_on_misfit: Whether the search ends as soon as the model does not fit the trials.
            likelihood: How counts are distributed.
            weighting: How the fitting functions are combined.
            selection: How loads are chosen.
            initial_duration: Seconds of the first trial; None: 2, or with CSIT's selection 5.1, where each further
                trial is 0.1 longer.
            warm_start: Loads of the first trials in frames per second, e.g. the bounds of an MLRsearch result.

        Raises:
            SearchError: If a value makes no sense.
        """
        self._question = CriticalLoadQuestion(target_loss_ratio, min_load, max_load)
        if not 0.0 < timeout < math.inf:
            raise SearchError(
                f"A search's timeout must be a positive number of seconds, not {timeout!r}."
            )
        if precision is not None and not 0.0 < precision < 1.0:
            raise SearchError(
                f"A precision is a share of the load between 0 and 1, not {precision!r}."
            )
        if initial_duration is not None and not 0.0 < initial_duration < math.inf:
            raise SearchError(
                f"A trial's duration must be a positive number of seconds, not {initial_duration!r}."
            )

        self._timeout = timeout
        self._precision = precision
        self._stop_on_misfit = stop_on_misfit
        self._likelihood = chosen(LikelihoodName, likelihood, "likelihood")
        self._weighting = chosen(Weighting, weighting, "weighting")
        self._is_csits = chosen(SelectionName, selection, "selection") is SelectionName.CSIT
        posterior = PosteriorSelection(self._question, self._likelihood)
        self._selection = CsitSelection(self._question) if self._is_csits else posterior
        self._duration = initial_duration or self._selection.duration
        loads = [float(load) for load in warm_start]
        if not all(load > 0.0 for load in loads):
            raise SearchError(
                f"A warm start needs positive loads in frames per second, not {loads!r}."
            )

        self._warm_loads = sorted({clamped(load, self._question) for load in loads}, reverse=True)
        self.elapsed = 0.0
        self.history: tuple[IntervalPoint, ...] = ()
        self._rows: list[Row] = []
        self._time = 0.0
        self._set_aside = self._usable = self._described = self._tracked = 0
        self._given: int | None = None
        self._next: tuple[TrialInput, Choice] | None = None
        self._stopped_by: StopReason | None = None
        self._known: Description | None = None
        self._estimate: CriticalLoadEstimate | None = None

    @property
    def trials(self) -> int:
        """How many trials were recorded."""
        return len(self._rows) + self._set_aside

    @property
    def purpose(self) -> str | None:
        """Why the trial of `next_trial` was chosen; None if there is none."""
        if self._next is None:
            return None
        return self._next[1].purpose

    def next_trial(self) -> TrialInput | None:
        """See `Controller.next_trial`."""
        if self._given is None:
            self._given = self._usable = len(self._rows)
        if self._next is None and self._stopped_by is None:
            self._decide(len(self._rows) - self._given)
            self._usable = len(self._rows)
        if self._next is None:
            return None
        return self._next[0]

    def meanwhile(self) -> None:
        """Computes an estimate from the trials so far, while the next trial runs.

        The choice after that trial uses the estimate, so no trial waits for one. Without this call, `next_trial`
        computes the same.
        """
        if self._usable >= self._selection.needs_posterior_from - 1:
            self._follow()
        if (latest := self._latest(0.0)) is not None and self._may_end(latest):
            # The values that the choice needs are computed here, and kept in the estimate.
            judged = self._exact(self._usable)
            judged.interval(), judged.misfit

    @checked(SearchError)
    def record(self, result: TrialResult) -> None:
        """See `Controller.record`.

        Raises:
            SearchError: If the trial has no counts of frames, or they make no sense.
        """
        if why_set_aside(result) is None:
            self._rows.append(count(result, self._time))
            choice = None if self._next is None else self._next[1]
            self._selection.record(result, choice)
        else:
            self._set_aside += 1
        self._time += result.elapsed
        if self._given is not None:
            self.elapsed += result.elapsed
        self._next = None

    def result(self) -> CriticalLoadEstimate:
        """See `Controller.result`; the estimate's `stopped_by` says why the search ended, if it did."""
        found = self._exact(len(self._rows))
        return replace(
            found, stopped_by=self._stopped_by, history=self.history, csit=self._selection.estimate
        )

    def _exact(self, trials: int) -> CriticalLoadEstimate:
        """The estimate of the first trials."""
        if self._estimate is None or len(self._estimate.counts) != trials:
            counts = from_rows(self._rows[:trials])
            found = estimate_from_counts(counts, self._question, self._likelihood, self._weighting)
            self._estimate = replace(found, stopping_factor=self._stopping_factor(trials))
        return self._estimate

    def _decide(self, own_trials: int) -> None:
        wanted = self._duration + self._selection.growth * own_trials
        left = self._timeout - self.elapsed
        if self._is_csits:
            left = wanted if left > 0.0 else 0.0
        if left < wanted and (own_trials or self.elapsed):
            self._stopped_by = StopReason.TIMEOUT
            return

        is_long = False
        if own_trials < len(self._warm_loads):
            choice = Choice(
                self._warm_loads[own_trials], "where the warm start says that the knee is"
            )
        else:
            known = self._description()
            trials_left = left * max(own_trials, 1) / max(self.elapsed, wanted)
            long = self._long(known, left, trials_left) if self._is_ending else None
            is_long = long is not None
            if long is not None:
                choice = long
                wanted = self._long_duration
            else:
                choice = self._selection.choose(known, wanted, trials_left)
                wanted *= choice.share

        if self._stopped_by is None:
            # On a busy machine, nearly all long trials have a few unsent frames, and there is no time to repeat such
            # trials.
            self._next = TrialInput(min(wanted, left), choice.load, keeps_unsent=is_long), choice

    @property
    def _is_ending(self) -> bool:
        """Whether it is time for trials that are much longer than the others."""
        left = self._timeout - self.elapsed
        has_long = self._long_duration >= _TIMES_LONGER * self._duration and not self._is_csits
        return has_long and left <= (_FOR_LONG + 1.0) * self._long_duration

    @property
    def _long_duration(self) -> float:
        return min(_LONG, _LONG_SHARE * self._timeout)

    def _long(self, known: Description | None, left: float, trials_left: float) -> Choice | None:
        if not self._long_duration <= left <= _FOR_LONG * self._long_duration:
            return None
        return self._selection.sustained(known, trials_left)

    def _follow(self) -> None:
        """Updates the description that choices are based on, if enough trials are new."""
        rows = self._rows[: self._usable]
        if self._known is not None and len(rows) < max(self._tracked + 1.0, _STEP * self._tracked):
            return
        counts = from_rows(rows)
        self._known = described(counts, self._question, self._likelihood, for_selection=True)
        self._tracked = len(rows)

    def _description(self) -> Description | None:
        """The description for the next choice; updates the history, and stops the search if it is good enough."""
        if self._usable < self._selection.needs_posterior_from - 1:
            return None
        self._follow()
        if self._tracked > self._described:
            self._described = self._tracked
            if (latest := self._latest(self.elapsed)) is not None:
                self.history += (latest,)
                if self._may_end(latest):
                    self._stopped_by = self._reason_to_stop(latest)
        return self._known

    def _latest(self, elapsed: float) -> IntervalPoint | None:
        """The estimate that is shown; None before the first estimate."""
        if self._known is None:
            return None
        shown = self._known.mixed(self._weighting)
        low, middle, high = shown.rough_quantiles([0.025, 0.5, 0.975]).tolist()
        if (factor := self._stopping_factor(self._tracked)) != 1.0:
            low = max(middle - factor * (middle - low), self._question.min_load)
            high = min(middle + factor * (high - middle), self._question.max_load)
        return IntervalPoint(self._tracked, elapsed, shown.mean, low, high, middle)

    def _may_end(self, latest: IntervalPoint) -> bool:
        """Whether the search may end early, so that the exact estimate is needed."""
        if self._is_at_min(latest):
            return True
        stated, low, high = latest.interval
        narrow = self._precision is not None and high - low <= 1.05 * self._precision * stated
        enough = self._usable >= _MIN_TRIALS_TO_STOP
        return enough and (narrow or self._stop_on_misfit)

    def _is_at_min(self, latest: IntervalPoint) -> bool:
        """Whether the last trials were at the minimum load, all with loss, and the model agrees."""
        rows = self._rows[: self._usable][-_TRIALS_AT_MIN:]
        lost_all = [load <= self._question.min_load and lost > 0.0 for load, _, lost, *_ in rows]
        is_low = latest.most_95_per_interface_fps <= self._question.min_load
        return not self._is_csits and sum(lost_all) == _TRIALS_AT_MIN and is_low

    def _reason_to_stop(self, latest: IntervalPoint) -> StopReason | None:
        """The reason to end the search early, if any."""
        estimate = self._exact(self._usable)
        if self._is_at_min(latest) and estimate.is_surely_at_most_min_load:
            return StopReason.MIN_LOAD
        if not estimate.misfit.fits:
            return StopReason.MISFIT if self._stop_on_misfit else None
        if self._likelihood is LikelihoodName.VARYING and estimate.verified is None:
            return None
        low, high = estimate.interval(0.95)
        inside = self._question.min_load < low and high < self._question.max_load
        precise = self._precision is not None and high - low <= self._precision * estimate.median
        if inside and precise:
            return StopReason.PRECISION
        return None

    def _stopping_factor(self, trials: int) -> float:
        """The factor by which the interval is widened because it is checked after each trial."""
        if self._precision is None:
            return 1.0
        return float(stopping_factor(max(trials, _MIN_TRIALS_TO_STOP)))
