"""The non-initial phases of MLRsearch of 2019 and of 2021: trials grow longer, intervals narrower.

Interval widths are logarithmic: doubling, halving and steps are products and sums then. The logarithmic width of an
interval is ``log(upper / lower)``; with the width w relative to the upper bound that is ``-log(1 - w)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lossratio.errors import SearchError
from lossratio.mlrsearch import SearchGoal

SHRINK = 0.999999
"""Multiplied widths are smaller by this factor, so that rounding never leaves an interval slightly wider than its goal.

No draft mentions the factor. The loads of the example run in draft-ietf-bmwg-mlrsearch-01 show it, to 12 digits.
"""


ROUNDING = 1e-12
"""Loads and widths that differ by no more than this, relatively, are the same."""


def log_width(relative_width: float) -> float:
    """The logarithmic width of an interval that is `relative_width` wide, relative to its upper bound."""
    return -math.log1p(-relative_width)


def log_distance(lower: float, upper: float) -> float:
    """The logarithmic width between two loads."""
    return math.log(upper / lower)


def multiplied(width: float, factor: float) -> float:
    """A logarithmic width times a factor, slightly reduced (`SHRINK`)."""
    return width * factor * SHRINK


def is_wide(width: float, width_goal: float) -> bool:
    """Whether a logarithmic width is larger than a goal, by more than rounding."""
    return width > width_goal * (1.0 + ROUNDING)


def step_up(load: float, width: float) -> float:
    """The load that is a logarithmic width above another."""
    return load * math.exp(width)


def step_down(load: float, width: float) -> float:
    """The load that is a logarithmic width below another."""
    return load * math.exp(-width)


def clamped(load: float, min_load: float, max_load: float) -> float:
    """The load, limited to the search's loads. A load that differs from a limit by rounding only becomes that limit."""
    if load >= max_load * (1.0 - ROUNDING):
        return max_load
    return min_load if load <= min_load * (1.0 + ROUNDING) else load


@dataclass(frozen=True)
class Phase:
    """A non-initial phase.

    Attributes:
        name: Its name.
        duration: Trial duration, in seconds.
        width_goal: Largest logarithmic width of an interval at the end of the phase.
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
