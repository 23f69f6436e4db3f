"""Where a goal's bound is expected: a model of the SUT under overload, drawn from the trials so far.

The model is as small as can be: near its bound an overloaded SUT forwards at a rate that changes linearly with load.
One overloaded load gives the constant (its forwarding rate, RFC 2285's idea), two give the slope as well.
"""

from __future__ import annotations

from lossratio.trial import TrialResult


class LossCurve:
    """Mean loss ratio per load, over all trials, weighted by their duration."""

    def __init__(self) -> None:
        self._sums: dict[float, tuple[float, float]] = {}

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        seconds, lost = self._sums.get(result.load, (0.0, 0.0))
        self._sums[result.load] = seconds + result.duration, lost + result.duration * result.loss_ratio

    def loss_ratio(self, load: float) -> float | None:
        """Mean loss ratio at a load; None if nothing was measured there."""
        if load not in self._sums:
            return None
        seconds, lost = self._sums[load]
        return lost / seconds

    def expected_bound(self, goal_loss_ratio: float, upper: float, next_upper: float | None) -> float | None:
        """The load, in frames per second, up to which a goal's loss ratio is expected to hold.

        Args:
            goal_loss_ratio: The goal's loss ratio.
            upper: The smallest load known to be an upper bound.
            next_upper: The next one above, if there is one.

        Returns:
            A load below `upper`; None if the mean loss there is too low to tell.
        """
        loss = self.loss_ratio(upper)
        if loss is None or loss <= goal_loss_ratio:
            return None
        passing = 1.0 - goal_loss_ratio
        rate = upper * (1.0 - loss)
        next_loss = None if next_upper is None else self.loss_ratio(next_upper)
        if next_upper is not None and next_loss is not None and next_loss > goal_loss_ratio:
            slope = (next_upper * (1.0 - next_loss) - rate) / (next_upper - upper)
            crossing = (rate - slope * upper) / (passing - slope) if slope < passing else 0.0
            if 0.0 < crossing < upper:
                return crossing
        return rate / passing
