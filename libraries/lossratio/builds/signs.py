"""What the signs of differences say, where each sign is a fair coin unless there is a difference.

The order of the two builds in each pair is drawn. So whatever the machine does, a pair's difference is as likely above
zero as below it if the builds are the same. Nothing else is assumed: no distribution, no steady machine.
"""

import math
from bisect import insort
from collections.abc import Callable, Iterable

_BETS = (0.125, 0.25, 0.5, 1.0, 2.0)
"""Stakes per unit of distance: small ones find small differences, large ones need few pairs for large differences."""

_LONGEST = 2.0
"""A difference counts as this many median distances at most: a stall of the machine is no better evidence."""


class Signs:
    """Evidence that differences lie above a centre, and that they lie below it.

    For each stake the wealth of a gambler who bets on the signs: each factor exp(stake * distance) / cosh(stake *
    distance) has the mean 1 for a fair coin, so the mean of all stakes' wealth is a test martingale. The distance is
    in medians of the distances until then, which do not depend on signs.
    """

    def __init__(self, centre: float, differences: Iterable[float] = ()) -> None:
        self._centre = centre
        self._distances: list[float] = []
        self._above, self._below = [0.0] * len(_BETS), [0.0] * len(_BETS)
        for difference in differences:
            self.add(difference)

    def add(self, difference: float) -> None:
        """Takes in the difference of another pair."""
        off = difference - self._centre
        insort(self._distances, abs(off))
        median = self._distances[len(self._distances) // 2]
        distance = math.copysign(min(abs(off) / median, _LONGEST) if median else 0.0, off)
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
        """Logarithm of the evidence that they lie below it."""
        return _mean(self._below)


def interval(differences: list[float], doubt: float) -> tuple[float, float]:
    """The centres that neither side's evidence speaks against; infinite where there are too few differences."""
    needed = math.log(2.0 / doubt)
    if len(differences) < 2:
        return -math.inf, math.inf
    least, most = min(differences), max(differences)
    room = max(most - least, 1e-9)
    return (
        _border(lambda centre: Signs(centre, differences).above >= needed, least - room, most),
        _border(lambda centre: Signs(centre, differences).below >= needed, most + room, least),
    )


def _border(is_excluded: Callable[[float], bool], outside: float, inside: float) -> float:
    if not is_excluded(outside):
        return math.copysign(math.inf, outside - inside)
    for _ in range(30):
        middle = 0.5 * (outside + inside)
        outside, inside = (middle, inside) if is_excluded(middle) else (outside, middle)
    return outside


def _mean(logarithms: list[float]) -> float:
    most = max(logarithms)
    return most + math.log(sum(math.exp(one - most) for one in logarithms) / len(logarithms))
