"""MLRsearch of 2021: any number of loss ratios, one trial per load and duration (draft-ietf-bmwg-mlrsearch-01).

Phases with growing trial duration and narrowing width; within a phase, one target loss ratio after the other. What the
draft says is a "simplified version" is implemented with the additional logic that it lists. A load that the generator
cannot send counts as lost: that is in the trial's loss ratio already (`lossratio.trials.counters`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable

from lossratio.arena.baselines.measured_bounds import MeasuredBounds, MeasuredLoads
from lossratio.arena.baselines.phases import Phase, phases_of
from lossratio.arena.baselines.scripted import ScriptedController, Step, bounds_result, one_trial_goals
from lossratio.arena.baselines.selection_2021 import Exit, PhaseRule
from lossratio.arena.baselines.widths import clamped, step_down, step_up
from lossratio.errors import SearchError
from lossratio.mlrsearch import GoalResult, IrregularReason, SearchGoal
from lossratio.trials import TrialInput, TrialResult


class MLRsearch2021(ScriptedController):
    """Searches for any number of loss ratios at once, each with bounds of one final trial."""

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
            goals: What is searched for: target loss ratios with one width, initial and final trial duration. FD.io
                CSIT used 0 and 0.5 %, width 0.5 %, 1 s and 30 s.
            min_load: Smallest load of a trial, frames per second per interface.
            max_load: Largest load of a trial, frames per second per interface.
            intermediate_phases: Number of phases between the initial and the final one.
            expansion_coefficient: By how much external search multiplies interval widths.
            timeout: No trial is asked for after this many seconds of trials; None: no limit.

        Raises:
            SearchError: If an argument makes no sense, or goals do not go together here.
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
        """Trials at max load (MTR), at what was forwarded there (MRR), and at what was forwarded then (MRR2)."""
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
            # Nothing is measured twice, so what was forgotten is remembered.
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
