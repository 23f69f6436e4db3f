"""The rule for the next trial of one goal.

Every target of a goal (see `targets`) has an interval in which its bounds are still to be found; a coarser target's
interval lies within that of the finer one, because it knows more, less surely. The trial chosen is for the coarsest
target whose interval is still open: the coarsest of all searches for a load (`_search`), a finer one proves the pair
that the coarser one left, the lower load first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.evidence import Evidence
from lossratio.mlrsearch.expectation import LossCurve
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.result import within_width
from lossratio.mlrsearch.targets import Target, targets_of
from lossratio.trial import TrialResult

STALLED_AFTER = 100
"""A goal is given up when a load is undecided after so many times the trials that its target should need."""


@dataclass(frozen=True)
class Interval:
    """Where a target's bounds are: the tightest lower and upper bound so far, frames per second; None: none yet."""

    lower: float | None
    upper: float | None


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
    """

    goal: SearchGoal
    target: Target
    load: float
    expected: Bound
    interval: Interval
    coarse: bool


class GoalSearch:
    """One goal's targets, their evidence, and the rule."""

    def __init__(self, goal: SearchGoal, grid: LoadGrid, curve: LossCurve) -> None:
        self.goal = goal
        self._grid = grid
        self._curve = curve
        self._steps = grid.steps_within(goal.width)
        self._targets = targets_of(goal)
        self._evidence = tuple(Evidence(target.criterion) for target in self._targets)

    def add(self, result: TrialResult) -> None:
        """Counts a trial: for the goal always, for the coarser targets if it could have been asked for."""
        self._evidence[-1].add(result)
        if self._grid.min_load <= result.load <= self._grid.max_load:
            for evidence in self._evidence[:-1]:
                evidence.add(result)

    def relevant_bounds(self) -> tuple[float | None, float | None]:
        """The goal's relevant lower and upper bound."""
        return self._evidence[-1].relevant_bounds()

    def proposal(self) -> Proposal | None:
        """The trial that helps most; None if the goal's bounds are found, or cannot be."""
        intervals = self._intervals()
        stage = next((stage for stage, interval in enumerate(intervals) if self._is_open(interval)), None)
        if stage is None:
            return None
        interval = intervals[stage]
        target = self._targets[stage]
        if stage == 0:
            index, expected = self._search(interval)
            load = self._grid.load(index)
        else:
            load, expected = self._unproved(interval, intervals[stage - 1])
        if self._evidence[stage].tally(load).full_trials >= STALLED_AFTER * target.trials:
            return None
        return Proposal(self.goal, target, load, expected, interval, stage == 0)

    def is_failed(self) -> bool:
        """Whether the minimum load is an upper bound."""
        upper = self._evidence[-1].upper_above(0.0)
        return upper is not None and upper <= self._grid.min_load

    def is_stalled(self) -> bool:
        """Whether the goal was given up because trials at some load add nothing."""
        return self.proposal() is None and self._is_open(self._intervals()[-1])

    @staticmethod
    def _unproved(interval: Interval, pair: Interval) -> tuple[float, Bound]:
        """The load of a coarser target's pair that the finer target, whose interval is given, has to prove next."""
        if pair.lower is not None and pair.lower != interval.lower:
            return pair.lower, Bound.LOWER
        # The pair is inside an open interval, so one of the two loads is not proved yet.
        return cast(float, pair.upper), Bound.UPPER

    def _intervals(self) -> list[Interval]:
        """Each target's interval, the coarsest target's first."""
        lower, upper = self.relevant_bounds()
        intervals = [Interval(lower, upper)]
        for evidence in reversed(self._evidence[:-1]):
            coarse_upper = evidence.upper_above(0.0 if lower is None else lower)
            if coarse_upper is not None and (upper is None or coarse_upper < upper):
                upper = coarse_upper
            coarse_lower = evidence.lower_below(math.inf if upper is None else upper)
            if coarse_lower is not None and (lower is None or coarse_lower > lower):
                lower = coarse_lower
            intervals.append(Interval(lower, upper))
        return intervals[::-1]

    def _inside(self, interval: Interval) -> tuple[int, int]:
        """The first and last index strictly inside an interval."""
        grid = self._grid
        first = 0 if interval.lower is None else max(0, math.floor(grid.position(interval.lower)) + 1)
        last = grid.top if interval.upper is None else min(grid.top, math.ceil(grid.position(interval.upper)) - 1)
        return first, last

    def _is_open(self, interval: Interval) -> bool:
        """Whether more has to be measured inside an interval."""
        lower, upper = interval.lower, interval.upper
        if lower is not None and upper is not None and within_width(self.goal, lower, upper):
            return False
        first, last = self._inside(interval)
        return first <= last

    def _search(self, interval: Interval) -> tuple[int, Bound]:
        """The index to measure next, where single short trials search for the bounds, and what it is expected to be."""
        return self._search0(interval), Bound.UNDECIDED

    def _search0(self, interval: Interval) -> int:
        first, last = self._inside(interval)
        upper = interval.upper
        if upper is None:
            return last
        k = self._steps
        next_upper = self._evidence[0].upper_above(upper)
        bound = self._curve.expected_bound(self.goal.loss_ratio, upper, next_upper)
        expected = (
            last if bound is None else min(last, math.floor(self._grid.position(max(bound, self._grid.min_load))))
        )
        distance = 0 if next_upper is None else round(self._grid.position(next_upper) - self._grid.position(upper))
        if interval.lower is None:
            step = min(distance, 64) if distance else 1
            return max(first, min(expected, last + 1 - step))
        size = last - first + 2
        middle = first - 1 + k * max(1, math.ceil(size / k) // 2)
        if expected >= first:
            return max(min(expected, last), middle if distance == 0 else first)
        if expected == first - 1:
            return min(last, first - 1 + k)
        return first - 1 + max(k, size // 4)
