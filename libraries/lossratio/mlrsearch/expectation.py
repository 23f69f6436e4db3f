"""The expected bound of a goal: a model of the SUT under overload, based on the trials so far.

The model is as simple as possible: an overloaded SUT forwards at a rate that changes linearly with load. A single load
in overload gives the constant (RFC 2285's forwarding rate at maximum offered load), and two loads give the slope as
well.
"""

import math

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.stages import Interval
from lossratio.trials import TrialResult

RECESSIONS = 3
"""After this many upper bounds in a row that moved the expected bound down, each further one is a surprise.

Example: a SUT gets slower with each trial. The losses at 100, 99.5, 99 and 98.5 kfps each say that the next load will
pass. So steps down double.
"""


class LossCurve:
    """Mean loss ratio per load, over all trials, weighted by their duration."""

    def __init__(self) -> None:
        self._sums: dict[float, tuple[float, float]] = {}
        self._lost_at_verdict: dict[float, float] = {}

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        seconds, lost = self._sums.get(result.load, (0.0, 0.0))
        # The loss ratio of a trial that ended early is a share of the frames of its whole duration.
        self._sums[result.load] = (
            seconds + result.traffic_duration,
            lost + result.duration * result.loss_ratio,
        )
        if result.is_early:
            frames = result.loss_ratio * result.load * result.duration
            self._lost_at_verdict[result.load] = max(frames, self.lost_at_verdict(result.load))

    def loss_ratio(self, load: float) -> float:
        """Mean loss ratio at a load; zero if nothing was measured there."""
        seconds, lost = self._sums.get(load, (1.0, 0.0))
        return lost / seconds

    def lost_at_verdict(self, load: float) -> float:
        """The largest number of frames per interface that a trial had lost at its early verdict; 0: there was none."""
        return self._lost_at_verdict.get(load, 0.0)

    def crossing(
        self, goal_loss_ratio: float, upper: float, next_upper: float | None
    ) -> float | None:
        """The load where an overloaded SUT's loss ratio rises above a goal's, by the two smallest overloaded loads.

        The load is between zero and the smallest of them, in frames per second; None if too little is lost there to
        show it.
        """
        loss = self.loss_ratio(upper)
        if loss <= goal_loss_ratio:
            return None
        rate = upper * (1.0 - loss)
        passing = 1.0 - goal_loss_ratio
        next_loss = 0.0 if next_upper is None else self.loss_ratio(next_upper)
        if next_upper is not None and next_loss > goal_loss_ratio:
            slope = (next_upper * (1.0 - next_loss) - rate) / (next_upper - upper)
            if slope < passing:
                secant = (rate - slope * upper) / (passing - slope)
                if 0.0 < secant < upper:
                    return secant
        return rate / passing


class Expectation:
    """The expected bound of one goal, and how many times in a row the trials have proved it wrong.

    Attributes:
        position: Where on the grid the bound is expected; None if that is not known.
        overload: Where trials in overload show the bound to be, no matter what a hint says; None if they do not show
            it.
        faded: Where on the grid the loss ratio would fall to the goal's, if it continued to fall by the same factor per
            step as between the two smallest upper bounds; None if this place is not known.
        surprises: How many times in a row a load above the expected bound proved to be a lower bound. Negative: how
            many times in a row a load below it proved to be an upper bound.
        missed_hint: The classification of the load that has just proved the hinted bound wrong: a lower bound above it,
            or an upper bound below it. None if no load has just done so.
    """

    def __init__(
        self,
        goal_loss_ratio: float,
        trial_duration: float,
        grid: LoadGrid,
        curve: LossCurve,
        hinted: int | None = None,
    ) -> None:
        self.position: float | None = hinted
        self.overload: float | None = None
        self.faded: float | None = None
        self.surprises = 0
        self.missed_hint: Bound | None = None
        self._goal_loss_ratio = goal_loss_ratio
        self._trial_duration = trial_duration
        self._grid = grid
        self._curve = curve
        self._hinted = hinted
        self._recessions = 0

    @property
    def is_hinted(self) -> bool:
        """Whether the bound is expected where a hint says, because nothing has spoken against the hint yet."""
        return self._hinted is not None

    def move_hint(self, hinted: int) -> None:
        """Expects the bound at another load than the hint said at first."""
        if self._hinted is not None:
            self.position = self._hinted = hinted

    def update(self, before: Interval, after: Interval, next_upper: float | None) -> None:
        """Looks at the coarsest target's interval before and after a trial, and at the smallest upper bound above."""
        old = self.position
        self.position = self.overload = self._expected(after.upper, next_upper)
        self.faded = self._faded(after.upper, next_upper)

        if self._hinted is not None and after.first - 1 <= self._hinted <= after.last:
            # The loss above this load does not matter: some SUTs forward far less in overload.
            self.position = self._hinted
        elif self._hinted is not None:
            self.missed_hint = Bound.LOWER if after.first > self._hinted else Bound.UPPER
            self._hinted = None
        elif before.upper is not None and after != before:
            self.missed_hint = None

        if old is None:
            self.surprises = 0
            return
        if after.upper is not None and after.upper != before.upper:
            has_receded = self.position is not None and math.floor(self.position) < math.floor(old)
            self._recessions = self._recessions + 1 if has_receded else 0
            surprised = self._grid.position(after.upper) <= old or self._recessions > RECESSIONS
            self.surprises = min(self.surprises, 0) - 1 if surprised else 0
        elif after.lower is not None and after.lower != before.lower:
            surprised = self._grid.position(after.lower) > old
            self.surprises = max(self.surprises, 0) + 1 if surprised else 0

    def _expected(self, upper: float | None, next_upper: float | None) -> float | None:
        if upper is None:
            return None
        crossing = self._curve.crossing(self._goal_loss_ratio, upper, next_upper)
        if crossing is None:
            return None
        return self._grid.position(max(crossing, self._grid.min_load))

    def _faded(self, upper: float | None, next_upper: float | None) -> float | None:
        if upper is None or next_upper is None:
            return None
        # Where the goal allows no loss, one frame in a trial is what matters.
        wanted = max(self._goal_loss_ratio, 1.0 / (upper * self._trial_duration))
        loss, next_loss = self._curve.loss_ratio(upper), self._curve.loss_ratio(next_upper)
        if not wanted < loss < next_loss:
            return None
        position = self._grid.position(upper)
        factor_per_step = math.log(next_loss / loss) / (self._grid.position(next_upper) - position)
        return position - math.log(loss / wanted) / factor_per_step
