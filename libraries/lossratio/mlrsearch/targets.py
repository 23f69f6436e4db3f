"""Coarse targets: a goal is approached through easier ones, which need less time per load.

All targets of a goal have its loss ratio and exceed ratio; the coarser ones have shorter trials and smaller duration
sums. Their widths are the final one already, unless the caller gives others: on a common grid of loads a pair of
neighbours found by single short trials is the very pair that the final target has to prove, and no trial is left
behind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.errors import SearchError
from lossratio.mlrsearch.classification import Criterion
from lossratio.mlrsearch.goal import SearchGoal

STEPS_OF_SUMS = 3
"""Coarser duration sums before the final one, where trials have one length: 1, 2.8, 7.6 s before 21 s."""

SMALLEST_GROWTH = 2.7
"""Where shorter trials come first, coarser duration sums must grow by this factor to be worth their while."""


@dataclass(frozen=True)
class CoarseTarget:
    """A coarser target that a search uses in place of its own.

    Attributes:
        duration_sum: Seconds. Goals with no larger duration sum leave the target out.
        widths: How far apart its bounds may be, in widths of the goal.

    Raises:
        SearchError: If a value makes no sense.
    """

    duration_sum: float
    widths: int = 1

    def __post_init__(self) -> None:
        if not (0.0 < self.duration_sum < math.inf and self.widths >= 1):
            raise SearchError(
                f"A coarse target needs a positive duration sum in seconds and at least one width, not {self}."
            )


@dataclass(frozen=True)
class Target:
    """A step on the way to a goal, or (the last one) the goal itself.

    Attributes:
        trial_duration: Seconds; trials for this target take so long.
        duration_sum: Seconds of full-length trials that always classify a load.
        criterion: What classifies loads.
        widths: How far apart the bounds may be, in widths of the goal.
    """

    trial_duration: float
    duration_sum: float
    criterion: Criterion
    widths: int = 1

    @property
    def trials(self) -> int:
        """How many full-length trials add up to the duration sum."""
        return math.ceil(self.duration_sum / self.trial_duration)


def targets_of(goal: SearchGoal, coarse: Sequence[CoarseTarget] | None = None) -> tuple[Target, ...]:
    """A goal's targets, coarsest first; the last is the goal itself.

    Args:
        goal: The goal.
        coarse: The coarser targets, in any order; None: those that serve the goal best.
    """
    if coarse is None:
        return _usual_targets(goal)
    targets = []
    for target in sorted(coarse, key=lambda target: target.duration_sum):
        if target.duration_sum >= goal.duration_sum:
            continue
        trial_duration = min(target.duration_sum, goal.final_trial_duration)
        criterion = Criterion.make(goal, trial_duration, target.duration_sum)
        targets.append(Target(trial_duration, target.duration_sum, criterion, target.widths))
    return *targets, Target(goal.final_trial_duration, goal.duration_sum, Criterion.of(goal))


def _usual_targets(goal: SearchGoal) -> tuple[Target, ...]:
    """The targets that serve a goal best.

    Shorter trials come first, if the goal allows any: one of the initial duration, one of the geometric mean of
    initial and final duration (1, 7.7 s before 60 s). Then the duration sum grows by a constant factor.
    """
    first, final = goal.first_duration, goal.final_trial_duration
    growth = max(1.0, goal.duration_sum / final) ** (1.0 / STEPS_OF_SUMS)
    steps = [(final, final * growth**step) for step in range(STEPS_OF_SUMS)]
    if first < final:
        shorter = [(duration, duration) for duration in (first, math.sqrt(first * final))]
        steps = shorter + (steps if growth >= SMALLEST_GROWTH else [])
    targets: list[Target] = []
    for trial_duration, duration_sum in (*steps, (final, goal.duration_sum)):
        target = Target(trial_duration, duration_sum, Criterion.make(goal, trial_duration, duration_sum))
        if targets and _effort(target) == _effort(targets[-1]):
            targets.pop()
        targets.append(target)
    return tuple(targets)


def _effort(target: Target) -> tuple[float, int, int]:
    """Trial duration, and how many such trials prove a lower and an upper bound."""
    p, q = target.criterion.exceed
    trials = target.duration_sum / target.trial_duration
    return target.trial_duration, math.ceil(trials * (q - p) / q), math.floor(trials * p / q) + 1
