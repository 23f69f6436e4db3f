"""How the bounds of a search close: after each trial, what is proved about each goal, and what it looks like so far."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from lossratio.mlrsearch import Criterion, Evidence, GoalBounds, SearchGoal, SearchGoalWarning
from lossratio.results.model import Goal, ThroughputResult
from lossratio.trials import TrialResult


class BoundsSoFar:
    """Follows the bounds of a search, trial by trial."""

    def __init__(self, goals: Iterable[SearchGoal]) -> None:
        self._evidence = [
            (
                goal,
                Evidence(Criterion.of(goal)),
                Evidence(Criterion.make(goal, goal.first_duration, goal.first_duration)),
            )
            for goal in goals
        ]

    def add(self, trial: TrialResult) -> tuple[GoalBounds, ...]:
        """Takes in a trial that counts.

        Returns:
            The bounds of each goal after it, in the order of the goals.
        """
        for _, proof, sign in self._evidence:
            proof.add(trial)
            sign.add(trial)
        return tuple(
            GoalBounds(goal, proof.relevant_bounds(), sign.relevant_bounds()) for goal, proof, sign in self._evidence
        )


def search_goal(goal: Goal) -> SearchGoal:
    """The search goal that a result file describes; whatever was to be warned of was so when it was searched for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchGoalWarning)
        return SearchGoal(
            loss_ratio=goal.loss_ratio,
            exceed_ratio=goal.exceed_ratio,
            final_trial_duration=goal.final_trial_duration_s,
            duration_sum=goal.duration_sum_s,
            width=goal.width_ratio,
            initial_trial_duration=goal.initial_trial_duration_s,
            name=goal.name,
        )


def bounds_history(result: ThroughputResult) -> dict[int, tuple[GoalBounds, ...]]:
    """The bounds of all goals of a result after each trial that counts, by the trial's number."""
    so_far = BoundsSoFar(search_goal(report.goal) for report in result.goals)
    return {trial.number: so_far.add(trial.as_result()) for trial in result.trials if trial.is_evidence}
