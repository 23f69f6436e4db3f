"""The question whether a SUT is as in earlier searches: a few trials instead of a search.

Each goal has two loads tonight: one at which nearly all trials of the earlier searches passed, and one at which
nearly all of them failed, as close to the goal's bounds as these searches have enough trials. The SUT is as before if
tonight's trials pass at each goal's lower load and fail at its upper load, as they did. A trial counts for all goals
that have its load. A move of all loads shows in these trials, and so does a loss that only one goal sees. Unless the
SUT is as before, a search follows, in which these trials count. Only its bounds say whether the SUT has changed.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import attrgetter

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.stages import GoalBounds
from lossratio.trials import TrialResult

SURE = {Bound.LOWER: 60.0, Bound.UPPER: 3.5}
"""How many times more probable tonight's trials at a load must be if the load is the bound that it was than if it is no
longer one. A missed loss leaves a wrong number, and a missed gain only a smaller one."""

DOUBTFUL = SURE[Bound.LOWER]
"""A search begins when they are this many times less probable: after two unexpected trials in a row."""

FEWEST_TRIALS = 7
"""An answer of *as before* takes at least this many trials: a device may be slow only now and then."""

MOST_TRIALS = 30
"""After this many trials, the answer is left to a search."""

LEAST_TRIALS = 5
"""Minimum number of trials of the earlier searches at each of tonight's loads."""

NOT_SURE = 0.1
"""At a lower load, at least this much fewer trials failed than the goal allows, and at an upper load this much more. A
load clearly passed if at most this share of its trials failed, and clearly failed if at most this share passed."""

NEAR = 0.01
"""Relative distance from the closest such loads within which a load with clearer trials is better."""

LEAST_CHANCE = 0.05
"""The chance of any outcome of a trial is at least this."""

MORE = 0.01
"""A trial that loses this much more than all earlier trials at its load is not chance, and a search begins."""


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
        bound: The bound that the load was for the goal.
        load: The load, in frames per second per interface.
        support: How much tonight's trials support that the load is such a bound as before: the logarithm of a
            likelihood ratio.
        missing: How much support is missing to be sure.
        most_loss: The largest loss ratio of a trial that chance explains.
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
        self.bound = bound
        self.load = load
        self.support = 0.0
        self.missing = math.log(SURE[bound])
        self.most_loss = MORE + max(trial.loss_ratio for trial in earlier)
        most = goal.exceed_ratio if bound is Bound.UPPER else 1.0 - goal.exceed_ratio
        share = sum(map(self.is_expected, earlier)) / len(earlier)
        # If the load is no longer such a bound, the chance is anything up to the most.
        self._chances = [
            min(1.0 - LEAST_CHANCE, max(LEAST_CHANCE, chance)) for chance in (share, most / 2.0)
        ]

    def add(self, trial: TrialResult) -> None:
        """Counts a trial at this load."""
        is_expected = self.is_expected(trial)
        as_before, changed = (chance if is_expected else 1.0 - chance for chance in self._chances)
        more = math.log(as_before / changed)
        self.support += more
        self.missing -= more

    def is_expected(self, trial: TrialResult) -> bool:
        """Whether a trial passes a lower load, or fails an upper load."""
        return (trial.loss_ratio > self.goal.loss_ratio) is (self.bound is Bound.UPPER)


class Question:
    """Asks whether the SUT is as before: proposes loads and records their trials until there is an answer.

    Attributes:
        answer: The answer of its own trials; None: there is none yet. It is unsure from the beginning if the earlier
            searches have too few trials at a load that a goal needs.
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
        self._known = {
            grid.load(index): at_load
            for index, at_load in sorted(by_index.items())
            if len(at_load) >= LEAST_TRIALS and 0 <= index <= grid.top
        }

        self._most_load = grid.max_load
        self._is_to_overload = False
        self._checks = [check for goal in goals for check in _checks(goal, self._known)]
        if len(self._checks) < 2 * len(goals):
            self.answer = Answer.UNSURE

    def loads(self, goal: str) -> tuple[float, ...]:
        """Tonight's loads for a goal of this name, in frames per second: its lower load, and its upper load."""
        return tuple(check.load for check in self._checks if str(check.goal) == goal)

    def next_load(self) -> float:
        """The load of the next trial, in frames per second: that of the check that is least sure, upper loads first.

        A device that has rested may pass more than in a search, which begins with an overload. So if the first trial is
        not as expected, a trial at maximum load follows, and the question begins anew.
        """
        if self._is_to_overload:
            return self._most_load
        uppers = [
            check for check in self._checks if check.bound is Bound.UPPER and check.missing > 0.0
        ]
        return max(uppers or self._checks, key=attrgetter("missing", "load")).load

    def add(self, trial: TrialResult) -> None:
        """Records a trial. After the answer, a trial changes nothing."""
        if self.answer is not None:
            return
        self.trials += 1
        if self._is_to_overload:
            self._is_to_overload = False
            return
        checks = [check for check in self._checks if check.load == trial.load]
        if any(trial.loss_ratio > check.most_loss for check in checks):
            self.answer = Answer.UNSURE
            return
        is_expected = all(check.is_expected(trial) for check in checks)
        if self.trials == 1 and not is_expected:
            self._is_to_overload = True
            return
        for check in checks:
            check.add(trial)

        least = min(check.support for check in self._checks)
        is_sure = all(check.missing <= 0.0 for check in self._checks)
        if is_sure and self.trials >= FEWEST_TRIALS:
            self.answer = Answer.AS_BEFORE
        elif least <= -math.log(DOUBTFUL) or self.trials >= MOST_TRIALS:
            self.answer = Answer.UNSURE

    def answer_after(self, bounds: Iterable[GoalBounds]) -> Answer | None:
        """The answer after a search: the SUT has changed if a bound excludes what the earlier searches show clearly.

        Args:
            bounds: The bounds of the goals.
        """
        if self.answer is Answer.UNSURE and any(map(self._is_excluded, bounds)):
            return Answer.CHANGED
        return self.answer

    def _is_excluded(self, bounds: GoalBounds) -> bool:
        """Whether a load that clearly passed, as all below it, is no longer below the upper bound, or the reverse."""
        lower, upper = bounds.proved
        shares = _shares(bounds.goal, self._known)
        first = min((load for load in shares if shares[load] > NOT_SURE), default=math.inf)
        last = max((load for load in shares if shares[load] < 1.0 - NOT_SURE), default=0.0)
        is_lost = any((upper or math.inf) <= load < first for load in shares)
        return is_lost or any(last < load <= (lower or 0.0) for load in shares)


def _shares(
    goal: SearchGoal, known: Mapping[float, Sequence[TrialResult]]
) -> Mapping[float, float]:
    """The share of the trials at each load that failed the goal."""
    return {
        load: sum(trial.loss_ratio > goal.loss_ratio for trial in trials) / len(trials)
        for load, trials in known.items()
    }


def _checks(goal: SearchGoal, known: Mapping[float, Sequence[TrialResult]]) -> Iterator[Check]:
    """The goal's check at its lower load and that at its upper load; none if there are no such loads."""
    shares = _shares(goal, known)
    exceed = goal.exceed_ratio
    fails = exceed + NOT_SURE * (1.0 - exceed)
    passes = exceed - NOT_SURE * exceed
    upper = min((load for load, share in shares.items() if share >= fails), default=math.inf)
    passing = [load for load, share in shares.items() if load < upper and share <= passes]
    lower = max(passing, default=0.0)
    lowers = [load for load in passing if load >= (1.0 - NEAR) * lower]
    uppers = [load for load in shares if upper <= load <= (1.0 + NEAR) * upper]
    if lowers and uppers:
        lower = min(lowers, key=lambda load: (shares[load], -load))
        upper = max(uppers, key=lambda load: (shares[load], -load))
        yield Check(goal, Bound.LOWER, lower, known[lower])
        yield Check(goal, Bound.UPPER, upper, known[upper])
