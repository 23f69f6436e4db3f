"""Which of two builds is faster: interleaved measurements until the verdict is clear, and no more.

Builds are measured in blocks of A, B, B, A, so that a drift of the testbed that is steady over a block cancels out.
Each block gives one relative difference. After every block the interval of the difference is one that may be looked at
as often as one likes: the chance that it ever misses the truth is limited, not the chance at one time of looking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from lossratio.errors import SearchError

_MIXTURE = 0.005
"""Precision of the mixture over the difference in standard deviations. Two blocks that agree perfectly suffice with it:
((2 + m) / m) ** 0.5 is just above 20, which a certainty of 95 % asks for."""


class Build(str, Enum):
    """The builds that are compared."""

    A = "A"
    """The one that is compared with, e.g. the parent of a patch."""
    B = "B"
    """The one that is judged, e.g. a patch."""


_BLOCK = (Build.A, Build.B, Build.B, Build.A)


class ComparisonVerdict(str, Enum):
    """What B is, compared with A."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    """There is no difference that is large enough to matter."""
    UNDECIDED = "undecided"
    """The limit was reached before it became clear."""


@dataclass(frozen=True)
class ComparisonResult:
    """What is known about the difference of two builds.

    Attributes:
        verdict: What B is.
        difference: B's mean over A's mean of whole blocks, less one; None before the first block is whole.
        interval: Where the difference is, with the certainty that was asked for; infinite where nothing is known yet.
        measurements: How many measurements were made.
    """

    verdict: ComparisonVerdict
    difference: float | None
    interval: tuple[float, float]
    measurements: int


class BuildComparison:
    """Compares two builds: asks for a measurement of one of them, and is told its value."""

    def __init__(self, *, least_change: float = 0.01, certainty: float = 0.95, limit: int = 40) -> None:
        """Prepares a comparison.

        Args:
            least_change: The smallest relative difference that matters; smaller ones are ``same``.
            certainty: How certain the interval must be, over all looks at it.
            limit: The most measurements, of both builds together.

        Raises:
            SearchError: If a value makes no sense.
        """
        if not 0.0 < least_change < 1.0:
            raise SearchError(f"The least change is a share between 0 and 1, not {least_change!r}.")
        if not 0.5 <= certainty < 1.0:
            raise SearchError(f"A certainty is a probability from 0.5 to below 1, not {certainty!r}.")
        if limit < 2 * len(_BLOCK):
            raise SearchError(f"A comparison needs {2 * len(_BLOCK)} measurements at least, not {limit}.")
        self._least_change = least_change
        self._doubt = 1.0 - certainty
        self._limit = limit
        self._values: list[float] = []

    def next_build(self) -> Build | None:
        """The build to measure; None when the verdict is clear, or the limit is reached."""
        place = len(self._values) % len(_BLOCK)
        if place == 0:
            ended = self._verdict() is not ComparisonVerdict.UNDECIDED
            if ended or len(self._values) + len(_BLOCK) > self._limit:
                return None
        return _BLOCK[place]

    def record(self, value: float) -> None:
        """Takes in the throughput of the build that `next_build` asked for, in any unit.

        Raises:
            SearchError: If nothing was asked for, or it is no throughput.
        """
        if self.next_build() is None:
            raise SearchError("The comparison is over; no measurement was asked for.")
        if not 0.0 <= value < math.inf:
            raise SearchError(f"A throughput is a number from 0, not {value!r}.")
        if value == 0.0 and self.next_build() is Build.A:
            raise SearchError("Build A forwards nothing, so no share of it can be told. Compare with one that works.")
        self._values.append(value)

    def result(self) -> ComparisonResult:
        """What is known so far."""
        differences = self._differences()
        mean = fmean(differences) if differences else None
        return ComparisonResult(self._verdict(), mean, self._interval(), len(self._values))

    def _differences(self) -> list[float]:
        whole = len(self._values) // len(_BLOCK) * len(_BLOCK)
        blocks = [self._values[start : start + len(_BLOCK)] for start in range(0, whole, len(_BLOCK))]
        return [(second + third) / (first + last) - 1.0 for first, second, third, last in blocks]

    def _interval(self) -> tuple[float, float]:
        """A confidence sequence for a mean of normal values of unknown variance.

        For every mean, the mixture over effects of N(0, 1 / m) standard deviations against none, with the variance
        integrated out, is sqrt(m / (n + m)) (1 - S^2 / ((n + m) V))^(-n / 2), with S and V the sums of the deviations
        from that mean and of their squares. It is a test martingale, so the probability that it ever exceeds
        1 / doubt is at most the doubt (Ville's inequality). Solved for the means at which it does not.
        """
        values, n = self._differences(), len(self._differences())
        if n < 2:
            return -math.inf, math.inf
        share = 1.0 - (self._doubt * math.sqrt(_MIXTURE / (n + _MIXTURE))) ** (2.0 / n)
        room = n - share * (n + _MIXTURE)
        if room <= 0.0:
            return -math.inf, math.inf
        mean = fmean(values)
        spread = sum((value - mean) ** 2 for value in values)
        half = math.sqrt(share * (n + _MIXTURE) * spread / (n * room))
        return mean - half, mean + half

    def _verdict(self) -> ComparisonVerdict:
        low, high = self._interval()
        if -self._least_change < low and high < self._least_change:
            return ComparisonVerdict.SAME
        if low > 0.0:
            return ComparisonVerdict.FASTER
        return ComparisonVerdict.SLOWER if high < 0.0 else ComparisonVerdict.UNDECIDED
