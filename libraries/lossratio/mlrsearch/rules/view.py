"""The input of a rule, and its answer."""

from dataclasses import dataclass

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.expectation import Expectation, LossCurve
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.hints import EarlierCurve, Hint, overload_of
from lossratio.mlrsearch.posterior import GROWS, JUMPS, Plan, Posterior
from lossratio.mlrsearch.stages import Stages, targets_of
from lossratio.trials import TrialResult

PATIENCE = 8
"""After this many loads whose first classification did not hold, the search no longer follows the SUT. If the goal
has shorter trials, too, half as many loads are enough, because long trials take most of the time.

Example: a SUT gets slower with each trial of 1 s. 100, 99.5 and 99 kfps passed a trial, and failed a few trials later,
and so did five lower loads.
"""


class GoalView(Stages):
    """The knowledge about one goal: everything that a rule may read. Rules do not change it.

    Attributes:
        width: The goal's width in grid steps.
        curve: The loss at all loads.
        expectation: Where single short trials are expected to find the bound.
        plan: The knowledge on which plans are based, for goals whose trials have one length; None for other goals.
        hinted: Grid index of the load that earlier searches promise as the relevant lower bound. Long trials begin
            there. None: there is no such load.
        left_at: Grid index of the load where short trials saw the bound when the search had followed the SUT in vain.
            None: it has not.
        shorter: How many stages have shorter trials than the goal.
        fails_soon: Whether a trial ends as soon as it is certain to be a high-loss trial, so that a failing trial costs
            little.
    """

    def __init__(
        self,
        goal: SearchGoal,
        grid: LoadGrid,
        curve: LossCurve,
        hint: Hint | None = None,
        *,
        early_verdict: bool = False,
    ) -> None:
        super().__init__(goal, grid, targets_of(goal, early_verdict=early_verdict))
        self.width = grid.steps_within(goal.width)
        self.curve, self.fails_soon = curve, early_verdict
        start = None if hint is None else hint.start
        self.expectation = Expectation(goal.loss_ratio, goal.first_duration, grid, curve, start)
        final = goal.final_trial_duration
        self.shorter = sum(stage.target.trial_duration < final for stage in self.stages)
        is_planned = not early_verdict and not self.shorter
        rise = GROWS if goal.loss_ratio > 0.0 else JUMPS
        self.plan = Plan(goal, grid, Posterior(grid.top, rise)) if is_planned else None
        self.hinted: int | None = None
        self.left_at: int | None = None
        self._hint = hint

        self._earlier = (
            None
            if hint is None or self.plan is None
            else EarlierCurve(goal, grid, rise, hint.trials)
        )

    def add(self, result: TrialResult) -> None:
        """Counts a trial. It must be called after the loss curve has counted the trial."""
        before = self.intervals[0]
        is_first = self.stages[0].evidence.tally(self.grid.max_load).full_trials == 0
        if (
            self._hint is not None
            and is_first
            and (overload := overload_of(self.grid, result)) is not None
        ):
            if self._earlier is not None:
                self._earlier.shifts = self._hint.shifts(overload)
            self._hint = self._hint.moved(overload, self.grid.top)
            self.expectation.move_hint(self._hint.start)

        super().add(result)
        after = self.intervals[0]
        next_upper = (
            None if after.upper is None else self.stages[0].evidence.upper_above(after.upper)
        )
        if self.plan is not None:
            self.plan.add(result)
        self.expectation.update(before, after, next_upper)

        if self.plan is not None:
            is_wrong = self.expectation.surprises < 0 and self._earlier is None
            self.plan.begun |= not after.open or is_wrong
            if self._earlier is not None:
                self.plan.posterior.earlier = self._earlier.tonight(self.plan.posterior)
            self.plan.expect(self.expectation.overload, after.upper)

        is_in_vain = len(self.turned) * (1 + min(1, self.shorter)) >= PATIENCE
        if self.left_at is None and is_in_vain:
            self.left_at = after.last if after.lower is None else after.first - 1

        if self._hint is not None and not after.open:
            self.hinted = self._hint.expected(after.first - 1)
            self._hint = None

    @property
    def is_in_vain(self) -> bool:
        """Whether the SUT may change or lose by chance so much that plans do not end."""
        return self.left_at is not None or (self.plan is not None and self.plan.may_drift)

    def is_failed(self) -> bool:
        """Whether the minimum load is an upper bound."""
        upper = self.relevant_bounds().upper
        return upper is not None and upper <= self.grid.min_load

    @property
    def final(self) -> int:
        """Number of the last stage: the goal itself."""
        return len(self.stages) - 1

    @property
    def first_open(self) -> int | None:
        """Number of the coarsest stage with something still to measure in its interval; None: the search is over."""
        return next(
            (number for number, interval in enumerate(self.intervals) if interval.open), None
        )

    @property
    def hinted_pair(self) -> tuple[float, float] | None:
        """The two loads, in frames per second, between which earlier searches promise the bound."""
        hint = self._hint if self.plan is not None and self.plan.posterior.earlier else None
        hinted = self.hinted if hint is None else hint.lower
        if hinted is None:
            return None
        return (self.grid.load(hinted), self.grid.load(hinted + self.width))


@dataclass(frozen=True)
class Choice:
    """The trial that a rule wants next."""

    rule: str
    """Name of the rule."""
    stage: int
    """Number of the stage that the trial is for; 0 is the coarsest."""
    load: float
    """Frames per second."""
    expected: Bound
    """The kind of bound that the load is expected to be."""
