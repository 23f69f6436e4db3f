"""Relative differences of two builds.

While a comparison lasts, they are shares of the mean of both builds. This treats A and B alike, so a stall of the
machine makes as many large values on one side as on the other. Results are relative to build A.
"""

import math


def symmetric(a: float, b: float) -> float:
    """The difference of two values as a share of their mean; 0 if both are zero."""
    if a + b == 0.0:
        return 0.0
    return 2.0 * (b - a) / (a + b)


def relative(difference: float) -> float:
    """B / A - 1, from their difference as a share of their mean."""
    if difference >= 2.0:
        return math.inf
    return max(-1.0, 2.0 * difference / (2.0 - difference))


def symmetric_of(difference: float) -> float:
    """The inverse of `relative`."""
    return 2.0 * difference / (2.0 + difference)
