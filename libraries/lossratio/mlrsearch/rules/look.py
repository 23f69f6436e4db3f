"""Rule `look`: one short trial where the bound is expected. It is the rule of the coarsest target."""

import math

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.expectation import Expectation
from lossratio.mlrsearch.rules.view import Choice, GoalView
from lossratio.mlrsearch.stages import Interval

COLLAPSE = 10.0
"""If a SUT forwards nothing in overload but passes the minimum load, the next load is the overload divided by this
factor, or the middle between the bounds if that is higher.

Example: at 14.88 Mfps a DUT is so busy with dropping frames that it forwards nothing. 1.488 Mfps comes next, then 0.149
Mfps.
"""

FADING_STEPS = 8
"""Each time, the search may follow loss that fades from load to load this many times as far as before.

Example: according to the losses at two loads, loss ends 500 widths below. The first look goes 8 widths down, the second
one 64, so that one unlucky trial does not take the search to the other end.
"""

FADING_RECESSIONS = 2
"""How many recessions in a row show a gradual end of loss.

Example: each lossy load moves the expected bound, which is below it, a little farther down. One such step may come from
a token bucket that took a burst before. After two steps, the loss has no sharp edge.
"""

FIRST_FADING_STEPS = 4
"""How far the search may follow loss when that many recessions are reached, in target widths.

Example: two recessions are weak evidence, so the first step is half of the usual 8 widths.
"""

LEAP = 0.7
"""Factor and exponent of the number of steps to leap when the bound proves higher than expected.

Example: with 10 steps left, the next look is 3 steps up. With 1000 steps left, it is 88 steps up.
"""

NOISE_STEPS = 4
"""Distance from a wrong hint at which the search first looks for the bound, in target widths. Above the hint, this is
the minimum.

Example: yesterday the bound was at 100 kfps, today a trial there loses a frame. Noise seldom moves a bound by more
than 2 %, so 98 kfps comes next, and not a load far below.
"""

PROOF_OF_JUMP = 8.0
"""Before the search jumps far below the smallest lossy load, a target proves this load. The target may require at most
this multiple of the first trials' duration.

Example: a SUT loses 0.01 % in 30 % of its trials, at any load, so it has a throughput where half of the trials may lose
frames. Unlucky trials at 100, 99.5 and 99 kfps suggest that as much is lost at 10 kfps. A few more trials at 99 kfps
show that they were unlucky.
"""

MOST_PROOFS = 2
"""Maximum number of loads that longer trials prove in this way. After that, the losses are not bad luck.

Example: a SUT loses one frame in each trial. 99 kfps and 96 kfps are also lossy in trials of 8 s, so six more loads
down to the minimum load have no such trials.
"""

FAR_STEPS = 16
"""A look counts as such a jump if it is at least this many target widths below that load."""

UNLUCKY = 0.01
"""The largest loss ratio that may be bad luck. A SUT that loses more is overloaded."""

SLOWING_RECESSIONS = 4
"""This many recessions in a row, without a gradual end of loss in sight, show that the SUT becomes slower all the time.

Example: a flow table fills during the search. Four times, a load just above the expected bound fails. Then the steps
down double.
"""


def look(view: GoalView) -> Choice:
    """The next single short trial, or a trial that proves its assumption."""
    index, expected = _next_look(view.intervals[0], view.expectation, view.width)
    return _proof_of_jump(view, index) or Choice("look", 0, view.grid.load(index), expected)


def _proof_of_jump(view: GoalView, index: int) -> Choice | None:
    """A trial at the smallest lossy load, if a look goes far below although this load lost little; None: not needed."""
    upper = view.intervals[0].upper
    most = PROOF_OF_JUMP * view.goal.first_duration
    is_far = view.intervals[0].last - index > FAR_STEPS * view.width
    if upper is None or not is_far or view.curve.loss_ratio(upper) > UNLUCKY:
        return None
    number = max(
        (place for place, stage in enumerate(view.stages) if stage.target.duration_sum <= most),
        default=0,
    )
    stage = view.stages[number]
    is_proved = stage.evidence.bound(upper) is Bound.UPPER
    is_longer = stage.target.trial_duration > view.goal.first_duration
    if is_proved or (is_longer and len(stage.refused) >= MOST_PROOFS):
        return None
    return Choice("look", number, upper, Bound.UPPER)


def _next_look(interval: Interval, expectation: Expectation, width: int) -> tuple[int, Bound]:
    """The index of the load for the next single short trial, and the expected kind of bound.

    As long as the expected bound holds, both sides of it are measured, beginning with the upper side. If the upper side
    is not an upper bound, the expected bound was too low, and its lower side need not be measured. The width is in grid
    steps.
    """
    first = interval.first
    last = interval.last
    position = expectation.position
    if interval.upper is None:
        # This also holds with a hint: the first trial on a SUT that has rested may pass a load that no later trial
        # passes.
        return last, Bound.UPPER

    middle = min(last, first - 1 + width * max(1, math.ceil(interval.steps / width) // 2))
    if interval.lower is None and last < width:
        # All remaining loads are within one width of the minimum load, so the minimum load decides.
        middle = first

    if position is None:
        return (last if interval.lower is None else middle), Bound.UNDECIDED
    if position <= 0.0 and interval.lower is None:
        # The SUT forwards less than the minimum load, so the minimum load decides at once.
        return first, Bound.LOWER if expectation.is_hinted else Bound.UPPER
    if position <= 0.0 and not expectation.is_hinted:
        # If a SUT collapses, overload does not show where its bound is.
        return max(middle, _below_collapse(interval)), Bound.UNDECIDED

    lowest = first if interval.lower is None else middle
    below = min(last, math.floor(position))
    if expectation.missed_hint is Bound.LOWER:
        return min(last, max(below + width, first - 1 + width * NOISE_STEPS)), Bound.UPPER
    if expectation.missed_hint is Bound.UPPER:
        return max(lowest, below, last + 1 - width * NOISE_STEPS), Bound.LOWER
    if expectation.surprises < 0:
        return max(
            lowest, min(below, last + 1 - width * _steps_down(expectation, last + 1, width))
        ), Bound.LOWER
    if expectation.surprises > 0:
        leap = max(width, int(LEAP * interval.steps**LEAP)) * 2 ** (expectation.surprises - 1)
        return max(below, min(middle, first - 1 + leap)), Bound.UPPER

    end = _where_recession_ends(expectation, below, width)
    if end is not None:
        return max(lowest, end), Bound.UNDECIDED
    if below < first - width:
        return middle, Bound.UPPER

    above = max(first - 1, below) + width
    if above <= last:
        return (above, Bound.UPPER)
    return (max(first, below), Bound.LOWER)


def _below_collapse(interval: Interval) -> int:
    """The index of an interval's upper bound divided by `COLLAPSE`; it may be below the interval."""
    if interval.lower is None or interval.upper is None:
        return interval.first
    decades = math.log(interval.upper / interval.lower) / math.log(COLLAPSE)
    return interval.last + 1 - math.ceil(interval.steps / decades)


def _steps_down(expectation: Expectation, upper: int, width: int) -> int:
    """How many widths to go down from the index of an upper bound after the bound was lower than expected.

    Steps double, or follow the loss to the place where it should have faded.
    """
    times = -expectation.surprises
    doubled: int = 2 ** (times - 1)
    if expectation.faded is None:
        return doubled
    limit: int = FADING_STEPS**times
    return max(doubled, round(min((upper - expectation.faded) / width, limit)))


def _where_recession_ends(expectation: Expectation, below: int, width: int) -> int | None:
    """The index to try if a bound keeps receding before the search; None if it does not.

    Loss should have faded at this index. If loss does not fade, the SUT becomes slower all the time, and steps double.
    """
    times = expectation.recessions - FADING_RECESSIONS
    if times >= 0 and expectation.faded is not None and expectation.faded < below:
        farthest: int = below - width * FIRST_FADING_STEPS * FADING_STEPS**times
        return round(max(expectation.faded, farthest))
    times = expectation.recessions - SLOWING_RECESSIONS
    if times >= 0:
        return below - width * int(2**times)
    return None
