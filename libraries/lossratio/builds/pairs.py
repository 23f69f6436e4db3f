"""Builds measured in pairs in random order, which assumes nothing about the noise of the machine."""

import math
import random
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from lossratio.builds.differences import relative, symmetric, symmetric_of
from lossratio.builds.outcome import Build, ComparisonVerdict

_BETS = (0.125, 0.25, 0.5, 1.0, 2.0)
"""Stakes per unit of distance: small stakes find small differences, large stakes need few pairs for large
differences."""
_LONGEST = 2.0
"""A difference counts as at most this many median distances, because a stall of the machine is no better evidence."""


class Signs:
    """Evidence that differences lie above a centre, and that they lie below it.

    The order of the two builds in each pair is random. So if the builds are the same, a pair's difference is as likely
    above zero as below it, whatever the machine does. Nothing else is assumed: no distribution, no steady machine.

    For each stake, it computes the wealth of a gambler who bets on the signs: each factor exp(stake * distance) /
    cosh(stake * distance) has the mean 1 for a fair coin, so the mean of all stakes' wealth is a test martingale. The
    distance is measured in medians of the distances so far, which do not depend on signs.
    """

    def __init__(self, centre: float, differences: Iterable[float] = ()) -> None:
        self._centre = centre
        self._distances: list[float] = []
        self._above = [0.0] * len(_BETS)
        self._below = [0.0] * len(_BETS)
        for difference in differences:
            self.add(difference)

    def add(self, difference: float) -> None:
        """Adds the difference of another pair."""
        off = difference - self._centre
        insort(self._distances, abs(off))
        middle = self._distances[len(self._distances) // 2]
        distance = 0.0
        if middle:
            distance = math.copysign(min(abs(off) / middle, _LONGEST), off)

        for index, stake in enumerate(_BETS):
            fair = math.log(math.cosh(stake * distance))
            self._above[index] += stake * distance - fair
            self._below[index] -= stake * distance + fair

    @property
    def above(self) -> float:
        """Logarithm of the evidence that differences lie above the centre."""
        return _mean(self._above)

    @property
    def below(self) -> float:
        """Logarithm of the evidence that differences lie below the centre."""
        return _mean(self._below)


def _interval(differences: list[float], doubt: float) -> tuple[float, float]:
    """The centres that neither side's evidence speaks against; infinite if there are too few differences."""
    needed = math.log(2.0 / doubt)
    if len(differences) < 2:
        return -math.inf, math.inf

    def is_too_low(centre: float) -> bool:
        return Signs(centre, differences).above >= needed

    def is_too_high(centre: float) -> bool:
        return Signs(centre, differences).below >= needed

    least = min(differences)
    most = max(differences)
    room = max(most - least, 1e-9)
    return _border(is_too_low, least - room, most), _border(is_too_high, most + room, least)


def _border(is_excluded: Callable[[float], bool], outside: float, inside: float) -> float:
    """The last excluded centre on the way from a centre outside to a centre inside; infinite if none is excluded."""
    if not is_excluded(outside):
        return math.copysign(math.inf, outside - inside)

    for _ in range(30):
        middle = 0.5 * (outside + inside)
        if is_excluded(middle):
            outside = middle
        else:
            inside = middle
    return outside


def _mean(logarithms: list[float]) -> float:
    """The logarithm of the mean of numbers, from their logarithms."""
    most = max(logarithms)
    return most + math.log(sum(math.exp(one - most) for one in logarithms) / len(logarithms))


class Pairs:
    """The differences of pairs of measurements, one of each build, in random order.

    Args:
        least_change: The smallest difference that matters, relative to A.
        doubt: The largest probability that the verdict is wrong.
    """

    order: tuple[Build, ...]
    """The builds to measure next, in this order."""

    def __init__(self, least_change: float, doubt: float) -> None:
        self._doubt = doubt
        self._needed = math.log(2.0 / doubt)
        self._differences: list[float] = []
        least = symmetric_of(least_change)
        self._zero = Signs(0.0)
        self._low = Signs(-least)
        self._high = Signs(least)
        # The same draws each time, so that an interrupted comparison can continue.
        self._coin = random.Random(0)
        self._draw()

    def add(self, values: Sequence[float]) -> None:
        """Adds a whole pair: its values, in the order of its builds."""
        value_of = dict(zip(self.order, values, strict=True))
        difference = symmetric(value_of[Build.A], value_of[Build.B])
        self._differences.append(difference)
        for signs in (self._zero, self._low, self._high):
            signs.add(difference)
        self._draw()

    @property
    def difference(self) -> float | None:
        """The median difference, relative to A; None: there is no pair."""
        if not self._differences:
            return None
        # A few pairs in which the machine stalled do not move the median.
        return relative(median(self._differences))

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the difference, relative to A; from -1 to infinity if there are too few pairs."""
        low, high = _interval(self._differences, self._doubt)
        return relative(low), relative(high)

    @property
    def verdict(self) -> ComparisonVerdict:
        """The verdict on B so far."""
        if self._low.above >= self._needed and self._high.below >= self._needed:
            return ComparisonVerdict.SAME
        if self._zero.above >= self._needed:
            return ComparisonVerdict.FASTER
        if self._zero.below >= self._needed:
            return ComparisonVerdict.SLOWER
        return ComparisonVerdict.UNDECIDED

    def _draw(self) -> None:
        self.order = self._coin.choice(((Build.A, Build.B), (Build.B, Build.A)))
