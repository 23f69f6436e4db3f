"""After a search: one more trial, and what the error says about the losses if no load met a goal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import attrgetter, itemgetter
from statistics import median
from typing import TYPE_CHECKING, Any

from lossratio.errors import LossRatioError, TesterError
from lossratio.measurements import Request
from lossratio.measurements.throughput.doubts import loss_at_any_load
from lossratio.measurements.throughput.extra_trials import (
    measure_longer,
    measure_smaller_load,
    trial_below,
)
from lossratio.measurements.throughput.later_trials import LEAST_LOST
from lossratio.measurements.throughput.limits import is_generators_limit
from lossratio.measurements.throughput.result import (
    GoalReport,
    GoalsResult,
    ThroughputResult,
    format_regularity,
)
from lossratio.mlrsearch import IrregularReason, SearchGoal
from lossratio.results import LossPattern
from lossratio.trials import TrialInput, sut_loss_ratio
from lossratio.units import as_sentence

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

_EXPLAINED = 0.9
"""Minimum share of the lost frames that have a pattern in common if this pattern explains the result."""


def tried_after(
    result: ThroughputResult, testbed: Testbed, request: Request, goals: Sequence[SearchGoal]
) -> dict[str, Any]:
    """Makes one more trial after a search: at a smaller load if no load met a goal, or a longer one.

    Args:
        result: The result of the search.
        testbed: The testbed.
        request: The request of the search.
        goals: Its goals.

    Returns:
        Fields of the result; none if nothing was tried.
    """
    goal = _easiest_without_load(result, goals)
    least = result.min_load.per_interface_fps
    # The search has its result. The next measurement will report the present problem.
    with suppress(LossRatioError):
        if goal is None:
            return _longer_after(result, testbed, request, goals)
        if _may_pass_less(result, trial_below(goal, least)):
            return {"smaller_load": measure_smaller_load(testbed, request, goal, least)}
    return {}


def _longer_after(
    result: ThroughputResult, testbed: Testbed, request: Request, goals: Sequence[SearchGoal]
) -> dict[str, Any]:
    """One longer trial at the lowest bound, if losses begin within the trials: a bucket or a buffer hides them."""
    places = result.loss_places
    begin_inside = places is not None and any(one.kind == "end" for one in places.patterns)
    bounds = [
        (report.bounds[0].per_interface_fps, goal)
        for report, goal in zip(result.goals, goals, strict=True)
        if report.bounds[0] is not None
    ]
    if not begin_inside or not bounds:
        return {}
    load, goal = min(bounds, key=itemgetter(0))
    return {"longer_trial": measure_longer(testbed, request, goal, load)}


def _easiest_without_load(
    result: ThroughputResult, goals: Sequence[SearchGoal]
) -> SearchGoal | None:
    """The goal with the largest loss ratio among the goals that no load met; None: there is none."""
    failed = {
        report.goal.name
        for report in result.goals
        if report.result is not None
        and report.result.reason == IrregularReason.MIN_LOAD_IS_UPPER_BOUND.value
    }
    return max(
        (goal for goal in goals if str(goal) in failed), key=attrgetter("loss_ratio"), default=None
    )


def _may_pass_less(result: ThroughputResult, trial: TrialInput) -> bool:
    """Whether a trial below the smallest load of the search can show that it is the load that makes it lose frames.

    Args:
        result: The result of the search.
        trial: That trial: enough of its frames must be lost if it loses the same share.
    """
    is_explained = any(pattern.kind != "direction" for pattern in _explanations(result))
    if is_explained or any(loss_at_any_load(result)) or _lost_everything(result):
        return False
    losses = [sut_loss_ratio(trial.as_result()) for trial in result.evidence_at(result.min_load)]
    return median(losses or [0.0]) * trial.load * trial.duration >= LEAST_LOST


def _lost_everything(result: GoalsResult) -> bool:
    """Whether the SUT lost every frame at all loads."""
    return all(
        trial.sent_frames and trial.missing.lost_by_sut == trial.sent_frames
        for trial in result.evidence
    )


def require_lower_bounds(result: GoalsResult) -> None:
    """Checks that the search found a relevant lower bound for every goal.

    Raises:
        AssertionError: If a goal has none; the message says how to proceed.
        TesterError: If a goal has none because of the generator's limit, so that nothing is known about the SUT.
    """
    missing = [
        report
        for report in result.goals
        if report.bounds[0] is None and not (report.is_left_to_a_coin or report.is_as_before)
    ]
    if not missing:
        return

    refuse_generators_limit(missing)
    goals = "; ".join(f"{report.goal.name}, {format_regularity(report)}" for report in missing)
    if all(_ran_out_of_time(report) for report in missing):
        # The trials show nothing about smaller loads: the search did not reach them.
        raise AssertionError(
            f"No load was found that meets the goal: {goals}. Give the search more time, e.g. timeout=1 h, choose "
            "shorter trials, or shorten a rest or ramp before them. If a search may end without such a load, set "
            "must_find=False."
        )
    least = result.min_load.per_interface_fps
    about_losses = ""
    if any(report.bounds[1] == result.min_load for report in missing):
        about_losses = _about_losses(result)
    raise AssertionError(
        f"No load was found that meets the goal: {goals}. The smallest load of the search was "
        f"{result.written(least)}. {about_losses}If a search may end without such a load, "
        "set must_find=False."
    )


def _ran_out_of_time(report: GoalReport) -> bool:
    return report.result is not None and report.result.reason == IrregularReason.TIMEOUT.value


def _about_losses(result: GoalsResult) -> str:
    """What lost frames have in common. If nothing explains them, whether a smaller load would help."""
    found = _explanations(result)
    words = "".join(f"{pattern.sentence}. " for pattern in found[:1])
    if any(pattern.kind != "direction" for pattern in found):
        return words
    return words + _about_smaller_loads(result)


def _explanations(result: GoalsResult) -> list[LossPattern]:
    """What most of the lost frames have in common."""
    places = result.loss_places
    patterns = () if places is None else places.patterns
    return [pattern for pattern in patterns if pattern.explained_ratio >= _EXPLAINED]


def _about_smaller_loads(result: GoalsResult) -> str:
    """What is known about smaller loads, from a trial or from how the loss changes with load; empty: nothing."""
    if result.smaller_load is not None:
        return f"{as_sentence(result.smaller_load.sentence)}. "
    for doubt in loss_at_any_load(result):
        return f"{as_sentence(doubt)}. "

    if result.evidence and _lost_everything(result):
        return (
            "Every frame was lost at all loads. Check the path of the frames through the device. "
        )
    return ""


def refuse_generators_limit(reports: Iterable[GoalReport]) -> None:
    """Makes sure that no goal's result was limited by the generator, or by its maximum load.

    Raises:
        TesterError: If a goal's result was limited so: nothing is known about the SUT.
    """
    limited = [
        report
        for report in reports
        if report.result is not None and is_generators_limit(report.result.reason)
    ]
    if limited:
        goals = "; ".join(f"{report.goal.name}, {format_regularity(report)}" for report in limited)
        raise TesterError(
            f"This says nothing about the device because the generator did not send the requested load: {goals}. "
            "Request a load that it can send. If it receives PAUSE "
            "frames, switch flow control off (ethtool --pause). Begin a new run: a resumed run keeps these trials."
        )
