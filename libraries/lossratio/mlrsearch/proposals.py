"""The trials that help the goals of a search, each with its purpose, and the choice among them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lossratio.mlrsearch.bursts import BURSTS, bounds_of_bursts
from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.purpose import Purpose
from lossratio.mlrsearch.rules import GoalView, choose
from lossratio.trials import TrialInput, TrialResult

STALLED_AFTER = 100
"""A goal is given up when a load is still undecided after this many times the number of trials that its target needs.

Example: a generator sends for 5 ms of each second. Then 21 s of full-length trials need 4200 trials, not 21. The goal
is given up after 2100 trials at one load.
"""


class Proposal(NamedTuple):
    """A trial, and why it should be measured."""

    trial: TrialInput
    """The trial."""
    purpose: Purpose
    """Why."""


def proposal_of(view: GoalView, certain_above: float | None) -> Proposal | None:
    """The trial that helps a goal most; None if the goal's bounds are found, or cannot be found.

    Args:
        view: What is known for the goal.
        certain_above: The loss ratio above which a trial may end early; None: no trial does.
    """
    choice = choose(view)
    if choice is None:
        return None
    stage = view.stages[choice.stage]
    interval = view.intervals[choice.stage]
    if stage.evidence.tally(choice.load).full_trials >= STALLED_AFTER * stage.target.trials:
        return None

    is_coarse = choice.stage == 0
    if is_coarse:
        is_hinted = view.expectation.is_hinted and interval.upper is not None
    else:
        is_hinted = choice.load in (view.hinted_pair or ())
    purpose = Purpose(
        (view.goal,),
        choice.load,
        stage.target.duration_sum,
        choice.expected,
        interval.lower,
        interval.upper,
        is_coarse,
        is_hinted,
        choice.rule,
    )
    trial = TrialInput(stage.target.trial_duration, choice.load, certain_above=certain_above)
    return Proposal(trial, purpose)


def first_of(proposals: Sequence[Proposal]) -> Proposal:
    """The proposal whose trial comes first, for all goals that want this trial.

    Those for the coarsest target come first, and of these, the one with the smallest load.
    """
    trial, purpose = min(proposals, key=_order)
    goals = [
        goal
        for other in proposals
        if (other.trial, other.purpose.expected) == (trial, purpose.expected)
        for goal in other.purpose.goals
    ]
    return Proposal(trial, replace(purpose, goals=tuple(goals)))


def _order(proposal: Proposal) -> tuple[float, float, float]:
    purpose = proposal.purpose
    loss_ratio = purpose.goals[0].loss_ratio if purpose.coarse else 0.0
    return purpose.duration_sum, loss_ratio, purpose.load


def warm_up(trial: TrialInput) -> Proposal:
    """A warm-up, whose result is discarded."""
    purpose = Purpose((), trial.load, trial.duration, Bound.UNDECIDED, None, None, False)
    return Proposal(trial, purpose)


def against_bursts(
    views: Sequence[GoalView],
    results: Mapping[float, Sequence[TrialResult]],
    certain_above: float | None,
) -> Proposal | None:
    """The next trial at an upper bound that the generator may have made; None: there is no such bound.

    Args:
        views: What is known for each goal.
        results: The trials at each load, in order.
        certain_above: See `proposal_of`.
    """
    goals = [view.goal for view in views]
    for goal, upper in bounds_of_bursts(views, goals, results):
        trial = TrialInput(goal.final_trial_duration, upper, certain_above=certain_above)
        return beside_the_bounds(views, trial, Bound.UPPER, BURSTS)
    return None


def beside_the_bounds(
    views: Sequence[GoalView],
    trial: TrialInput,
    expected: Bound,
    rule: str,
    *,
    hinted: bool = False,
) -> Proposal:
    """A trial that does not serve the goals' bounds.

    Args:
        views: What is known for each goal.
        trial: The trial.
        expected: The kind of bound that its load is expected to be.
        rule: Name of the rule that chose the trial.
        hinted: Whether earlier searches promise the bound at this load.
    """
    lower, upper = views[0].relevant_bounds()
    goals: tuple[SearchGoal, ...] = tuple(view.goal for view in views)
    purpose = Purpose(goals, trial.load, trial.duration, expected, lower, upper, True, hinted, rule)
    return Proposal(trial, purpose)
