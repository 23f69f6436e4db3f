"""The search for one goal: what is known, and the trial that would help most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.mlrsearch.evidence import GoalBounds, RelevantBounds
from lossratio.mlrsearch.expectation import Expectation, LossCurve
from lossratio.mlrsearch.forecast import Outlook, Pace, outlook
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.hints import Hint
from lossratio.mlrsearch.rules import Choice, GoalView, choose
from lossratio.mlrsearch.stages import Interval, Stages
from lossratio.mlrsearch.targets import CoarseTarget, Target
from lossratio.trials import TrialResult

STALLED_AFTER = 100
"""A goal is given up when a load is undecided after so many times the trials that its target should need.

A picture: a generator sends for 5 ms of each second. 21 s of full-length trials then need 4200 trials, not 21, and the
goal is given up after 2100 at one load.
"""


@dataclass(frozen=True)
class Proposal:
    """A trial that would help a goal.

    Attributes:
        goal: The goal.
        choice: The trial, and the rule that wants it.
        target: The target that the trial is for.
        interval: Where the target's bounds are.
        hinted: Whether earlier searches promise the bound here.
    """

    goal: SearchGoal
    choice: Choice
    target: Target
    interval: Interval
    hinted: bool

    @property
    def is_coarse(self) -> bool:
        """Whether the target is the goal's coarsest one."""
        return self.choice.stage == 0


class GoalSearch:
    """One goal's search: what is known, and which trial would help most."""

    def __init__(
        self,
        goal: SearchGoal,
        grid: LoadGrid,
        curve: LossCurve,
        hint: Hint | None = None,
        coarse: Sequence[CoarseTarget] | None = None,
    ) -> None:
        self.goal = goal
        start = None if hint is None else hint.start
        expectation = Expectation(goal.loss_ratio, goal.first_duration, grid, curve, start)
        self._view = GoalView(grid, grid.steps_within(goal.width), Stages(goal, grid, coarse), curve, expectation)
        self._hint = hint

    def add(self, result: TrialResult) -> None:
        """Counts a trial; to be called after the loss curve has counted it."""
        view = self._view
        before = view.intervals[0]
        view.known.add(result)
        after = view.intervals[0]
        next_upper = None if after.upper is None else view.stages[0].evidence.upper_above(after.upper)
        view.expectation.update(before, after, next_upper)
        if self._hint is not None and not after.open:
            view.hinted = self._hint.expected(after.first - 1)
            self._hint = None

    def relevant_bounds(self) -> RelevantBounds:
        """The goal's relevant lower and upper bound."""
        return self._view.known.relevant_bounds()

    def bounds(self) -> GoalBounds:
        """The goal's bounds so far."""
        return self._view.known.bounds()

    def proposal(self) -> Proposal | None:
        """The trial that helps most; None if the goal's bounds are found, or cannot be."""
        view, choice = self._view, choose(self._view)
        if choice is None:
            return None
        stage, interval = view.stages[choice.stage], view.intervals[choice.stage]
        if stage.evidence.tally(choice.load).full_trials >= STALLED_AFTER * stage.target.trials:
            return None
        if choice.stage == 0:
            hinted = view.expectation.is_hinted and interval.upper is not None
        else:
            hinted = choice.load in (view.hinted_pair or ())
        return Proposal(self.goal, choice, stage.target, interval, hinted)

    def is_failed(self) -> bool:
        """Whether the minimum load is an upper bound."""
        _, upper = self.relevant_bounds()
        return upper is not None and upper <= self._view.grid.min_load

    def is_stalled(self) -> bool:
        """Whether the goal was given up because trials at some load add nothing."""
        return self._view.intervals[-1].open and self.proposal() is None

    def outlook(self, pace: Pace) -> Outlook:
        """What the goal still needs, if all goes as expected."""
        view = self._view
        expected = view.expectation.position
        if expected is None:
            # Nothing is known: goals that allow more loss have their bounds higher by just that.
            interval = view.intervals[0]
            expected = (interval.first + interval.last) / 2.0 + view.grid.steps_of_loss(self.goal.loss_ratio)
        return outlook(view.known, view.grid, view.width, expected, pace)
