"""The rule for the next trial of one goal.

The trial chosen is for the coarsest target whose interval is still open. The coarsest target of all searches for a
load (`lossratio.mlrsearch.rules.look`); a finer one proves the pair of loads that the coarser one left (`_prove`), or,
where the coarser one has promised too much, goes down from there by itself (`_descend`). A SUT that changes meanwhile
(`lossratio.mlrsearch.rules.landslide`) and loss that fades (`lossratio.mlrsearch.rules.fading`) have rules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.evidence import GoalBounds, RelevantBounds
from lossratio.mlrsearch.expectation import Expectation, LossCurve
from lossratio.mlrsearch.forecast import Outlook, Pace, outlook
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.hints import Hint, hinted_trial
from lossratio.mlrsearch.rules.fading import faded_trial
from lossratio.mlrsearch.rules.landslide import secure
from lossratio.mlrsearch.rules.look import next_look
from lossratio.mlrsearch.stages import Interval, Stages
from lossratio.mlrsearch.targets import CoarseTarget, Target
from lossratio.trial import TrialResult

STALLED_AFTER = 100
"""A goal is given up when a load is undecided after so many times the trials that its target should need."""


@dataclass(frozen=True)
class Proposal:
    """A trial that would help a goal.

    Attributes:
        goal: The goal.
        target: The target that the trial is for.
        load: Frames per second.
        expected: What the load is expected to be.
        interval: Where the target's bounds are.
        coarse: Whether the target is the goal's coarsest one.
        hinted: Whether earlier searches let expect the bound here.
    """

    goal: SearchGoal
    target: Target
    load: float
    expected: Bound
    interval: Interval
    coarse: bool
    hinted: bool


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
        self._grid = grid
        self._curve = curve
        self._width = grid.steps_within(goal.width)
        self._stages = Stages(goal, grid, coarse)
        start = None if hint is None else hint.start
        self._expectation = Expectation(goal.loss_ratio, goal.first_duration, grid, curve, start)
        self._hint = hint
        self._hinted: int | None = None

    def add(self, result: TrialResult) -> None:
        """Counts a trial; to be called after the loss curve has counted it."""
        before = self._stages.intervals[0]
        self._stages.add(result)
        after = self._stages.intervals[0]
        next_upper = None if after.upper is None else self._stages.stages[0].evidence.upper_above(after.upper)
        self._expectation.update(before, after, next_upper)
        if self._hint is not None and not after.open:
            self._hinted = self._hint.expected(after.first - 1)
            self._hint = None

    def relevant_bounds(self) -> RelevantBounds:
        """The goal's relevant lower and upper bound."""
        return self._stages.relevant_bounds()

    def bounds(self) -> GoalBounds:
        """The goal's bounds so far."""
        return self._stages.bounds()

    def proposal(self) -> Proposal | None:
        """The trial that helps most; None if the goal's bounds are found, or cannot be."""
        number, load, expected = self._choice()
        if number is None:
            return None
        stage = self._stages.stages[number]
        if stage.evidence.tally(load).full_trials >= STALLED_AFTER * stage.target.trials:
            return None
        is_coarse, interval = number == 0, self._stages.intervals[number]
        is_near_hint = self._expectation.is_hinted and interval.upper is not None
        hinted = is_near_hint if is_coarse else load in self._hinted_loads()
        return Proposal(self.goal, stage.target, load, expected, interval, is_coarse, hinted)

    def is_failed(self) -> bool:
        """Whether the minimum load is an upper bound."""
        _, upper = self.relevant_bounds()
        return upper is not None and upper <= self._grid.min_load

    def is_stalled(self) -> bool:
        """Whether the goal was given up because trials at some load add nothing."""
        return self._stages.intervals[-1].open and self.proposal() is None

    def outlook(self, pace: Pace) -> Outlook:
        """What the goal still needs, if all goes as expected."""
        expected = self._expectation.position
        if expected is None:
            # Nothing is known: goals that allow more loss have their bounds higher by just that.
            interval = self._stages.intervals[0]
            expected = (interval.first + interval.last) / 2.0 + self._grid.steps_of_loss(self.goal.loss_ratio)
        return outlook(self._stages, self._grid, self._width, expected, pace)

    def _choice(self) -> tuple[int | None, float, Bound]:
        """The stage, the load, and what it is expected to be."""
        intervals = self._stages.intervals
        number = next((number for number, interval in enumerate(intervals) if interval.open), None)
        if number is None:
            return None, 0.0, Bound.UNDECIDED
        choice = None
        if self._hinted is not None:
            choice = hinted_trial(self._stages, self._grid, self._width, self._hinted)
        choice = choice or secure(self._stages, self._grid, self._width)
        choice = choice or faded_trial(self._stages, self._grid, self._width, self._curve)
        if choice is not None:
            return choice
        for finer in range(len(intervals) - 1, 0, -1):
            choice = self._descend(finer)
            if choice is not None:
                return choice
        if number > 0:
            if intervals[0].lower == self._grid.max_load:
                return len(intervals) - 1, self._grid.max_load, Bound.LOWER
            return number, *self._prove(intervals[number], intervals[number - 1])
        coarsest = self._stages.stages[0].target
        index, expected = next_look(intervals[0], self._expectation, self._width * coarsest.widths)
        return 0, self._grid.load(index), expected

    def _hinted_loads(self) -> tuple[float, ...]:
        """The pair of loads where earlier searches let expect the bounds of a goal with growing trials."""
        if self._hinted is None:
            return ()
        return self._grid.load(self._hinted), self._grid.load(self._hinted + self._width)

    def _prove(self, interval: Interval, pair: Interval) -> tuple[float, Bound]:
        """The load that a finer target still has to prove: of the coarser target's pair, the lower one first."""
        if pair.lower is not None and pair.lower != interval.lower:
            return pair.lower, Bound.LOWER
        if pair.upper is not None and pair.upper != interval.upper:
            return pair.upper, Bound.UPPER
        # The coarser target may stop at a larger width.
        return self._grid.load(interval.first - 1 + interval.steps // 2), Bound.UNDECIDED

    def _descend(self, number: int) -> tuple[int, float, Bound] | None:
        """The next load down for a target that failed where the coarser one had passed; None if there is none.

        Steps double, because what the coarser target sees says little here. A load below one that has passed shorter
        trials needs none of these again.
        """
        stage, interval = self._stages.stages[number], self._stages.intervals[number]
        if not interval.open or interval.upper not in stage.failed:
            return None
        step = max(self._width, self._stages.fall(number))
        if interval.lower is not None:
            step = min(step, interval.steps // 2)
        load = self._grid.load(max(interval.first, interval.last + 1 - step))
        promised = self._stages.intervals[number - 1].lower
        if promised is not None and promised <= load and promised != interval.lower:
            return None
        for coarser, candidate in enumerate(self._stages.stages[: number + 1]):
            is_shorter = candidate.target.trial_duration < stage.target.trial_duration
            if not is_shorter and candidate.evidence.bound(load) is not Bound.LOWER:
                return coarser, load, Bound.LOWER
        return None
