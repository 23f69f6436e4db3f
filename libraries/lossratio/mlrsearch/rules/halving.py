"""Rule `halving`: halve what is left, load by load to the end, once too many loads were proved in vain.

The other rules follow what trials show about the SUT. Where that changes, or is chance, they may follow it without end.
This rule follows nothing: each load that it picks is decided by trials for the goal itself, and leaves half of the
interval.
"""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView
from lossratio.mlrsearch.stages import PATIENCE, Interval

NAME = "halving"


def halve(view: GoalView) -> Choice | None:
    """The middle of the interval that is left, or nearer to the bound where loads fail (or pass); None: not yet.

    A load that was picked once is decided before the next one.
    """
    picked = view.progress.begun[PATIENCE:]
    interval, grid = view.intervals[-1], view.grid
    if len(view.progress.begun) < PATIENCE or not interval.open:
        return None
    inside = [load for load in picked if interval.first <= grid.position(load) <= interval.last]
    load = inside[0] if inside else grid.load(_next(interval, view.width * 4 ** len(picked)))
    if view.stages[-1].evidence.short_trials_refute and view.stages[0].evidence.bound(load) is Bound.UNDECIDED:
        return Choice(NAME, 0, load, Bound.UNDECIDED)
    return Choice(NAME, view.final, load, Bound.UNDECIDED)


def _next(interval: Interval, step: int) -> int:
    """The index of the next load: a step from the only bound, or from the upper one if the middle is farther down."""
    if interval.upper is None and interval.lower is not None:
        return min(interval.last, interval.first - 1 + step)
    middle = interval.first if interval.lower is None else interval.first - 1 + interval.steps // 2
    return max(middle, interval.last + 1 - step)
