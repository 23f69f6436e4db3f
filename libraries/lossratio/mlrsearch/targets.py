"""Coarse targets: a goal is approached through easier ones, which need less time per load.

All targets of a goal have its loss ratio, exceed ratio and width; the coarser ones have shorter trials and smaller
duration sums. Their widths are the final one already: on a common grid of loads a pair of neighbours found by single
short trials is the very pair that the final target has to prove, and no trial is left behind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lossratio.mlrsearch.classification import Criterion
from lossratio.mlrsearch.goal import SearchGoal

STEPS_OF_EQUAL_TRIALS = 3
"""Coarser targets for a goal whose trials all have one length: 1, 2.8, 7.6 s before 21 s."""

STEPS_OF_GROWING_TRIALS = 2
"""Coarser targets for a goal whose trials grow: 1, 7.7 s before 60 s."""


@dataclass(frozen=True)
class Target:
    """A step on the way to a goal, or (the last one) the goal itself.

    Attributes:
        trial_duration: Seconds; trials for this target take so long.
        duration_sum: Seconds of full-length trials that always classify a load.
        criterion: What classifies loads.
    """

    trial_duration: float
    duration_sum: float
    criterion: Criterion

    @property
    def trials(self) -> int:
        """How many full-length trials add up to the duration sum."""
        return math.ceil(self.duration_sum / self.trial_duration)


def targets_of(goal: SearchGoal) -> tuple[Target, ...]:
    """A goal's targets, coarsest first; the last is the goal itself. Duration sums grow by a constant factor."""
    equal_trials = goal.first_duration == goal.final_trial_duration
    steps = STEPS_OF_EQUAL_TRIALS if equal_trials else STEPS_OF_GROWING_TRIALS
    factor = max(1.0, goal.duration_sum / goal.first_duration) ** (1.0 / steps)
    targets: list[Target] = []
    for step in range(steps):
        duration_sum = goal.first_duration * factor**step
        target = _target(goal, min(duration_sum, goal.final_trial_duration), duration_sum)
        if not targets or _effort(target) != _effort(targets[-1]):
            targets.append(target)
    final = _target(goal, goal.final_trial_duration, goal.duration_sum)
    if _effort(final) == _effort(targets[-1]):
        targets.pop()
    return (*targets, final)


def _target(goal: SearchGoal, trial_duration: float, duration_sum: float) -> Target:
    return Target(trial_duration, duration_sum, Criterion.make(goal, trial_duration, duration_sum))


def _effort(target: Target) -> tuple[float, int, int]:
    """Trial duration, and how many such trials prove a lower and an upper bound."""
    p, q = target.criterion.exceed
    trials = target.duration_sum / target.trial_duration
    return target.trial_duration, math.ceil(trials * (q - p) / q), math.floor(trials * p / q) + 1
