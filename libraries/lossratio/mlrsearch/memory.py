"""The question whether a SUT remembers loss, asked by a few short trials when a search is over.

A SUT that forwards less after a loss is searched in its weak state from the second trial on, and these trials agree
with each other. Only the first trial reveals the memory: it was in overload, and still forwarded more than any later
trial. Long trials without loss leave the SUT rested. If the SUT then passes several loads at which it lost frames
before, and loses frames again right after the next loss, it remembers loss. `lossratio.mlrsearch.constancy` finds the
memory and its size in these trials.

A memory that lasts longer than the rests between trials does not show.

Only frames that the SUT lost count in these questions. If frames that were not sent leave the outcome open, the trial
is repeated.
"""

import math

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.constancy import LEAST_TRIALS
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.trials import TrialInput, TrialResult, offered_load, sut_loss_ratio

MEMORY = "memory"
"""Name of the rule that chose such a trial."""
MOST_ATTEMPTS = 3
"""The total number of times that a trial is measured if frames that were not sent leave its outcome open."""

LESS = 0.05
"""A SUT must seem to forward less after a loss by at least this share.

Example: the first trial, at 100 kfps, forwarded 50 kfps, and the second trial, at 50 kfps, forwarded 41 kfps. A rate of
49 kfps would be within the spread of many SUTs.
"""

REST = 5.0
"""Minimum seconds between the last loss and the question. SUTs that remember a loss do so for 5 s to 1 min."""

MARGIN = 1
"""Loads are at least this many grid steps away from the two forwarding rates."""


class Memory:
    """The trials that answer the question. Each load is tried once, and only if it has no trial of this duration yet.

    Args:
        grid: The loads of the search.
        duration: Seconds of the trials.
    """

    def __init__(self, grid: LoadGrid, duration: float) -> None:
        self._grid = grid
        self._duration = duration
        self._first: float | None = None
        self._weak = 0.0
        self._quiet = math.inf
        self._measured: set[float] = set()
        self._plan: list[tuple[float, Bound]] | None = None
        self._attempts = 1

    def add(self, result: TrialResult) -> None:
        """Takes in a trial."""
        lost = sut_loss_ratio(result) * result.duration / result.traffic_duration
        offered = offered_load(result)
        forwarded = offered * (1.0 - lost)
        if self._first is None:
            self._first = forwarded
        elif self._quiet == 0.0 and forwarded < (1.0 - LESS) * min(offered, self._first):
            self._weak = max(self._weak, forwarded)

        if self._plan and (result.load, result.duration) == (self._plan[0][0], self._duration):
            self._plan = self._left(self._plan, result, is_lossy=lost > 0.0)

        if lost > 0.0:
            self._quiet = 0.0
        else:
            self._quiet += result.elapsed
        if result.duration == self._duration:
            self._measured.add(result.load)

    def _left(
        self, plan: list[tuple[float, Bound]], result: TrialResult, *, is_lossy: bool
    ) -> list[tuple[float, Bound]]:
        """What is left of the plan after its next trial."""
        is_open = not is_lossy and offered_load(result) <= self._weak < result.load
        if is_open and self._attempts < MOST_ATTEMPTS:
            # Even the weak SUT forwards as much as was sent, so this is no answer.
            self._attempts += 1
            return plan

        self._attempts = 1
        (_, expected), *left = plan
        if is_lossy is (expected is Bound.UPPER):
            return left
        # A single trial with the other outcome is enough for an answer: the SUT does not remember loss.
        return []

    def next_trial(self) -> tuple[TrialInput, Bound] | None:
        """The next trial once the search is over, with the expected kind of bound; None: there is no question."""
        if self._plan is None:
            self._plan = self._planned()
        if not self._plan:
            return None
        load, expected = self._plan[0]
        # Only a whole trial shows how much a weak SUT forwards.
        return TrialInput(self._duration, load), expected

    def _planned(self) -> list[tuple[float, Bound]]:
        """The loads of the question, each with the expected kind of bound; empty: there is no question."""
        if self._first is None or self._weak <= 0.0 or not REST <= self._quiet < math.inf:
            return []
        highest = math.floor(self._grid.position(min(self._first, self._grid.max_load))) - MARGIN
        lowest = math.ceil(self._grid.position(max(self._weak, self._grid.min_load))) + MARGIN
        between = self._new_loads(highest, lowest)
        above = self._new_loads(self._grid.top, highest + 1)
        if len(between) <= LEAST_TRIALS or not above:
            return []

        rested = between[:LEAST_TRIALS]
        weak = [above[0], *between[LEAST_TRIALS : 2 * LEAST_TRIALS]]
        return [*((load, Bound.LOWER) for load in rested), *((load, Bound.UPPER) for load in weak)]

    def _new_loads(self, first: int, last: int) -> list[float]:
        """The loads between two indices without a trial, descending."""
        loads = map(self._grid.load, range(first, last - 1, -1))
        return [load for load in loads if load not in self._measured]
