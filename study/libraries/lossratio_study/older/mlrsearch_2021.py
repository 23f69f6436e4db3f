"""MLRsearch of 2021: any number of loss ratios, one trial for each load and duration (draft-ietf-bmwg-mlrsearch-01).

Phases have growing trial durations and narrowing widths. Within a phase, one target loss ratio follows the other. The
draft's "simplified version" is implemented, with the additional logic that the draft lists. Frames that the generator
cannot send count as lost, because the trial's loss ratio already includes them (`lossratio.trials.counters`).
"""

import math
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from lossratio.errors import SearchError
from lossratio.mlrsearch import GoalResult, IrregularReason, SearchGoal
from lossratio.trials import TrialInput, TrialResult
from lossratio_study.older.scripted import (
    Phase,
    ScriptedController,
    Step,
    bounds_result,
    clamped,
    is_wide,
    log_distance,
    multiplied,
    one_trial_goals,
    phases_of,
    step_down,
    step_up,
)


@dataclass(frozen=True)
class MeasuredBounds:
    """The bounds for one target loss ratio among trials of one duration.

    Loads are in frames per second; None: no bound.
    """

    lower: float | None = None
    """The largest load up to which all loads have at most the target loss ratio."""
    second_lower: float | None = None
    """The next measured load below it."""
    upper: float | None = None
    """The smallest load with more than the target loss ratio."""
    second_upper: float | None = None
    """The next measured load above it."""


class MeasuredLoads:
    """The trials of one duration, one for each load. The latest trial counts."""

    def __init__(self) -> None:
        self._results: dict[float, TrialResult] = {}

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        self._results[result.load] = result

    def forget(self, load: float) -> None:
        """Forgets the trial at a load."""
        del self._results[load]

    def at(self, load: float | None) -> TrialResult | None:
        """The trial at a load; None if there is none."""
        return None if load is None else self._results.get(load)

    def effective_loss_ratios(self) -> dict[float, float]:
        """Each load's effective loss ratio, which is the largest ratio measured up to that load; by increasing load."""
        loads = sorted(self._results)
        largest = accumulate((self._results[load].loss_ratio for load in loads), max)
        return dict(zip(loads, largest, strict=True))

    def bounds(self, loss_ratio: float) -> MeasuredBounds:
        """The bounds for a target loss ratio."""
        ratios = self.effective_loss_ratios()
        lower = [load for load, effective in ratios.items() if effective <= loss_ratio]
        upper = [load for load, effective in ratios.items() if effective > loss_ratio]
        lower.reverse()
        return MeasuredBounds(_nth(lower, 0), _nth(lower, 1), _nth(upper, 0), _nth(upper, 1))


def _nth(loads: Sequence[float], place: int) -> float | None:
    """The load at a place; None: there are fewer."""
    return loads[place] if place < len(loads) else None


class Exit(Enum):
    """The continuation of the search when an iteration is complete."""

    ITERATION = "the next target loss ratio"
    PHASE = "the next phase"


@dataclass(frozen=True)
class Choice:
    """A load to measure, in frames per second, and why."""

    load: float
    purpose: str


@dataclass(frozen=True)
class PhaseRule:
    """The rule by which a phase chooses loads."""

    width_goal: float
    """The phase's logarithmic width goal."""
    expansion_coefficient: float
    """Factor by which external search multiplies interval widths."""
    min_load: float
    """Smallest load, frames per second."""
    max_load: float
    """Largest load, frames per second."""

    def choose(self, current: MeasuredBounds, previous: MeasuredBounds) -> Choice | Exit:
        """The next load for one target loss ratio.

        Args:
            current: The bounds among trials of the phase's duration.
            previous: The bounds among trials of the phase before.
        """
        lower = _if_better_lower(previous.lower, current)
        upper = _if_better_upper(previous.upper, current)
        if lower is not None and upper is not None:
            middle = self._bisect(lower, upper)
            if middle is not None:
                return Choice(middle, "initial bisect")

        if lower is not None:
            return Choice(lower, "re-measures the lower bound")
        if upper is not None:
            return Choice(upper, "re-measures the upper bound")

        if current.lower is None:
            return self._extend_down(current, previous)
        if current.upper is None:
            return self._extend_up(current, previous)
        return self._narrow(current.lower, current.upper, current, previous)

    def _narrow(self, lower: float, upper: float, current: MeasuredBounds, previous: MeasuredBounds) -> Choice | Exit:
        middle = self._bisect(lower, upper)
        if middle is None:
            return Exit.ITERATION
        below = self._extend_down(current, previous)
        if isinstance(below, Choice) and below.load > middle:
            return below
        return Choice(middle, "bisect")

    def _bisect(self, lower: float, upper: float) -> float | None:
        """A load that splits the interval into even multiples of the width goal; None if it is narrow enough."""
        width = log_distance(lower, upper)
        if not is_wide(width, self.width_goal):
            return None
        multiple = width / self.width_goal
        if multiple <= 2.0:
            return step_up(lower, width / 2.0)
        return step_up(lower, multiplied(self.width_goal, float(math.ceil(multiple / 2.0))))

    def _extend_down(self, current: MeasuredBounds, previous: MeasuredBounds) -> Choice | Exit:
        upper = current.upper
        if upper is None or upper <= self.min_load:
            return Exit.PHASE
        others = [load for load in (current.second_upper, previous.upper) if load is not None and load > upper]
        width = self._expanded([log_distance(upper, other) for other in others])
        return Choice(clamped(step_down(upper, width), self.min_load, self.max_load), "external search down")

    def _extend_up(self, current: MeasuredBounds, previous: MeasuredBounds) -> Choice | Exit:
        lower = current.lower
        if lower is None or lower >= self.max_load:
            return Exit.ITERATION
        others = [load for load in (current.second_lower, previous.lower) if load is not None and load < lower]
        width = self._expanded([log_distance(other, lower) for other in others])
        return Choice(clamped(step_up(lower, width), self.min_load, self.max_load), "external search up")

    def _expanded(self, widths: list[float]) -> float:
        """The narrowest of the given widths, but at least the width goal, times the expansion coefficient."""
        narrowest = max(self.width_goal, min(widths, default=self.width_goal))
        return multiplied(narrowest, self.expansion_coefficient)


def _if_better_lower(load: float | None, current: MeasuredBounds) -> float | None:
    """The previous lower bound, if it is tighter than the current bound and compatible with the current upper bound."""
    if load is None or (current.upper is not None and load >= current.upper):
        return None
    return load if current.lower is None or load > current.lower else None


def _if_better_upper(load: float | None, current: MeasuredBounds) -> float | None:
    if load is None or (current.lower is not None and load <= current.lower):
        return None
    return load if current.upper is None or load < current.upper else None


class MLRsearch2021(ScriptedController):
    """Searches for any number of loss ratios together; each bound is one trial of the final duration."""

    def __init__(
        self,
        goals: Iterable[SearchGoal],
        min_load: float,
        max_load: float,
        *,
        intermediate_phases: int = 2,
        expansion_coefficient: float = 4.0,
        timeout: float | None = 600.0,
    ) -> None:
        """Prepares a search.

        Args:
            goals: The search goals: target loss ratios with the same width, initial and final trial duration. FD.io
                CSIT used 0 and 0.5 %, width 0.5 %, 1 s and 30 s.
            min_load: Smallest load of a trial, frames per second per interface.
            max_load: Largest load of a trial, frames per second per interface.
            intermediate_phases: Number of phases between the initial and the final one.
            expansion_coefficient: Factor by which external search multiplies interval widths.
            timeout: The search ends after this many seconds of trials; None: no limit.

        Raises:
            SearchError: If an argument makes no sense, or the goals differ in width or durations.
        """
        super().__init__(one_trial_goals(goals), min_load, max_load, timeout)
        if not expansion_coefficient > 1.0:
            raise SearchError(f"The expansion coefficient must be above 1, not {expansion_coefficient!r}.")
        self._loss_ratios = sorted(goal.loss_ratio for goal in self.goals)
        self._initial_duration = self.goals[0].first_duration
        self._phases = phases_of(self.goals[0], intermediate_phases)
        self._expansion_coefficient = expansion_coefficient
        self._measured: dict[float, MeasuredLoads] = defaultdict(MeasuredLoads)
        self._forgotten: TrialResult | None = None

    def _search(self) -> Generator[Step, TrialResult, None]:
        yield from self._initial_phase()
        previous = self._initial_duration
        for phase in self._phases:
            yield from self._phase(phase, previous)
            previous = phase.duration

    def _initial_phase(self) -> Generator[Step, TrialResult, None]:
        """Trials at the maximum load (MTR), at its forwarding rate (MRR), and at the MRR's forwarding rate (MRR2)."""
        width = self._phases[0].width_goal
        first = yield from self._measure(self.max_load, self._initial_duration, "initial phase: the maximum load")
        mrr = clamped(min(first.forwarding_rate, step_down(self.max_load, width)), self.min_load, self.max_load)
        if mrr == self.max_load:
            return

        second = yield from self._measure(mrr, self._initial_duration, "initial phase: MRR")
        if second.loss_ratio <= self._loss_ratios[0]:
            mrr2 = clamped(step_up(mrr, width), self.min_load, self.max_load)
        else:
            mrr2 = clamped(min(second.forwarding_rate, step_down(mrr, width)), self.min_load, self.max_load)
        if mrr2 in (mrr, self.max_load):
            return

        yield from self._measure(mrr2, self._initial_duration, "initial phase: MRR2")
        # External search from MRR and MRR2 is faster than bisecting up to the maximum load.
        self._measured[self._initial_duration].forget(self.max_load)
        self._forgotten = first

    def _phase(self, phase: Phase, previous_duration: float) -> Generator[Step, TrialResult, None]:
        rule = PhaseRule(phase.width_goal, self._expansion_coefficient, self.min_load, self.max_load)
        current = self._measured[phase.duration]
        is_first = previous_duration == phase.duration
        for loss_ratio in self._loss_ratios:
            previous = MeasuredBounds() if is_first else self._measured[previous_duration].bounds(loss_ratio)
            while not isinstance(choice := rule.choose(current.bounds(loss_ratio), previous), Exit):
                purpose = f"{phase.name}: {choice.purpose} for loss {loss_ratio * 100:.4g} %"
                yield from self._measure(choice.load, phase.duration, purpose)
            if choice is Exit.PHASE:
                return

    def _measure(self, load: float, duration: float, purpose: str) -> Generator[Step, TrialResult, TrialResult]:
        trial = TrialInput(duration, load)
        if self._forgotten is not None and trial == self._forgotten.input:
            # No trial is measured twice: the forgotten trial is used again.
            result = self._forgotten
        else:
            result = yield Step(trial, purpose)
        self._measured[duration].add(result)
        return result

    def _take_unasked(self, result: TrialResult) -> None:
        self._measured[result.duration].add(result)

    def _goal_result(self, goal: SearchGoal, unfinished: IrregularReason) -> GoalResult:
        final = self._measured[goal.final_trial_duration]
        bounds = final.bounds(goal.loss_ratio)
        return bounds_result(
            goal,
            final.at(bounds.lower),
            final.at(bounds.upper),
            min_load=self.min_load,
            max_load=self.max_load,
            unfinished=unfinished,
        )
