"""Which of two builds is faster, by one test: which build to measure next, until the verdict is clear, and no longer.

Builds are measured in groups: in blocks, or, if hundreds of measurements are cheap, in pairs. Each group gives one
relative difference. The chance that any verdict of a comparison is wrong is limited, not only the chance for a single
one, although the verdict is computed again after each group.

While a comparison lasts, differences are shares of the mean of both builds. This treats A and B alike, so a stall of
the machine makes as many large values on one side as on the other. Results are relative to build A.
"""

import math
import random
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

from lossratio.builds.outcome import (
    AbRequest,
    Build,
    ComparisonResult,
    ComparisonVerdict,
    check_terms,
    check_throughput,
)
from lossratio.errors import SearchError
from lossratio.results import Ends

BLOCK = (Build.A, Build.B, Build.B, Build.A)
"""The builds of a block, in the order in which they are measured."""
_MIXTURE = 0.005
"""Precision of the mixture over the difference in standard deviations. With it, two blocks that agree perfectly are
enough: ((2 + m) / m) ** 0.5 is just above 20, which a certainty of 95 % requires."""
_FEW_BLOCKS, _WIDE = 8, 4.5
"""From `_FEW_BLOCKS` blocks on, no block counts as more than `_WIDE` median distances away from the median. For normal
values, this is three standard deviations."""
_BETS = (0.125, 0.25, 0.5, 1.0, 2.0)
"""Stakes per unit of distance: small stakes find small differences, large stakes need few pairs for large
differences."""
_LONGEST = 2.0
"""A difference counts as at most this many median distances, because a stall of the machine is no better evidence."""


class _Design(ABC):
    """The order in which builds are measured, and what the differences of whole groups show.

    Args:
        least_change: The smallest difference that matters, relative to A.
        doubt: The largest probability that a verdict is wrong.
    """

    order: tuple[Build, ...] = BLOCK
    """The builds of the group to measure next, in this order."""

    def __init__(self, least_change: float, doubt: float) -> None:
        self._doubt = doubt
        # The least change as a share of the mean of both builds: a fall of 5 % is a larger share than a rise of 5 %.
        self._fall = -2.0 * least_change / (2.0 - least_change)
        self._rise = 2.0 * least_change / (2.0 + least_change)
        self._differences: list[float] = []
        self.verdict = ComparisonVerdict.UNDECIDED
        """The verdict on B so far."""

    def add(self, values: Sequence[float]) -> None:
        """Adds a whole group: its values, in the order of its builds."""
        total = dict.fromkeys(Build, 0.0)
        for build, value in zip(self.order, values, strict=True):
            total[build] += value

        both = total[Build.A] + total[Build.B]
        difference = 0.0
        if both:
            difference = 2.0 * (total[Build.B] - total[Build.A]) / both
        self._differences.append(difference)
        self.verdict = self._judged()

    @property
    def difference(self) -> float | None:
        """The difference, relative to A; None: there is no whole group."""
        if not self._differences:
            return None
        return _relative(self._middle())

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the difference, relative to A; its upper end is infinite if there are too few groups."""
        low, high = self._limits()
        return _relative(low), _relative(high)

    def _judged(self) -> ComparisonVerdict:
        if self._is_beyond(self._fall, 1.0) and self._is_beyond(self._rise, -1.0):
            return ComparisonVerdict.SAME
        if self._is_beyond(0.0, 1.0):
            return ComparisonVerdict.FASTER
        if self._is_beyond(0.0, -1.0):
            return ComparisonVerdict.SLOWER
        return ComparisonVerdict.UNDECIDED

    @abstractmethod
    def _middle(self) -> float:
        """The middle of the differences, as a share of the mean of both builds."""

    @abstractmethod
    def _limits(self) -> tuple[float, float]:
        """The interval, in such shares; infinite if there are too few groups."""

    @abstractmethod
    def _is_beyond(self, centre: float, side: float) -> bool:
        """Whether the difference is certainly above a value (side: 1) or below it (-1), in such shares."""


def _relative(difference: float) -> float:
    """B / A - 1, from their difference as a share of their mean."""
    if difference >= 2.0:
        return math.inf
    if difference <= -2.0:
        return -1.0
    return 2.0 * difference / (2.0 - difference)


class _Blocks(_Design):
    """Blocks of A, B, B, A: a steady drift of the testbed during a block cancels out.

    The interval is a confidence sequence for a mean of normal values of unknown variance. For every mean, the mixture
    over effects of N(0, 1 / m) standard deviations against none, with the variance integrated out, is
    sqrt(m / (n + m)) (1 - S^2 / ((n + m) V))^(-n / 2), with S and V the sums of the deviations from that mean and of
    their squares. It is a test martingale, so the probability that it ever exceeds 1 / doubt is at most the doubt
    (Ville's inequality). The interval contains the means at which the martingale does not exceed 1 / doubt.
    """

    def _middle(self) -> float:
        return fmean(self._without_outliers())

    def _limits(self) -> tuple[float, float]:
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
        return mean - half, mean + half

    def _is_beyond(self, centre: float, side: float) -> bool:
        low, high = self._limits()
        if side > 0.0:
            return low > centre
        return high < centre

    def _without_outliers(self) -> list[float]:
        """The differences; from `_FEW_BLOCKS` blocks on, outliers count as the limits that `_WIDE` sets."""
        differences = self._differences
        if len(differences) < _FEW_BLOCKS:
            return differences
        middle = median(differences)
        room = _WIDE * median(abs(difference - middle) for difference in differences)
        return [min(max(difference, middle - room), middle + room) for difference in differences]


class _Evidence:
    """The evidence that the difference lies above a centre (side: 1) or below it (-1).

    For each stake, it is the wealth of a gambler who bets on the signs: each factor
    exp(stake * distance) / cosh(stake * distance) has the mean 1 for a fair coin, so the mean of all stakes' wealth is
    a test martingale. The distance is measured in medians of the distances so far, which do not depend on signs.
    """

    def __init__(self, centre: float, side: float) -> None:
        self._centre = centre
        self._side = side
        self._distances: list[float] = []
        # Logarithms, by stake.
        self._wealth = [0.0] * len(_BETS)

    def logarithm(self, differences: Sequence[float]) -> float:
        """The logarithm of the wealth after these differences, the first of which it may know from an earlier call."""
        for difference in differences[len(self._distances) :]:
            off = self._side * (difference - self._centre)
            insort(self._distances, abs(off))
            middle = self._distances[len(self._distances) // 2]
            distance = 0.0
            if middle:
                distance = math.copysign(min(abs(off) / middle, _LONGEST), off)
            for index, stake in enumerate(_BETS):
                bet = stake * distance
                self._wealth[index] += bet - math.log(math.cosh(bet))

        most = max(self._wealth)
        wealth = sum(math.exp(one - most) for one in self._wealth)
        return most + math.log(wealth / len(self._wealth))


class _Pairs(_Design):
    """Pairs in random order, which assume nothing about the noise of the machine.

    If the builds are the same, a pair's difference is as likely above zero as below it, because its order is random,
    whatever the machine does. Nothing else is assumed: no distribution, no steady machine.
    """

    def __init__(self, least_change: float, doubt: float) -> None:
        super().__init__(least_change, doubt)
        self._needed = math.log(2.0 / doubt)
        judged = ((self._fall, 1.0), (self._rise, -1.0), (0.0, 1.0), (0.0, -1.0))
        self._judged_by = {which: _Evidence(*which) for which in judged}
        # The same draws each time, so that an interrupted comparison can continue.
        self._coin = random.Random(0)
        self._draw()

    def add(self, values: Sequence[float]) -> None:
        super().add(values)
        self._draw()

    def _draw(self) -> None:
        self.order = self._coin.choice(((Build.A, Build.B), (Build.B, Build.A)))

    def _middle(self) -> float:
        # A few pairs in which the machine stalled do not move the median.
        return median(self._differences)

    def _limits(self) -> tuple[float, float]:
        """The centres that neither side's evidence speaks against; infinite if there are too few differences."""
        if len(self._differences) < 2:
            return -math.inf, math.inf

        least = min(self._differences)
        most = max(self._differences)
        room = max(most - least, 1e-9)
        low = self._border(least - room, most, 1.0)
        return low, self._border(most + room, least, -1.0)

    def _border(self, outside: float, inside: float, side: float) -> float:
        """The last excluded centre on the way from a centre outside to a centre inside; infinite: none is excluded."""
        if not self._is_beyond(outside, side):
            return math.copysign(math.inf, outside - inside)

        for _ in range(30):
            middle = 0.5 * (outside + inside)
            if self._is_beyond(middle, side):
                outside = middle
            else:
                inside = middle
        return outside

    def _is_beyond(self, centre: float, side: float) -> bool:
        evidence = self._judged_by.get((centre, side)) or _Evidence(centre, side)
        return evidence.logarithm(self._differences) >= self._needed


class BuildComparison:
    """Asks for measurements of two builds, and compares them.

    Raises:
        SearchError: If the request is out of range.
    """

    def __init__(self, request: AbRequest) -> None:
        check_terms(request.least_change, request.certainty)
        if request.limit < 2 * len(BLOCK):
            raise SearchError(
                f"A comparison needs at least {2 * len(BLOCK)} measurements, not {request.limit}. "
                "Raise the limit."
            )

        self._limit = request.limit
        self._values: list[float] = []
        kind = _Pairs if request.pairs else _Blocks
        self._design: _Design = kind(request.least_change, 1.0 - request.certainty)

    def next_build(self) -> Build | None:
        """The build to measure; None if the verdict is clear, or the limit is reached."""
        order = self._design.order
        index = len(self._values) % len(order)
        if index == 0:
            ended = self._design.verdict is not ComparisonVerdict.UNDECIDED
            if ended or len(self._values) + len(order) > self._limit:
                return None
        return order[index]

    def record(self, value: float) -> None:
        """Records the throughput of the build that `next_build` named.

        Args:
            value: The throughput: a number in any unit, the same for both builds.

        Raises:
            SearchError: If the comparison has ended, the value is not a throughput, or build A
                forwards nothing.
        """
        if self.next_build() is None:
            raise SearchError("The comparison has ended and accepts no further measurement.")
        check_throughput(value)
        if value == 0.0 and self.next_build() is Build.A:
            raise SearchError(
                "Build A forwards nothing, so there is no relative difference. Compare with a build that works."
            )
        self._values.append(value)
        size = len(self._design.order)
        if len(self._values) % size == 0:
            self._design.add(self._values[-size:])

    def result(self) -> ComparisonResult:
        """The difference so far."""
        design = self._design
        return ComparisonResult(
            design.verdict, design.difference, design.interval, len(self._values)
        )


class BothEnds:
    """Two comparisons of one test: of the values as they are, and of their upper ends."""

    def __init__(self, request: AbRequest) -> None:
        self._as_they_are = BuildComparison(request)
        self._at_their_most = BuildComparison(request)
        self._share = 0.0

    def next_build(self) -> Build | None:
        """The build to measure; None if both verdicts are clear, or the limit is reached."""
        return self._as_they_are.next_build() or self._at_their_most.next_build()

    def record(self, value: Ends) -> None:
        """Records the throughput of the build that `next_build` named, for the comparisons that have not ended.

        Args:
            value: The throughput, in frames per second.

        Raises:
            SearchError: If build A forwards nothing.
        """
        self._record(self._as_they_are, value.least, value.share)
        self._record(self._at_their_most, value.most, value.share)

    def _record(self, comparison: BuildComparison, end: float, share: float) -> None:
        if comparison.next_build() is not None:
            self._share = max(self._share, share)
            comparison.record(end)

    def result(self) -> ComparisonResult:
        """The verdict that both share, with the smaller difference; otherwise undecided."""
        plain = self._as_they_are.result()
        most = self._at_their_most.result()
        weaker = plain
        if None not in (plain.difference, most.difference):
            # If the differences have no common sign, the smaller difference gives no verdict, and promises the least.
            weaker = min(plain, most, key=_size)
        if plain.verdict is not most.verdict:
            weaker = replace(weaker, verdict=ComparisonVerdict.UNDECIDED)

        measured = None
        if weaker.difference != plain.difference:
            measured = plain.difference

        return replace(
            weaker,
            measurements=max(plain.measurements, most.measurements),
            share=self._share,
            measured=measured,
        )


def _size(result: ComparisonResult) -> float:
    return abs(result.difference or 0.0)
