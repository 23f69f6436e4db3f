"""The loads that a search measures: one geometric grid from the maximum load down to the minimum load.

Neighbours on the grid are within the smallest goal width, so any load can serve as either bound, and for every goal.
"""

import math

from lossratio.errors import SearchError

_ROUNDING = 1e-6
"""A load this close to a grid load (in steps) is that load."""


class LoadGrid:
    """A geometric grid of loads; index 0 is the minimum load, index `top` the maximum load.

    Attributes:
        min_load: Smallest load, frames per second.
        max_load: Largest load, frames per second.
        top: Index of the maximum load; 0 if it equals the minimum load.
    """

    def __init__(self, min_load: float, max_load: float, width: float) -> None:
        """Lays the grid.

        Args:
            min_load: Smallest load, frames per second.
            max_load: Largest load, frames per second.
            width: Largest distance of neighbours, relative to the larger one.

        Raises:
            SearchError: If the loads are not positive and finite, or the wrong way round.
        """
        if not 0.0 < min_load <= max_load < math.inf:
            raise SearchError(
                f"A search needs 0 < min load <= max load, in frames per second, not {min_load!r} and {max_load!r}."
            )
        self.min_load = float(min_load)
        self.max_load = float(max_load)
        # A little more than exact, so that rounding never makes neighbours wider than the width.
        self.top = math.ceil(math.log(max_load / min_load) / -math.log1p(-width) * (1.0 + _ROUNDING))
        self._step = math.log(max_load / min_load) / self.top if self.top else 1.0

    def load(self, index: int) -> float:
        """The load at an index, in frames per second."""
        if index >= self.top:
            return self.max_load
        return self.min_load if index <= 0 else self.max_load * math.exp((index - self.top) * self._step)

    def position(self, load: float) -> float:
        """The place of a load, in steps from the minimum load; a whole number for loads on the grid."""
        if load == self.min_load:
            return 0.0
        position = self.top + math.log(load / self.max_load) / self._step
        nearest = round(position)
        return float(nearest) if abs(position - nearest) < _ROUNDING else position

    def steps_within(self, width: float) -> int:
        """How many steps apart two loads may be within a width; at least 1, for a width the grid was laid for."""
        return max(1, math.floor(-math.log1p(-width) / self._step * (1.0 - _ROUNDING / 10)))

    def steps_of_loss(self, loss_ratio: float) -> float:
        """How many steps above its capacity a load is of which a SUT loses this share and forwards the rest."""
        return -math.log1p(-loss_ratio) / self._step
