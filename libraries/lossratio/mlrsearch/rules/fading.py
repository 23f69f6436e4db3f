"""Where long trials should find their bound when loss fades from load to load, and short trials promise too much.

Where frames are lost one by one, by chance, a trial that is sixty times as long loses sixty times as many. If the rate
of their loss falls by the same factor from load to load, a few lossy trials of any length tell where a long one loses
one frame in the mean; where none tells the factor, a short one is added. The search then goes there at once: shorter
trials would lose nothing on the way, and that would tell nothing.
"""

from __future__ import annotations

import math

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.evidence import Evidence
from lossratio.mlrsearch.expectation import LossCurve
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.stages import Stages

APART = 30.0
"""Ratio of the losses at the two loads that tell how fast loss fades; with less, chance would tell it."""

FAINT = 0.01
"""The largest loss ratio that tells it: far in overload a SUT loses frames in another way."""

GRADUAL = 3
"""How many goal widths the bounds of the shortest and the longest trials must be apart."""

LOSSLESS = 5.0
"""Mean number of lost frames, of which a trial may have lost none by chance; with more, loss does not fade so."""


def faded_trial(stages: Stages, grid: LoadGrid, width: int, curve: LossCurve) -> tuple[int, float, Bound] | None:
    """The next trial for a goal that allows no loss, once a long trial has failed where a shorter one had passed.

    Args:
        stages: What is known for the goal.
        grid: The loads.
        width: The goal's width in grid steps.
        curve: The loss at all loads.

    Returns:
        Number of the stage that the trial is for, its load in frames per second, and what the load is expected to be.
        None if loss does not fade, or nothing was promised in vain yet.
    """
    upper = stages.intervals[0].upper
    promised_in_vain = any(stage.failed for stage in stages.stages)
    if stages.goal.loss_ratio > 0.0 or upper is None or not promised_in_vain or not stages.intervals[-1].open:
        return None
    shortest, longest = (stages.stages[number].target.trial_duration for number in (0, -1))
    lost_per_second = curve.loss_ratio(upper) * upper
    if shortest == longest or lost_per_second * shortest > LOSSLESS:
        return None
    near, far = _pair_to_compare(stages.stages[0].evidence, curve, upper)
    if far is None:
        return None
    if curve.loss_ratio(far) > FAINT:
        between = grid.load(round(grid.position(near) + grid.position(far)) // 2)
        is_new = near < between < far and stages.stages[0].evidence.bound(between) is Bound.UNDECIDED
        return (0, between, Bound.UPPER) if is_new else None
    position = grid.position(upper)
    fading = math.log(curve.loss_ratio(far) / curve.loss_ratio(upper)) / (grid.position(far) - position)
    is_gradual = math.log(longest / shortest) >= GRADUAL * width * fading
    has_passed = grid.position(max(stages.stages[0].passed, default=upper)) - position
    if not is_gradual or math.log(lost_per_second * shortest) + fading * has_passed > math.log(LOSSLESS):
        return None
    return _long_trial(stages, grid, width, round(position - math.log(lost_per_second * longest) / fading))


def _pair_to_compare(evidence: Evidence, curve: LossCurve, upper: float) -> tuple[float, float | None]:
    """The smallest load that loses so much more than an upper bound, None if there is none, and the one just below."""
    near, far = upper, evidence.upper_above(upper)
    while far is not None and curve.loss_ratio(far) < APART * curve.loss_ratio(upper):
        near, far = far, evidence.upper_above(far)
    return near, far


def _long_trial(stages: Stages, grid: LoadGrid, width: int, expected: int) -> tuple[int, float, Bound]:
    """A trial for the goal itself, where it is expected to lose one frame, or just above what it has proved."""
    final, interval = len(stages.stages) - 1, stages.intervals[-1]
    if interval.lower is None:
        return final, grid.load(max(interval.first, min(interval.last, expected))), Bound.LOWER
    # Loss may fade faster than it did above: steps up double, and are no larger than to the middle.
    lowest = min(stages.stages[final].passed, default=interval.lower)
    rise = round(grid.position(interval.lower) - grid.position(lowest))
    step = max(width, min(rise, interval.steps // 2))
    return final, grid.load(min(interval.last, max(interval.first - 1 + step, expected))), Bound.UPPER
