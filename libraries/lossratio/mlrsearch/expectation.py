"""Where a goal's bound is expected: a model of the SUT under overload, drawn from the trials so far.

The model is as small as can be: an overloaded SUT forwards at a rate that changes linearly with load. One overloaded
load gives the constant (RFC 2285's forwarding rate at maximum offered load), two give the slope as well.
"""

from __future__ import annotations

from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.stages import Interval
from lossratio.trial import TrialResult


class LossCurve:
    """Mean loss ratio per load, over all trials, weighted by their duration."""

    def __init__(self) -> None:
        self._sums: dict[float, tuple[float, float]] = {}

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        seconds, lost = self._sums.get(result.load, (0.0, 0.0))
        self._sums[result.load] = seconds + result.duration, lost + result.duration * result.loss_ratio

    def loss_ratio(self, load: float) -> float:
        """Mean loss ratio at a load; zero if nothing was measured there."""
        seconds, lost = self._sums.get(load, (1.0, 0.0))
        return lost / seconds

    def crossing(self, goal_loss_ratio: float, upper: float, next_upper: float | None) -> float | None:
        """The load, in frames per second, where the loss ratio of an overloaded SUT rises above a goal's.

        Args:
            goal_loss_ratio: The goal's loss ratio.
            upper: The smallest overloaded load.
            next_upper: The next one above, if there is one.

        Returns:
            A load from zero to `upper`; None if too little is lost there to tell.
        """
        loss = self.loss_ratio(upper)
        if loss <= goal_loss_ratio:
            return None
        rate, passing = upper * (1.0 - loss), 1.0 - goal_loss_ratio
        next_loss = 0.0 if next_upper is None else self.loss_ratio(next_upper)
        if next_upper is not None and next_loss > goal_loss_ratio:
            slope = (next_upper * (1.0 - next_loss) - rate) / (next_upper - upper)
            if slope < passing:
                secant = (rate - slope * upper) / (passing - slope)
                if 0.0 < secant < upper:
                    return secant
        return rate / passing


class Expectation:
    """Where one goal's bound is expected, and how often in a row the trials have proved that wrong.

    Attributes:
        surprises: Positive: so many times in a row, a load above the expected bound turned out a lower bound.
            Negative: so many times in a row, one below it turned out an upper bound.
    """

    def __init__(self, goal_loss_ratio: float, grid: LoadGrid, curve: LossCurve) -> None:
        self.surprises = 0
        self._goal_loss_ratio = goal_loss_ratio
        self._grid = grid
        self._curve = curve

    def position(self, upper: float, next_upper: float | None) -> float | None:
        """Where on the grid the bound is expected, given the smallest upper bounds; None if that cannot be told."""
        crossing = self._curve.crossing(self._goal_loss_ratio, upper, next_upper)
        return None if crossing is None else self._grid.position(max(crossing, self._grid.min_load))

    def compare(self, expected: float | None, before: Interval, after: Interval) -> None:
        """Counts surprises.

        Args:
            expected: The position expected before a trial.
            before: The coarsest target's interval before the trial.
            after: The same interval after the trial.
        """
        if expected is None:
            return
        if after.upper is not None and after.upper != before.upper:
            surprised = self._grid.position(after.upper) <= expected
            self.surprises = min(self.surprises, 0) - 1 if surprised else 0
        elif after.lower is not None and after.lower != before.lower:
            surprised = self._grid.position(after.lower) > expected
            self.surprises = max(self.surprises, 0) + 1 if surprised else 0
