"""What trials of one length say about all loads at once.

The answer is a posterior over curves. Each curve gives the probability of a lossy trial by load. A curve is a Markov
chain from load to load: it begins on a *floor*, leaves it where loss begins, and moves from level to level, mostly up,
after few or many steps. So a cliff, a smooth knee and a plateau of chance are all curves. All positions and distances
are in steps of the grid of loads.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.trials import TrialResult

Floats = NDArray[np.float64]
Counts = Mapping[float, Sequence[float]]

LEVELS = (0.004, 0.03, 0.1, 0.22, 0.36, 0.5, 0.64, 0.78, 0.9, 0.97, 0.996)
"""Probabilities of a lossy trial that a curve may have after it has left its floor."""

LENGTHS = {0.5: 0.5, 4.0: 0.25, 30.0: 0.25}
"""Mean lengths of a level, in steps, and how probable each length is for the first level. Half a step is a cliff. On
real routers, half of the trials may be lossy at all loads over 60 steps."""

FLOORS = {0.003: 0.75, 0.06: 0.12, 0.2: 0.08, 0.35: 0.05}
"""Levels before the loss begins, and how probable each level is."""

TO_TOP, TO_NEXT = 0.35, 0.3
"""Probability that loss begins at the top level, and at the next one. Otherwise, all higher levels are equally
probable."""


class Rise(NamedTuple):
    """How a curve continues after it has left its floor."""

    to_top: float
    """Probability that the next level is the top level."""
    to_next: float
    """Probability that it is the level just above. Otherwise, all higher levels are equally probable."""
    same_length: float
    """Probability that the next level has the same mean length."""
    down: float
    """Steps down for each step up."""


JUMPS, GROWS = Rise(TO_TOP, TO_NEXT, 0.6, 0.04), Rise(0.0, 1.0, 0.9, 0.15)
"""The rise for goals that allow no loss, and for other goals, where the loss has already begun and grows."""

EXACT, NEAR = 0.45, 0.25
"""Probability that loss begins exactly where the overload suggests, and that it begins near this place."""

EXACT_SCALE, NEAR_SCALE = 0.5, 0.1
"""Distance to the bound: in steps in the first case, and as a share of the distance to the overload in the second."""

FADED = 0.6
"""Otherwise, the probability that loss begins where the loss of lossy trials fades away."""

FADING = 0.03
"""The largest loss ratio that shows such fading."""

LEAST_FADING = 3
"""The number of loads that must show such fading."""

PASSED = 2.0
"""If a load passes this many steps above the expected bound, the expectation is given up."""

ONE_WAY = 4
"""The number of trials that must contradict earlier trials in one direction, with none in the other direction."""

_LONGEST = 400.0
"""Steps beyond which two loads say nothing about each other."""

_MANY = len(LEVELS) * len(LENGTHS)
LOSSY = np.array([*np.repeat(LEVELS, len(LENGTHS)), *FLOORS])
"""The probability of a lossy trial in each state of the chain: the levels with each length, then the floors."""


class Expected(NamedTuple):
    """Where loss is expected to begin."""

    overload: tuple[float, float] | None
    """The place where loss begins according to trials in overload, and its distance below the overload."""
    misses: int
    """How often a load at this place or below was unexpectedly lossy."""
    faded: tuple[float, float] | None
    """Where the loss of lossy trials fades away, and how uncertain that is, in steps."""

    def begins_below(self, positions: Floats, top: int) -> Floats:
        """The probability that loss begins below each position."""
        below = np.zeros(len(positions))
        left = 1.0
        belief = 0.0
        if self.overload is not None:
            centre, gap = self.overload
            belief = 1.0 / (1.0 + self.misses) ** 2
            below += belief * EXACT * _cauchy((positions - centre) / EXACT_SCALE)
            below += belief * NEAR * _cauchy((positions - centre) / (1.0 + NEAR_SCALE * gap))
            left -= belief * (EXACT + NEAR)

        if self.faded is not None:
            centre, scale = self.faded
            share = FADED * left * (1.0 - belief / 2.0)
            below += share * _cauchy((positions - centre) / scale)
            left -= share

        # Otherwise, all loads up to the highest of these places are equally probable.
        places = (place[0] for place in (self.overload, self.faded) if place is not None)
        highest = max(0.0, max(places, default=float(top)))
        return below + left * np.clip((positions + 2.0) / (highest + 4.0), 0.0, 1.0)


NOTHING_EXPECTED = Expected(None, 0, None)


def _cauchy(off: Floats) -> Floats:
    return np.asarray(0.5 + np.arctan(off) / math.pi)


class Posterior:
    """The posterior over curves.

    Attributes:
        earlier: The weight of earlier searches: numbers of low-loss and high-loss trials by position, which may be
            fractions.
    """

    def __init__(self, top: int, rise: Rise = JUMPS) -> None:
        self.earlier: Counts = {}
        self._top = top
        self._rise = rise
        self._counts: dict[float, list[int]] = {}

    def add(self, position: float, is_low: bool) -> None:
        """Counts a trial."""
        self._counts.setdefault(position, [0, 0])[not is_low] += 1

    @property
    def measured(self) -> Collection[float]:
        """The positions of all loads with a trial."""
        return self._counts.keys()

    def counts(self, position: float) -> tuple[int, int]:
        """How many trials at a load were not lossy, and how many were."""
        low, high = self._counts.get(position, (0, 0))
        return low, high

    def curves(
        self, expected: Expected, positions: Floats, known: Iterable[float] | None = None
    ) -> "Curves":
        """The curves at some loads.

        Args:
            expected: Where loss is expected to begin.
            positions: The positions of the loads.
            known: Positions of other loads whose trials take part, too; None: all that have any.
        """
        if known is None:
            known = chain(self._counts, self.earlier)
        together = ascending(positions.tolist(), known)
        begun = expected.begins_below(together, self._top)
        return Curves(
            (self._counts, self.earlier), together, np.clip(1.0 - begun, 1e-9, 1.0), self._rise
        )


def ascending(*positions: Iterable[float]) -> Floats:
    """All these positions, ascending, without duplicates.

    `numpy.unique` imports `numpy.ma` when it is called first, which takes 45 ms in the midst of a search.
    """
    return np.array(sorted(set(chain.from_iterable(positions))), dtype=np.float64)


class Curves:
    """What is known about some loads.

    Attributes:
        positions: Their positions, ascending.
        chances: The probability of each state at each of them.

    Args:
        counts: Low-loss and high-loss trials by position, of this search and of earlier ones. Trials at other positions
            are ignored.
        positions: The positions, ascending.
        later: The probability that loss begins above each of them.
        rise: How curves continue from there.
    """

    def __init__(
        self, counts: Iterable[Counts], positions: Floats, later: Floats, rise: Rise
    ) -> None:
        self.positions = positions
        self._moves = _moves(np.diff(positions), later[1:] / later[:-1], rise)
        self._likely = np.ones((len(positions), len(LOSSY)))
        rows = {position: row for row, position in enumerate(positions.tolist())}
        for position, (low, high) in chain.from_iterable(each.items() for each in counts):
            if position in rows:
                self._likely[rows[position]] *= likely(low, high)
        self._forward = self._passed_up(later[0], rise)
        self._backward = self._passed_down()
        chances = self._forward * self._backward
        self.chances = chances / chances.sum(axis=1, keepdims=True)

    def _passed_up(self, later: float, rise: Rise) -> Floats:
        """The probability of each state at each load, from the trials there and at smaller loads.

        Args:
            later: The probability that loss begins above the smallest load.
            rise: See `Curves`.
        """
        floors = np.array([*FLOORS.values()])
        begun = floors @ _over(_LONGEST / 20.0, rise)[_MANY:, :_MANY]
        state = np.concatenate([(1.0 - later) * begun, later * floors])
        forward = np.empty_like(self._likely)
        for row, (here, likely_here) in enumerate(zip(forward, self._likely, strict=True)):
            if row:
                state = np.dot(state, self._moves[row - 1], here)
            np.multiply(state, likely_here, here)
            state = np.divide(here, np.add.reduce(here), here)
        return forward

    def _passed_down(self) -> Floats:
        """How probable the trials at larger loads are, by the state at each load; the largest probability is 1."""
        backward = np.ones_like(self._likely)
        above = backward[-1]
        rows = zip(backward[-2::-1], self._moves[::-1], self._likely[:0:-1], strict=True)
        for here, move, likely_above in rows:
            np.dot(move, above * likely_above, here)
            above = np.divide(here, np.maximum.reduce(here), here)
        return backward

    def joint(self, low: int, high: int) -> Floats:
        """The probability of each state at one of the loads (rows) and at a higher one (columns), by their indices."""
        move = self._moves[low]
        for row in range(low + 1, high):
            move = (move * self._likely[row]) @ self._moves[row]
        joint = self._forward[low][:, None] * move * (self._likely[high] * self._backward[high])
        return np.asarray(joint / joint.sum())


@lru_cache(maxsize=4096)
def likely(low: float, high: float) -> Floats:
    """The probability of these numbers of low-loss and high-loss trials, in one order, by the state of their load."""
    return np.asarray((1.0 - LOSSY) ** low * LOSSY**high)


def _moves(gaps: Floats, stays: Floats, rise: Rise) -> Floats:
    """The probability of each state after each gap, by the state before the gap, with or without leaving a floor."""
    if not len(gaps):
        return np.empty((0, len(LOSSY), len(LOSSY)))
    halves = np.maximum(0.5, np.round(np.minimum(gaps, _LONGEST) * 2.0) / 2.0)
    moves = np.concatenate([_over(gap, rise) for gap in halves.tolist()])
    moves = moves.reshape(-1, len(LOSSY), len(LOSSY))
    moves[:, _MANY:, :_MANY] *= (1.0 - stays)[:, None, None]
    floor = np.arange(_MANY, len(LOSSY))
    moves[:, floor, floor] = stays[:, None]
    return moves


@lru_cache(maxsize=1024)
def _over(gap: float, rise: Rise) -> Floats:
    """The probability of each level after this many steps: by the level before, and by a floor left half-way."""
    half = np.linalg.matrix_power(_over_a_quarter(rise), round(2.0 * gap))
    over = np.zeros((len(LOSSY), len(LOSSY)))
    over[:_MANY, :_MANY] = half @ half
    over[_MANY:, :_MANY] = _after_floors() @ half
    return over


@lru_cache
def _after_floors() -> Floats:
    """The probability of each level (columns) right after each floor (rows)."""
    lengths = [*LENGTHS.values()]
    return np.array(
        [np.outer(_next_levels(floor, TO_TOP, TO_NEXT), lengths).ravel() for floor in FLOORS]
    )


@lru_cache
def _over_a_quarter(rise: Rise) -> Floats:
    """The probability of each level (columns) a quarter of a step after each level (rows)."""
    lengths = np.array([*LENGTHS])
    stays = rise.same_length * np.eye(len(LENGTHS))
    next_length = stays + (1.0 - rise.same_length) / (len(LENGTHS) - 1) * (
        1.0 - np.eye(len(LENGTHS))
    )
    next_level = np.array([_next_levels(level, rise.to_top, rise.to_next) for level in LEVELS])
    next_level += rise.down * np.eye(len(LEVELS), k=-1)
    # The top level lasts longer than others.
    next_level[-1] /= 4.0
    rates = np.kron(next_level, next_length / lengths[:, None])
    # Many small steps give the matrix exponential. Importing SciPy's function would take 0.15 s in the midst of a
    # search.
    small = np.eye(_MANY) + (rates - np.diag(rates.sum(axis=1))) / 4.0 / 2**16
    return np.linalg.matrix_power(small, 2**16)


def _next_levels(level: float, to_top: float, to_next: float) -> Floats:
    """The probability of each level after a level or a floor."""
    higher = np.array(LEVELS) > level + 1e-9
    chances = (1.0 - to_top - to_next) * higher / max(1, higher.sum())
    if higher.any():
        chances[-1] += to_top
        chances[higher.argmax()] += to_next
    return np.asarray(chances)


@dataclass
class Plan:
    """The knowledge about one goal on which plans are based."""

    goal: SearchGoal
    grid: LoadGrid
    posterior: Posterior
    passed: set[float] = field(default_factory=set)
    """Positions of loads with a lossless trial."""
    expected: Expected = NOTHING_EXPECTED
    """Where loss is expected to begin."""
    misses: int = 0
    """See `Expected`."""
    lowest_failure: float = math.inf
    """Position of the smallest load with a lossy trial."""
    slower: int = 0
    """Lossy trials at or below a load that had passed."""
    faster: int = 0
    """Trials without loss at or above a load that had been lossy."""
    begun: bool = False
    """Whether plans are already made."""
    losses: list[tuple[float, float]] = field(default_factory=list)
    """Position and loss ratio of the trials that lost few frames."""

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        is_low = result.loss_ratio <= self.goal.loss_ratio
        position = self.grid.position(result.load)
        if result.duration < self.goal.final_trial_duration or (is_low and result.is_early):
            return

        self.posterior.add(position, is_low)
        if 0.0 < result.loss_ratio < FADING:
            self.losses.append((position, result.loss_ratio))
        if is_low:
            self.faster += position >= self.lowest_failure
            self.passed.add(position)
        else:
            self.slower += position <= max(self.passed, default=-math.inf)
            self.lowest_failure = min(self.lowest_failure, position)
            self.misses += (
                self.expected.overload is not None and position <= self.expected.overload[0]
            )

    @property
    def may_drift(self) -> bool:
        """Whether loads change only from passing to failing, or only in reverse: the SUT may change with time."""
        return max(self.slower, self.faster) >= ONE_WAY and not min(self.slower, self.faster)

    @property
    def contested(self) -> int:
        """The number of loads with a trial, from the smallest lossy one to the largest one that passed."""
        highest = max(self.passed, default=-math.inf)
        return sum(
            self.lowest_failure <= position <= highest for position in self.posterior.measured
        )

    def expect(self, position: float | None, upper: float | None) -> None:
        """Takes in the place of the bound according to the overload, and the smallest lossy load (frames/s)."""
        overload = faded = None
        if upper is not None:
            lossy = self.grid.position(upper)
            faded = self._faded(upper)
            is_passed = position is not None and any(
                position + PASSED <= passed < lossy for passed in self.passed
            )
            if position is not None and position > 0.0 and not is_passed:
                overload = position, abs(lossy - position)
        self.expected = Expected(overload, self.misses, faded)

    def _faded(self, upper: float) -> tuple[float, float] | None:
        """Where a line through the logarithms of losses over load falls to the goal's loss ratio, or to one frame."""
        wanted = max(self.goal.loss_ratio, 1.0 / (upper * self.goal.final_trial_duration))
        near = [
            (position, math.log(loss / wanted))
            for position, loss in self.losses
            if loss > 0.1 * wanted
        ]
        if len({position for position, _ in near}) < LEAST_FADING:
            return None

        positions, logs = np.array(near).T
        weights = 1.0 / (1.0 + np.abs(logs))
        weights /= weights.sum()
        centre, middle = weights @ positions, weights @ logs
        spread = weights @ (positions - centre) ** 2
        slope = weights @ ((positions - centre) * (logs - middle))
        if slope <= 0.0:
            return None

        slope /= spread
        crossing = centre - middle / slope
        noise = math.sqrt(weights @ (logs - middle - slope * (positions - centre)) ** 2) + 0.1
        error = noise / slope * math.sqrt((1.0 + (crossing - centre) ** 2 / spread) / len(near))

        return float(crossing), float(1.0 + error)


class Race(NamedTuple):
    """The race of a load's trials: whether the load becomes a lower or an upper bound, and after how long.

    Each array has an item for each number of low-loss trials that a lower bound still needs, for each number of
    high-loss trials that an upper bound needs, and for each state of the chain (see `LOSSY`).
    """

    lower: Floats
    """The probability of a lower bound."""
    time: Floats
    """The expected time in trials."""


def race(lows: int, highs: int) -> Race:
    """The race for up to this many low-loss and high-loss trials, or more."""
    # A few sizes are enough, because a smaller race is a part of a larger one.
    return _race(1 << (max(lows, highs) - 1).bit_length())


@lru_cache
def _race(most: int) -> Race:
    lower, time = np.zeros((2, most + 1, most + 1, len(LOSSY)))
    lower[0] = 1.0
    for trials in range(2, 2 * most + 1):
        # All items that need the same total number of trials follow from the items that need one trial less.
        low = np.arange(max(1, trials - most), min(most, trials - 1) + 1)
        high = trials - low
        lower[low, high] = (1.0 - LOSSY) * lower[low - 1, high] + LOSSY * lower[low, high - 1]
        time[low, high] = 1.0 + (1.0 - LOSSY) * time[low - 1, high] + LOSSY * time[low, high - 1]
    return Race(lower, time)
