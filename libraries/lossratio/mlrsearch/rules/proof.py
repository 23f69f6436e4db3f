"""Rule `proof`: prove for the next target the pair of loads that the coarser target left, the lower load first.

Where trials that fail end early, the upper load comes first: its proof costs less.
"""

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
    unproved = [
        Choice(NAME, number, load, bound)
        for load, proved, bound in (
            (pair.lower, interval.lower, Bound.LOWER),
            (pair.upper, interval.upper, Bound.UPPER),
        )
        if load is not None and load != proved
    ]
    return unproved[-1] if view.fails_soon else unproved[0]
