"""What to do about a SUT that gets slower or faster while it is searched.

Each load that shorter tests promised then fails, and the search runs after the SUT. It is stopped by a load that is
proved at once, all the way to the goal, before anything else is improved on.
"""

from __future__ import annotations

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.stages import Stages

LANDSLIDE = 4
"""Goal widths that full-length trials have gone in vain before a load is secured at once."""

LANDSLIDE_OF_SHORT_TRIALS = 16
"""The same for shorter trials, which may go down far because of a burst that a buffer takes, without any landslide."""


def secure(stages: Stages, grid: LoadGrid, width: int) -> tuple[int, float, Bound] | None:
    """The load to secure next; None without a landslide.

    Args:
        stages: What is known for a goal.
        grid: The loads.
        width: The goal's width in grid steps.

    Returns:
        Number of the stage to prove it for, the load in frames per second, and what it is to be.
    """
    return _secure_lower(stages, width) or _secure_upper(stages, grid, width)


def _secure_lower(stages: Stages, width: int) -> tuple[int, float, Bound] | None:
    """The best load that passed anything, before it is improved on."""
    intervals = stages.intervals
    if intervals[-1].lower is not None or not _has_gone_down(stages, width):
        return None
    for finer in range(len(intervals) - 1, 0, -1):
        load = intervals[finer - 1].lower
        if load is not None and load != intervals[finer].lower:
            return finer, load, Bound.LOWER
    return None


def _has_gone_down(stages: Stages, width: int) -> bool:
    """Whether a target has failed far down already."""
    for number, stage in enumerate(stages.stages):
        is_full_length = stage.target.trial_duration >= stages.goal.final_trial_duration
        limit = LANDSLIDE if is_full_length else LANDSLIDE_OF_SHORT_TRIALS
        if stages.fall(number) >= limit * width:
            return True
    return False


def _secure_upper(stages: Stages, grid: LoadGrid, width: int) -> tuple[int, float, Bound] | None:
    """A load as far above the bounds as these have gone up already: the next one above would be overtaken, too.

    A load there that has passed something is overtaken already: then the distance doubles.
    """
    intervals = stages.intervals
    rise, number = max((stages.rise(number), number) for number in range(len(intervals)))
    if intervals[-1].upper is not None or rise < LANDSLIDE * width:
        return None
    base, index, highest = intervals[number].first - 1, 0, intervals[-1].last
    while index < highest:
        index = min(highest, base + rise)
        load = grid.load(index)
        seen = [stage.evidence.bound(load) for stage in stages.stages]
        coarser = next((coarser for coarser, bound in enumerate(seen) if bound is not Bound.UPPER), None)
        if coarser is None:
            return None
        if seen[coarser] is Bound.UNDECIDED:
            return coarser, load, Bound.UPPER
        rise *= 2
    return None
