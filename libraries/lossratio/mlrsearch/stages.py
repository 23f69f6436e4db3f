"""A goal's targets with what is known about each: intervals that narrow from the goal itself to its coarsest target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.evidence import Evidence, GoalBounds, RelevantBounds
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.result import within_width
from lossratio.mlrsearch.targets import CoarseTarget, Target, targets_of
from lossratio.trials import TrialResult


@dataclass(frozen=True)
class Interval:
    """Where a target's bounds are.

    Attributes:
        lower: The tightest lower bound, in frames per second; None if there is none yet.
        upper: The tightest upper bound, in frames per second; None if there is none yet.
        first: Grid index of the smallest load inside.
        last: Grid index of the largest load inside; below `first` if there is none.
        open: Whether something inside has to be measured.
    """

    lower: float | None
    upper: float | None
    first: int
    last: int
    open: bool

    @property
    def steps(self) -> int:
        """How many grid steps the bounds are apart; a missing bound is one step outside the grid."""
        return self.last - self.first + 2


@dataclass
class Stage:
    """One target and what is known about it.

    Attributes:
        target: The target.
        evidence: The trials, in the target's eyes.
        passed: Loads that have been lower bounds, if only for a while.
        failed: Loads that were upper bounds although they had passed the next coarser target.
        highest_failure: The largest of these, in frames per second; 0 if there is none.
        refused: Loads that have been upper bounds, if only for a while.
        lifted: Loads that were lower bounds although the next coarser target had refused them.
        lowest_lift: The smallest of these, in frames per second; infinite if there is none.
    """

    target: Target
    evidence: Evidence
    passed: set[float] = field(default_factory=set)
    failed: set[float] = field(default_factory=set)
    highest_failure: float = 0.0
    refused: set[float] = field(default_factory=set)
    lifted: set[float] = field(default_factory=set)
    lowest_lift: float = math.inf


class Stages:
    """The stages of one goal, coarsest first.

    Attributes:
        goal: The goal.
        stages: The stages.
        intervals: The interval of each stage; a coarser one lies within the finer ones, because single short trials
            know sooner, if less surely.
    """

    def __init__(self, goal: SearchGoal, grid: LoadGrid, coarse: Sequence[CoarseTarget] | None = None) -> None:
        self.stages = tuple(Stage(target, Evidence(target.criterion)) for target in targets_of(goal, coarse))
        self.goal = goal
        self._grid = grid
        self.intervals = self._intervals()

    def add(self, result: TrialResult) -> None:
        """Counts a trial: for the goal always, for coarser targets if the controller could have asked for it."""
        could_be_asked_for = self._grid.min_load <= result.load <= self._grid.max_load
        counting = self.stages if could_be_asked_for else self.stages[-1:]
        changes = [stage.evidence.add(result) for stage in counting]
        if any(changes):
            if could_be_asked_for:
                self._follow(result.load)
            self.intervals = self._intervals()

    def relevant_bounds(self) -> RelevantBounds:
        """The goal's relevant lower and upper bound."""
        return self.stages[-1].evidence.relevant_bounds()

    def bounds(self) -> GoalBounds:
        """The goal's bounds so far: the proved ones, and those that the coarsest target sees."""
        return GoalBounds(self.goal, self.relevant_bounds(), self.stages[0].evidence.relevant_bounds())

    def fall(self, number: int) -> int:
        """How many grid steps a target has gone down, from failure to failure."""
        stage, upper = self.stages[number], self.intervals[number].upper
        if upper is None or upper not in stage.failed:
            return 0
        return round(self._grid.position(stage.highest_failure) - self._grid.position(upper))

    def rise(self, number: int) -> int:
        """How many grid steps a target has gone up, from one load that was refused too soon to the next."""
        stage, lower = self.stages[number], self.intervals[number].lower
        if lower is None or lower not in stage.lifted:
            return 0
        return round(self._grid.position(lower) - self._grid.position(stage.lowest_lift))

    def _follow(self, load: float) -> None:
        """Notes what a load has passed and where it failed."""
        has_passed = was_refused = False
        for stage in self.stages:
            bound = stage.evidence.bound(load)
            if bound is Bound.LOWER:
                stage.passed.add(load)
                if was_refused:
                    stage.lifted.add(load)
                    stage.lowest_lift = min(stage.lowest_lift, load)
            elif bound is Bound.UPPER:
                stage.refused.add(load)
                if has_passed:
                    stage.failed.add(load)
                    stage.highest_failure = max(stage.highest_failure, load)
            has_passed, was_refused = load in stage.passed, load in stage.refused

    def _intervals(self) -> tuple[Interval, ...]:
        lower, upper = self.relevant_bounds()
        intervals = [self._interval(lower, upper, 1)]
        for stage in reversed(self.stages[:-1]):
            coarse_upper = stage.evidence.upper_above(0.0 if lower is None else lower)
            if coarse_upper is not None and (upper is None or coarse_upper < upper):
                upper = coarse_upper
            coarse_lower = stage.evidence.lower_below(math.inf if upper is None else upper)
            if coarse_lower is not None and (lower is None or coarse_lower > lower):
                lower = coarse_lower
            intervals.append(self._interval(lower, upper, stage.target.widths))
        return tuple(reversed(intervals))

    def _interval(self, lower: float | None, upper: float | None, widths: int) -> Interval:
        grid = self._grid
        first = 0 if lower is None else max(0, math.floor(grid.position(lower)) + 1)
        last = grid.top if upper is None else min(grid.top, math.ceil(grid.position(upper)) - 1)
        width = self.goal.width if widths == 1 else 1.0 - (1.0 - self.goal.width) ** widths
        narrow = lower is not None and upper is not None and within_width(width, lower, upper)
        return Interval(lower, upper, first, last, first <= last and not narrow)
