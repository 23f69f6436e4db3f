"""The loads where a search starts, from earlier searches of the same test: a hint, never evidence.

A hint only chooses the first loads of a search. What it says is measured like anything else, and is given up with the
first trial that speaks against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.stages import Stages
from lossratio.trials import TrialResult

EARLIER_SEARCHES = 5
"""So many of the last searches are looked at: one alone may have been unlucky, old ones are out of date."""


@dataclass(frozen=True)
class Hint:
    """The bounds of a goal in earlier searches; whole steps on the grid of loads.

    Attributes:
        lower: The relevant lower bound that is expected: the second largest one (the only one, if there is one).
        start: Where the search by single short trials is to start: at the same, if all trials are of one length;
            otherwise where it usually stopped.
        stops: The smallest and the largest load at which it stopped.
    """

    lower: int
    start: int
    stops: tuple[int, int]

    def expected(self, stopped: int) -> int | None:
        """The expected relevant lower bound when short trials stopped at a load of this search.

        None where they never stopped so far: the SUT has changed, and with it how much less long trials allow.
        """
        smallest, largest = self.stops
        return min(stopped, self.lower) if smallest <= stopped <= largest else None


def hint_of(goal: SearchGoal, grid: LoadGrid, earlier: Iterable[Sequence[TrialResult]]) -> Hint | None:
    """The knowledge about a goal from earlier searches.

    Args:
        goal: The goal.
        grid: The loads of the search that is to start.
        earlier: The trials of each earlier search in the order measured (no warm-up), oldest search first.

    Returns:
        The hint; None if none of the last searches found a lower bound.
    """
    bounds_of_searches = [bounds for trials in earlier if (bounds := _bounds(goal, grid, trials)) is not None]
    last = bounds_of_searches[-EARLIER_SEARCHES:]
    if not last:
        return None
    lower = _second_largest([lower for _, lower in last])
    stops = sorted(stop for stop, _ in last)
    is_growing = goal.first_duration < goal.final_trial_duration
    return Hint(lower, stops[(len(stops) - 1) // 2] if is_growing else lower, (stops[0], stops[-1]))


def _second_largest(values: list[int]) -> int:
    return sorted(values)[-2:][0]


def _bounds(goal: SearchGoal, grid: LoadGrid, trials: Sequence[TrialResult]) -> tuple[int, int] | None:
    """The load at which the search by single short trials stopped first, and the relevant lower bound."""
    stages = Stages(goal, grid)
    stopped = None
    for trial in trials:
        stages.add(trial)
        if stopped is None and not stages.intervals[0].open:
            stopped = stages.intervals[0].first - 1
    lower, _ = stages.relevant_bounds()
    if lower is None:
        return None
    index = min(grid.top, max(0, math.floor(grid.position(lower))))
    return index if stopped is None else max(0, stopped), index
