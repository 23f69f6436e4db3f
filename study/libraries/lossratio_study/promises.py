"""How often a sequential goal's result has a wrong bound, on simulated SUTs, beside the promised probability.

A SUT here is a curve: the probability that a trial is lossy, by load. It is larger at larger loads, and trials are
independent, as the promise supposes. Half of the curves are the hardest possible: loads up to the capacity are lossy
just as often as a good load may be, and loads above it just as often as a bad load must be.
"""

import math
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lossratio.mlrsearch import GoalResult, SearchGoalWarning
from lossratio.trials import TrialOutput, TrialResult
from lossratio_study.sequential import SequentialGoal, SequentialSearch

Curve = Callable[[float], float]
"""The probability that a trial is lossy, by its load in frames per second."""
MIN_LOAD = 10_000.0
MAX_LOAD = 1_000_000.0
CAPACITIES = (20_000.0, 900_000.0)
"""The range of the curves' capacities, in frames per second."""
SPREADS = (0.0005, 0.02)
"""A curve that is not a step rises over a share of the capacity in this range."""
NEARLY = 0.15
"""The distance of the hardest curves from the exceed ratio, for a goal without a zone of indifference."""
LOST = 0.02
"""The share of frames that a lossy trial loses beyond the goal's loss ratio."""

# Table: each goal on a line.
PROMISES: tuple[SequentialGoal, ...] = (
    SequentialGoal(0.0, 0.5, name="half, indifference 0.2"),
    SequentialGoal(0.0, 0.5, width=0.02, indifference=0.1, error=0.2, name="half, indifference 0.1"),
    SequentialGoal(0.0, 0.1, width=0.02, indifference=0.08, error=0.1, name="a tenth, indifference 0.08"),
    SequentialGoal(0.0, 0.5, width=0.02, indifference=0.0, error=0.1, name="half, a mixture"),
)
"""The goals whose promises are measured."""


@dataclass(frozen=True)
class Kept:
    """How a goal's promise was kept."""

    goal: SequentialGoal
    """The goal."""
    searches: int
    """Number of searches, each on another SUT."""
    wrong_lower: int
    """Searches with a regular result whose lower bound is a bad load."""
    wrong_upper: int
    """Searches with a regular result whose upper bound is a good load."""
    irregular: int
    """Searches with an irregular result, which has no promise."""
    trials: float
    """Mean number of trials of a search."""

    @property
    def error(self) -> float:
        """The share of searches with a wrong bound."""
        return (self.wrong_lower + self.wrong_upper) / self.searches


def promises_kept(goals: tuple[SequentialGoal, ...], searches: int, first_seed: int = 0) -> Iterator[Kept]:
    """Measures how often goals have wrong results: this many searches for each, on the SUTs of different seeds."""
    for goal in goals:
        outcomes = [search_on_curve(goal, seed) for seed in range(first_seed, first_seed + searches)]
        wrong = [is_wrong(goal, result, curve) for result, curve, _ in outcomes]
        irregular = sum(not result.regular for result, _, _ in outcomes)
        trials = sum(number for _, _, number in outcomes) / searches
        wrong_lower = sum(lower for lower, _ in wrong)
        wrong_upper = sum(upper for _, upper in wrong)
        yield Kept(goal, searches, wrong_lower, wrong_upper, irregular, trials)


def search_on_curve(goal: SequentialGoal, seed: int, stuck: int = 1) -> tuple[GoalResult, Curve, int]:
    """One search on the SUT of a seed: its result, the SUT, and the number of trials.

    If `stuck` is more than 1, trials are not independent: this many successive trials have the same luck.
    """
    draw = random.Random(seed)
    curve = _curve(goal, draw, hardest=seed % 2 == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchGoalWarning)
        controller = SequentialSearch([goal], MIN_LOAD, MAX_LOAD)
    luck = 0.0
    while (trial := controller.next_trial()) is not None:
        if controller.trials % stuck == 0:
            luck = draw.random()
        lost = goal.loss_ratio + LOST if luck < curve(trial.load) else 0.0
        controller.record(TrialResult(trial, TrialOutput(lost)))
    return controller.result()[goal], curve, controller.trials


def is_wrong(goal: SequentialGoal, result: GoalResult, curve: Curve) -> tuple[bool, bool]:
    """Whether a regular result's lower bound is a bad load, and whether its upper bound is a good load."""
    lower = result.relevant_lower_bound
    upper = result.relevant_upper_bound
    if not result.regular or lower is None or upper is None:
        return False, False
    good = goal.exceed_ratio - goal.indifference
    bad = goal.exceed_ratio + goal.indifference
    is_lower_bad = curve(lower) >= bad if goal.indifference else curve(lower) > bad
    return is_lower_bad, curve(upper) <= good


def _curve(goal: SequentialGoal, draw: random.Random, *, hardest: bool) -> Curve:
    capacity = math.exp(draw.uniform(*map(math.log, CAPACITIES)))
    gap = goal.indifference or NEARLY
    good = max(0.0, goal.exceed_ratio - gap)
    bad = goal.exceed_ratio + gap
    if hardest:

        def step(load: float) -> float:
            return good if load <= capacity else bad

        return step

    least = draw.uniform(0.0, good)
    most = draw.uniform(bad, 1.0)
    spread = math.exp(draw.uniform(*map(math.log, SPREADS)))

    def slope(load: float) -> float:
        below = (1.0 - load / capacity) / spread
        return least + (most - least) / (1.0 + math.exp(min(50.0, below)))

    return slope
