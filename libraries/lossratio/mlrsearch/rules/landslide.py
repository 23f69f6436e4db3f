"""Rule `landslide`: secure a load of a SUT that gets slower or faster while it is searched.

Each load that shorter trials promised then fails, and the search runs after the SUT. It is stopped by a load that is
proved at once, all the way to the goal, before anything else is improved on.
"""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView

NAME = "landslide"

LANDSLIDE = 4
"""Goal widths that full-length trials have gone in vain before a load is secured at once.

A picture: a SUT gets hot, and slower with each trial. 100 kfps failed, and so did the loads below it, down to 98 kfps.
The next load that passes a trial is proved to the end, before the SUT is too slow for that load as well.
"""

LANDSLIDE_OF_SHORT_TRIALS = 16
"""The same for shorter trials: these may go down far without any landslide.

A picture: a SUT buffers a burst of 50,000 frames, so trials of 1 s pass 50 kfps above what it forwards. Longer ones go
down all that way, although the SUT never changed.
"""


def stop_landslide(view: GoalView) -> Choice | None:
    """The load to secure next; None without a landslide."""
    return _secure_lower(view) or _secure_upper(view)


def _secure_lower(view: GoalView) -> Choice | None:
    """The best load that passed anything, before it is improved on."""
    intervals = view.intervals
    full_length = view.goal.final_trial_duration
    has_gone_down = any(
        view.progress.fall(number)
        >= view.width * (LANDSLIDE if stage.target.trial_duration >= full_length else LANDSLIDE_OF_SHORT_TRIALS)
        for number, stage in enumerate(view.stages)
    )
    if intervals[-1].lower is not None or not has_gone_down:
        return None
    for finer in range(view.final, 0, -1):
        load = intervals[finer - 1].lower
        if load is not None and load != intervals[finer].lower:
            return Choice(NAME, finer, load, Bound.LOWER)
    return None


def _secure_upper(view: GoalView) -> Choice | None:
    """A load as far above the bounds as these have gone up already: the next one above would be overtaken, too.

    A load there that has passed something is overtaken already: then the distance doubles.
    """
    intervals = view.intervals
    rise, number = max((view.progress.rise(number), number) for number in range(len(intervals)))
    if intervals[-1].upper is not None or rise < LANDSLIDE * view.width:
        return None
    base, index, highest = intervals[number].first - 1, 0, intervals[-1].last
    while index < highest:
        index = min(highest, base + rise)
        load = view.grid.load(index)
        seen = [stage.evidence.bound(load) for stage in view.stages]
        coarser = next((coarser for coarser, bound in enumerate(seen) if bound is not Bound.UPPER), None)
        if coarser is None:
            return None
        if seen[coarser] is Bound.UNDECIDED:
            return Choice(NAME, coarser, load, Bound.UPPER)
        rise *= 2
    return None
