"""What trials of one length say about all loads at once.

The answer is a posterior over curves of the probability of a lossy trial, by load. A curve has a *centre* (the critical
load), a *spread* of the knee around it, and a *floor*: the share of trials that are lossy at any load. All places and
distances are in steps of the grid of loads.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.trials import TrialResult

Floats = NDArray[np.float64]

SPREADS = {0.2: 0.3, 0.7: 0.2, 2.0: 0.2, 6.0: 0.15, 18.0: 0.1, 54.0: 0.05}
"""Spreads, and how probable each is before any trial. A fifth of a step is a cliff; on real routers every load of 60
steps may be lossy in one half of its trials."""

FLOORS = {0.003: 0.7, 0.06: 0.15, 0.2: 0.1, 0.35: 0.05}
"""Floors, likewise."""

CEILING = 0.99
"""The share of lossy trials far above the critical load."""

EXACT, NEAR = 0.45, 0.25
"""Probability that the bound is where the overload shows it to be; and that it is about there."""

EXACT_SCALE, NEAR_SCALE = 0.5, 0.1
"""Distance to the bound in the one case, in steps; in the other, as a share of the distance of the overload."""

FAR_SCALE = 1.0
"""Otherwise every distance has the same probability on a logarithmic scale, from so many steps on."""

FINE = 60
"""Most steps of a range that is looked at in half steps."""

OFFSETS = 0.3 * 1.45 ** np.arange(22)
"""Distances of centres from the expected bound, in a wider range."""

TAIL, SHRINK = 2e-4, 0.4
"""When centres outside of this share of the range have no more than this probability each, the range is narrowed."""

PASSED = 2.0
"""Steps above the expected bound where a load passed, from which on the expectation is given up."""

ONE_WAY = 2
"""So many trials must contradict earlier ones in one direction, and none in the other."""

LEAST = 3e-3
"""Curves less probable than this share of the most probable one are left out of plans."""


class Expected(NamedTuple):
    """Where trials in overload show the bound to be."""

    place: float
    """The place."""
    gap: float
    """How far below the overload it is."""
    misses: int
    """How often a load there or below was lossy although it was expected not to be."""


class Posterior:
    """The posterior over curves."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._counts: dict[float, list[int]] = {}
        self._build(-2.0, top + 2.0, None)

    def add(self, place: float, is_low: bool) -> None:
        """Counts a trial."""
        self._counts.setdefault(place, [0, 0])[not is_low] += 1
        self._count(place, int(is_low), int(not is_low))

    def curves(self, expected: Expected | None) -> "Curves":
        """The probable curves."""
        if expected is not None and expected.place != self._around and self._is_wide:
            self._build(self._first, self._last, expected.place)
        weights = self._weights(expected)
        by_centre = np.cumsum(weights.reshape(len(self._centres), -1).sum(axis=1))
        low = self._centres[max(0, int(np.searchsorted(by_centre, TAIL)) - 1)]
        high = self._centres[min(len(by_centre) - 1, int(np.searchsorted(by_centre, 1.0 - TAIL)) + 1)]
        if high - low < SHRINK * (self._last - self._first) and self._last - self._first > 8.0:
            margin = max(2.0, 0.15 * (high - low))
            self._build(max(-2.0, low - margin), min(self._top + 2.0, high + margin), self._around)
            weights = self._weights(expected)
        kept = np.flatnonzero(weights > LEAST * weights.max())
        centres, spreads, floors = (part[kept] for part in self._parts)
        return Curves(centres, spreads, floors, weights[kept] / weights[kept].sum())

    @property
    def measured(self) -> Collection[float]:
        """The places of all loads with a trial."""
        return self._counts.keys()

    @property
    def _is_wide(self) -> bool:
        return self._last - self._first > FINE

    def _build(self, first: float, last: float, around: float | None) -> None:
        """Lays the curves for a range of centres anew, finer around a place, and counts all trials again."""
        self._first, self._last, self._around = first, last, around
        centres = np.linspace(first, last, FINE if self._is_wide else max(4, math.ceil(2.0 * (last - first))))
        if self._is_wide and around is not None:
            near = np.concatenate([around - OFFSETS, [around], around + OFFSETS])
            centres = np.unique(np.concatenate([centres, near[(near > first) & (near < last)]]))
        self._centres, cells = centres, np.gradient(centres)
        centre, spread, floor = (part.ravel() for part in np.meshgrid(centres, [*SPREADS], [*FLOORS], indexing="ij"))
        cell = np.repeat(cells, len(SPREADS) * len(FLOORS))
        # No curve is steeper than the centres are apart.
        self._parts = centre, np.maximum(spread, cell / 2.0), floor
        before = np.outer([*SPREADS.values()], [*FLOORS.values()]).ravel()
        self._log = np.log(np.tile(before, len(centres)) * cell)
        for place, (low, high) in self._counts.items():
            self._count(place, low, high)

    def _count(self, place: float, low: int, high: int) -> None:
        lossy = _lossy(np.array([place]), *self._parts)[0]
        self._log += low * np.log1p(-lossy) + high * np.log(lossy)

    def _weights(self, expected: Expected | None) -> Floats:
        log = self._log
        if expected is not None:
            belief = 1.0 / (1.0 + expected.misses) ** 2
            distance = np.abs(self._parts[0] - expected.place)
            decades = 2.0 * max(1.0, math.log1p(self._top / FAR_SCALE))
            far = (1.0 - belief * (EXACT + NEAR)) / decades / (FAR_SCALE + distance)
            near = NEAR * _cauchy(distance, FAR_SCALE + NEAR_SCALE * expected.gap)
            log = log + np.log(far + belief * (EXACT * _cauchy(distance, EXACT_SCALE) + near))
        weights = np.exp(log - log.max())
        return np.asarray(weights / weights.sum())


class Curves(NamedTuple):
    """Probable curves; each array has an item for each curve."""

    centres: Floats
    """Their centres, ascending."""
    spreads: Floats
    """Their spreads."""
    floors: Floats
    """Their floors."""
    weights: Floats
    """Their probabilities."""

    def lossy(self, places: ArrayLike) -> Floats:
        """The probability of a lossy trial: a row for each place, a column for each curve."""
        return _lossy(np.asarray(places, dtype=float), self.centres, self.spreads, self.floors)

    @property
    def median(self) -> float:
        """The median of the centres."""
        number = int(np.searchsorted(np.cumsum(self.weights), 0.5))
        return float(self.centres[min(number, len(self.centres) - 1)])


def _lossy(places: Floats, centres: Floats, spreads: Floats, floors: Floats) -> Floats:
    below = np.minimum((centres - places[:, None]) / spreads, 40.0)
    return np.asarray(floors + (CEILING - floors) / (1.0 + np.exp(below)))


def _cauchy(distance: Floats, scale: float) -> Floats:
    return np.asarray(1.0 / (math.pi * scale * (1.0 + (distance / scale) ** 2)))


@dataclass
class Plan:
    """The knowledge about one goal that plans are made of."""

    goal: SearchGoal
    grid: LoadGrid
    posterior: Posterior
    passed: set[float] = field(default_factory=set)
    """Places of loads with a lossless trial."""
    expected: Expected | None = None
    """Where the next trial is expected to find the bound."""
    misses: int = 0
    """See `Expected`."""
    lowest_failure: float = math.inf
    """Place of the smallest load with a lossy trial."""
    slower: int = 0
    """Lossy trials at or below a load that had passed."""
    faster: int = 0
    """Lossless trials at or above a load that had been lossy."""
    begun: bool = False
    """Whether plans are made yet."""

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        is_low, place = result.loss_ratio <= self.goal.loss_ratio, self.grid.position(result.load)
        if result.duration < self.goal.final_trial_duration or (is_low and result.is_early):
            return
        self.posterior.add(place, is_low)
        if is_low:
            self.faster += place >= self.lowest_failure
            self.passed.add(place)
        else:
            self.slower += place <= max(self.passed, default=-math.inf)
            self.lowest_failure = min(self.lowest_failure, place)
            self.misses += self.expected is not None and place <= self.expected.place

    @property
    def may_drift(self) -> bool:
        """Whether loads only fail that had passed, or only pass that had failed: the SUT may change with time."""
        return max(self.slower, self.faster) >= ONE_WAY and not min(self.slower, self.faster)

    def expect(self, place: float | None, upper: float | None) -> None:
        """Takes in where the overload shows the bound to be, and the smallest load that was lossy (frames/s)."""
        self.expected = None
        if place is not None and place > 0.0 and upper is not None:
            lossy = self.grid.position(upper)
            if not any(place + PASSED <= passed < lossy for passed in self.passed):
                self.expected = Expected(place, abs(lossy - place), self.misses)


class Race(NamedTuple):
    """The race of a load's trials: whether it becomes a lower bound or an upper one, and after how long.

    Each array has an item for each number of low-loss trials that a lower bound still needs, for each number of
    high-loss trials that an upper bound needs, and for each probability of a lossy trial, from 0 to 1 in `BINS` steps.
    """

    lower: Floats
    """The probability of a lower bound."""
    time: Floats
    """The expected time in trials."""


BINS = 32


@lru_cache(maxsize=64)
def race(lows: int, highs: int) -> Race:
    """The race for up to so many low-loss and high-loss trials."""
    lossy = np.linspace(0.0, 1.0, BINS + 1).clip(0.002, 0.998)
    lower, time = np.zeros((2, lows + 1, highs + 1, BINS + 1))
    lower[0] = 1.0
    for low in range(1, lows + 1):
        for high in range(1, highs + 1):
            lower[low, high] = (1.0 - lossy) * lower[low - 1, high] + lossy * lower[low, high - 1]
            time[low, high] = 1.0 + (1.0 - lossy) * time[low - 1, high] + lossy * time[low, high - 1]
    return Race(lower, time)
