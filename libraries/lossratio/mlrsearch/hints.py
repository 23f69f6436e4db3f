"""The loads where a search starts, from earlier searches of the same test: a hint, never evidence.

A hint only chooses the first loads of a search. What it says is measured like anything else, and is given up with the
first trial that speaks against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.stages import Stages
from lossratio.trials import TrialResult

EARLIER_SEARCHES = 5
"""So many of the last searches are looked at: one alone may have been unlucky, old ones are out of date."""

NEAR_OVERLOAD = 10.0
"""Grid steps that the forwarding rate at maximum load may be away from the bound to be a measure of it."""

LEAST_SHIFT = 1
"""Least grid steps by which that rate must have moved."""

SPREADS = 2.0
"""The same as a multiple of how far apart the rates of earlier searches were, in addition.

A picture: in five nights it was between 99.9 and 100.2 kfps, and tonight it is 102 kfps. The pair moves up by 2 %.
"""


HINT_SCALE = 0.4
"""Steps that the load where loss begins may be off, besides the distance of the loads found earlier."""


@dataclass(frozen=True)
class Hint:
    """The bounds of a goal in earlier searches; whole steps on the grid of loads."""

    lower: int
    """The relevant lower bound that is expected: the second largest one (the only one, if there is one)."""
    start: int
    """Where the search by single short trials is to start: at the same, if all trials are of one length; otherwise
    where it usually stopped."""
    stops: tuple[int, int]
    """The smallest and the largest load at which it stopped."""
    overloads: tuple[float, ...] = ()
    """Where the forwarding rates of the earlier searches' first trials, at maximum load, are on the grid."""

    @property
    def begins(self) -> tuple[float, float]:
        """Where on the grid loss is expected to begin, and how sure that is, in steps."""
        return self.lower + 0.5, HINT_SCALE + (self.stops[1] - self.stops[0]) / 4.0

    def moved(self, overload: float, top: int) -> Hint:
        """The hint for a SUT whose forwarding rate at maximum load (`overload`, on the grid) has moved since.

        The same hint if it has not, or is no measure of the bound: some SUTs forward far less in overload.
        """
        if not self.overloads:
            return self
        usual, spread = median(self.overloads), max(self.overloads) - min(self.overloads)
        if abs(usual - self.start) > NEAR_OVERLOAD or abs(overload - usual) < LEAST_SHIFT + SPREADS * spread:
            return self
        # A bound is the grid load below the rate.
        shift = math.floor(overload) - math.floor(usual)
        lower, start, *stops = (min(top, max(0, index + shift)) for index in (self.lower, self.start, *self.stops))
        return Hint(lower, start, (stops[0], stops[1]))

    def expected(self, stopped: int) -> int | None:
        """The expected relevant lower bound when short trials stopped at a load of this search.

        None where they never stopped so far: the SUT has changed, and with it how much less long trials allow.
        """
        smallest, largest = self.stops
        return min(stopped, self.lower) if smallest <= stopped <= largest else None


def hint_of(goal: SearchGoal, grid: LoadGrid, earlier: Iterable[Sequence[TrialResult]]) -> Hint | None:
    """The hint from the trials of each earlier search, in the order measured (no warm-up), oldest search first.

    None if none of the last searches found a lower bound.
    """
    searches = [
        (*found, overload_of(grid, night[0])) for night in earlier if (found := _bounds(goal, grid, night)) is not None
    ]
    if not (last := searches[-EARLIER_SEARCHES:]):
        return None
    lower = sorted(lower for _, lower, _ in last)[-2:][0]
    stops = sorted(stop for stop, _, _ in last)
    start = stops[(len(stops) - 1) // 2] if goal.first_duration < goal.final_trial_duration else lower
    overloads = tuple(overload for _, _, overload in last if overload is not None)
    return Hint(lower, start, (stops[0], stops[-1]), overloads if len(overloads) == len(last) else ())


def overload_of(grid: LoadGrid, trial: TrialResult) -> float | None:
    """The place of a forwarding rate at maximum load on the grid; None: another load, or below the minimum load."""
    rate = trial.load * (1.0 - trial.loss_ratio * trial.duration / trial.traffic_duration)
    return grid.position(rate) if trial.load == grid.max_load and rate > grid.min_load else None


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
