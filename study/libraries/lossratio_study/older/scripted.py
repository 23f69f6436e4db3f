"""The common part of all baselines: controllers that are scripts, and the phases of MLRsearch of 2019 and of 2021.

A script is a generator that yields one trial after the other. From phase to phase, trials become longer and intervals
narrower. Interval widths are logarithmic, so that doubling, halving and steps are products and sums. The logarithmic
width of an interval is ``log(upper / lower)``; with a width w relative to the upper bound, this is ``-log(1 - w)``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from lossratio.errors import SearchError
from lossratio.mlrsearch import GoalResult, IrregularReason, SearchGoal, SearchResult
from lossratio.trials import TrialInput, TrialResult

SHRINK = 0.999999
"""Multiplied widths are smaller by this factor, so that rounding never leaves an interval slightly wider than its goal.

No draft mentions the factor. The loads of the example run in draft-ietf-bmwg-mlrsearch-01 show it, to 12 digits.
"""

ROUNDING = 1e-12
"""Loads and widths are the same if their relative difference is at most this."""


def log_width(relative_width: float) -> float:
    """The logarithmic width of an interval that is `relative_width` wide, relative to its upper bound."""
    return -math.log1p(-relative_width)


def log_distance(lower: float, upper: float) -> float:
    """The logarithmic width between two loads."""
    return math.log(upper / lower)


def multiplied(width: float, factor: float) -> float:
    """A logarithmic width times a factor, slightly reduced (`SHRINK`)."""
    return width * factor * SHRINK


def is_wide(width: float, width_goal: float) -> bool:
    """Whether a logarithmic width is larger than a goal, by more than rounding."""
    return width > width_goal * (1.0 + ROUNDING)


def step_up(load: float, width: float) -> float:
    """The load that is a logarithmic width above another."""
    return load * math.exp(width)


def step_down(load: float, width: float) -> float:
    """The load that is a logarithmic width below another."""
    return load * math.exp(-width)


def clamped(load: float, min_load: float, max_load: float) -> float:
    """The load, limited to the search's loads. A load that differs from a limit only by rounding becomes that limit."""
    if load >= max_load * (1.0 - ROUNDING):
        return max_load
    return min_load if load <= min_load * (1.0 + ROUNDING) else load


@dataclass(frozen=True)
class Phase:
    """A non-initial phase."""

    name: str
    """Its name."""
    duration: float
    """Trial duration, in seconds."""
    width_goal: float
    """Largest logarithmic width of an interval at the end of the phase."""


def phases_of(goal: SearchGoal, intermediate_phases: int) -> tuple[Phase, ...]:
    """The intermediate phases and the final one.

    Durations grow geometrically from the goal's initial to its final duration. Each phase halves the width goal of the
    phase before, down to the goal's width.

    Raises:
        SearchError: If the number of intermediate phases is negative.
    """
    if intermediate_phases < 0:
        raise SearchError(f"The number of intermediate phases must not be negative, as {intermediate_phases!r} is.")
    growth = goal.final_trial_duration / goal.first_duration
    width_goal = log_width(goal.width)
    phases = [Phase("final phase", goal.final_trial_duration, width_goal)]
    for number in range(intermediate_phases, 0, -1):
        width_goal = multiplied(width_goal, 2.0)
        duration = goal.first_duration * growth ** ((number - 1) / intermediate_phases)
        phases.insert(0, Phase(f"intermediate phase {number}", duration, width_goal))
    return tuple(phases)


@dataclass(frozen=True)
class Step:
    """A trial that a script asks for, and its purpose."""

    trial: TrialInput
    purpose: str


Script = Generator[Step, TrialResult, None]
"""A generator that yields steps, receives their results, and returns when the search is over."""


class ScriptedController(ABC):
    """Hands out trials, records their results, adds up time, and makes the result of the search.

    Attributes:
        goals: The search goals, in the order given.
        min_load: Smallest load of a trial, frames per second per interface.
        max_load: Largest load of a trial, frames per second per interface.
        elapsed: Seconds of all trials recorded so far, on the measurer's clock.
        trials: Number of trials recorded so far.
    """

    def __init__(
        self, goals: Iterable[SearchGoal], min_load: float, max_load: float, timeout: float | None = None
    ) -> None:
        """Prepares a search.

        Args:
            goals: The search goals.
            min_load: Smallest load of a trial, frames per second per interface.
            max_load: Largest load of a trial, frames per second per interface.
            timeout: The search ends after this many seconds of trials; None: no limit.

        Raises:
            SearchError: If there are no goals, or loads or times make no sense.
        """
        self.goals = tuple(goals)
        self.min_load = float(min_load)
        self.max_load = float(max_load)
        self.elapsed = 0.0
        self.trials = 0
        self._timeout = math.inf if timeout is None else timeout

        if not self.goals:
            raise SearchError("A search needs at least one search goal.")
        if not 0.0 < self.min_load <= self.max_load < math.inf:
            raise SearchError(
                f"A search needs 0 < min load <= max load, in frames per second, not {min_load!r} and {max_load!r}."
            )
        if not self._timeout > 0.0:
            raise SearchError(f"A search's timeout must be a positive number of seconds, not {timeout!r}.")

        self._script = self._search()
        self._started = False
        self._step: Step | None = None

    @property
    def purpose(self) -> str | None:
        """Why the trial of `next_trial` was chosen; None if there is none."""
        step = self._pending()
        return None if step is None or self._is_out_of_time() else step.purpose

    def next_trial(self) -> TrialInput | None:
        """The trial to measure next; None when the search is over. Asking again changes nothing."""
        step = self._pending()
        return None if step is None or self._is_out_of_time() else step.trial

    def record(self, result: TrialResult) -> None:
        """Records a trial's result. The controller need not have asked for that trial.

        When the search is over, or the load is outside of the search's loads, only the trial's time counts.
        """
        step = self._pending()
        self.elapsed += result.elapsed
        self.trials += 1
        if step is None or not self.min_load <= result.load <= self.max_load:
            return
        if result.input != step.trial:
            self._take_unasked(result)
            return
        try:
            self._step = self._script.send(result)
        except StopIteration:
            self._step = None

    def result(self) -> SearchResult:
        """The conclusion so far, at any time; before the end it is marked as not finished."""
        finished = self._pending() is None
        unfinished = IrregularReason.TIMEOUT if self._is_out_of_time() else IrregularReason.STOPPED_EARLY
        results = [
            self._goal_result(goal, IrregularReason.OTHER_GOAL_FAILED if finished else unfinished)
            for goal in self.goals
        ]
        return SearchResult(results, finished=finished, elapsed=self.elapsed, trials=self.trials)

    def _pending(self) -> Step | None:
        if not self._started:
            self._started = True
            self._step = next(self._script, None)
        return self._step

    def _is_out_of_time(self) -> bool:
        return self.elapsed >= self._timeout

    @abstractmethod
    def _search(self) -> Script:
        """The search, trial by trial."""

    @abstractmethod
    def _take_unasked(self, result: TrialResult) -> None:
        """Uses a result that the script did not ask for, if it can."""

    @abstractmethod
    def _goal_result(self, goal: SearchGoal, unfinished: IrregularReason) -> GoalResult:
        """The result for a goal; `unfinished` is the reason for an irregular result if the bounds give none."""


def one_trial_goals(goals: Iterable[SearchGoal]) -> tuple[SearchGoal, ...]:
    """Checks the goals of an algorithm that classifies a load by one trial, in phases that all goals share.

    Raises:
        SearchError: If a goal asks for more than one full-length trial, or the goals differ in more than loss ratio,
            exceed ratio (one trial exceeds or not) and name, or two have the same loss ratio.
    """
    checked = tuple(goals)
    for goal in checked:
        if goal.duration_sum > goal.final_trial_duration:
            raise SearchError(
                f"Search goal {goal}: this algorithm decides by a single trial of the final duration "
                f"({goal.final_trial_duration:g} s), so it cannot add up {goal.duration_sum:g} s."
            )
    shared = {(goal.final_trial_duration, goal.first_duration, goal.width) for goal in checked}
    if len(shared) > 1 or len({goal.loss_ratio for goal in checked}) < len(checked):
        raise SearchError(
            "All goals of this algorithm must have the same trial durations and width, and different loss ratios."
        )
    return checked


def bounds_result(
    goal: SearchGoal,
    lower: TrialResult | None,
    upper: TrialResult | None,
    *,
    min_load: float,
    max_load: float,
    unfinished: IrregularReason,
) -> GoalResult:
    """Makes a goal's result from the trials at its relevant bounds.

    Args:
        goal: The goal.
        lower: A low-loss trial at the relevant lower bound; None if there is none.
        upper: A high-loss trial at the relevant upper bound; None if there is none.
        min_load: Smallest load of the search, frames per second.
        max_load: Largest load of the search, frames per second.
        unfinished: The reason for an irregular result, if the bounds give none.
    """
    throughput = None if lower is None else lower.forwarding_rate
    low = None if lower is None else lower.load
    high = None if upper is None else upper.load
    if low is not None and high is not None and high - low <= goal.width * high * (1.0 + ROUNDING):
        return GoalResult(goal, True, low, high, throughput)
    if low is not None and low >= max_load:
        return GoalResult(goal, False, low, low, throughput, IrregularReason.MAX_LOAD_IS_LOWER_BOUND)
    if high is not None and high <= min_load:
        return GoalResult(goal, False, low, high, throughput, IrregularReason.MIN_LOAD_IS_UPPER_BOUND)
    return GoalResult(goal, False, low, high, throughput, unfinished)
