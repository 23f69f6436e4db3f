"""The rule for SUTs that change, stall, or lose by chance: other rules might follow them without end."""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView
from lossratio.mlrsearch.stages import Interval

FARTHER = 4
"""Factor by which each load is farther from the first one than the bound before it."""


def halving(view: GoalView) -> Choice | None:
    """The next load to prove, once the search has followed the SUT in vain; None: not yet.

    If a SUT changes, or loses by chance, other rules may follow it without end. This rule follows nothing. Trials for
    the goal itself decide each load that it picks before the next load. The longest of the shorter trials comes first,
    because it saves a long one if it is lossy. The rule begins where short trials saw the bound, and goes four times as
    far after each proof, until it halves the interval. While no load is a lower bound, it goes on down to the minimum
    load.
    """
    interval = view.intervals[-1]
    if view.left_at is None or not interval.open:
        return None
    load = view.grid.load(_next(interval, view.left_at, view.width))
    longest = view.shorter - 1
    is_new = view.shorter and view.stages[longest].evidence.bound(load) is Bound.UNDECIDED
    return Choice("halving", longest if is_new else view.final, load, Bound.UNDECIDED)


def _next(interval: Interval, start: int, width: int) -> int:
    """The index of the next load: where the rule began, or farther away on the other side of a bound that is there."""
    lower, upper = interval.first - 1, interval.last + 1
    middle = (lower + upper) // 2
    index = start
    if upper <= start:
        farthest = interval.first if interval.lower is None else middle
        index = max(farthest, start - FARTHER * max(width, start - upper))
    elif lower >= start:
        index = min(middle, start + FARTHER * max(width, lower - start))
    return min(interval.last, max(interval.first, index))
