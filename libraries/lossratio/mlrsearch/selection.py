"""The rule for the next trial of one goal.

The trial chosen is for the coarsest target whose interval is still open. The coarsest target of all searches for a
load (`_search`); a finer one proves the pair of loads that the coarser one left (`_prove`), or, where the coarser one
has promised too much, goes down from there by itself (`_descend`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.expectation import Expectation, LossCurve
from lossratio.mlrsearch.forecast import Outlook, Pace, outlook
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.hints import Hint, hinted_trial
from lossratio.mlrsearch.landslide import secure
from lossratio.mlrsearch.stages import Interval, Stages
from lossratio.mlrsearch.targets import CoarseTarget, Target
from lossratio.trial import TrialResult

STALLED_AFTER = 100
"""A goal is given up when a load is undecided after so many times the trials that its target should need."""

FADING_STEPS = 8
"""How much farther than the last time loss that fades from load to load is followed at most, in goal widths."""

FIRST_FADING_STEPS = 4
"""How far loss that fades is followed at most at first, in goal widths, where it proved fading without a surprise."""

FADING_RECESSIONS = 2
"""Recessions in a row that tell a gradual end of loss: after a single one, a burst that a bucket took may be missing."""

LEAP = 0.7
"""Factor and exponent of the steps leapt over when the bound proved higher than expected: 3 of 10, 90 of 1000."""

SPLIT = 0.25
"""Where an interval is split, from its lower bound, when the expected bound is below it."""


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

    def relevant_bounds(self) -> tuple[float | None, float | None]:
        """The goal's relevant lower and upper bound."""
        return self._stages.relevant_bounds()

    def proposal(self) -> Proposal | None:
        """The trial that helps most; None if the goal's bounds are found, or cannot be."""
        number, load, expected = self._choice()
        if number is None:
            return None
        stage = self._stages.stages[number]
        if stage.evidence.tally(load).full_trials >= STALLED_AFTER * stage.target.trials:
            return None
        is_coarse = number == 0
        hinted = self._expectation.is_hinted if is_coarse else load in self._hinted_loads()
        return Proposal(self.goal, stage.target, load, expected, self._stages.intervals[number], is_coarse, hinted)

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
        index, expected = self._search(intervals[0])
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

    def _search(self, interval: Interval) -> tuple[int, Bound]:
        """The index that a single short trial is to look at, and what it is expected to be.

        As long as the expected bound holds good, both sides of it are looked at, the upper one first: if that is no
        upper bound, the expected bound was too low and its lower side need not be measured. Where the expected bound
        keeps receding, loss ends gradually, and is followed to where it should have faded.
        """
        first, last = interval.first, interval.last
        width = self._width * self._stages.stages[0].target.widths
        expected, surprises = self._expectation.position, self._expectation.surprises
        if interval.upper is None and expected is None:
            return last, Bound.UPPER
        middle = min(last, first - 1 + width * max(1, math.ceil(interval.steps / width) // 2))
        lowest = first if interval.lower is None else middle
        if expected is None:
            return (last if interval.lower is None else middle), Bound.UNDECIDED
        if expected <= 0.0 and interval.lower is None:
            return middle, Bound.UNDECIDED
        below = min(last, math.floor(expected))
        if surprises < 0:
            return max(lowest, min(below, last + 1 - width * self._steps_down(last + 1))), Bound.LOWER
        if surprises > 0:
            leap = max(width, int(LEAP * interval.steps**LEAP)) * 2 ** (surprises - 1)
            return max(below, min(middle, first - 1 + leap)), Bound.UPPER
        faded, recessions = self._expectation.faded, self._expectation.recessions
        if recessions >= FADING_RECESSIONS and faded is not None and faded < below:
            farthest = below - width * FIRST_FADING_STEPS * FADING_STEPS ** (recessions - FADING_RECESSIONS)
            return max(lowest, round(max(faded, farthest))), Bound.UNDECIDED
        if below < first - width:
            return min(middle, first - 1 + max(width, int(interval.steps * SPLIT))), Bound.UPPER
        above = max(first - 1, below) + width
        return (above, Bound.UPPER) if above <= last else (max(first, below), Bound.LOWER)

    def _steps_down(self, upper: int) -> int:
        """How many widths to go down from the index of an upper bound after the bound was lower than expected.

        Steps double, or follow the loss to where it should have faded.
        """
        times, faded = -self._expectation.surprises, self._expectation.faded
        doubled: int = 2 ** (times - 1)
        if faded is None:
            return doubled
        limit: int = FADING_STEPS**times
        return max(doubled, round(min((upper - faded) / self._width, limit)))
