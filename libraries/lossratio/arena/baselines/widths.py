"""Interval widths on a logarithmic scale, where doubling, halving and steps are products and sums.

The logarithmic width of an interval is ``log(upper / lower)``; with the width w relative to the upper bound that is
``-log(1 - w)``.
"""

from __future__ import annotations

import math

SHRINK = 0.999999
"""Multiplied widths are this much smaller, so that rounding never leaves an interval just wider than its goal.

No draft mentions it; the loads of the example run in draft-ietf-bmwg-mlrsearch-01 have it, to 12 digits.
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
    """A logarithmic width times a factor, and a trifle less."""
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
    """The load, or the limit that it is beyond, or no farther from than rounding."""
    if load >= max_load * (1.0 - ROUNDING):
        return max_load
    return min_load if load <= min_load * (1.0 + ROUNDING) else load
