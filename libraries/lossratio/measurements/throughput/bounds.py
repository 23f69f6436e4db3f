"""The bounds of a search after each of its trials."""

from collections.abc import Iterable

from lossratio.measurements.throughput.result import GoalsResult, search_goal
from lossratio.mlrsearch import Criterion, Evidence, GoalBounds, SearchGoal, evidence_of
from lossratio.trials import TrialResult


class BoundsSoFar:
    """Follows the bounds of a search, trial by trial."""

    def __init__(self, goals: Iterable[SearchGoal]) -> None:
        self._evidence = [
            (
                goal,
                evidence_of(goal),
                Evidence(Criterion.make(goal, goal.first_duration, goal.first_duration)),
            )
            for goal in goals
        ]

    def add(self, trial: TrialResult) -> tuple[GoalBounds, ...]:
        """Adds a trial that counts, and returns the bounds of each goal after this trial, in the order of the goals."""
        for goal, proof, sign in self._evidence:
            seen = goal.seen(trial)
            proof.add(seen)
            sign.add(seen)
        return tuple(
            GoalBounds(goal, proof.relevant_bounds(), sign.relevant_bounds())
            for goal, proof, sign in self._evidence
        )


def bounds_history(result: GoalsResult) -> dict[int, tuple[GoalBounds, ...]]:
    """The bounds of all goals of a result after each trial that counts, by the trial's number."""
    so_far = BoundsSoFar(search_goal(report.goal) for report in result.goals)
    return {trial.number: so_far.add(trial.as_result()) for trial in result.evidence}
