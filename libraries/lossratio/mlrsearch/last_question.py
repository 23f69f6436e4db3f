"""The question of a search whose bounds are found: does the SUT remember loss?"""

import math
from collections.abc import Sequence
from dataclasses import replace

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.forecast import Pace
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.memory import MEMORY, Memory
from lossratio.mlrsearch.proposals import Proposal, beside_the_bounds
from lossratio.mlrsearch.purpose import RESTED
from lossratio.mlrsearch.rules import GoalView
from lossratio.trials import TrialInput, TrialResult

ABOVE = 2
"""The trial after a rest is this many goal widths above all bounds."""


class LastQuestion:
    """The trials that show whether a SUT remembers loss.

    Args:
        grid: The loads of the search.
        duration: Seconds of the trials.
        rest: Seconds of rest before one more trial at the end; 0: there is no such trial.
    """

    def __init__(self, grid: LoadGrid, duration: float, rest: float) -> None:
        self._grid = grid
        self._memory = Memory(grid, duration)
        self._after_rest = TrialInput(duration, grid.max_load, rest=rest) if rest else None

    def add(self, result: TrialResult) -> None:
        """Takes in a trial."""
        self._memory.add(result)
        if result.input.rest:
            self._after_rest = None

    def next(self, views: Sequence[GoalView]) -> Proposal | None:
        """The next trial; None: there is none.

        Args:
            views: What is known for each goal. All bounds are found.
        """
        remembered = self._memory.next_trial()
        if remembered is not None:
            return beside_the_bounds(views, *remembered, MEMORY)
        if self._after_rest is None:
            return None
        bound = max(view.too_much() for view in views)
        index = math.ceil(self._grid.position(bound)) + ABOVE * views[0].width
        trial = replace(self._after_rest, load=self._grid.load(index))
        return beside_the_bounds(views, trial, Bound.UPPER, RESTED)

    def left(self, pace: Pace) -> float:
        """Seconds that the trial after a rest will still take."""
        if self._after_rest is None:
            return 0.0
        return self._after_rest.rest + pace.elapsed(self._after_rest.duration)
