"""The MLRsearch controller (RFC 9971): asks for trials until every goal has its result.

Each goal has its own search, which proposes the trial that would help it most. The controller chooses among these.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lossratio.checked_arguments import NotNegative, checked
from lossratio.errors import SearchError
from lossratio.mlrsearch.as_before import Answer, Question
from lossratio.mlrsearch.bursts import (
    BURSTS,
    may_turn,
    needs_more_trials,
    trials_foreseen,
    trials_left,
)
from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.expectation import LossCurve
from lossratio.mlrsearch.forecast import Forecast, Pace, expected_upper_bound, forecast
from lossratio.mlrsearch.goal import SearchGoal, checked_goals
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.hints import hint_of
from lossratio.mlrsearch.memory import MEMORY, Memory
from lossratio.mlrsearch.purpose import ASKS_AS_BEFORE, RESTED, Purpose
from lossratio.mlrsearch.result import GoalResult, IrregularReason, SearchResult, result_of
from lossratio.mlrsearch.rules import GoalView, choose
from lossratio.mlrsearch.stages import GoalBounds
from lossratio.mlrsearch.zone import is_left_to_a_coin
from lossratio.trials import TrialInput, TrialResult

STALLED_AFTER = 100
"""A goal is given up when a load is still undecided after this many times the number of trials that its target needs.

Example: a generator sends for 5 ms of each second. Then 21 s of full-length trials need 4200 trials, not 21. The goal
is given up after 2100 trials at one load.
"""

ABOVE = 2
"""The trial after a rest is this many goal widths above all bounds."""


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
        memory_rest: NotNegative = 0.0,
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
            memory_rest: Seconds of rest before one more trial at the end, which is above all bounds, and shows whether
                the SUT then passes more; 0: there is no such trial.
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
        self._grid = LoadGrid(min_load, max_load, min(goal.width for goal in self.goals), load_step)
        self.min_load = self._grid.min_load
        self.max_load = self._grid.max_load
        self.elapsed = 0.0
        self.trials = 0
        self._timeout = math.inf if timeout is None else timeout
        self._warm_up = (
            None if warm_up_duration is None else TrialInput(warm_up_duration, self.max_load)
        )
        self._fail_fast = fail_fast
        self._end_at_coin = end_at_coin
        self._question = question
        self._coins: dict[SearchGoal, bool] = {}
        self._has_streams = any(goal.stream is not None for goal in self.goals)
        # A trial that ends early says nothing about single streams.
        ends_early = early_verdict and not self._has_streams
        self._certain_above = max(goal.loss_ratio for goal in self.goals) if ends_early else None
        self._curves = {goal.stream: LossCurve() for goal in self.goals}
        shortest = min(goal.first_duration for goal in self.goals)
        self._memory = Memory(self._grid, shortest)
        self._pace = Pace()
        earlier = tuple(hints)
        by_goal = {goal: hint_of(goal, self._grid, earlier) for goal in self.goals}
        promised = {goal: hint.lower for goal, hint in by_goal.items() if hint is not None}
        self.hinted_loads = {goal: self._grid.load(lower) for goal, lower in promised.items()}
        # The trial after a rest compares the losses of all streams together, so streams are not asked about.
        rest = 0.0 if self._has_streams else memory_rest
        self._after_rest = TrialInput(shortest, self.max_load, rest=rest) if rest else None

        self._views = tuple(
            self.view(goal, self._grid, self._curves[goal.stream], hint, early_verdict=ends_early)
            for goal, hint in by_goal.items()
        )
        self._results: dict[float, list[TrialResult]] = {}
        self.last_purpose: Purpose | None = None
        self._next: tuple[TrialInput, Purpose] | None = None
        self._decided = False

    @property
    def purpose(self) -> Purpose | None:
        """Why the trial of `next_trial` was chosen; None if there is none."""
        self.next_trial()
        if self._next is None:
            return None
        return self._next[1]

    @property
    def answer(self) -> Answer | None:
        """The answer to the question whether the SUT is as before; None: there is none yet, or no question.

        Only the bounds of the search show a change, so the answer is unsure until then.
        """
        return None if self._question is None else self._question.answer_after(self.bounds)

    @property
    def evidence(self) -> tuple[TrialResult, ...]:
        """All trials that count, grouped by load: all recorded trials except the warm-up."""
        return tuple(result for results in self._results.values() for result in results)

    @property
    def bounds(self) -> tuple[GoalBounds, ...]:
        """The bounds of each goal so far, in the order of the goals; none before the first trial that counts.

        Reading the bounds does not count any trial again.
        """
        if self._results:
            return tuple(view.bounds() for view in self._views)
        return ()

    def next_trial(self) -> TrialInput | None:
        """The trial to measure next; None when the search is over. Asking again changes nothing."""
        if not self._decided:
            self._next = self._decide()
            self._decided = True
        if self._next is None:
            return None
        return self._next[0]

    @checked(SearchError)
    def record(self, result: TrialResult) -> None:
        """Takes in the result of any trial, even if the search did not ask for it.

        A load that differs only by rounding from the load of an earlier trial, or from a load of the grid, counts as
        that load.
        """
        chosen = self._next if self._decided else None
        self.last_purpose = chosen[1] if chosen is not None and chosen[0] == result.input else None
        self._decided = False
        self.trials += 1
        self.elapsed += result.elapsed
        if self._warm_up is not None and result.input == self._warm_up:
            self._warm_up = None
            return

        load = self._grid.same_load(result.load, self._results)
        if load != result.load:
            result = replace(result, input=replace(result.input, load=load))
        self._results.setdefault(result.load, []).append(result)
        self._coins.clear()
        self._memory.add(result)
        if result.input.rest:
            self._after_rest = None
        self._pace.add(result)
        seen = {goal.stream: goal.seen(result) for goal in self.goals}
        for stream, curve in self._curves.items():
            curve.add(seen[stream])
        if self._question is not None:
            self._question.add(result)
        for view in self._views:
            view.add(seen[view.goal.stream])
        # The plans of the other goals also use what this goal's trials show about the SUT.
        plans = [view.plan for view in self._views if view.plan is not None]
        begun = any(plan.begun for plan in plans)
        for plan in plans:
            plan.begun = begun

    def result(self) -> SearchResult:
        """The result so far, at any time. Before the end, it is marked as not finished."""
        finished = self.next_trial() is None and not self._is_out_of_time()
        goal_results = [self._goal_result(view) for view in self._views]
        return SearchResult(
            goal_results, finished=finished, elapsed=self.elapsed, trials=self.trials
        )

    def forecast(self) -> Forecast:
        """The time that the search will still take, in seconds.

        It can be asked at any time, even before the first trial.
        """
        if self.next_trial() is None:
            return Forecast(0.0, 0.0, 0.0)
        warm_up = 0.0 if self._warm_up is None else self._pace.elapsed(self._warm_up.duration)
        left = forecast(self._views, self._pace, warm_up)
        bursts = self._left_for_bursts()
        seconds = left.seconds + bursts.seconds
        rested = self._after_rest
        last = 0.0 if rested is None else rested.rest + self._pace.elapsed(rested.duration)
        most = self._timeout - self.elapsed
        return Forecast(
            min(seconds + last, most),
            min(left.low + bursts.low + last, most),
            min(left.high + bursts.high + last, most),
        )

    def _decide(self) -> tuple[TrialInput, Purpose] | None:
        if self.elapsed >= self._timeout:
            return None
        if self._warm_up is not None:
            return self._warm_up, Purpose(
                (), self.max_load, self._warm_up.duration, Bound.UNDECIDED, None, None, False
            )
        if self.answer is Answer.AS_BEFORE or self._is_failed():
            return None
        if self._question is not None and self.answer is None:
            trial = TrialInput(
                self.goals[0].final_trial_duration,
                self._question.next_load(),
                certain_above=self._certain_above,
            )
            return trial, self._purpose(trial, Bound.UNDECIDED, ASKS_AS_BEFORE, hinted=True)

        proposals = self._proposals()
        if not proposals:
            return self._trial_without_bursts() or self.last_question()

        trial, best = min(
            proposals,
            key=lambda proposal: (
                proposal[1].duration_sum,
                proposal[1].goals[0].loss_ratio if proposal[1].coarse else 0.0,
                proposal[1].load,
            ),
        )
        alike = (why for each, why in proposals if (each, why.expected) == (trial, best.expected))
        return trial, replace(best, goals=tuple(goal for why in alike for goal in why.goals))

    def _trial_without_bursts(self) -> tuple[TrialInput, Purpose] | None:
        """The next trial at an upper bound that the generator may have made; None: there is no such bound."""
        for goal, upper in self._bounds_of_bursts(self._views):
            trial = TrialInput(goal.final_trial_duration, upper, certain_above=self._certain_above)
            return trial, self._purpose(trial, Bound.UPPER, BURSTS)
        return None

    def _bounds_of_bursts(self, views: Iterable[GoalView]) -> Iterator[tuple[SearchGoal, float]]:
        """The upper bounds that the generator may have made and more trials can test, each with its goal."""
        for view in views:
            upper = view.relevant_bounds().upper
            if upper is None:
                continue
            at_upper = self._results[upper]
            if not needs_more_trials(view.goal, at_upper):
                continue
            if not any(may_turn(goal, at_upper) for goal in self.goals):
                yield view.goal, upper

    def _left_for_bursts(self) -> Forecast:
        """The time of the trials that test upper bounds for bursts, once these are proved. A trial serves all goals."""
        proved = [view for view in self._views if not view.intervals[-1].open]
        expected: dict[float, float] = {}
        most: dict[float, float] = {}
        for goal, upper in self._bounds_of_bursts(proved):
            each = self._pace.elapsed(goal.final_trial_duration)
            usual, limit = trials_left(goal, self._results[upper])
            expected[upper] = max(expected.get(upper, 0.0), usual * each)
            most[upper] = max(most.get(upper, 0.0), limit * each)
        for upper, foreseen in self._bursts_foreseen():
            expected[upper] = max(expected.get(upper, 0.0), foreseen)
            most[upper] = max(most.get(upper, 0.0), foreseen)
        # One more steady trial may decide, or show that the steady ones are too few.
        return Forecast(sum(expected.values()), 0.0, sum(most.values()))

    def _bursts_foreseen(self) -> Iterator[tuple[float, float]]:
        """The expected upper bounds that are not proved yet, each with the time of such trials after its proof."""
        for view in self._views:
            if not view.intervals[-1].open:
                continue
            bound = expected_upper_bound(view)
            if bound is not None and bound[0] in self._results:
                upper, proof = bound
                trials = trials_foreseen(view.goal, self._results[upper], proof)
                yield upper, trials * self._pace.elapsed(view.goal.final_trial_duration)

    def last_question(self) -> tuple[TrialInput, Purpose] | None:
        """The next trial that shows whether the SUT remembers loss, once all bounds are found; None: there is none."""
        if self._has_streams:
            return None
        if any(None in view.relevant_bounds() or view.intervals[-1].open for view in self._views):
            return None

        remembered = self._memory.next_trial()
        if remembered is not None:
            trial, expected = remembered
            return trial, self._purpose(trial, expected, MEMORY)
        if self._after_rest is not None:
            bound = max(view.too_much() for view in self._views)
            index = math.ceil(self._grid.position(bound)) + ABOVE * self._views[0].width
            trial = replace(self._after_rest, load=self._grid.load(index))
            return trial, self._purpose(trial, Bound.UPPER, RESTED)
        return None

    def _purpose(
        self, trial: TrialInput, expected: Bound, rule: str, *, hinted: bool = False
    ) -> Purpose:
        """The purpose of a trial that does not serve the goals' bounds."""
        lower, upper = self._views[0].relevant_bounds()
        return Purpose(
            self.goals,
            trial.load,
            trial.duration,
            expected,
            lower,
            upper,
            coarse=True,
            hinted=hinted,
            rule=rule,
        )

    def _proposals(self) -> list[tuple[TrialInput, Purpose]]:
        return [proposal for view in self._views if (proposal := self._proposal(view)) is not None]

    def _proposal(self, view: GoalView) -> tuple[TrialInput, Purpose] | None:
        """The trial that helps a goal most; None if the goal's bounds are found, or cannot be found."""
        if self._is_left_to_a_coin(view):
            return None
        choice = choose(view)
        if choice is None:
            return None

        stage = view.stages[choice.stage]
        interval = view.intervals[choice.stage]
        is_coarse = choice.stage == 0
        if stage.evidence.tally(choice.load).full_trials >= STALLED_AFTER * stage.target.trials:
            return None

        is_looked_for = view.expectation.is_hinted and interval.upper is not None
        return TrialInput(
            stage.target.trial_duration, choice.load, certain_above=self._certain_above
        ), Purpose(
            (view.goal,),
            choice.load,
            stage.target.duration_sum,
            choice.expected,
            interval.lower,
            interval.upper,
            is_coarse,
            is_looked_for if is_coarse else choice.load in (view.hinted_pair or ()),
            choice.rule,
        )

    def _is_left_to_a_coin(self, view: GoalView) -> bool:
        """Whether the search for a goal ends because only a zone of chance is left."""
        is_contested = view.plan is not None and view.plan.contested > 1
        if not (self._end_at_coin and is_contested and view.intervals[-1].open):
            return False
        if view.goal not in self._coins:
            self._coins[view.goal] = is_left_to_a_coin(
                view.goal, self.evidence, self.min_load, self.max_load
            )
        return self._coins[view.goal]

    def _is_failed(self) -> bool:
        """Whether `fail_fast` ends the search."""
        return self._fail_fast and any(view.is_failed() for view in self._views)

    def _is_out_of_time(self) -> bool:
        """Whether the timeout keeps the search from its end."""
        if self.elapsed < self._timeout or self._is_failed():
            return False
        if self.answer is Answer.AS_BEFORE:
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
        return result_of(view.goal, view.stages[-1].evidence, self._results, limits, unfinished)
