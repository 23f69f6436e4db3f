"""Rule `proof`: prove for the next target the pair of loads that the coarser target left, the lower load first."""

from __future__ import annotations

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView

NAME = "proof"


def prove(view: GoalView) -> Choice | None:
    """The load that the coarsest open target still has to prove; None while the coarsest target of all is open.

    A picture: short trials passed at 100 kfps and failed at 100.5 kfps. The next target needs more seconds at 100 kfps,
    and when that is a lower bound, more at 100.5 kfps.
    """
    number = view.first_open
    if not number:
        return None
    if view.intervals[0].lower == view.grid.max_load:
        # There is no upper bound to look for, so the targets between serve nothing.
        return Choice(NAME, view.final, view.grid.max_load, Bound.LOWER)
    interval, pair = view.intervals[number], view.intervals[number - 1]
    if pair.lower is not None and pair.lower != interval.lower:
        return Choice(NAME, number, pair.lower, Bound.LOWER)
    if pair.upper is not None and pair.upper != interval.upper:
        return Choice(NAME, number, pair.upper, Bound.UPPER)
    # The coarser target may stop at a larger width.
    return Choice(NAME, number, view.grid.load(interval.first - 1 + interval.steps // 2), Bound.UNDECIDED)
