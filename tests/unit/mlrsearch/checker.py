"""An independent check of search results: a second implementation of RFC 9971, without any controller's code.

It implements the RFC's load classification, relevant bounds and conditional throughput over plain lists of trials, in
whole nanoseconds and exact fractions. From `lossratio.mlrsearch` it takes the types of goals and results only.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lossratio.mlrsearch import GoalResult, IrregularReason, SearchGoal, SearchResult
from lossratio.trials import TrialResult

ROUNDING = 1e-9
"""Loads and widths that differ by no more than this, relatively, are the same."""
TOO_SHORT = 0.01
"""If trials count for less than this share of their durations, a search may give up their load."""


@dataclass(frozen=True)
class Checked:
    """The bounds that the trials show for a goal; loads and rates in frames per second, None where there is none."""

    relevant_lower_bound: float | None
    relevant_upper_bound: float | None
    conditional_throughput: float | None


def faults(result: SearchResult, trials: Sequence[TrialResult], *, min_load: float, max_load: float) -> tuple[str, ...]:
    """A sentence for each fault of a finished search's result; none for a result that its trials prove.

    The trials are all that count (no warm-up), in any order.
    """
    outside = [trial.load for trial in trials if not min_load <= trial.load <= max_load]
    problems = [f"a trial at {load!r} is outside of {min_load!r} to {max_load!r}" for load in outside]
    failed = [goal for goal in result if checked(goal, trials).relevant_upper_bound == min_load]
    for goal, goal_result in result.items():
        for fault in _goal_faults(goal_result, trials, min_load, max_load, bool(failed)):
            problems.append(f"{goal}: {fault}")
    return tuple(problems)


def checked(goal: SearchGoal, trials: Sequence[TrialResult]) -> Checked:
    """Computes a goal's relevant bounds and conditional throughput from trials."""
    loads = sorted({trial.load for trial in trials})
    upper = next((load for load in loads if is_bound(goal, _at(trials, load), upper=True)), None)
    lower = None
    for load in loads:
        if upper is not None and load >= upper:
            break
        if is_bound(goal, _at(trials, load), upper=False):
            lower = load
    return Checked(lower, upper, _throughput(goal, trials, lower))


def _throughput(goal: SearchGoal, trials: Sequence[TrialResult], lower: float | None) -> float | None:
    """The conditional throughput at a lower bound; None: there is no bound."""
    if lower is None:
        return None
    return lower * (1.0 - _quantile(goal, _at(trials, lower)))


def _goal_faults(
    claimed: GoalResult, trials: Sequence[TrialResult], min_load: float, max_load: float, any_failed: bool
) -> Iterator[str]:
    goal = claimed.goal
    shown = checked(goal, trials)
    lower = shown.relevant_lower_bound
    upper = shown.relevant_upper_bound
    at_max = lower is not None and lower >= max_load

    if claimed.relevant_lower_bound != lower:
        yield f"the relevant lower bound is {lower!r}, not {claimed.relevant_lower_bound!r}"
    if claimed.relevant_upper_bound != (lower if at_max else upper):
        yield f"the relevant upper bound is {upper!r}, not {claimed.relevant_upper_bound!r}"

    ours = shown.conditional_throughput
    theirs = claimed.conditional_throughput
    if ours != theirs and (ours is None or theirs is None or not math.isclose(ours, theirs, rel_tol=ROUNDING)):
        yield f"the conditional throughput is {ours!r}, not {theirs!r}"

    narrow = lower is not None and upper is not None and upper - lower <= goal.width * upper * (1.0 + ROUNDING)
    if claimed.regular != narrow:
        truth = "irregular" if claimed.regular else "regular"
        yield f"with bounds {lower!r} and {upper!r} the result is {truth}"
    if not claimed.regular and not narrow:
        yield from _reason_faults(claimed.reason, at_max, upper is not None and upper <= min_load, any_failed)
        if claimed.reason is IrregularReason.STALLED and not _has_stalled(goal, trials):
            yield "the trials count for long enough to classify each load, so the search should not have given up"


def _reason_faults(reason: IrregularReason | None, at_max: bool, at_min: bool, any_failed: bool) -> Iterator[str]:
    if (reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND) != at_max:
        yield f"the maximum load is {_not(at_max)}a lower bound, but the reason is {reason!s}"
    if (reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND) != at_min:
        yield f"the minimum load is {_not(at_min)}an upper bound, but the reason is {reason!s}"
    if reason is IrregularReason.OTHER_GOAL_FAILED and not any_failed:
        yield "no goal failed at the minimum load, so the search should not have ended"
    if reason is None:
        yield "an irregular result has no reason"


def _not(is_true: bool) -> str:
    """The word that makes a statement true."""
    return "" if is_true else "not "


def _has_stalled(goal: SearchGoal, trials: Sequence[TrialResult]) -> bool:
    """Whether trials of some duration and longer hardly count at a load that is still undecided."""
    for load in {trial.load for trial in trials}:
        here = _at(trials, load)
        if any(is_bound(goal, here, upper=upper) for upper in (True, False)):
            continue
        for shortest in {trial.duration for trial in here}:
            longer = [trial for trial in here if trial.duration >= shortest]
            if sum(trial.effective_duration for trial in longer) < TOO_SHORT * sum(trial.duration for trial in longer):
                return True
    return False


def _at(trials: Iterable[TrialResult], load: float) -> list[TrialResult]:
    return [trial for trial in trials if trial.load == load]


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def _written(ratio: float) -> Fraction:
    """A ratio as it is written in decimals."""
    return Fraction(str(float(ratio)))


def is_bound(goal: SearchGoal, trials: Iterable[TrialResult], *, upper: bool) -> bool:
    """Whether trials at one load make it an upper bound, or a lower bound (RFC 9971, load classification)."""
    seconds = DurationSums(goal)
    for trial in trials:
        seconds.add(trial)
    return seconds.is_bound(upper=upper)


class DurationSums:
    """Effective durations at one load, by trial duration and loss, and the load's classification (RFC 9971)."""

    def __init__(self, goal: SearchGoal) -> None:
        self._goal = goal
        self._exceed_ratio = _written(goal.exceed_ratio)
        self._sums = {(full, low): 0 for full in (True, False) for low in (True, False)}

    def add(self, trial: TrialResult) -> None:
        """Counts a trial; an early verdict at or below the goal's loss ratio is no answer to the goal's question."""
        if trial.is_early and not trial.loss_ratio > self._goal.loss_ratio:
            return
        kind = trial.duration >= self._goal.final_trial_duration, trial.loss_ratio <= self._goal.loss_ratio
        self._sums[kind] += _nanoseconds(trial.effective_duration)

    def is_bound(self, *, upper: bool) -> bool:
        """Whether the load is an upper bound, or a lower bound."""
        sums = self._sums
        exceed_ratio = self._exceed_ratio
        balancing = sums[False, True] * exceed_ratio / (1 - exceed_ratio)
        high = sums[True, False] + max(Fraction(0), sums[False, False] - balancing)
        whole = max(sums[True, True] + high, Fraction(_nanoseconds(self._goal.duration_sum)))
        optimistic = high / whole <= exceed_ratio
        pessimistic = (whole - sums[True, True]) / whole <= exceed_ratio
        if upper:
            return not (optimistic or pessimistic)
        return optimistic and pessimistic


def _quantile(goal: SearchGoal, trials: Iterable[TrialResult]) -> float:
    """The quantile of the loss ratio over the duration sum (RFC 9971, conditional throughput)."""
    answers = [
        trial
        for trial in trials
        if trial.duration >= goal.final_trial_duration and (trial.loss_ratio > goal.loss_ratio or not trial.is_early)
    ]
    # Of a trial that ended early it is not known how much it would have lost: the worst is assumed.
    full = sorted((1.0 if trial.is_early else trial.loss_ratio, trial.effective_duration) for trial in answers)
    measured = sum(_nanoseconds(effective) for _, effective in full)
    remaining = max(_nanoseconds(goal.duration_sum), measured) * (1 - _written(goal.exceed_ratio))
    for loss_ratio, effective in full:
        remaining -= _nanoseconds(effective)
        if remaining <= 0:
            return loss_ratio
    return 1.0
