"""Rule `hint`: begin long trials at the pair of loads that earlier searches proved.

It is for goals whose trials grow. Where all trials have one length, the search starts at the hint, and needs no rule.
"""

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.rules.view import Choice, GoalView

NAME = "hint"

NEAR = 1
"""Goal widths above the pair where short trials may have stopped, so that the pair is given up when it passes more.

A picture: earlier searches ended between 100 and 100.5 kfps, and tonight short trials stop at 101 kfps. If a longer
trial passes 100.5 kfps, too, the search goes on at 101 kfps. If short trials stop at 120 kfps, as they did in earlier
searches, they say little about long ones, and the pair stays.
"""


def follow_hint(view: GoalView) -> Choice | None:
    """The next trial of the pair; None as soon as a trial speaks against it.

    The trials are for the goal itself: the earlier searches showed already what trials of middle length would.
    """
    if view.hinted is None or view.hinted_pair is None or view.goal.first_duration == view.goal.final_trial_duration:
        return None
    stages, interval = view.stages, view.intervals[-1]
    (lower, upper), upper_index = view.hinted_pair, view.hinted + view.width
    if any(stage.evidence.bound(lower) is Bound.UPPER for stage in stages):
        return None
    is_upper_inside = interval.first <= upper_index <= interval.last
    seen = [stage.evidence.bound(upper) for stage in stages]
    longer = next((number for number in range(1, view.final) if seen[number] is Bound.UNDECIDED), None)
    if is_upper_inside and seen[0] is Bound.UNDECIDED:
        # A short trial costs little, and right after lossy ones it sees the SUT in the state that loses.
        return Choice(NAME, 0, upper, Bound.UPPER)
    is_near = view.intervals[0].first - 1 <= upper_index + NEAR * view.width
    if is_upper_inside and is_near and Bound.UPPER not in seen:
        # Where short trials stopped may be as good a load for a long one, and a better result.
        return None if longer is None else Choice(NAME, longer, upper, Bound.UPPER)
    if interval.first <= view.hinted <= interval.last:
        promised = view.intervals[0].lower
        if promised is not None and promised >= lower:
            return Choice(NAME, view.final, lower, Bound.LOWER)
        # A load that short trials classified once stays so, even where others failed below it since.
        is_new = stages[0].evidence.bound(lower) is Bound.UNDECIDED
        return Choice(NAME, 0, lower, Bound.LOWER) if is_new else None
    if interval.lower == lower and is_upper_inside:
        # As long as no shorter trial was lossy, the next longer one may be; a longer one without loss proves nothing.
        stage = view.final if longer is None or Bound.UPPER in seen else longer
        return Choice(NAME, stage, upper, Bound.UPPER)
    return None
