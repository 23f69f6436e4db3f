"""The loads that a search measures: one geometric grid from the maximum load down to the minimum load.

Neighbours on the grid are no farther apart than the smallest goal width, so any load can be either bound of every goal.
"""

import math
from collections.abc import Iterable

from lossratio.errors import SearchError
from lossratio.trials import sendable
from lossratio.values import NotNegative, checked, format_ratio

_ROUNDING = 1e-6
"""A load this close to a grid load (in steps) is that load."""


@checked(SearchError)
class LoadGrid:
    """A geometric grid of loads; index 0 is the minimum load, index `top` the maximum load.

    If a generator only sends multiples of a step, each load is the nearest multiple, and the grid is made finer as far
    as the width requires.

    Attributes:
        min_load: Smallest load, frames per second per interface.
        max_load: Largest load, frames per second per interface.
        top: Index of the maximum load; 0 if it equals the minimum load.
    """

    def __init__(
        self, min_load: float, max_load: float, width: float, load_step: NotNegative = 0.0
    ) -> None:
        """Lays the grid.

        Args:
            min_load: Smallest load, frames per second per interface.
            max_load: Largest load, frames per second per interface.
            width: Largest distance of neighbours, relative to the larger one.
            load_step: The generator sends multiples of this load, in frames per second; 0: any load.

        Raises:
            SearchError: If the width is not a share, or the loads are not positive and finite, the wrong way round, or
                too small for the width.
        """
        if not 0.0 < min_load <= max_load < math.inf:
            raise SearchError(
                f"A search needs 0 < min load <= max load, in frames per second, not {min_load!r} and {max_load!r}."
            )
        if not 0.0 < width < 1.0:
            raise SearchError(
                f"The width of a grid is a share of the load, above 0 and below 1, not {width!r}."
            )
        if min_load < max_load and min_load * width <= 2.0 * load_step:
            raise SearchError(
                f"The generator sends loads in steps of {load_step:g} frames/s, too coarse for a width of "
                f"{format_ratio(width)} at the minimum load of {min_load:.10g} frames/s. Give a min_load above "
                f"{2.0 * load_step / width:.0f} frames/s, or goals with a larger width."
            )

        self._load_step = load_step
        self.min_load = sendable(float(min_load), load_step)
        self.max_load = sendable(float(max_load), load_step)
        # Rounding moves two loads apart by at most one step, which matters most at the smallest loads.
        self._slack = load_step / self.min_load if self.min_load < self.max_load else 0.0
        # There are a few more loads than necessary, so that rounding never moves neighbours farther apart than the
        # width.
        ratio = math.log(self.max_load / self.min_load)
        self.top = math.ceil(ratio / -math.log1p(self._slack - width) * (1.0 + _ROUNDING))
        self._step = ratio / self.top if self.top else 1.0

    def load(self, index: int) -> float:
        """The load at an index, in frames per second."""
        if index >= self.top:
            return self.max_load
        if index <= 0:
            return self.min_load
        return sendable(self.max_load * math.exp((index - self.top) * self._step), self._load_step)

    def position(self, load: float) -> float:
        """The place of a load, in steps from the minimum load; a whole number for loads on the grid.

        Args:
            load: Frames per second per interface.
        """
        if load == self.min_load:
            return 0.0
        position = self.top + math.log(load / self.max_load) / self._step
        nearest = round(position)
        if abs(position - nearest) < _ROUNDING:
            return float(nearest)
        around = (
            index
            for index in range(math.floor(position), math.ceil(position) + 1)
            if self.load(index) == load
        )
        if self._load_step:
            return float(next(around, position))
        return position

    def same_load(self, load: float, others: Iterable[float]) -> float:
        """The load of the grid, or else of `others`, that equals a load except for rounding; otherwise the load itself.

        Args:
            load: Frames per second per interface.
            others: Measured loads that are not on the grid, in frames per second per interface.
        """
        position = self.position(load)
        if position.is_integer() and 0.0 <= position <= self.top:
            return self.load(int(position))
        return next(
            (other for other in others if abs(self.position(other) - position) < _ROUNDING), load
        )

    def steps_within(self, width: float) -> int:
        """How many steps apart two loads within a width may be; at least 1 for a width for which the grid was laid.

        Args:
            width: Distance of two loads, relative to the larger one.
        """
        return max(
            1, math.floor(-math.log1p(self._slack - width) / self._step * (1.0 - _ROUNDING / 10))
        )

    def steps_of_loss(self, loss_ratio: float) -> float:
        """How many steps above its capacity a SUT is loaded if it loses this share and forwards the rest."""
        return -math.log1p(-loss_ratio) / self._step
