"""Rule `look`: one short trial where the bound is expected. It is the rule of the coarsest target."""

import math

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.expectation import Expectation
from lossratio.mlrsearch.rules.view import Choice, GoalView
from lossratio.mlrsearch.stages import Interval

FADING_STEPS = 8
"""Each time, the search may follow loss that fades from load to load this many times as far as before.

Example: according to the losses at two loads, loss ends 500 widths below. The first look goes 8 widths down, the second
one 64, so that one unlucky trial does not take the search to the other end.
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


def look(view: GoalView) -> Choice:
    """The next single short trial."""
    index, expected = _next_look(view.intervals[0], view.expectation, view.width)
    return Choice("look", 0, view.grid.load(index), expected)


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
        return middle, Bound.UNDECIDED

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

    if below < first - width:
        return middle, Bound.UPPER

    above = max(first - 1, below) + width
    if above <= last:
        return (above, Bound.UPPER)
    return (max(first, below), Bound.LOWER)


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
