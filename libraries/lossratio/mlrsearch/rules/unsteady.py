"""Rules for SUTs that change, stall, or lose by chance: other rules might follow them without end."""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView
from lossratio.mlrsearch.stages import PATIENCE, Interval


def halving(view: GoalView) -> Choice | None:
    """The middle of the remaining interval, once too many loads were proved in vain; None: not yet.

    If a SUT changes, or loses by chance, other rules may follow it without end. This rule follows nothing. Trials for
    the goal itself decide each load that it picks before the next load. It begins where short trials saw the bound, and
    goes four times as far after each proof, until it halves the interval.
    """
    interval = view.intervals[-1]
    if len(view.begun) < PATIENCE or not interval.open:
        return None
    evidence = view.stages[-1].evidence
    proved = sum(evidence.bound(load) is not Bound.UNDECIDED for load in view.begun[PATIENCE:])
    load = view.begun[-1]
    is_inside = interval.first <= view.grid.position(load) <= interval.last
    if not is_inside or evidence.bound(load) is not Bound.UNDECIDED:
        load = view.grid.load(_next(interval, view.intervals[0], view.width * 4**proved))
    is_new = view.stages[0].evidence.bound(load) is Bound.UNDECIDED
    stage = 0 if evidence.short_trials_refute and is_new else view.final
    return Choice("halving", stage, load, Bound.UNDECIDED)


def _next(interval: Interval, coarse: Interval, step: int) -> int:
    """The index of the next load: the middle, or, if the bounds are farther apart, where short trials saw the bound.

    This load is at least a step away from both bounds.
    """
    below, above = interval.first - 1 + step, interval.last + 1 - step
    if below >= above:
        return interval.first - 1 + interval.steps // 2
    return min(above, max(below, coarse.first - 1))
