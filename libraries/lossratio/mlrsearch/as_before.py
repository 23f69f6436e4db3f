"""The question whether a SUT is as in earlier searches: a few trials instead of a search.

Each goal has two loads tonight: one at which nearly all trials of the earlier searches passed, and one at which
nearly all of them failed, as close to the goal's bounds as these searches have enough trials. The SUT is as before if
tonight's trials pass at each goal's lower load and fail at its upper load, as they did. A trial counts for all goals
that have its load. A move of all loads shows in these trials, and so does a loss that only one goal sees. Unless the
SUT is as before, a search follows, in which these trials count.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import attrgetter

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.trials import TrialResult

SURE = {Bound.LOWER: 60.0, Bound.UPPER: 10.0}
"""How many times more probable tonight's trials at a load must be if the load is the bound that it was than if it is no
longer one. A missed loss leaves a wrong number, and a missed gain only a smaller one."""

SURE_OF_CHANGE = 1e6
"""How many times less probable they are for a sure change, compared with a sure *as before*: four unexpected trials in
a row. Some SUTs are slower for a few trials, also without a change."""

MOST_TRIALS = 45
"""After this many trials, the answer is left to a search."""

LEAST_TRIALS = 5
"""Minimum number of trials of the earlier searches at each of tonight's loads."""

COUNTED = 8.0
"""All earlier trials at a load together count as at most this many trials."""

NOT_SURE = 0.1
"""At a lower load, at least this much fewer trials failed than the goal allows, and at an upper load this much more."""

NEAR = 0.01
"""Relative distance from the closest such loads within which a load with clearer trials is better."""

LEAST_CHANCE = 0.05
"""The chance of any outcome of a trial is at least this."""

MORE = 0.01
"""A trial at an upper load that loses this much more than all earlier trials there does not fail as they did."""


class Answer(str, Enum):
    """The answer to the question."""

    AS_BEFORE = "as before"
    CHANGED = "changed"
    UNSURE = "unsure"

    def __str__(self) -> str:
        return self.value


class Check:
    """Compares tonight's trials at a load with those of earlier searches, for a goal.

    Attributes:
        goal: The goal.
        load: The load, in frames per second per interface.
        support: How much tonight's trials support that the load is such a bound as before: the logarithm of a
            likelihood ratio, less the amount that makes the answer sure.
    """

    def __init__(
        self, goal: SearchGoal, bound: Bound, load: float, earlier: Sequence[TrialResult]
    ) -> None:
        """Learns the chance of a trial to be as expected.

        Args:
            goal: The goal.
            bound: The bound that the load was for the goal.
            load: The load, in frames per second per interface.
            earlier: The trials of the earlier searches at the load.
        """
        self.goal = goal
        self.load = load
        self.support = -math.log(SURE[bound])
        exceed = goal.exceed_ratio
        if bound is Bound.LOWER:
            self._losses = (-1.0, goal.loss_ratio)
            most = 1.0 - exceed
        else:
            self._losses = (goal.loss_ratio, MORE + max(trial.loss_ratio for trial in earlier))
            most = exceed
        counted = min(len(earlier), COUNTED)
        as_before = (counted * self._expected(earlier) / len(earlier) + 0.5) / (counted + 1.0)
        # If the load is no longer such a bound, the chance is anything up to the most.
        self._chances = as_before, most / 2.0

    def add(self, trial: TrialResult) -> None:
        """Counts a trial at this load."""
        is_expected = self._expected([trial])
        as_before, changed = (
            max(LEAST_CHANCE, chance if is_expected else 1.0 - chance) for chance in self._chances
        )
        self.support += math.log(as_before / changed)

    def _expected(self, trials: Iterable[TrialResult]) -> int:
        """How many of the trials pass a lower load, or fail an upper load as earlier trials did."""
        above, most = self._losses
        return sum(above < trial.loss_ratio <= most for trial in trials)


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
        if least >= 0.0:
            self.answer = Answer.AS_BEFORE
        elif least <= -math.log(SURE_OF_CHANGE):
            self.answer = Answer.CHANGED
        elif self.trials >= MOST_TRIALS:
            self.answer = Answer.UNSURE


def _checks(goal: SearchGoal, known: Mapping[float, Sequence[TrialResult]]) -> Iterator[Check]:
    """The goal's check at its lower load and that at its upper load; none if there are no such loads."""
    chances = {
        load: sum(trial.loss_ratio > goal.loss_ratio for trial in trials) / len(trials)
        for load, trials in known.items()
    }
    exceed = goal.exceed_ratio
    fails = exceed + NOT_SURE * (1.0 - exceed)
    passes = exceed - NOT_SURE * exceed
    upper = min((load for load, chance in chances.items() if chance >= fails), default=math.inf)
    passing = [load for load, chance in chances.items() if load < upper and chance <= passes]
    lower = max(passing, default=0.0)
    lowers = [load for load in passing if load >= (1.0 - NEAR) * lower]
    uppers = [load for load in chances if upper <= load <= (1.0 + NEAR) * upper]
    if lowers and uppers:
        lower = min(lowers, key=lambda load: (chances[load], -load))
        upper = max(uppers, key=lambda load: (chances[load], -load))
        yield Check(goal, Bound.LOWER, lower, known[lower])
        yield Check(goal, Bound.UPPER, upper, known[upper])
