"""Builds measured in blocks of A, B, B, A: a steady drift of the testbed during a block cancels out.

Each block gives one relative difference, and after each block the interval of the difference is computed. The chance
that any of these intervals misses the truth is limited, not only the chance for a single interval.
"""

import math
from collections.abc import Sequence
from statistics import fmean, median

from lossratio.builds.differences import relative, symmetric
from lossratio.builds.outcome import Build, ComparisonVerdict

BLOCK = (Build.A, Build.B, Build.B, Build.A)
"""The builds of a block, in the order in which they are measured."""
_MIXTURE = 0.005
"""Precision of the mixture over the difference in standard deviations. With it, two blocks that agree perfectly are
enough: ((2 + m) / m) ** 0.5 is just above 20, which a certainty of 95 % requires."""
_FEW_BLOCKS, _WIDE = 8, 4.5
"""From `_FEW_BLOCKS` blocks on, no block counts as more than `_WIDE` median distances away from the median. For normal
values, this is three standard deviations."""


class Blocks:
    """The differences of blocks.

    Args:
        least_change: The smallest difference that matters, relative to A.
        doubt: The largest probability that any interval misses the truth.
    """

    order: tuple[Build, ...] = BLOCK
    """The builds to measure next, in this order."""

    def __init__(self, least_change: float, doubt: float) -> None:
        self._least_change = least_change
        self._doubt = doubt
        self._differences: list[float] = []

    def add(self, values: Sequence[float]) -> None:
        """Adds a whole block: its values, in the order of its builds."""
        first, second, third, last = values
        self._differences.append(symmetric(first + last, second + third))

    @property
    def difference(self) -> float | None:
        """The mean difference, relative to A; None: there is no whole block."""
        values = self._without_outliers()
        if not values:
            return None
        return relative(fmean(values))

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the mean difference, relative to A; infinite before two blocks are whole.

        It is a confidence sequence for a mean of normal values of unknown variance. For every mean, the mixture over
        effects of N(0, 1 / m) standard deviations against none, with the variance integrated out, is
        sqrt(m / (n + m)) (1 - S^2 / ((n + m) V))^(-n / 2), with S and V the sums of the deviations from that mean and
        of their squares. It is a test martingale, so the probability that it ever exceeds 1 / doubt is at most the
        doubt (Ville's inequality). The interval contains the means at which the martingale does not exceed 1 / doubt.
        """
        values = self._without_outliers()
        n = len(values)
        if n < 2:
            return -math.inf, math.inf

        share = 1.0 - (self._doubt * math.sqrt(_MIXTURE / (n + _MIXTURE))) ** (2.0 / n)
        room = n - share * (n + _MIXTURE)
        if room <= 0.0:
            return -math.inf, math.inf

        mean = fmean(values)
        squares = sum((value - mean) ** 2 for value in values)
        half = math.sqrt(share * (n + _MIXTURE) * squares / (n * room))
        return relative(mean - half), relative(mean + half)

    @property
    def verdict(self) -> ComparisonVerdict:
        """The verdict on B so far."""
        low, high = self.interval
        if -self._least_change < low and high < self._least_change:
            return ComparisonVerdict.SAME
        if low > 0.0:
            return ComparisonVerdict.FASTER
        if high < 0.0:
            return ComparisonVerdict.SLOWER
        return ComparisonVerdict.UNDECIDED

    def _without_outliers(self) -> list[float]:
        """The differences; from `_FEW_BLOCKS` blocks on, outliers count as the limits that `_WIDE` sets."""
        differences = self._differences
        if len(differences) < _FEW_BLOCKS:
            return differences
        middle = median(differences)
        room = _WIDE * median(abs(difference - middle) for difference in differences)
        return [min(max(difference, middle - room), middle + room) for difference in differences]
