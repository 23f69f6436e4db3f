"""Trials as the SUT alone decided them, and upper bounds that need more trials to be the SUT's own.

A search stops measuring a load as soon as the remaining trials cannot change its verdict. If a generator stalled in one
of these trials, and then sent a burst, the burst may have cost frames. Or frames are missing that were not sent, came
back late, or were dropped by the generator. Without them, the remaining trials may still change the verdict, so they
are measured.

If bursts may have made the verdict of the whole duration sum, steady trials decide, in which no sender stalled. More
trials follow until these make the load an upper bound on their own. Whether a trial is steady does not depend on its
loss, so this selects no results.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.evidence import classify, evidence_of
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.stages import Stages
from lossratio.trials import (
    STALL,
    TrialResult,
    loss_ratio_without_tester,
    missing_frames,
    most_lost_in_bursts,
    sut_loss_ratio,
)

BURSTS = "bursts"
"""Name of the rule that repeats the measurement of an upper bound that bursts, or frames that the SUT did not lose, may
have made."""
_MOST_SUMS = 4.0
"""The most duration sums to measure at a load where frames may have been lost in bursts."""
_ONE_STEADY_OF = 8
"""If fewer trials than one of this many are steady, they are too few to decide within that time."""
_TO_SPARE = 2
"""How many steady trials may be missing by chance."""


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


def without_starvation(trial: TrialResult, goal: SearchGoal) -> TrialResult:
    """The trial as if, in addition, no DUT's program had lacked a CPU when frames came."""
    starved = sum(each.explained_frames for each in trial.output.incidents if each.done == "stands")
    if not starved:
        return with_late_frames(trial, goal)
    seen = goal.seen(trial)
    return _with_loss_ratio(seen, sut_loss_ratio(seen, starved))


def of_sut(trial: TrialResult, goal: SearchGoal) -> TrialResult:
    """The trial as if, in addition, the frames that the generator's bursts may have cost had come back."""
    in_bursts = _lost_in_bursts(trial)
    if not in_bursts:
        return with_late_frames(trial, goal)
    seen = goal.seen(trial)
    return _with_loss_ratio(seen, sut_loss_ratio(seen, in_bursts))


def is_of_sut(goal: SearchGoal, at_upper: Iterable[TrialResult]) -> bool:
    """Whether an upper bound does not rest on frames that bursts may have cost, or that the SUT did not lose.

    Either it is also an upper bound without these frames, or the steady trials alone make it one.

    Args:
        goal: The goal of the bound.
        at_upper: The trials at the bound's load, in order.
    """
    trials = list(at_upper)
    ways = ([of_sut(trial, goal) for trial in trials], _steady(trials, goal))
    return any(classify(goal, way) is Bound.UPPER for way in ways)


def needs_more_trials(goal: SearchGoal, at_upper: Iterable[TrialResult]) -> bool:
    """Whether bursts, or frames that the SUT did not lose, may have made an upper bound, and more trials would show it.

    At a load that the generator never sends in full, only a trial or two may follow: its trials meet the goal without
    the frames that are missing.

    Args:
        goal: The goal of the bound.
        at_upper: The trials at the bound's load, in order.
    """
    trials = list(at_upper)
    is_doubtful = any(_is_lossy_by_others(trial, goal) for trial in trials)
    if not is_doubtful or is_of_sut(goal, trials):
        return False
    if classify(goal, [of_sut(trial, goal) for trial in trials]) is Bound.UNDECIDED:
        return True
    if not any(map(_lost_in_bursts, trials)):
        return False

    steady = _steady(trials, goal)
    measured = sum(trial.duration for trial in trials)
    too_few = len(trials) > _ONE_STEADY_OF * (len(steady) + _TO_SPARE)
    if too_few or measured >= _MOST_SUMS * goal.duration_sum:
        return False
    return classify(goal, steady) is Bound.UNDECIDED


def trials_left(goal: SearchGoal, at_upper: Iterable[TrialResult]) -> tuple[int, int]:
    """How many more trials an upper bound takes that needs more: the expected number, and the most.

    As many trials as so far are expected to be steady, and to be lossy by the SUT alone. Without losses in bursts, the
    trials end with the duration sum.

    Args:
        goal: The goal of the bound.
        at_upper: The trials at the bound's load, in order.
    """
    trials = list(at_upper)
    steady = _steady(trials, goal)
    without_bursts = [of_sut(trial, goal) for trial in trials]
    measured = sum(trial.duration for trial in trials)
    sums = _MOST_SUMS if any(map(_lost_in_bursts, trials)) else 1.0
    most = max(1, math.ceil((sums * goal.duration_sum - measured) / goal.final_trial_duration))

    expected = _expected(goal, steady, max(1, len(steady)) / len(trials))
    share = len(steady) / len(trials)
    if share * _ONE_STEADY_OF < 1.0:
        # At this number of trials, the steady ones are too few.
        last = _ONE_STEADY_OF * _TO_SPARE / (1.0 - _ONE_STEADY_OF * share)
        expected = min(expected, last - len(trials))

    lossy = sum(trial.loss_ratio > goal.loss_ratio for trial in without_bursts)
    if lossy > goal.exceed_ratio * len(trials):
        expected = min(expected, _expected(goal, without_bursts, lossy / len(trials)))
    return min(most, max(1, math.ceil(expected))), most


def trials_foreseen(goal: SearchGoal, at_upper: Iterable[TrialResult], proof: float) -> int:
    """How many more trials an expected upper bound will take after its proof, as far as its trials show.

    Args:
        goal: The goal of the bound.
        at_upper: The trials at the expected bound's load so far, in order.
        proof: How many trials the proof still takes.
    """
    trials = list(at_upper)
    if not any(_is_lossy_by_others(trial, goal) for trial in trials):
        return 0
    return max(0, math.ceil(trials_left(goal, trials)[0] - proof))


def _expected(goal: SearchGoal, trials: Iterable[TrialResult], share: float) -> float:
    """How many more trials make a load an upper bound, if this share of them is like those trials, and lossy."""
    evidence = evidence_of(goal)
    load = 0.0
    for trial in trials:
        evidence.add(trial)
        load = trial.load
    return evidence.missing(load, Bound.UPPER) / goal.final_trial_duration / share


def may_turn(goal: SearchGoal, at_load: Iterable[TrialResult]) -> bool:
    """Whether one more trial, with any loss, may turn the verdict of a load; False if it has none yet.

    Trials that only look for the cause of a bound must not decide about it, as they are made at suspect bounds alone.

    Args:
        goal: The goal.
        at_load: The trials at the load, in order.
    """
    seen = [goal.seen(trial) for trial in at_load]
    verdict = classify(goal, seen)
    if verdict is Bound.UNDECIDED:
        return False
    more = [_with_loss_ratio(seen[-1], loss_ratio) for loss_ratio in (0.0, 1.0)]
    return any(classify(goal, [*seen, trial]) is not verdict for trial in more)


def _is_lossy_by_others(trial: TrialResult, goal: SearchGoal) -> bool:
    """Whether a trial lost too much, but not if only the SUT alone had decided it."""
    return goal.seen(trial).loss_ratio > goal.loss_ratio >= of_sut(trial, goal).loss_ratio


def _steady(trials: Iterable[TrialResult], goal: SearchGoal) -> list[TrialResult]:
    """The trials in which no sender stalled."""
    return [with_late_frames(trial, goal) for trial in trials if _is_steady(trial)]


def _is_steady(trial: TrialResult) -> bool:
    return all((direction.lateness_s or 0.0) <= STALL for direction in trial.output.directions)


def _lost_in_bursts(trial: TrialResult) -> float:
    """The maximum number of frames that a trial may have lost in bursts after stalls."""
    return most_lost_in_bursts(trial.output.directions, trial.duration)


def _with_loss_ratio(trial: TrialResult, loss_ratio: float) -> TrialResult:
    return replace(trial, output=replace(trial.output, loss_ratio=loss_ratio, sent_frames=None))


def bounds_of_bursts(
    searched: Iterable[Stages],
    goals: Collection[SearchGoal],
    results: Mapping[float, Sequence[TrialResult]],
) -> Iterator[tuple[SearchGoal, float]]:
    """The upper bounds that the generator may have made and more trials can test, each with its goal.

    Args:
        searched: What is known about the goals whose bounds are tested.
        goals: All goals of the search, of whose bounds these trials must turn none.
        results: The trials at each load, in order.
    """
    for each in searched:
        upper = each.relevant_bounds().upper
        if upper is None or not needs_more_trials(each.goal, results[upper]):
            continue
        if not any(may_turn(goal, results[upper]) for goal in goals):
            yield each.goal, upper
