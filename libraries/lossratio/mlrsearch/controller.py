"""The MLRsearch controller (RFC 9971): asks for trials until every goal has its result.

Each goal has its own search, which proposes the trial that would help it most. The controller chooses among these.
"""

import math
from collections.abc import Iterable, Sequence

from lossratio.errors import SearchError
from lossratio.mlrsearch.as_before import Answer, Question
from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.forecast import Forecast
from lossratio.mlrsearch.goal import SearchGoal, checked_goals
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.knowledge import Knowledge
from lossratio.mlrsearch.memory import MEMORY, Memory
from lossratio.mlrsearch.proposals import (
    Proposal,
    against_bursts,
    beside_the_bounds,
    first_of,
    proposal_of,
    warm_up,
)
from lossratio.mlrsearch.purpose import ASKS_AS_BEFORE, Purpose
from lossratio.mlrsearch.result import GoalResult, IrregularReason, SearchResult, result_of
from lossratio.mlrsearch.rules import GoalView
from lossratio.mlrsearch.stages import GoalBounds
from lossratio.trials import TrialInput, TrialResult
from lossratio.values import NotNegative, checked


def _check_time(name: str, seconds: float | None) -> None:
    """Refuses a time that makes no sense; None: it is not given.

    Raises:
        SearchError: If it is no positive, finite number of seconds.
    """
    if seconds is not None and not 0.0 < seconds < math.inf:
        raise SearchError(
            f"A search's {name} must be a positive number of seconds, not {seconds!r}."
        )


@checked(SearchError)
class MLRsearch:
    """Searches for the conditional throughput of any number of goals at once; a `lossratio.trials.trial.Controller`.

    Each trial counts for every goal. Among the trials that would help a goal, those for the coarsest target come first,
    and of these, the one with the smallest load.

    Attributes:
        goals: The search goals, without duplicates.
        min_load: Smallest load of a trial, frames per second per interface.
        max_load: Largest load of a trial, frames per second per interface.
        elapsed: Seconds that all trials recorded so far took, by the measurer's clock.
        trials: How many trials were recorded, a warm-up included.
        last_purpose: Why the last recorded trial was chosen; None if the search did not ask for it, or nothing was
            recorded.
        view: The kind of knowledge that the search has about each goal.
        hinted_loads: The relevant lower bounds that earlier searches suggest, frames per second per interface; no entry
            for goals without a hint.
    """

    view: type[GoalView] = GoalView

    def __init__(
        self,
        goals: Iterable[SearchGoal],
        min_load: float,
        max_load: float,
        *,
        timeout: float | None = None,
        warm_up_duration: float | None = None,
        fail_fast: bool = True,
        hints: Iterable[Sequence[TrialResult]] = (),
        early_verdict: bool = False,
        end_at_coin: bool = False,
        load_step: NotNegative = 0.0,
        question: Question | None = None,
    ) -> None:
        """Prepares a search.

        Args:
            goals: The search goals. Equal ones (names included) are one goal.
            min_load: Smallest load of a trial, frames per second per interface.
            max_load: Largest load of a trial, frames per second per interface; preferably from a self-test of the
                tester.
            timeout: No trial is asked for after this many seconds of trials, added up from `TrialResult.elapsed`.
            warm_up_duration: If given, the first trial takes this many seconds at max load; its result is discarded.
            fail_fast: Whether the whole search ends when the minimum load is an upper bound for any goal. Otherwise,
                the search continues for the other goals.
            hints: The trials of earlier searches of the same test, each in the order measured (no warm-up), oldest
                search first. They determine where the search starts, and are not evidence.
            early_verdict: Whether a trial may end as soon as it is certain to be a high-loss trial for every goal. Such
                a trial counts as a full trial, so all verdicts are those of full trials; only the order of trials
                differs.
            end_at_coin: Whether a goal is given up if only a zone of chance is left to search, in which another search
                would find another bound. RFC 9971 has no such end.
            load_step: The generator sends multiples of this load, in frames per second; 0: any load.
            question: Asks first whether the SUT is as before. If it is, there is no search. All goals must have trials
                of one length. None: the search begins at once.

        Raises:
            SearchError: If there are no goals, or loads or times make no sense.

        Warns:
            SearchGoalWarning: If goals do not go together well, or the minimum load sends no frame in a trial.
        """
        _check_time("timeout", timeout)
        _check_time("warm-up duration", warm_up_duration)
        self.goals = checked_goals(goals, min_load)
        grid = LoadGrid(min_load, max_load, min(goal.width for goal in self.goals), load_step)
        self.min_load = grid.min_load
        self.max_load = grid.max_load
        self.elapsed = 0.0
        self.trials = 0
        self._timeout = math.inf if timeout is None else timeout
        self._warm_up = (
            None if warm_up_duration is None else TrialInput(warm_up_duration, self.max_load)
        )

        self._fail_fast = fail_fast
        self._end_at_coin = end_at_coin
        self._question = question
        self._has_streams = any(goal.stream is not None for goal in self.goals)
        # A trial that ends early says nothing about single streams.
        ends_early = early_verdict and not self._has_streams
        self._certain_above = max(goal.loss_ratio for goal in self.goals) if ends_early else None
        self._known = Knowledge(self.goals, grid, self.view, hints, early_verdict=ends_early)
        self.hinted_loads = self._known.hinted_loads
        shortest = min(goal.first_duration for goal in self.goals)
        self._memory = Memory(grid, shortest)
        self.last_purpose: Purpose | None = None
        self._next: Proposal | None = None
        self._decided = False

    @property
    def purpose(self) -> Purpose | None:
        """Why the trial of `next_trial` was chosen; None if there is none."""
        self.next_trial()
        if self._next is None:
            return None
        return self._next.purpose

    @property
    def answer(self) -> Answer | None:
        """The answer to the question whether the SUT is as before; None: there is none yet, or no question.

        Only the bounds of the search show a change, so the answer is unsure until then.
        """
        return None if self._question is None else self._question.answer_after(self.bounds)

    @property
    def evidence(self) -> tuple[TrialResult, ...]:
        """All trials that count, grouped by load: all recorded trials except the warm-up."""
        return self._known.evidence()

    @property
    def bounds(self) -> tuple[GoalBounds, ...]:
        """The bounds of each goal so far, in the order of the goals; none before the first trial that counts.

        Reading the bounds does not count any trial again.
        """
        if self._known.results:
            return tuple(view.bounds() for view in self._known.views)
        return ()

    def next_trial(self) -> TrialInput | None:
        """The trial to measure next; None when the search is over. Asking again changes nothing."""
        if not self._decided:
            self._next = self._decide()
            self._decided = True
        if self._next is None:
            return None
        return self._next.trial

    @checked(SearchError)
    def record(self, result: TrialResult) -> None:
        """Takes in the result of any trial, even if the search did not ask for it.

        A load that differs only by rounding from the load of an earlier trial, or from a load of the grid, counts as
        that load.
        """
        self.last_purpose = None
        if self._decided and self._next is not None and self._next.trial == result.input:
            self.last_purpose = self._next.purpose
        self._decided = False
        self.trials += 1
        self.elapsed += result.elapsed
        if self._warm_up is not None and result.input == self._warm_up:
            self._warm_up = None
            return

        result = self._known.same_load(result)
        self._memory.add(result)
        if self._question is not None:
            self._question.add(result)
        self._known.add(result)

    def result(self) -> SearchResult:
        """The result so far, at any time. Before the end, it is marked as not finished."""
        finished = self.next_trial() is None and not self._is_out_of_time()
        goal_results = [self._goal_result(view) for view in self._known.views]
        return SearchResult(
            goal_results, finished=finished, elapsed=self.elapsed, trials=self.trials
        )

    def forecast(self) -> Forecast:
        """The time that the search will still take, in seconds.

        It can be asked at any time, even before the first trial.
        """
        if self.next_trial() is None:
            return Forecast(0.0, 0.0, 0.0)
        pace = self._known.pace
        sure = 0.0 if self._warm_up is None else pace.elapsed(self._warm_up.duration)
        left = self._known.forecast(sure)
        most = self._timeout - self.elapsed
        return Forecast(min(left.seconds, most), min(left.low, most), min(left.high, most))

    def _decide(self) -> Proposal | None:
        if self.elapsed >= self._timeout:
            return None
        if self._warm_up is not None:
            return warm_up(self._warm_up)
        if self.answer is Answer.AS_BEFORE or self._is_failed():
            return None
        if self._question is not None and self.answer is None:
            seconds = self.goals[0].final_trial_duration
            load = self._question.next_load()
            trial = TrialInput(seconds, load, certain_above=self._certain_above)
            return beside_the_bounds(
                self._known.views, trial, Bound.UNDECIDED, ASKS_AS_BEFORE, hinted=True
            )

        proposals = self._proposals()
        if proposals:
            return first_of(proposals)
        without_bursts = against_bursts(self._known.views, self._known.results, self._certain_above)
        if without_bursts is not None or self._has_streams or not self._known.is_searched():
            return without_bursts
        remembered = self._memory.next_trial()
        if remembered is None:
            return None
        return beside_the_bounds(self._known.views, *remembered, MEMORY)

    def _proposals(self) -> list[Proposal]:
        wanted = map(self._proposal, self._known.views)
        return [proposal for proposal in wanted if proposal is not None]

    def _proposal(self, view: GoalView) -> Proposal | None:
        """The trial that helps a goal most; None if the goal's bounds are found, or cannot be found."""
        if self._is_left_to_a_coin(view):
            return None
        return proposal_of(view, self._certain_above)

    def _is_left_to_a_coin(self, view: GoalView) -> bool:
        """Whether the search for a goal ends because only a zone of chance is left."""
        return self._end_at_coin and self._known.is_left_to_a_coin(view)

    def _is_failed(self) -> bool:
        """Whether `fail_fast` ends the search."""
        return self._fail_fast and any(view.is_failed() for view in self._known.views)

    def _is_out_of_time(self) -> bool:
        """Whether the timeout keeps the search from its end."""
        is_over = self.answer is Answer.AS_BEFORE or self._is_failed()
        if is_over or self.elapsed < self._timeout:
            return False
        return self._warm_up is not None or bool(self._proposals())

    def _goal_result(self, view: GoalView) -> GoalResult:
        if self.answer is Answer.AS_BEFORE:
            return GoalResult(view.goal, False, None, None, None, IrregularReason.AS_BEFORE)
        if self._is_left_to_a_coin(view):
            unfinished = IrregularReason.COIN
        elif view.intervals[-1].open and self._proposal(view) is None:
            unfinished = IrregularReason.STALLED
        elif self._is_failed():
            unfinished = IrregularReason.OTHER_GOAL_FAILED
        elif self.elapsed >= self._timeout:
            unfinished = IrregularReason.TIMEOUT
        else:
            unfinished = IrregularReason.STOPPED_EARLY

        limits = self.min_load, self.max_load
        return result_of(
            view.goal, view.stages[-1].evidence, self._known.results, limits, unfinished
        )
