"""What the trials so far say about one target: running sums per load, and the relevant bounds.

Nothing is ever scanned again, so a decision costs the same after a thousand trials as after ten.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from typing import NamedTuple

from lossratio.mlrsearch.classification import Bound, Criterion, Tally
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.trials import TrialResult


class RelevantBounds(NamedTuple):
    """A relevant lower and a relevant upper bound, in frames per second per interface; None: there is none."""

    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class GoalBounds:
    """The bounds of one goal after some trials.

    Attributes:
        goal: The goal.
        proved: The relevant bounds (RFC 9971).
        leaning: The relevant bounds of the easiest target on the way to the goal, usually a single trial of the initial
            duration: what the trials so far point at.
    """

    goal: SearchGoal
    proved: RelevantBounds
    leaning: RelevantBounds


class Evidence:
    """The tallies of all measured loads under one criterion."""

    def __init__(self, criterion: Criterion) -> None:
        self._criterion = criterion
        self._tallies: dict[float, Tally] = {}
        self._bounds: dict[float, Bound] = {}
        self._lowers: list[float] = []
        self._uppers: list[float] = []

    def add(self, result: TrialResult) -> bool:
        """Counts a trial; says whether that changed what its load is."""
        load = result.load
        tally = self._tallies.setdefault(load, Tally())
        tally.add(self._criterion, result)
        old, new = self.bound(load), tally.classify(self._criterion)
        if new is old:
            return False
        self._bounds[load] = new
        if old is not Bound.UNDECIDED:
            loads = self._sorted(old)
            del loads[bisect_left(loads, load)]
        if new is not Bound.UNDECIDED:
            insort(self._sorted(new), load)
        return True

    def bound(self, load: float) -> Bound:
        """What a load is; undecided if nothing was measured there."""
        return self._bounds.get(load, Bound.UNDECIDED)

    def tally(self, load: float) -> Tally:
        """The sums at a load."""
        return self._tallies.get(load) or Tally()

    def upper_above(self, load: float) -> float | None:
        """The smallest upper bound above a load; None if there is none."""
        index = bisect_right(self._uppers, load)
        return self._uppers[index] if index < len(self._uppers) else None

    def lower_below(self, load: float) -> float | None:
        """The largest lower bound below a load; None if there is none."""
        index = bisect_left(self._lowers, load)
        return self._lowers[index - 1] if index > 0 else None

    def relevant_bounds(self) -> RelevantBounds:
        """The relevant lower and upper bound; None where there is none."""
        upper = self.upper_above(0.0)
        return RelevantBounds(self.lower_below(float("inf") if upper is None else upper), upper)

    def _sorted(self, bound: Bound) -> list[float]:
        """The lower or upper bounds, in ascending order."""
        return self._lowers if bound is Bound.LOWER else self._uppers
