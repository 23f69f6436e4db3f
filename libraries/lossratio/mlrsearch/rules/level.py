"""Rule `level`: ask the minimum load, where long trials lose as much at a low load as at a high one.

A SUT that stalls in each long trial, or loses a share of its frames at any load, has no bound to search for: the
minimum load is an upper bound. Short trials between two stalls pass, and would lead the search down load by load.
"""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView

NAME = "level"

FAILURES = 4
"""Loads that long trials must have failed although shorter ones had passed there.

A picture: trials of 1 s pass at 100, 97, 90 and 80 kfps, and those of 8 s fail at each of them, with one frame of 400
lost. So may one at 9 kfps, the minimum load, which comes next.
"""

FALL = 32
"""Goal widths that these loads must be apart; closer ones may lose alike by chance."""

ALIKE = 0.5
"""The least loss ratio at the lowest of these loads, as a share of that at the highest one."""


def ask_min_load(view: GoalView) -> Choice | None:
    """The minimum load for the finest target that failed so; None if loss falls with load, or something has passed."""
    for number in range(view.final, 0, -1):
        stage, interval = view.stages[number], view.intervals[number]
        is_long = stage.target.trial_duration > view.goal.first_duration
        if not is_long or not interval.open or interval.lower is not None or interval.upper not in stage.failed:
            continue
        if len(stage.failed) < FAILURES or view.progress.fall(number) < FALL * view.width:
            continue
        if view.curve.loss_ratio(interval.upper) >= ALIKE * view.curve.loss_ratio(stage.highest_failure):
            return Choice(NAME, number, view.grid.min_load, Bound.UPPER)
    return None
