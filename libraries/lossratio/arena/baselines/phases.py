"""The non-initial phases that MLRsearch of 2019 and of 2021 share: trials grow longer, intervals narrower."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.arena.baselines.widths import log_width, multiplied
from lossratio.errors import SearchError
from lossratio.mlrsearch import SearchGoal


@dataclass(frozen=True)
class Phase:
    """A non-initial phase.

    Attributes:
        name: What it is called.
        duration: Trial duration, in seconds.
        width_goal: Logarithmic width that each interval is to have.
    """

    name: str
    duration: float
    width_goal: float


def phases_of(goal: SearchGoal, intermediate_phases: int) -> tuple[Phase, ...]:
    """The intermediate phases and the final one.

    Durations grow geometrically from the goal's initial to its final one; each phase halves the width goal of the one
    before, down to the goal's.

    Raises:
        SearchError: If the number of intermediate phases is negative.
    """
    if intermediate_phases < 0:
        raise SearchError(f"The number of intermediate phases must not be negative, as {intermediate_phases!r} is.")
    growth = goal.final_trial_duration / goal.first_duration
    width_goal = log_width(goal.width)
    phases = [Phase("final phase", goal.final_trial_duration, width_goal)]
    for number in range(intermediate_phases, 0, -1):
        width_goal = multiplied(width_goal, 2.0)
        duration = goal.first_duration * growth ** ((number - 1) / intermediate_phases)
        phases.insert(0, Phase(f"intermediate phase {number}", duration, width_goal))
    return tuple(phases)
