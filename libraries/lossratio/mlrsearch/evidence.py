"""The evidence of the trials so far about loads: running sums per load, bounds in order, and the relevant bounds.

Nothing is ever scanned again, so a trial costs the same after a thousand trials as after ten.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import NamedTuple

from lossratio.errors import SearchError
from lossratio.mlrsearch.classification import Bound, Criterion, Tally
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.trials import TrialResult
from lossratio.values import checked


class RelevantBounds(NamedTuple):
    """A relevant lower and a relevant upper bound."""

    lower: float | None
    """Frames per second per interface; None: there is none."""
    upper: float | None
    """Frames per second per interface; None: there is none."""


class Evidence:
    """The tallies of all measured loads under one criterion.

    Attributes:
        short_trials_refute: Whether a single lossy trial of any duration makes a load an upper bound.
    """

    def __init__(self, criterion: Criterion) -> None:
        self._criterion = criterion
        self._tallies: dict[float, Tally] = {}
        self._bounds: dict[float, Bound] = {}
        self._sorted: dict[Bound, list[float]] = {Bound.LOWER: [], Bound.UPPER: []}
        self.short_trials_refute = criterion.exceed[0] == 0

    def add(self, result: TrialResult) -> bool:
        """Counts a trial; returns whether that changed the classification of its load."""
        self._tallies.setdefault(result.load, Tally()).add(self._criterion, result)
        return self._judge(result)

    def _judge(self, result: TrialResult) -> bool:
        """Classifies the load of a trial that is in the tally; returns whether the classification changed."""
        load = result.load
        old, new = self.bound(load), self._classified(result)
        if new is old:
            return False
        self._bounds[load] = new
        if old is not Bound.UNDECIDED:
            self._sorted[old].remove(load)
        if new is not Bound.UNDECIDED:
            insort(self._sorted[new], load)
        return True

    def bound(self, load: float) -> Bound:
        """The classification of a load; undecided if nothing was measured there.

        Args:
            load: Frames per second per interface.
        """
        return self._bounds.get(load, Bound.UNDECIDED)

    def tally(self, load: float) -> Tally:
        """The sums at a load.

        Args:
            load: Frames per second per interface.
        """
        return self._tallies.get(load) or Tally()

    def missing(self, load: float, bound: Bound) -> float:
        """Seconds of full-length trials of the expected kind that a load still needs to be such a bound.

        Args:
            load: Frames per second per interface.
            bound: The bound that the load is to become.
        """
        p, q = self._criterion.exceed
        tally = self.tally(load)
        high = tally.full_high + max(0.0, tally.short_high - tally.short_low * p / (q - p))
        if bound is Bound.UPPER:
            return max(0.0, self._criterion.duration_sum * p / q - high) / 1e9
        whole = max(self._criterion.duration_sum, (high + tally.full_low))
        return max(0.0, whole * (q - p) / q - tally.full_low) / 1e9

    def upper_above(self, load: float) -> float | None:
        """The smallest upper bound above a load; None if there is none.

        Args:
            load: Frames per second per interface.
        """
        uppers = self._sorted[Bound.UPPER]
        index = bisect_right(uppers, load)
        if index < len(uppers):
            return uppers[index]
        return None

    def lower_below(self, load: float) -> float | None:
        """The largest lower bound below a load; None if there is none.

        Args:
            load: Frames per second per interface.
        """
        lowers = self._sorted[Bound.LOWER]
        index = bisect_left(lowers, load)
        return lowers[index - 1] if index > 0 else None

    def relevant_bounds(self) -> RelevantBounds:
        """The relevant lower and upper bound; None for a bound that is missing."""
        upper = self.upper_above(0.0)
        return RelevantBounds(self.lower_below(float("inf") if upper is None else upper), upper)

    def _classified(self, result: TrialResult) -> Bound:
        """The classification of a trial's load, now that the trial is in the tally."""
        return self._tallies[result.load].classify(self._criterion)


def evidence_of(goal: SearchGoal) -> Evidence:
    """The evidence for a goal, still without trials."""
    return Evidence(Criterion.of(goal))


@checked(SearchError)
def classify(goal: SearchGoal, results: Iterable[TrialResult]) -> Bound:
    """Classifies a load by its trials (RFC 9971, load classification).

    Args:
        goal: The search goal.
        results: All trials measured at one load, in any order. Without trials, the load is undecided.

    Raises:
        SearchError: If the trials have different loads.
    """
    evidence = evidence_of(goal)
    loads = dict[float, None]()
    for result in results:
        evidence.add(result)
        loads[result.load] = None
    if len(loads) > 1:
        raise SearchError(
            f"A load is classified by trials at that load alone, not at {' and '.join(map(repr, loads))}."
        )
    return evidence.bound(next(iter(loads), 0.0))
