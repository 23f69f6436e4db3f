"""Where single short trials look for a bound: the rule of the coarsest target, given where the bound is expected."""

from __future__ import annotations

import math

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.expectation import Expectation
from lossratio.mlrsearch.stages import Interval

COLLAPSE = 10.0
"""Where a SUT forwards nothing in overload but the minimum load passes, the overload divided by this comes next, or the
middle between the bounds if that is higher."""

FADING_STEPS = 8
"""How much farther than the last time loss that fades from load to load is followed at most, in target widths."""

FADING_RECESSIONS = 2
"""Recessions in a row that tell a gradual end of loss: after one, a burst may be missing that a bucket took before."""

FIRST_FADING_STEPS = 4
"""How far loss is followed at most when that many recessions are reached, in target widths."""

LEAP = 0.7
"""Factor and exponent of the steps leapt over when the bound proved higher than expected: 3 of 10, 90 of 1000."""

NOISE_STEPS = 4
"""How far from a hint that was wrong the bound is looked for first, in target widths; above it at least."""

SLOWING_RECESSIONS = 4
"""Recessions in a row, without a gradual end of loss in sight, that tell a SUT that becomes slower all the time."""

SPLIT = 0.25
"""Where an interval is split, from its lower bound, when the expected bound is below it."""


def next_look(interval: Interval, expectation: Expectation, width: int) -> tuple[int, Bound]:
    """The index that a single short trial is to look at, and what it is expected to be.

    As long as the expected bound holds good, both sides of it are looked at, the upper one first: if that is no upper
    bound, the expected bound was too low and its lower side need not be measured.

    Args:
        interval: Where the target's bounds are; not closed yet.
        expectation: Where the bound is expected.
        width: The target's width in grid steps.
    """
    first, last, position = interval.first, interval.last, expectation.position
    if interval.upper is None:
        # Also with a hint: the first trial at a SUT that has rested may pass what no later one does.
        return last, Bound.UPPER
    middle = min(last, first - 1 + width * max(1, math.ceil(interval.steps / width) // 2))
    if interval.lower is None and last < width:
        # All that is left is within one width of the minimum load, so this one decides.
        middle = first
    if position is None:
        return (last if interval.lower is None else middle), Bound.UNDECIDED
    if position <= 0.0 and interval.lower is None:
        # Less than the minimum load is forwarded, so that load decides at once.
        return first, Bound.LOWER if expectation.is_hinted else Bound.UPPER
    if position <= 0.0 and not expectation.is_hinted:
        # A SUT that collapses does not show in overload where its bound is.
        return max(middle, _below_collapse(interval)), Bound.UNDECIDED
    lowest = first if interval.lower is None else middle
    below = min(last, math.floor(position))
    if expectation.missed_hint is Bound.LOWER:
        return min(last, max(below + width, first - 1 + width * NOISE_STEPS)), Bound.UPPER
    if expectation.missed_hint is Bound.UPPER:
        return max(lowest, below, last + 1 - width * NOISE_STEPS), Bound.LOWER
    if expectation.surprises < 0:
        return max(lowest, min(below, last + 1 - width * _steps_down(expectation, last + 1, width))), Bound.LOWER
    if expectation.surprises > 0:
        leap = max(width, int(LEAP * interval.steps**LEAP)) * 2 ** (expectation.surprises - 1)
        return max(below, min(middle, first - 1 + leap)), Bound.UPPER
    end = _where_recession_ends(expectation, below, width)
    if end is not None:
        return max(lowest, end), Bound.UNDECIDED
    if below < first - width:
        return min(middle, first - 1 + max(width, int(interval.steps * SPLIT))), Bound.UPPER
    above = max(first - 1, below) + width
    return (above, Bound.UPPER) if above <= last else (max(first, below), Bound.LOWER)


def _below_collapse(interval: Interval) -> int:
    """The index of an interval's upper bound divided by `COLLAPSE`; it may be below the interval."""
    if interval.lower is None or interval.upper is None:
        return interval.first
    decades = math.log(interval.upper / interval.lower) / math.log(COLLAPSE)
    return interval.last + 1 - math.ceil(interval.steps / decades)


def _steps_down(expectation: Expectation, upper: int, width: int) -> int:
    """How many widths to go down from the index of an upper bound after the bound was lower than expected.

    Steps double, or follow the loss to where it should have faded.
    """
    times = -expectation.surprises
    doubled: int = 2 ** (times - 1)
    if expectation.faded is None:
        return doubled
    limit: int = FADING_STEPS**times
    return max(doubled, round(min((upper - expectation.faded) / width, limit)))


def _where_recession_ends(expectation: Expectation, below: int, width: int) -> int | None:
    """The index below a bound that keeps receding before the search; None if it does not.

    It is where loss should have faded. Where loss does not fade, the SUT becomes slower all the time: steps double.
    """
    times = expectation.recessions - FADING_RECESSIONS
    if times >= 0 and expectation.faded is not None and expectation.faded < below:
        farthest: int = below - width * FIRST_FADING_STEPS * FADING_STEPS**times
        return round(max(expectation.faded, farthest))
    times = expectation.recessions - SLOWING_RECESSIONS
    return below - width * int(2**times) if times >= 0 else None
