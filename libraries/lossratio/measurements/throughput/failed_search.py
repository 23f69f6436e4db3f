"""After a search: a longer trial, and what the error says about the losses if no load met a goal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING

from lossratio.errors import LossRatioError, TesterError
from lossratio.measurements import Request
from lossratio.measurements.throughput.doubts import loss_at_any_load
from lossratio.measurements.throughput.extra_trials import LongerTrial, measure_longer
from lossratio.measurements.throughput.limits import is_generators_limit
from lossratio.measurements.throughput.result import (
    GoalReport,
    GoalsResult,
    ThroughputResult,
    format_regularity,
)
from lossratio.mlrsearch import IrregularReason, SearchGoal
from lossratio.results import LossPattern
from lossratio.values import FRAMES_PER_SECOND, as_sentence

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

_PART_OF_LOAD = 0.1
"""A smaller load from which to search, as a share of the smallest load of the search."""
_EXPLAINED = 0.9
"""Minimum share of the lost frames that have a pattern in common if this pattern explains the result."""


def longer_after(
    result: ThroughputResult, testbed: Testbed, request: Request, goals: Sequence[SearchGoal]
) -> LongerTrial | None:
    """Makes a longer trial at the lowest bound if losses begin within the trials: a bucket or a buffer hides them.

    Args:
        result: The result of the search.
        testbed: The testbed.
        request: The request of the search.
        goals: Its goals.

    Returns:
        The trial; None: there was no reason for it, or it failed.
    """
    places = result.loss_places
    begin_inside = places is not None and any(one.kind == "end" for one in places.patterns)
    bounds = [
        (report.bounds[0].per_interface_fps, goal)
        for report, goal in zip(result.goals, goals, strict=True)
        if report.bounds[0] is not None
    ]

    if begin_inside and bounds:
        load, goal = min(bounds, key=itemgetter(0))
        # The search has its result. The next measurement will report the present problem.
        with suppress(LossRatioError):
            return measure_longer(testbed, request, goal, load)
    return None


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
    if all(report.reason == IrregularReason.TIMEOUT.value for report in missing):
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
        # Nothing but the SUT kept the smallest load from meeting the goal.
        of_sut = IrregularReason.MIN_LOAD_IS_UPPER_BOUND.value
        if not about_losses and any(report.reason == of_sut for report in missing):
            about_losses = _of_smaller_loads(result)
    raise AssertionError(
        f"No load was found that meets the goal: {goals}. The smallest load of the search was "
        f"{result.written(least)}. {about_losses}If a search may end without such a load, "
        "set must_find=False."
    )


def _about_losses(result: GoalsResult) -> str:
    """What lost frames have in common, or how the loss depends on the load; empty: nothing is known."""
    found = _explanations(result)
    words = "".join(f"{pattern.sentence}. " for pattern in found[:1])
    if any(pattern.kind != "direction" for pattern in found):
        return words
    for doubt in loss_at_any_load(result):
        return f"{words}{as_sentence(doubt)}. "
    if result.evidence and all(trial.is_all_lost for trial in result.evidence):
        words += (
            "Every frame was lost at all loads. Check the path of the frames through the device. "
        )
    return words


def _of_smaller_loads(result: GoalsResult) -> str:
    """What came back of the smallest load, and how to search below it."""
    trials = result.evidence_at(result.min_load)
    forwarded = median(trial.forwarding_rate_per_interface_fps for trial in trials)
    unit = "fps" if result.unit is FRAMES_PER_SECOND else "cps"
    least = f"{float(f'{_PART_OF_LOAD * result.min_load.per_interface_fps:.3g}'):.12g} {unit}"
    return (
        f"Of this load, {result.written(forwarded)} came back. Search from a smaller load, e.g. min_load={least} (for "
        f'the whole run --variable "MIN_LOAD:{least}"), or look for what loses frames at any load. '
    )


def _explanations(result: GoalsResult) -> list[LossPattern]:
    """What most of the lost frames have in common."""
    places = result.loss_places
    patterns = () if places is None else places.patterns
    return [pattern for pattern in patterns if pattern.explained_ratio >= _EXPLAINED]


def refuse_generators_limit(reports: Iterable[GoalReport]) -> None:
    """Makes sure that no goal's result was limited by the generator, or by its maximum load.

    Raises:
        TesterError: If a goal's result was limited so: nothing is known about the SUT.
    """
    limited = [report for report in reports if is_generators_limit(report.reason)]
    if limited:
        goals = "; ".join(f"{report.goal.name}, {format_regularity(report)}" for report in limited)
        raise TesterError(
            f"This says nothing about the device because the generator did not send the requested load: {goals}. "
            "Request a load that it can send. If it receives PAUSE "
            "frames, switch flow control off (ethtool --pause). Start a new run: a resumed run keeps these trials."
        )
