"""The question whether a SUT is as in earlier searches: a few trials instead of a search.

Earlier searches say how many trials at a load were lossy, by goal, and which rate the SUT forwarded in overload. Each
trial tonight is at the load where it says most about a possible change of these loads. The question ends when the
answer is sure enough, or after `MOST_TRIALS`. Unless the SUT is as before, a search follows, in which these trials
count.

Places and moves are in ticks, which are steps of the logarithm of loads.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.trials import TrialResult

Floats = NDArray[np.float64]

TICK = 0.00125
"""Relative size of a tick."""

SAME, MOVED = 0.0075, 0.0125
"""Relative moves up to the first value count as no change, and moves from the second value on as a change. In between,
either answer is right."""

FARTHEST = 0.3
"""The largest change that is looked for. Larger changes look like this change."""

SURE, SURE_OF_CHANGE = 0.995, 0.999
"""Minimum probability of *as before*, and of *changed*. Before the first trial, both are equally probable."""

MOST_TRIALS = 30
"""After this many trials, the answer is left to a search."""

LEAST_TRIALS = 8
"""Minimum number of trials of earlier searches at each load of tonight's trials. The first trial is at maximum load."""

NEAR = 0.1
"""Relative distance of tonight's loads from loads at which some but not all earlier trials were lossy."""

COUNTED = 6.0
"""All earlier trials at a load together count as at most this many trials."""

ANYTHING = 0.15
"""The share of other loads' information about a load that is ignored. For this share, all verdicts are equally
probable."""

OVERLOADED = 0.02
"""The loss ratio above which a trial shows the rate that the SUT forwards in overload."""

FOLLOWS = 0.9
"""Probability that this rate moves as the bounds do. Otherwise, it does not move."""

FREEDOM, ELSEWHERE = 4.0, 0.05
"""Degrees of freedom of Student's t distribution for this rate, and the probability that the rate is anywhere else."""

_T = math.gamma((FREEDOM + 1.0) / 2.0) / math.gamma(FREEDOM / 2.0) / math.sqrt(FREEDOM * math.pi)
_FEW = 3.0
"""The usual spread of rates counts as this many trials, besides the trials at a load."""


class Answer(str, Enum):
    """The answer to the question."""

    AS_BEFORE = "as before"
    CHANGED = "changed"
    UNSURE = "unsure"

    def __str__(self) -> str:
        return self.value


class Usual:
    """What earlier searches say about tonight's trials.

    Attributes:
        loads: The loads that tonight's trials may have, ascending, in frames per second.
        chances: The probability of each outcome of a trial, as an array of loads, outcomes and moves (`MOVES`).
    """

    def __init__(
        self, goals: Iterable[SearchGoal], grid: LoadGrid, trials: Iterable[TrialResult]
    ) -> None:
        """Takes in the trials.

        Args:
            goals: The goals of the searches. All their trials have one duration.
            grid: Tonight's loads.
            trials: The trials of the earlier searches that count for the goals.
        """
        self._loss_ratios = sorted({goal.loss_ratio for goal in goals})
        by_place: dict[int, list[TrialResult]] = {}
        for trial in trials:
            by_place.setdefault(round(_place(trial.load)), []).append(trial)

        self._places = np.array(sorted(by_place), dtype=np.float64)
        counts = np.array([self._counts(by_place[place]) for place in sorted(by_place)])
        self._chances = _chances(self._places, counts)
        self._rates = _Rates(by_place)
        self.loads = [grid.load(index) for index in _indexes(self._places, counts, grid)]
        self.chances = np.array([self._chances_at(load) for load in self.loads])

    def outcome(self, trial: TrialResult) -> int:
        """The outcome of a trial: how many of the goals' different loss ratios it exceeds."""
        return sum(trial.loss_ratio > loss_ratio for loss_ratio in self._loss_ratios)

    def likelihood(self, trial: TrialResult) -> Floats:
        """The probability of a trial's outcome, for each move."""
        if trial.load in self.loads:
            return np.asarray(self.chances[self.loads.index(trial.load), self.outcome(trial)])
        return np.asarray(self._chances_at(trial.load)[self.outcome(trial)])

    def density(self, trial: TrialResult, moves: Floats) -> Floats:
        """The density of the rate that a trial shows, per tick, for some moves in ticks; 1 if the trial shows no rate.

        It is Student's t distribution with `FREEDOM` degrees of freedom around the rates of earlier searches, and with
        the probability `ELSEWHERE` a uniform one.
        """
        return self._rates.density(trial, moves)

    def _counts(self, trials: Sequence[TrialResult]) -> list[int]:
        outcomes = Counter(map(self.outcome, trials))
        return [outcomes[outcome] for outcome in range(len(self._loss_ratios) + 1)]

    def _chances_at(self, load: float) -> Floats:
        """The probability of each outcome at a load (rows), for each move (columns)."""
        before = _place(load) - MOVES
        return np.array([np.interp(before, self._places, chances) for chances in self._chances.T])


class Question:
    """Asks whether the SUT is as before: proposes loads and records their trials until there is an answer.

    Attributes:
        answer: The answer; None: there is none yet.
        trials: Number of trials so far.
    """

    def __init__(self, usual: Usual, max_load: float) -> None:
        """Prepares the question.

        Args:
            usual: What earlier searches say.
            max_load: The load of the first trial, frames per second.
        """
        self.answer: Answer | None = None
        self.trials = 0
        self._usual = usual
        self._max_load = max_load
        self._verdicts = np.zeros(len(MOVES))
        self._rates = np.zeros(len(MOVES))
        self._unmoved_rates = 0.0

    def next_load(self) -> float:
        """The load of the next trial, in frames per second: the load whose trial says most."""
        if not self.trials:
            return self._max_load
        shares = self._shares()
        answers = shares.sum(axis=1)
        of_moves = shares / np.maximum(answers, _TINY)[:, None]
        chances = np.maximum(self._usual.chances @ of_moves.T, _TINY)
        mean = np.maximum(chances @ answers, _TINY)
        # Formula: the mutual information of the outcome and the answer, for each load.
        said = (chances * np.log(chances / mean[:, :, None])).sum(axis=1) @ answers
        return self._usual.loads[int(said.argmax())]

    def add(self, trial: TrialResult) -> None:
        """Records a trial. After the answer, a trial changes nothing."""
        if self.answer is not None or trial.input.rest:
            return
        self.trials += 1
        self._verdicts += np.log(self._usual.likelihood(trial))
        self._rates += np.log(self._usual.density(trial, MOVES))
        self._unmoved_rates += math.log(self._usual.density(trial, np.zeros(1))[0])

        as_before, *changed = self._shares().sum(axis=1)
        if as_before >= SURE:
            self.answer = Answer.AS_BEFORE
        elif sum(changed) >= SURE_OF_CHANGE:
            self.answer = Answer.CHANGED
        elif self.trials >= MOST_TRIALS:
            self.answer = Answer.UNSURE

    def _shares(self) -> Floats:
        """The probability of each answer (rows: as before, slower, faster) with each move (columns)."""
        rates = np.logaddexp(
            math.log(FOLLOWS) + self._rates, math.log1p(-FOLLOWS) + self._unmoved_rates
        )
        logs = self._verdicts + rates
        shares = _PRIOR * np.exp(logs - logs.max())
        return np.asarray(shares / shares.sum())


class _Rates:
    """The rates that the SUT forwarded in overload, and their spread, by the place of the load."""

    def __init__(self, by_place: dict[int, list[TrialResult]]) -> None:
        rates = {
            place: np.array([_place_of_rate(trial) for trial in trials if _shows_rate(trial)])
            for place, trials in sorted(by_place.items())
        }
        shown = {place: found for place, found in rates.items() if len(found)}
        self._places = np.array([*shown], dtype=np.float64)
        self._means = np.array([found.mean() for found in shown.values()])
        spreads = [found.var() for found in shown.values() if len(found) > _FEW]
        usual = float(np.median(spreads)) if spreads else 2.0**2
        self._spreads = np.array(
            [
                math.sqrt((len(found) * found.var() + _FEW * usual) / (len(found) + _FEW))
                for found in shown.values()
            ]
        ).clip(1.0)

    def density(self, trial: TrialResult, moves: Floats) -> Floats:
        """The density of the rate that a trial shows, for some moves; 1 if the trial shows no rate."""
        if not len(self._places) or not _shows_rate(trial):
            return np.ones(len(moves))
        before = _place(trial.load) - moves
        means = np.interp(before, self._places, self._means)
        spreads = np.interp(before, self._places, self._spreads)
        off = (_place_of_rate(trial) - moves - means) / spreads
        here = _T / spreads * (1.0 + off**2 / FREEDOM) ** (-(FREEDOM + 1.0) / 2.0)
        return np.asarray((1.0 - ELSEWHERE) * here + ELSEWHERE * TICK)


def _place(load: float) -> float:
    """The place of a load."""
    return math.log(load) / TICK


def _shows_rate(trial: TrialResult) -> bool:
    return OVERLOADED < trial.loss_ratio < 1.0 and not trial.is_early


def _place_of_rate(trial: TrialResult) -> float:
    """The place of a trial's forwarding rate."""
    return _place(trial.load * (1.0 - trial.loss_ratio))


def _chances(places: Floats, counts: NDArray[np.int64]) -> Floats:
    """The probability of each outcome (columns) at each place (rows).

    The outcomes at a place count, and in addition, the places around it count as much as one trial.
    """
    outcomes = counts.shape[1]
    trials = counts.sum(axis=1, keepdims=True)
    seen = counts / trials
    certain = np.eye(outcomes)
    # Below all places, no frame is lost. Above all places, too many frames are lost for every goal.
    below = np.vstack([(seen[:1] + certain[:1]) / 2.0, seen[:-1]])
    above = np.vstack([seen[1:], (seen[-1:] + certain[-1:]) / 2.0])
    gaps = np.diff(places, prepend=places[0] - 1.0, append=places[-1] + 1.0)
    share = (gaps[:-1] / (gaps[:-1] + gaps[1:]))[:, None]
    around = (1.0 - share) * below + share * above
    around = (1.0 - ANYTHING) * around + ANYTHING / outcomes
    counted = trials * COUNTED / (trials + COUNTED)
    return np.asarray((counted * seen + around) / (counted + 1.0))


def _indexes(places: Floats, counts: NDArray[np.int64], grid: LoadGrid) -> list[int]:
    """The loads of the grid that tonight's trials may have."""
    trials = counts.sum(axis=1)
    lossy_least = places[counts[:, 0] < trials]
    passed_most = places[counts[:, -1] < trials]
    if not (len(lossy_least) and len(passed_most)):
        return []
    first = lossy_least.min() - NEAR / TICK
    last = passed_most.max() + NEAR / TICK
    known = places[(trials >= LEAST_TRIALS) & (places >= first) & (places <= last)]
    indexes = {round(grid.position(math.exp(place * TICK))) for place in known.tolist()}
    return sorted(index for index in indexes if 0 <= index <= grid.top)


def _moves() -> Floats:
    """The moves that are distinguished, in ticks: every small move, and large moves in coarser steps."""
    small = np.arange(0.0, 0.03 / TICK)
    middle = np.arange(0.03 / TICK, 0.1 / TICK, 4.0)
    large = np.arange(0.1 / TICK, FARTHEST / TICK + 1.0, 16.0)
    up = np.concatenate([small, middle, large])
    sizes = up * TICK
    told = up[(sizes <= SAME) | (sizes >= MOVED)]
    return np.concatenate([-told[:0:-1], told])


MOVES = _moves()
"""In ticks; negative moves mean that the SUT is slower."""

_TINY = 1e-12


def _prior() -> Floats:
    """The probability of each answer (rows: as before, slower, faster) with each move (columns)."""
    sizes = np.abs(MOVES) * TICK
    gaps = np.gradient(MOVES)
    changed = np.where(sizes >= MOVED, gaps / np.maximum(sizes, TICK), 0.0)
    as_before = np.where(sizes <= SAME, 1.0, 0.0)
    rows = np.array([as_before, changed * (MOVES < 0.0), changed * (MOVES > 0.0)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True) * np.array([[0.5], [0.25], [0.25]]))


_PRIOR = _prior()
