"""Rule `fading`: go where a long trial should lose one frame, if loss fades from load to load.

If frames are lost one by one, by chance, a trial that is sixty times as long loses sixty times as many frames. So short
trials promise too much. If the rate of their loss falls by the same factor from load to load, a few lossy trials of any
length show where a long trial loses one frame on average. If no trials show the factor, a short trial is added. The
search then goes there at once, because shorter trials on the way would lose nothing, and so show nothing.
"""

import math

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView

APART = 30.0
"""Minimum ratio of the losses at the two loads that show how fast loss fades.

Example: 3 lost frames at one load and 90 at another load give a slope. 3 and 6 may be chance.
"""

FAINT = 0.01
"""The largest loss ratio that shows how fast loss fades.

Example: 10 % above its capacity, a SUT loses one frame in ten because a queue is full. The single frames that it loses
below its capacity have another cause, and another slope.
"""

LOSSLESS = 5.0
"""Up to this mean number of lost frames, a trial may lose none by chance. Beyond this number, a trial without loss
shows that loss does not fade in this way.

For example, if the slope predicts 5 lost frames in a trial, one trial in 150 loses none. If it predicts 10, a trial
without loss shows that the slope is wrong.
"""

ONE_BY_ONE = 2.0
"""If frames are lost one by one, a trial has lost at most this many frames per interface when an early verdict ends it.

For example, a bucket is empty after 1.1 s, and 5 frames are missing when the trial is checked next. If a frame were
lost by chance every second, the trial would have ended with the first one.
"""

MOST_RISE = 2
"""Once long trials have passed this many goal widths above the load that the slope predicts, the slope is wrong.

For example, random early discard loses 0.03 % at 317 kfps, 13 in a million frames at 226 kfps, and none below 222 kfps.
The slope predicts one lost frame at 154 kfps. Long trials pass there, at 155 and at 156 kfps, so the search goes on
without the slope, and trials of 1 s and 8 s bring it back to 222 kfps. Climbing there by trials of 60 s would take ten
more of them.
"""

CLOSE = 8
"""If one lossy trial decides, long trials still search a gap of fewer goal widths than this, because three trials close
it."""


def fading(view: GoalView) -> Choice | None:
    """The next trial for a goal that allows no loss, once a long trial has failed where a shorter one had passed.

    None if loss does not fade, or no promise of short trials has failed yet.
    """
    stages = view.stages
    curve = view.curve
    grid = view.grid
    upper = view.intervals[0].upper
    promised_in_vain = any(stage.failed for stage in stages)
    if (
        view.goal.loss_ratio > 0.0
        or upper is None
        or not promised_in_vain
        or not view.intervals[-1].open
    ):
        return None
    if curve.lost_at_verdict(upper) > ONE_BY_ONE:
        return None

    shortest, longest = (stages[number].target.trial_duration for number in (0, -1))
    lost_per_second = curve.loss_ratio(upper) * upper
    if shortest == longest or lost_per_second * shortest > LOSSLESS:
        return None

    near, far = _pair_to_compare(view, upper)
    if far is None:
        return None

    if curve.loss_ratio(far) > FAINT:
        between = grid.load(round(grid.position(near) + grid.position(far)) // 2)
        is_new = near < between < far and stages[0].evidence.bound(between) is Bound.UNDECIDED
        if is_new:
            return Choice("fading", 0, between, Bound.UPPER)
        return None

    position = grid.position(upper)
    slope = math.log(curve.loss_ratio(far) / curve.loss_ratio(upper)) / (
        grid.position(far) - position
    )
    has_passed = grid.position(max(stages[0].passed, default=upper)) - position
    if math.log(lost_per_second * shortest) + slope * has_passed > math.log(LOSSLESS):
        return None
    if _is_refuted(view, position):
        return None

    return _long_trial(view, round(position - math.log(lost_per_second * longest) / slope))


def _pair_to_compare(view: GoalView, upper: float) -> tuple[float, float | None]:
    """The smallest load that loses so much more than an upper bound (None: no such load), and the load just below."""
    evidence = view.stages[0].evidence
    curve = view.curve
    near = upper
    far = evidence.upper_above(upper)
    while far is not None and curve.loss_ratio(far) < APART * curve.loss_ratio(upper):
        near = far
        far = evidence.upper_above(far)
    return near, far


def _long_trial(view: GoalView, expected: int) -> Choice:
    """A trial for the goal itself, at the load where it should lose one frame, or just above the proved bound."""
    grid = view.grid
    interval = view.intervals[-1]
    if interval.lower is None:
        return Choice(
            "fading",
            view.final,
            grid.load(max(interval.first, min(interval.last, expected))),
            Bound.LOWER,
        )

    # Loss may fade faster here than at higher loads: steps up double, but go no farther than the middle.
    step = max(view.width, min(_has_risen(view), interval.steps // 2))
    index = min(interval.last, max(interval.first - 1 + step, expected))

    return Choice("fading", view.final, grid.load(index), Bound.UPPER)


def _is_refuted(view: GoalView, upper: float) -> bool:
    """Whether long trials have passed where the slope predicts loss, still far below the upper bound.

    Args:
        view: What is known for the goal.
        upper: The upper bound, as a position on the grid.
    """
    lower = view.intervals[-1].lower
    if lower is None or _has_risen(view) < MOST_RISE * view.width:
        return False
    one_decides = view.stages[-1].evidence.short_trials_refute
    return not one_decides or upper - view.grid.position(lower) >= CLOSE * view.width


def _has_risen(view: GoalView) -> int:
    """How many grid steps long trials have gone up, from the first load that they proved to the best load."""
    lower = view.intervals[-1].lower
    if lower is None:
        return 0
    lowest = min(view.stages[-1].passed, default=lower)
    return round(view.grid.position(lower) - view.grid.position(lowest))
