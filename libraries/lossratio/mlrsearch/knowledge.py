"""What a search knows: the trials that count, and what they mean for each goal."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lossratio.mlrsearch.expectation import LossCurve
from lossratio.mlrsearch.forecast import Forecast, Pace, forecast, forecast_of_bursts
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.hints import hint_of
from lossratio.mlrsearch.rules import GoalView
from lossratio.mlrsearch.zone import is_left_to_a_coin
from lossratio.trials import TrialResult


class Knowledge:
    """What a search knows.

    Attributes:
        grid: The loads of the search.
        results: The trials that count, in order, by load in frames per second per interface.
        views: What they mean for each goal, in the order of the goals.
        hinted_loads: See `lossratio.mlrsearch.MLRsearch`.
        pace: The time that trials take.
    """

    def __init__(
        self,
        goals: Sequence[SearchGoal],
        grid: LoadGrid,
        kind: type[GoalView],
        hints: Iterable[Sequence[TrialResult]],
        *,
        early_verdict: bool,
    ) -> None:
        """Begins without trials.

        Args:
            goals: The search goals.
            grid: The loads of the search.
            kind: The kind of view that each goal has.
            hints: The trials of earlier searches of the same test, oldest search first.
            early_verdict: Whether trials end as soon as they are certain to be high-loss trials.
        """
        self.grid = grid
        self.results: dict[float, list[TrialResult]] = {}
        self.hinted_loads: dict[SearchGoal, float] = {}
        self.pace = Pace()
        self._coins: dict[SearchGoal, bool] = {}
        self._curves = {goal.stream: LossCurve() for goal in goals}

        earlier = tuple(hints)
        views: list[GoalView] = []
        for goal in goals:
            hint = hint_of(goal, grid, earlier)
            if hint is not None:
                self.hinted_loads[goal] = grid.load(hint.lower)
            curve = self._curves[goal.stream]
            views.append(kind(goal, grid, curve, hint, early_verdict=early_verdict))
        self.views = tuple(views)

    def same_load(self, result: TrialResult) -> TrialResult:
        """A trial at the known load from which its load differs only by rounding."""
        load = self.grid.same_load(result.load, self.results)
        if load == result.load:
            return result
        return replace(result, input=replace(result.input, load=load))

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        self._coins.clear()
        self.results.setdefault(result.load, []).append(result)
        self.pace.add(result)
        for stream, curve in self._curves.items():
            curve.add(result if stream is None else result.of_stream(stream))
        for view in self.views:
            view.add(view.goal.seen(result))
        # The plans of the other goals also use what one goal's trials show about the SUT.
        plans = [view.plan for view in self.views if view.plan is not None]
        begun = any(plan.begun for plan in plans)
        for plan in plans:
            plan.begun = begun

    def evidence(self) -> tuple[TrialResult, ...]:
        """All trials that count, grouped by load."""
        return tuple(result for results in self.results.values() for result in results)

    def is_searched(self) -> bool:
        """Whether both bounds of all goals are found."""
        return not any(
            None in view.relevant_bounds() or view.intervals[-1].open for view in self.views
        )

    def is_left_to_a_coin(self, view: GoalView) -> bool:
        """Whether only a zone of chance is left to search for a goal."""
        is_contested = view.plan is not None and view.plan.contested > 1
        if not is_contested or not view.intervals[-1].open:
            return False
        if view.goal not in self._coins:
            limits = self.grid.min_load, self.grid.max_load
            self._coins[view.goal] = is_left_to_a_coin(view.goal, self.evidence(), *limits)
        return self._coins[view.goal]

    def forecast(self, sure: float) -> Forecast:
        """The time that the goals still need, in seconds.

        Args:
            sure: Further seconds that the search certainly takes.
        """
        left = forecast(self.views, self.pace, sure)
        bursts = forecast_of_bursts(self.views, self.results, self.pace)
        return Forecast(
            left.seconds + bursts.seconds, left.low + bursts.low, left.high + bursts.high
        )
