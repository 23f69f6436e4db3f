"""Rules for SUTs that change, stall, or lose by chance: other rules might follow them without end."""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView
from lossratio.mlrsearch.stages import PATIENCE, Interval


def halving(view: GoalView) -> Choice | None:
    """The middle of the remaining interval, once too many loads were proved in vain; None: not yet.

    If a SUT changes, or loses by chance, other rules may follow it without end. This rule follows nothing. Trials for
    the goal itself decide each load that it picks before the next load, and each load leaves half of the interval.
    """
    picked = view.begun[PATIENCE:]
    interval = view.intervals[-1]
    grid = view.grid
    if len(view.begun) < PATIENCE or not interval.open:
        return None
    inside = [load for load in picked if interval.first <= grid.position(load) <= interval.last]
    load = inside[0] if inside else grid.load(_next(interval, view.width * 4 ** len(picked)))
    if (
        view.stages[-1].evidence.short_trials_refute
        and view.stages[0].evidence.bound(load) is Bound.UNDECIDED
    ):
        return Choice("halving", 0, load, Bound.UNDECIDED)
    return Choice("halving", view.final, load, Bound.UNDECIDED)


def _next(interval: Interval, step: int) -> int:
    """The index of the next load: a step from the only bound, or from the upper bound if the middle is farther down."""
    if interval.upper is None and interval.lower is not None:
        return min(interval.last, interval.first - 1 + step)
    middle = interval.first if interval.lower is None else interval.first - 1 + interval.steps // 2
    return max(middle, interval.last + 1 - step)
