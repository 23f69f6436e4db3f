"""Which of two builds is faster, by one test: which build to measure next, until the verdict is clear, and no longer.

Builds are measured in pairs in random order. Each pair gives one relative difference. If the builds are the same, it is
as likely above zero as below it, because the order is random, whatever the machine does. Nothing else is assumed: no
distribution, no steady machine. The chance that any verdict of a comparison is wrong is limited, not only the chance
for a single one, although the verdict is computed again after each pair.

While a comparison lasts, differences are shares of the mean of both builds. This treats A and B alike, so a stall of
the machine makes as many large values on one side as on the other. Results are relative to build A.
"""

import math
import random
from bisect import insort
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from lossratio.errors import SearchError
from lossratio.results import Ends
from lossratio.runs.builds.outcome import AbRequest, Build, ComparisonResult, ComparisonVerdict

FEWEST = 16
"""The smallest limit of measurements: eight pairs that agree are enough for a certainty of 95 %."""
_BETS = (0.125, 0.25, 0.5, 1.0, 2.0)
"""Stakes per unit of distance: small stakes find small differences, large stakes need few pairs for large
differences."""
_LONGEST = 2.0
"""A difference counts as at most this many median distances, because a stall of the machine is no better evidence."""


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


class BuildComparison:
    """Asks for measurements of two builds, and compares them.

    Raises:
        SearchError: If the limit is too low.
    """

    def __init__(self, request: AbRequest) -> None:
        if request.limit < FEWEST:
            raise SearchError(
                f"A comparison needs at least {FEWEST} measurements, not {request.limit}. Raise the limit."
            )

        least = request.least_change
        # The least change as a share of the mean of both builds: a fall of 5 % is a larger share than a rise of 5 %.
        self._fall = -2.0 * least / (2.0 - least)
        self._rise = 2.0 * least / (2.0 + least)
        self._needed = math.log(2.0 / (1.0 - request.certainty))
        judged = ((self._fall, 1.0), (self._rise, -1.0), (0.0, 1.0), (0.0, -1.0))
        self._judged_by = {which: _Evidence(*which) for which in judged}
        self._limit = request.limit
        self._measurements = 0
        self._pair: dict[Build, float] = {}
        self._differences: list[float] = []
        self._verdict = ComparisonVerdict.UNDECIDED
        # The same draws each time, so that an interrupted comparison can continue.
        self._coin = random.Random(0)
        self._order = self._drawn()

    def next_build(self) -> Build | None:
        """The build to measure; None if the verdict is clear, or the limit is reached."""
        if not self._pair:
            ended = self._verdict is not ComparisonVerdict.UNDECIDED
            if ended or self._measurements + len(self._order) > self._limit:
                return None
        return self._order[len(self._pair)]

    def record(self, value: float) -> None:
        """Records the throughput of the build that `next_build` named.

        Args:
            value: The throughput: a number in any unit, the same for both builds.

        Raises:
            SearchError: If the comparison has ended, or build A forwards nothing.
        """
        build = self.next_build()
        if build is None:
            raise SearchError("The comparison has ended and accepts no further measurement.")
        if value == 0.0 and build is Build.A:
            raise SearchError(
                "Build A forwards nothing, so there is no relative difference. Compare with a build that works."
            )

        self._pair[build] = value
        self._measurements += 1
        if len(self._pair) == len(self._order):
            a = self._pair[Build.A]
            b = self._pair[Build.B]
            self._differences.append(2.0 * (b - a) / (a + b))
            self._verdict = self._judged()
            self._pair = {}
            self._order = self._drawn()

    def result(self) -> ComparisonResult:
        """The difference so far."""
        difference = None
        if self._differences:
            # A few pairs in which the machine stalled do not move the median.
            difference = _relative(median(self._differences))
        low, high = self._limits()
        interval = (_relative(low), _relative(high))
        return ComparisonResult(self._verdict, difference, interval, self._measurements)

    def _drawn(self) -> tuple[Build, Build]:
        """The builds of the pair to measure next, in this order."""
        return self._coin.choice(((Build.A, Build.B), (Build.B, Build.A)))

    def _judged(self) -> ComparisonVerdict:
        if self._is_beyond(self._fall, 1.0) and self._is_beyond(self._rise, -1.0):
            return ComparisonVerdict.SAME
        if self._is_beyond(0.0, 1.0):
            return ComparisonVerdict.FASTER
        if self._is_beyond(0.0, -1.0):
            return ComparisonVerdict.SLOWER
        return ComparisonVerdict.UNDECIDED

    def _limits(self) -> tuple[float, float]:
        """The interval of the difference, as shares of the mean of both builds; infinite if there are too few pairs.

        It has the centres that neither side's evidence speaks against.
        """
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
        """Whether the difference is certainly above a centre (side: 1) or below it (-1)."""
        evidence = self._judged_by.get((centre, side)) or _Evidence(centre, side)
        return evidence.logarithm(self._differences) >= self._needed


def _relative(difference: float) -> float:
    """B / A - 1, from their difference as a share of their mean."""
    if difference >= 2.0:
        return math.inf
    if difference <= -2.0:
        return -1.0
    return 2.0 * difference / (2.0 - difference)


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
