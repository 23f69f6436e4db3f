"""The question whether a SUT remembers loss, asked by a few short trials when a search is over.

A SUT that forwards less after a loss is searched in its weak state from the second trial on, and its trials agree. What
gives it away is the first trial: it was in overload, and yet it forwarded more than any later one. Long trials without
loss leave the SUT rested. If it then forwards at several loads what it lost before, and loses frames again right after
the next loss, it remembers. `lossratio.mlrsearch.constancy` sees that in these trials, with its size.
"""

import math
from collections.abc import Iterable

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.constancy import LEAST_TRIALS
from lossratio.mlrsearch.forecast import Pace
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.trials import TrialInput, TrialResult

MEMORY, RESTED = "memory", "rested"
"""Names of the rules that chose such a trial, and one after a rest: see `Rested`."""

LONG_REST = 15.0
"""Seconds without traffic before a trial that asks whether the SUT passes more after a rest."""

ENOUGH = LEAST_TRIALS
"""Trials that pass after a rest before there is a doubt.

A picture: just above its bound a noisy SUT passes every third trial, and 2 % above it every tenth.
"""

LEAST_EVIDENCE = 5.0
"""Seconds of a duration sum from which on a search has such a trial; quick goals have 2 s."""

CLIMB = 4
"""Factor of the grid steps above the bounds from one such trial to the next: 1, 4, 16, 64, 256."""

LESS = 0.05
"""The least share that a SUT must seem to forward less after a loss.

A picture: the first trial of 100 kfps forwarded 50 kfps, and the second one, of 50 kfps, forwarded 41 kfps. With
49 kfps it would be the spread of many SUTs.
"""

REST = 5.0
"""Least seconds since the last loss before the question is asked. SUTs that remember do so for 5 s to a minute."""

MARGIN = 1
"""Grid steps that loads stay away from the two forwarding rates."""


def usual_rest(goals: Iterable[SearchGoal]) -> float:
    """Seconds of that rest for a search; 0: none, as there is little evidence for each load anyway."""
    return LONG_REST if any(goal.duration_sum >= LEAST_EVIDENCE for goal in goals) else 0.0


class Memory:
    """The trials that answer the question. No load is asked for twice, and none that a trial of the duration had.

    Args:
        grid: The loads of the search.
        duration: Seconds of the trials.
    """

    def __init__(self, grid: LoadGrid, duration: float) -> None:
        self._grid, self._duration = grid, duration
        self._first: float | None = None
        self._weak, self._quiet = 0.0, math.inf
        self._measured: set[float] = set()
        self._plan: list[tuple[float, Bound]] | None = None

    def add(self, result: TrialResult) -> None:
        """Takes in a trial."""
        lost = result.loss_ratio * result.duration / result.traffic_duration
        forwarded = result.load * (1.0 - lost)
        if self._first is None:
            self._first = forwarded
        elif self._quiet == 0.0 and forwarded < (1.0 - LESS) * min(result.load, self._first):
            self._weak = max(self._weak, forwarded)
        if self._plan and (result.load, result.duration) == (self._plan[0][0], self._duration):
            (_, expected), *left = self._plan
            # One trial that comes out otherwise is an answer, too: it does not remember.
            self._plan = left if (lost > 0.0) is (expected is Bound.UPPER) else []
        self._quiet = 0.0 if lost > 0.0 else self._quiet + result.elapsed
        if result.duration == self._duration:
            self._measured.add(result.load)

    def next_trial(self) -> tuple[TrialInput, Bound] | None:
        """The next trial once the search is over, and what its load is expected to be; None: there is no question."""
        if self._plan is None:
            self._plan = self._planned()
        # How much a weak SUT forwards is known from a whole trial only.
        return next(((TrialInput(self._duration, load), expected) for load, expected in self._plan), None)

    def _planned(self) -> list[tuple[float, Bound]]:
        if self._first is None or self._weak <= 0.0 or not REST <= self._quiet < math.inf:
            return []
        highest = math.floor(self._grid.position(min(self._first, self._grid.max_load))) - MARGIN
        lowest = math.ceil(self._grid.position(max(self._weak, self._grid.min_load))) + MARGIN
        between = self._new_loads(highest, lowest)
        above = self._new_loads(self._grid.top, highest + 1)
        if len(between) <= LEAST_TRIALS or not above:
            return []
        rested, weak = between[:LEAST_TRIALS], [above[0], *between[LEAST_TRIALS : 2 * LEAST_TRIALS]]
        return [*((load, Bound.LOWER) for load in rested), *((load, Bound.UPPER) for load in weak)]

    def _new_loads(self, first: int, last: int) -> list[float]:
        """The loads between two indices without a trial, descending."""
        loads = map(self._grid.load, range(first, last - 1, -1))
        return [load for load in loads if load not in self._measured]


class Rested:
    """The last trials of a search: short and whole ones at loads above all upper bounds, each after a rest.

    A SUT that remembers a loss for longer than trials rest, or that is slow only at the beginning of a trial where
    early verdicts end trials, passes them. Any other SUT loses frames in the first one, and that was all. As their
    loads are above the bounds, these trials change no bound; unless the maximum load is one, which is asked itself.

    Args:
        grid: The loads of the search.
        duration: Seconds of the trials.
        rest: Seconds of the rest; 0: nothing is asked.
    """

    def __init__(self, grid: LoadGrid, duration: float, rest: float) -> None:
        self._grid, self._duration, self._rest = grid, duration, rest
        self._lost: dict[int, float] = {}

    def time_left(self, pace: Pace) -> float:
        """Seconds of the one trial that most SUTs are asked, if it is still to come."""
        return self._rest + pace.elapsed(self._duration) if self._rest and not self._lost else 0.0

    def add(self, result: TrialResult) -> None:
        """Takes in a trial."""
        if result.input.rest:
            self._lost[round(self._grid.position(result.load))] = result.loss_ratio

    def next_trial(self, bound: float, loss_ratio: float) -> tuple[TrialInput, Bound] | None:
        """The next trial once the search is over, and what its load is expected to be; None: the question is answered.

        Args:
            bound: The smallest load that short trials showed to be too much for each goal, frames per second.
            loss_ratio: What a trial may lose to pass.
        """
        passed = [index for index, lost in self._lost.items() if lost <= loss_ratio]
        failed = self._lost.keys() - set(passed)
        if not self._rest or len(passed) >= ENOUGH or len(failed) >= max(1, len(passed)):
            return None
        base, top = math.ceil(self._grid.position(bound)), self._grid.top
        index = (max(passed) + min(failed)) // 2 if failed else min(base + CLIMB ** len(passed), top)
        while index in self._lost:
            index -= 1
        if index < base or index == base < top:
            return None
        return TrialInput(self._duration, self._grid.load(index), rest=self._rest), Bound.UPPER
