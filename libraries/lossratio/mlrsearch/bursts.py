"""Trials as the SUT alone decided them, and upper bounds that need more trials to be the SUT's own.

A search stops measuring a load as soon as the remaining trials cannot change its verdict. If a generator stalled in one
of these trials, and then sent a burst, the burst may have cost frames. Without them, the remaining trials may still
change the verdict, so they are measured.
"""

from collections.abc import Iterable
from dataclasses import replace

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.evidence import classify
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.sequential import SequentialGoal
from lossratio.trials import (
    TrialResult,
    loss_ratio_without_tester,
    missing_frames,
    most_lost_in_bursts,
    sut_loss_ratio,
)

BURSTS = "bursts"
"""Name of the rule that repeats the measurement of an upper bound that bursts may have made."""


def without_generators_faults(trial: TrialResult, goal: SearchGoal) -> TrialResult:
    """The trial as if its load had been the sent load, and the generator had counted all frames that came back."""
    seen = goal.seen(trial)
    missing = missing_frames(seen.output)
    if missing is None or not missing.by_tester:
        return seen
    return _with_loss_ratio(seen, loss_ratio_without_tester(seen))


def with_late_frames(trial: TrialResult, goal: SearchGoal) -> TrialResult:
    """The trial as if, in addition, the late frames had come back in time."""
    seen = goal.seen(trial)
    missing = missing_frames(seen.output)
    if missing is None or not missing.late:
        return without_generators_faults(trial, goal)
    return _with_loss_ratio(seen, sut_loss_ratio(seen))


def of_sut(trial: TrialResult, goal: SearchGoal) -> TrialResult:
    """The trial as if, in addition, the frames that the generator's bursts may have cost had come back."""
    in_bursts = _lost_in_bursts(trial)
    if not in_bursts:
        return with_late_frames(trial, goal)
    seen = goal.seen(trial)
    return _with_loss_ratio(seen, sut_loss_ratio(seen, in_bursts))


def needs_more_trials(goal: SearchGoal, at_upper: Iterable[TrialResult]) -> bool:
    """Whether bursts may have made an upper bound, and more trials at its load would show whether they did.

    The tests of sequential goals end with their verdicts, so they get no more trials.

    Args:
        goal: The goal of the bound.
        at_upper: The trials at the bound's load, in order.
    """
    trials = list(at_upper)
    if isinstance(goal, SequentialGoal) or not any(map(_lost_in_bursts, trials)):
        return False
    return classify(goal, [of_sut(trial, goal) for trial in trials]) is Bound.UNDECIDED


def _lost_in_bursts(trial: TrialResult) -> float:
    """The maximum number of frames that a trial may have lost in bursts after stalls."""
    return most_lost_in_bursts(trial.output.directions, trial.duration)


def _with_loss_ratio(trial: TrialResult, loss_ratio: float) -> TrialResult:
    return replace(trial, output=replace(trial.output, loss_ratio=loss_ratio, sent_frames=None))
