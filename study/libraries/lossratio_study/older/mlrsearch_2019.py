"""MLRsearch of 2019 (draft-vpolak-mkonstan-bmwg-mlrsearch-02): NDR and PDR, each with an interval.

The latest trials at an interval's bounds count. Phases have growing trial durations and narrowing widths, as in the
draft's sample implementation, with the additional logic that the draft lists as missing from the sample.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

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
    one_trial_goals,
    phases_of,
    step_down,
    step_up,
)


@dataclass(frozen=True)
class Interval:
    """The interval that is searched for one loss ratio."""

    loss_ratio: float
    """A valid lower bound has at most this loss, and a valid upper bound has more."""
    max_load: float
    """Largest load, frames per second; an upper bound there is valid with any loss ratio."""
    lower: TrialResult
    """The latest trial at the lower bound."""
    upper: TrialResult
    """The latest trial at the upper bound."""

    @property
    def width(self) -> float:
        """Logarithmic width."""
        return log_distance(self.lower.load, self.upper.load)

    @property
    def is_lower_valid(self) -> bool:
        """Whether the lower bound conforms to the loss ratio."""
        return self.lower.loss_ratio <= self.loss_ratio

    @property
    def is_upper_valid(self) -> bool:
        """Whether the upper bound does not conform to the loss ratio, or cannot be raised."""
        return self.upper.loss_ratio > self.loss_ratio or self.upper.load >= self.max_load

    def updated(self, result: TrialResult) -> Interval:
        """The interval after another trial.

        A trial at a bound's load replaces the bound. A trial below an invalid lower bound becomes the lower bound, and
        the old lower bound becomes a valid upper bound. Other trials change nothing in this case. A trial below a valid
        lower bound counts only if it has high loss: it becomes the lower bound, and is invalid. A trial above the upper
        bound counts only if the upper bound is invalid: it becomes the upper bound, and the old upper bound becomes a
        valid lower bound. A trial inside the interval becomes the upper bound if it has high loss, and otherwise the
        lower bound.
        """
        if result.load in (self.lower.load, self.upper.load):
            lower = result if result.load == self.lower.load else self.lower
            upper = result if result.load == self.upper.load else self.upper
            return self._with(lower, upper)
        is_high = result.loss_ratio > self.loss_ratio
        if not self.is_lower_valid:
            return self._with(result, self.lower) if result.load < self.lower.load else self
        if result.load < self.lower.load:
            return self._with(result, self.upper) if is_high else self
        if result.load > self.upper.load:
            return self if self.is_upper_valid else self._with(self.upper, result)
        if is_high:
            return self._with(self.lower, result)
        return self._with(result, self.upper)

    def _with(self, lower: TrialResult, upper: TrialResult) -> Interval:
        return Interval(self.loss_ratio, self.max_load, lower, upper)


EXTERNAL_WIDTHS = 2.0
"""External search moves a bound by this many widths of its interval."""


@dataclass(frozen=True)
class Choice:
    """A load to measure, in frames per second, and why."""

    load: float
    purpose: str


def choose(intervals: Mapping[str, Interval], phase: Phase, min_load: float) -> Choice | None:
    """The next load; None to leave the phase.

    Invalid bounds come first, then intervals that are too wide, then bounds of shorter trials. An interval whose lower
    bound is invalid at the minimum load is not refined until that load is measured again.

    Args:
        intervals: NDR's and PDR's interval, in this order.
        phase: The present phase.
        min_load: Smallest load, frames per second.
    """
    refined = {
        name: interval
        for name, interval in intervals.items()
        if interval.is_lower_valid or interval.lower.load > min_load
    }

    for name, interval in refined.items():
        if not interval.is_lower_valid:
            load = clamped(
                step_down(interval.lower.load, _external_width(interval, phase)), min_load, interval.max_load
            )
            return Choice(load, f"external search down for {name}")
    for name, interval in refined.items():
        if not interval.is_upper_valid:
            load = clamped(step_up(interval.upper.load, _external_width(interval, phase)), min_load, interval.max_load)
            return Choice(load, f"external search up for {name}")
    for name, interval in refined.items():
        if is_wide(interval.width, phase.width_goal):
            return Choice(step_up(interval.lower.load, interval.width / 2.0), f"internal search for {name}")

    for name, interval in intervals.items():
        if interval.lower.duration < phase.duration:
            return Choice(interval.lower.load, f"re-measures the lower bound for {name}")
    for name, interval in intervals.items():
        if interval.upper.duration < phase.duration:
            return Choice(interval.upper.load, f"re-measures the upper bound for {name}")
    return None


def _external_width(interval: Interval, phase: Phase) -> float:
    """Two widths of the interval, or more if the new interval would otherwise be narrower than the phase's goal."""
    return max(EXTERNAL_WIDTHS * interval.width, phase.width_goal)


class MLRsearch2019(ScriptedController):
    """Searches for NDR and PDR together; each bound is one trial of the final duration."""

    def __init__(
        self,
        goals: Iterable[SearchGoal],
        min_load: float,
        max_load: float,
        *,
        intermediate_phases: int = 2,
        timeout: float | None = None,
    ) -> None:
        """Prepares a search.

        Args:
            goals: Two goals with the same width, initial and final trial duration: NDR without loss, PDR with some.
                FD.io CSIT used 0 and 0.5 %, width 0.5 %, 1 s and 30 s.
            min_load: Smallest load of a trial, frames per second per interface. The search fails if it needs a smaller
                load.
            max_load: Largest load of a trial, frames per second per interface.
            intermediate_phases: Number of phases between the initial and the final one.
            timeout: The search ends after this many seconds of trials; None: no limit.

        Raises:
            SearchError: If an argument makes no sense, or the goals are not these two.
        """
        super().__init__(one_trial_goals(goals), min_load, max_load, timeout)
        ordered = sorted(self.goals, key=attrgetter("loss_ratio"))
        if len(ordered) != 2 or ordered[0].loss_ratio != 0.0:
            raise SearchError(
                "MLRsearch of 2019 searches for two goals: NDR with loss ratio 0, and PDR with a larger one."
            )
        self._phases = phases_of(self.goals[0], intermediate_phases)
        self._loss_ratios = {"NDR": 0.0, "PDR": ordered[1].loss_ratio}
        self._intervals: dict[str, Interval] = {}

    def _search(self) -> Generator[Step, TrialResult, None]:
        lower, upper = yield from self._initial_phase()
        self._intervals = {
            name: Interval(loss_ratio, self.max_load, lower, upper) for name, loss_ratio in self._loss_ratios.items()
        }
        for phase in self._phases:
            while (choice := choose(self._intervals, phase, self.min_load)) is not None:
                result = yield Step(TrialInput(phase.duration, choice.load), f"{phase.name}: {choice.purpose}")
                self._update(result)

    def _initial_phase(self) -> Generator[Step, TrialResult, tuple[TrialResult, TrialResult]]:
        """Trials at the maximum load (MTR), at its forwarding rate (MRR), and at the forwarding rate of the MRR (MRR2).

        Returns:
            The trials at the bounds of the first phase's interval, which is wide enough for that phase.
        """
        duration = self.goals[0].first_duration
        width = self._phases[0].width_goal
        upper = yield Step(TrialInput(duration, self.max_load), "initial phase: the maximum load")
        mrr = clamped(min(upper.forwarding_rate, step_down(self.max_load, width)), self.min_load, self.max_load)
        if mrr == self.max_load:
            return upper, upper

        lower = yield Step(TrialInput(duration, mrr), "initial phase: MRR")
        if lower.loss_ratio > 0.0:
            mrr2 = clamped(min(lower.forwarding_rate, step_down(mrr, width)), self.min_load, self.max_load)
        else:
            mrr2 = clamped(step_up(mrr, width), self.min_load, self.max_load)
        if mrr2 in (mrr, self.max_load):
            return lower, upper

        third = yield Step(TrialInput(duration, mrr2), "initial phase: MRR2")
        if mrr2 < mrr:
            return third, lower
        return lower, third

    def _update(self, result: TrialResult) -> None:
        self._intervals = {name: interval.updated(result) for name, interval in self._intervals.items()}

    def _take_unasked(self, result: TrialResult) -> None:
        self._update(result)

    def _goal_result(self, goal: SearchGoal, unfinished: IrregularReason) -> GoalResult:
        interval = self._intervals.get("NDR" if goal.loss_ratio == 0.0 else "PDR")
        lower = upper = None
        if interval is not None:
            lower, upper = _bounds(interval, goal.final_trial_duration)
        return bounds_result(goal, lower, upper, min_load=self.min_load, max_load=self.max_load, unfinished=unfinished)


def _bounds(interval: Interval, final_trial_duration: float) -> tuple[TrialResult | None, TrialResult | None]:
    """The full-length trials at the lower and upper bound. An invalid lower bound is an upper bound, and vice versa."""
    lower = interval.lower if interval.lower.duration >= final_trial_duration else None
    upper = interval.upper if interval.upper.duration >= final_trial_duration else None
    if lower is not None and lower.loss_ratio > interval.loss_ratio:
        return None, lower
    if upper is not None and upper.loss_ratio <= interval.loss_ratio:
        return upper, None
    return lower, upper
