"""Rule `descent`: go down from a load that failed a target although it had passed the coarser one."""

import math

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView
from lossratio.mlrsearch.stages import Interval

NAME = "descent"


def descend(view: GoalView) -> Choice | None:
    """The next load down for the finest target that failed so; None if there is none.

    A picture: a trial of 1 s passes at 100 kfps, and one of 60 s there loses a frame. The next loads are one width
    below, then two, then four, because the short trial shows little of what the long one sees.
    """
    for number in range(view.final, 0, -1):
        choice = _descend(view, number)
        if choice is not None:
            return choice
    return None


def _steps_to_rate(view: GoalView, duration: float, interval: Interval) -> int:
    """Grid steps down to the rate that two early verdicts show behind a burst; 0: they show none."""
    rate = None if interval.upper is None else view.curve.behind_bucket(interval.upper, duration)
    if rate is None:
        return 0
    load = max(view.grid.min_load, rate / (1.0 - view.goal.loss_ratio))
    return interval.last + 1 - math.floor(view.grid.position(load))


def _descend(view: GoalView, number: int) -> Choice | None:
    """The next load down for one target. A load below one that passed shorter trials needs none of these again."""
    stage, interval = view.stages[number], view.intervals[number]
    if not interval.open or interval.upper not in stage.failed:
        return None
    step = max(view.width, view.progress.fall(number), _steps_to_rate(view, stage.target.trial_duration, interval))
    if interval.lower is not None:
        step = min(step, interval.steps // 2)
    load = view.grid.load(max(interval.first, interval.last + 1 - step))
    promised = view.intervals[number - 1].lower
    if promised is not None and promised <= load and promised != interval.lower:
        return None
    for coarser, candidate in enumerate(view.stages[: number + 1]):
        is_shorter = candidate.target.trial_duration < stage.target.trial_duration
        if not is_shorter and candidate.evidence.bound(load) is not Bound.LOWER:
            return Choice(NAME, coarser, load, Bound.LOWER)
    return None
