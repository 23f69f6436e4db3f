"""The loads where a search starts, from earlier searches of the same test: a hint, never evidence.

A hint only chooses loads, and these loads are measured like any others. If all trials have one length, earlier trials
are a prior, which tonight's trials outweigh. Otherwise, the first trial that contradicts the hint ends it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

import numpy as np

from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.posterior import (
    NOTHING_EXPECTED,
    Counts,
    Floats,
    Plan,
    Posterior,
    Rise,
    likely,
)
from lossratio.mlrsearch.stages import Stages
from lossratio.trials import TrialResult

EARLIER_SEARCHES = 5
"""How many of the last searches are used: a single search may have been unlucky, and old searches are out of date."""

NEAR_OVERLOAD = 10.0
"""The forwarding rate at maximum load is a measure of the bound if the two are at most this many grid steps apart."""

LEAST_SHIFT = 1
"""Minimum number of grid steps by which this rate must have moved."""

SPREADS = 2.0
"""Minimum move of this rate, as a multiple of the range of earlier searches' rates. Both conditions must hold.

Example: in five nights the rate was between 99.9 and 100.2 kfps, and tonight it is 102 kfps. The pair moves up by 2 %.
"""

MOST = 4.0
"""All trials of earlier searches at one load together count as at most this many of tonight's trials.

Example: in five nights 55 trials at 100 kfps passed, and count as 3.7. Three that passed would count as 1.7.
"""

STEADY = 0.3
"""Half of all curves are within this many steps of an expected move."""

MOVED_ANYWHERE = 0.1
"""Probability that a curve has moved by any distance instead."""

SURE = 0.5
"""Earlier trials count if the move of the curve is known to a step with at least this probability."""

EDGE = 10.0
"""A curve hardly changes beyond this many steps from the loads where earlier trials passed and failed."""


@dataclass(frozen=True)
class Hint:
    """The bounds of a goal in earlier searches, in whole steps on the grid of loads."""

    lower: int
    """The expected relevant lower bound: the second largest of the earlier bounds, or the only one."""
    start: int
    """Where the search by single short trials starts: at the same load if all trials have one length, and otherwise
    where such trials usually stopped."""
    stops: tuple[int, int]
    """The smallest and the largest load at which they stopped."""
    overloads: tuple[float, ...] = ()
    """Where the forwarding rates of the earlier searches' first trials, at maximum load, are on the grid."""
    trials: tuple[TrialResult, ...] = ()
    """All trials of the earlier searches."""

    def shifts(self, overload: float) -> tuple[int, ...]:
        """By how many steps of the grid the SUT may have moved since, according to its forwarding rate at maximum load.

        The SUT has moved as far as this rate, or not at all if the rate was no measure of the bound: some SUTs forward
        far less in overload.
        """
        if not self.overloads:
            return (0,)
        usual = median(self.overloads)
        spread = max(self.overloads) - min(self.overloads)
        if abs(overload - usual) < LEAST_SHIFT + SPREADS * spread:
            return (0,)
        # A bound is the grid load below the rate.
        shift = math.floor(overload) - math.floor(usual)
        return (0, shift) if abs(usual - self.start) > NEAR_OVERLOAD else (shift,)

    def moved(self, overload: float, top: int) -> Hint:
        """The hint for this forwarding rate at maximum load. It is the same hint if the SUT may not have moved."""
        shift = self.shifts(overload)[0]
        if not shift:
            return self
        lower, start, *stops = (
            min(top, max(0, index + shift)) for index in (self.lower, self.start, *self.stops)
        )
        return Hint(lower, start, (stops[0], stops[1]))

    def expected(self, stopped: int) -> int | None:
        """The expected relevant lower bound when short trials stopped at a load of this search.

        None if they have never stopped there before. In that case, the SUT has changed, and the difference between
        short and long trials may have changed, too.
        """
        smallest, largest = self.stops
        return min(stopped, self.lower) if smallest <= stopped <= largest else None


def hint_of(
    goal: SearchGoal, grid: LoadGrid, earlier: Iterable[Sequence[TrialResult]]
) -> Hint | None:
    """The hint from the trials of each earlier search, in the order measured (no warm-up), oldest search first.

    None if none of the last searches found a lower bound.
    """
    nights = ([goal.seen(trial) for trial in night] for night in earlier)
    searches = [
        (*found, _first_overload(grid, night), night)
        for night in nights
        if (found := _bounds(goal, grid, night)) is not None
    ]
    if not (last := searches[-EARLIER_SEARCHES:]):
        return None

    lower = sorted(lower for _, lower, *_ in last)[-2:][0]
    stops = sorted(stop for stop, *_ in last)
    start = (
        stops[(len(stops) - 1) // 2] if goal.first_duration < goal.final_trial_duration else lower
    )
    overloads = tuple(overload for *_, overload, _ in last if overload is not None)
    trials = tuple(chain.from_iterable(night for *_, night in last))

    return Hint(
        lower,
        start,
        (stops[0], stops[-1]),
        overloads if len(overloads) == len(last) else (),
        trials,
    )


class EarlierCurve:
    """What trials of earlier searches say about the curve of `lossratio.mlrsearch.posterior`, wherever it is now.

    Example: in earlier nights a third of the trials at 100 kfps were lossy, and all of them at 100.5 kfps. Tonight
    103 kfps passed and 103.5 kfps failed. So a third of the trials at 103 kfps are expected to be lossy.

    Attributes:
        shifts: Steps by which the curve is expected to have moved; see `Hint.shifts`.
    """

    def __init__(
        self, goal: SearchGoal, grid: LoadGrid, rise: Rise, trials: Iterable[TrialResult]
    ) -> None:
        self.shifts: tuple[int, ...] = (0,)
        plan = Plan(goal, grid, Posterior(grid.top, rise))
        for trial in trials:
            plan.add(trial)
        self._counts = {}

        for place in plan.posterior.measured:
            low, high = plan.posterior.counts(place)
            weight = MOST / (MOST + low + high)
            self._counts[place] = weight * low, weight * high

        ends = max(plan.passed), min(plan.lowest_failure, grid.top)
        self._top = grid.top
        self._first = math.floor(min(ends) - EDGE)
        places = np.arange(self._first, max(ends) + EDGE)
        earlier = Posterior(grid.top, rise)
        earlier.earlier = self._counts
        curves = earlier.curves(NOTHING_EXPECTED, places)
        self._chances = curves.chances[np.searchsorted(curves.positions, places)]
        self._logs: dict[tuple[int, int], Floats] = {}

    def tonight(self, posterior: Posterior) -> Counts:
        """How much the earlier trials count at the present position of the curve; nothing if it is not known."""
        moves = np.arange(-self._top, self._top + 1)
        near = (1.0 / (1.0 + (np.subtract.outer(self.shifts, moves) / STEADY) ** 2)).sum(axis=0)
        logs = np.log((1.0 - MOVED_ANYWHERE) * near / near.sum() + MOVED_ANYWHERE / len(moves))

        for position in posterior.measured:
            rows = (round(position) - self._first - moves).clip(0, len(self._chances) - 1)
            logs += self._log_likely(posterior.counts(position))[rows]

        chances = np.exp(logs - logs.max())
        best = int(chances.argmax())
        share = chances[max(0, best - 1) : best + 2].sum() / chances.sum()
        if share < SURE:
            return {}

        now = ((place + moves[best], counts) for place, counts in self._counts.items())
        return {
            place: (share * low, share * high)
            for place, (low, high) in now
            if 0 <= place <= self._top
        }

    def _log_likely(self, counts: tuple[int, int]) -> Floats:
        """The logarithm of the probability of these numbers of low-loss and high-loss trials at a load, by place."""
        if counts not in self._logs:
            self._logs[counts] = np.log(self._chances @ likely(*counts))
        return self._logs[counts]


def overload_of(grid: LoadGrid, trial: TrialResult) -> float | None:
    """The place of a forwarding rate at maximum load on the grid; None: another load, or below the minimum load."""
    rate = trial.load * (1.0 - trial.loss_ratio * trial.duration / trial.traffic_duration)
    return grid.position(rate) if trial.load == grid.max_load and rate > grid.min_load else None


def _first_overload(grid: LoadGrid, trials: Sequence[TrialResult]) -> float | None:
    """The place of the forwarding rate in the first trial at maximum load. Only a trial after a rest may precede it."""
    first = next((trial for trial in trials if not trial.input.rest), None)
    return None if first is None else overload_of(grid, first)


def _bounds(
    goal: SearchGoal, grid: LoadGrid, trials: Sequence[TrialResult]
) -> tuple[int, int] | None:
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
