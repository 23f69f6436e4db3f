"""The question whether a SUT is as in earlier searches: a few trials instead of a search.

Each goal has two loads tonight: one at which nearly all trials of the earlier searches passed, and one at which nearly
all of them failed, as close to the goal's bounds as these searches have enough trials. The SUT is as before if tonight's
trials pass at each goal's lower load and fail at its upper load, as they did. A trial counts for all goals that have its
load. A move of all loads shows in these trials, and so does a loss that only one goal sees. Unless the SUT is as before,
a search follows, in which these trials count.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.trials import TrialResult

SURE, SURE_OF_CHANGE = 100.0, 500.0
"""How many times more probable tonight's trials at a load must be if the load is the bound that it was than if it is
not, and the other way round."""

MOST_TRIALS = 30
"""After this many trials, the answer is left to a search."""

LEAST_TRIALS = 8
"""Minimum number of trials of the earlier searches at each of tonight's loads."""

COUNTED = 8.0
"""All earlier trials at a load together count as at most this many trials."""

LEAST_CHANCE = 0.05
"""The chance of any outcome of a trial is at least this."""


class Answer(str, Enum):
    """The answer to the question."""

    AS_BEFORE = "as before"
    CHANGED = "changed"
    UNSURE = "unsure"

    def __str__(self) -> str:
        return self.value


@dataclass
class Check:
    """Compares tonight's trials at a load with those of earlier searches, for a goal.

    Attributes:
        goal: The goal.
        bound: The bound that the load was for the goal.
        load: The load, in frames per second per interface.
        as_before: The chance of a trial to fail the goal, by the earlier searches.
        support: How much tonight's trials support that the load is such a bound: the logarithm of a likelihood ratio.
    """

    goal: SearchGoal
    bound: Bound
    load: float
    as_before: float
    support: float = 0.0

    def add(self, trial: TrialResult) -> None:
        """Counts a trial at this load."""
        exceed = self.goal.exceed_ratio
        # Halfway between a load that is just not such a bound any more, and a load without such trials.
        changed = (1.0 + exceed) / 2.0 if self.bound is Bound.LOWER else exceed / 2.0
        is_lossy = trial.loss_ratio > self.goal.loss_ratio
        chances = [
            _clipped(chance if is_lossy else 1.0 - chance) for chance in (self.as_before, changed)
        ]
        self.support += math.log(chances[0] / chances[1])


class Question:
    """Asks whether the SUT is as before: proposes loads and records their trials until there is an answer.

    Attributes:
        answer: The answer; None: there is none yet. It is unsure from the beginning if the earlier searches have too
            few trials at a load that a goal needs.
        trials: Number of trials so far.
    """

    def __init__(
        self, goals: Sequence[SearchGoal], grid: LoadGrid, trials: Iterable[TrialResult]
    ) -> None:
        """Chooses the loads.

        Args:
            goals: The goals of the searches. All their trials have one duration.
            grid: Tonight's loads.
            trials: The trials of the earlier searches that count for the goals.
        """
        self.answer: Answer | None = None
        self.trials = 0
        by_index: dict[int, list[TrialResult]] = {}
        for trial in trials:
            by_index.setdefault(round(grid.position(trial.load)), []).append(trial)
        known = {
            grid.load(index): at_load
            for index, at_load in sorted(by_index.items())
            if len(at_load) >= LEAST_TRIALS and 0 <= index <= grid.top
        }
        self._checks = [check for goal in goals for check in _checks(goal, known)]
        if len(self._checks) < 2 * len(goals):
            self.answer = Answer.UNSURE

    def loads(self, goal: str) -> tuple[float, ...]:
        """Tonight's loads for a goal of this name, in frames per second: its lower load, and its upper load."""
        return tuple(check.load for check in self._checks if str(check.goal) == goal)

    def next_load(self) -> float:
        """The load of the next trial, in frames per second: that of the check that is least sure."""
        return min(self._checks, key=attrgetter("support")).load

    def add(self, trial: TrialResult) -> None:
        """Records a trial. After the answer, a trial changes nothing."""
        if self.answer is not None or trial.input.rest:
            return
        self.trials += 1
        for check in self._checks:
            if check.load == trial.load:
                check.add(trial)

        least = min(check.support for check in self._checks)
        if least >= math.log(SURE):
            self.answer = Answer.AS_BEFORE
        elif least <= -math.log(SURE_OF_CHANGE):
            self.answer = Answer.CHANGED
        elif self.trials >= MOST_TRIALS:
            self.answer = Answer.UNSURE


def _checks(goal: SearchGoal, known: dict[float, Sequence[TrialResult]]) -> Iterator[Check]:
    """The goal's check at its lower load and that at its upper load, without those that have no load."""
    chances = {
        load: sum(trial.loss_ratio > goal.loss_ratio for trial in trials) / len(trials)
        for load, trials in known.items()
    }
    uppers = [load for load, chance in chances.items() if chance >= (1.0 + goal.exceed_ratio) / 2.0]
    upper = min(uppers, default=math.inf)
    lower = max(
        (
            load
            for load, chance in chances.items()
            if load < upper and chance <= goal.exceed_ratio / 2.0
        ),
        default=0.0,
    )
    for load, bound in (lower, Bound.LOWER), (upper, Bound.UPPER):
        if load in known:
            counted = min(len(known[load]), COUNTED)
            yield Check(goal, bound, load, (counted * chances[load] + 0.5) / (counted + 1.0))


def _clipped(chance: float) -> float:
    return max(chance, LEAST_CHANCE)
