"""What the trials so far say about one target: running sums per load, and the relevant bounds.

Nothing is ever scanned again, so a decision costs the same after a thousand trials as after ten.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from lossratio.mlrsearch.classification import Bound, Criterion, Tally
from lossratio.trial import TrialResult


class Evidence:
    """The tallies of all measured loads under one criterion."""

    def __init__(self, criterion: Criterion) -> None:
        self._criterion = criterion
        self._tallies: dict[float, Tally] = {}
        self._bounds: dict[float, Bound] = {}
        self._loads: dict[Bound, list[float]] = {bound: [] for bound in Bound}

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        load = result.load
        tally = self._tallies.setdefault(load, Tally())
        tally.add(self._criterion, result)
        old, new = self._bounds.get(load), tally.classify(self._criterion)
        if new is old:
            return
        if old is not None:
            loads = self._loads[old]
            del loads[bisect_left(loads, load)]
        self._bounds[load] = new
        insort(self._loads[new], load)

    def bound(self, load: float) -> Bound:
        """What a load is; undecided if nothing was measured there."""
        return self._bounds.get(load, Bound.UNDECIDED)

    def tally(self, load: float) -> Tally:
        """The sums at a load."""
        return self._tallies.get(load) or Tally()

    def upper_above(self, load: float) -> float | None:
        """The smallest upper bound above a load; None if there is none."""
        uppers = self._loads[Bound.UPPER]
        index = bisect_right(uppers, load)
        return uppers[index] if index < len(uppers) else None

    def lower_below(self, load: float) -> float | None:
        """The largest lower bound below a load; None if there is none."""
        lowers = self._loads[Bound.LOWER]
        index = bisect_left(lowers, load)
        return lowers[index - 1] if index > 0 else None

    def relevant_bounds(self) -> tuple[float | None, float | None]:
        """The relevant lower and upper bound; None where there is none."""
        upper = self.upper_above(0.0)
        return self.lower_below(float("inf") if upper is None else upper), upper
