"""Rules that lead from short trials to the proof by long ones: `hint`, `descent` and `proof` itself."""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView

NEAR = 1
"""A hinted pair that passes is given up if short trials stopped at most this many goal widths above it.

Example: earlier searches ended between 100 and 100.5 kfps, and tonight short trials stop at 101 kfps. If a longer trial
passes at 100.5 kfps, too, the search goes on at 101 kfps. If short trials stop at 120 kfps, as they did in earlier
searches, they say little about long trials, and the pair stays.
"""


def hint(view: GoalView) -> Choice | None:
    """The next trial for the pair of loads that earlier searches proved; None once a trial speaks against the pair.

    The trials are for the goal itself, because the earlier searches have already shown what trials of middle length
    would show. If all trials have one length, the search starts at the hint, and needs no rule.
    """
    if view.hinted is None or view.hinted_pair is None or not view.shorter:
        return None

    stages = view.stages
    interval = view.intervals[-1]
    (lower, upper), upper_index = view.hinted_pair, view.hinted + view.width
    if any(stage.evidence.bound(lower) is Bound.UPPER for stage in stages):
        return None

    is_upper_inside = interval.first <= upper_index <= interval.last
    seen = [stage.evidence.bound(upper) for stage in stages]
    longer = next(
        (number for number in range(1, view.final) if seen[number] is Bound.UNDECIDED), None
    )
    if is_upper_inside and seen[0] is Bound.UNDECIDED:
        # A short trial costs little, and right after lossy trials it sees the SUT in the state that loses.
        return Choice("hint", 0, upper, Bound.UPPER)

    is_near = view.intervals[0].first - 1 <= upper_index + NEAR * view.width
    if is_upper_inside and is_near and Bound.UPPER not in seen:
        # The load where short trials stopped may also pass long trials, and would be a better result.
        if longer is None:
            return None
        return Choice("hint", longer, upper, Bound.UPPER)
    if view.fails_soon and is_upper_inside:
        # A load that fails costs little, and a load that passes makes the proof of the lower load unnecessary.
        return Choice("hint", view.final, upper, Bound.UPPER)

    if interval.first <= view.hinted <= interval.last:
        promised = view.intervals[0].lower
        if promised is not None and promised >= lower:
            return Choice("hint", view.final, lower, Bound.LOWER)
        # A load that short trials have classified keeps its classification, even if others have failed below it since.
        is_new = stages[0].evidence.bound(lower) is Bound.UNDECIDED
        if is_new:
            return Choice("hint", 0, lower, Bound.LOWER)
        return None

    if interval.lower == lower and is_upper_inside:
        # As long as no shorter trial was lossy, the next longer trial may be lossy. A longer trial without loss proves
        # nothing.
        stage = view.final if longer is None or Bound.UPPER in seen else longer
        return Choice("hint", stage, upper, Bound.UPPER)
    return None


def descent(view: GoalView) -> Choice | None:
    """The next load down, for the finest target that a load failed after passing the coarser target; None: none.

    Example: a trial of 1 s passes at 100 kfps, and a trial of 60 s loses a frame there. The next loads are one width
    below, then two, then four, because the short trial shows little of what the long trial sees.
    """
    numbers = range(view.final, 0, -1)
    return next(
        (choice for number in numbers if (choice := _descend(view, number)) is not None), None
    )


def _descend(view: GoalView, number: int) -> Choice | None:
    """The next lower load for one target. Below a load that passed shorter trials, shorter trials are not repeated."""
    stage, interval = view.stages[number], view.intervals[number]
    if not interval.open or interval.upper not in stage.failed:
        return None

    step = max(view.width, view.fall(number))
    if interval.lower is not None:
        step = min(step, interval.steps // 2)
    load = view.grid.load(max(interval.first, interval.last + 1 - step))
    promised = view.intervals[number - 1].lower
    if promised is not None and promised <= load and promised != interval.lower:
        return None

    for coarser, candidate in enumerate(view.stages[: number + 1]):
        is_shorter = candidate.target.trial_duration < stage.target.trial_duration
        if not is_shorter and candidate.evidence.bound(load) is not Bound.LOWER:
            return Choice("descent", coarser, load, Bound.LOWER)

    return None


def proof(view: GoalView) -> Choice | None:
    """The load that the coarsest open target still has to prove; None as long as the coarsest target of all is open.

    Example: short trials passed at 100 kfps and failed at 100.5 kfps. The next target needs more seconds at 100 kfps,
    and once this is a lower bound, more seconds at 100.5 kfps. If failing trials end early, the upper load comes first,
    because its proof costs less.
    """
    number = view.first_open
    if not number:
        return None
    if view.intervals[0].lower == view.grid.max_load:
        # There is no upper bound to look for, so the targets in between are useless.
        return Choice("proof", view.final, view.grid.max_load, Bound.LOWER)

    interval = view.intervals[number]
    pair = view.intervals[number - 1]
    unproved = [
        Choice("proof", number, load, bound)
        for load, proved, bound in (
            (pair.lower, interval.lower, Bound.LOWER),
            (pair.upper, interval.upper, Bound.UPPER),
        )
        if load is not None and load != proved
    ]
    if view.fails_soon:
        return unproved[-1]

    return unproved[0]
