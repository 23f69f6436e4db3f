"""Rules for SUTs that change, stall, or lose by chance: other rules might follow them without end."""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView
from lossratio.mlrsearch.stages import PATIENCE, Interval

FAILURES = 4
"""Number of loads that must have failed long trials after passing shorter ones before `level` asks the minimum load.

Example: trials of 1 s pass at 100, 97, 90 and 80 kfps, but trials of 8 s fail at each of these loads, with one frame in
400 lost. A trial at 9 kfps, the minimum load, may fail, too. It comes next.
"""

FALL = 32
"""These loads must span this many goal widths. Closer loads may lose alike by chance."""

ALIKE = 0.5
"""The lowest of these loads loses at least this share of the loss ratio of the highest one."""

LANDSLIDE = 4
"""After full-length trials have gone this many goal widths in vain, a load is secured at once.

Example: a SUT gets hot, and slower with each trial. 100 kfps failed, and so did the loads below it, down to 98 kfps.
The next load that passes a trial is proved completely, before the SUT is too slow for this load as well.
"""

LANDSLIDE_OF_SHORT_TRIALS = 16
"""The same for shorter trials, which may go far down without any landslide.

Example: a SUT buffers a burst of 50,000 frames, so trials of 1 s pass 50 kfps above its forwarding rate. Longer trials
go down all that way, although the SUT never changed.
"""


def level(view: GoalView) -> Choice | None:
    """The minimum load, if long trials lose as much at a low load as at a high one; None: loss falls with load.

    A SUT that stalls in each long trial, or loses a share of its frames at any load, has no bound to search for: the
    minimum load is an upper bound. Short trials between two stalls pass, and would lead the search down load by load.
    """
    for number in range(view.final, 0, -1):
        stage, interval = view.stages[number], view.intervals[number]
        is_long = stage.target.trial_duration > view.goal.first_duration
        if (
            not is_long
            or not interval.open
            or interval.lower is not None
            or interval.upper not in stage.failed
        ):
            continue
        if len(stage.failed) < FAILURES or view.fall(number) < FALL * view.width:
            continue
        if view.curve.loss_ratio(interval.upper) >= ALIKE * view.curve.loss_ratio(
            max(stage.failed)
        ):
            return Choice("level", number, view.grid.min_load, Bound.UPPER)

    return None


def landslide(view: GoalView) -> Choice | None:
    """The load to secure next, of a SUT that gets slower or faster while it is searched; None without a landslide.

    Each load that shorter trials promised then fails, and the search chases the SUT. To end this, one load is proved
    completely before any other trial.
    """
    return _secure_lower(view) or _secure_upper(view)


def _secure_lower(view: GoalView) -> Choice | None:
    """The best load that has passed any trial. It comes before any better load."""
    intervals = view.intervals
    full_length = view.goal.final_trial_duration
    has_gone_down = any(
        view.fall(number)
        >= view.width
        * (LANDSLIDE if stage.target.trial_duration >= full_length else LANDSLIDE_OF_SHORT_TRIALS)
        for number, stage in enumerate(view.stages)
    )
    if intervals[-1].lower is not None or not has_gone_down:
        return None

    for finer in range(view.final, 0, -1):
        load = intervals[finer - 1].lower
        if load is not None and load != intervals[finer].lower:
            return Choice("landslide", finer, load, Bound.LOWER)

    return None


def _secure_upper(view: GoalView) -> Choice | None:
    """A load as far above the bounds as the bounds have already gone up.

    The next load above would be overtaken, too. If a load there has already passed a trial, it is overtaken, and the
    distance doubles.
    """
    intervals = view.intervals
    rise, number = max((view.rise(number), number) for number in range(len(intervals)))
    if intervals[-1].upper is not None or rise < LANDSLIDE * view.width:
        return None

    base = intervals[number].first - 1
    index = 0
    highest = intervals[-1].last

    while index < highest:
        index = min(highest, base + rise)
        load = view.grid.load(index)
        seen = [stage.evidence.bound(load) for stage in view.stages]
        coarser = next(
            (coarser for coarser, bound in enumerate(seen) if bound is not Bound.UPPER), None
        )
        if coarser is None:
            return None
        if seen[coarser] is Bound.UNDECIDED:
            return Choice("landslide", coarser, load, Bound.UPPER)
        rise *= 2

    return None


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
