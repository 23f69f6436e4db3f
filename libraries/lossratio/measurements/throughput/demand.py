"""Demands on a result: what makes a test fail because the device is too slow."""

from __future__ import annotations

from lossratio.errors import SearchError
from lossratio.measurements.throughput.goal_reports import goal_named
from lossratio.results import GoalReport, Result, ThroughputResult, format_frames_per_second, format_regularity


def require_throughput(result: Result, least: float, goal: str | None = None) -> None:
    """Checks that the conditional throughput is at least a given one.

    Args:
        result: What was measured.
        least: Frames per second, per interface.
        goal: Name of the goal in any case; None: the first one.

    Raises:
        AssertionError: If it is less, or there is none.
        SearchError: If the result is not that of a search, or has no such goal.
    """
    report = _goal(result, goal)
    found = None if report.result is None else report.result.conditional_throughput
    if found is None:
        raise AssertionError(
            f"{report.goal.name} has no conditional throughput ({format_regularity(report)}); "
            f"it should be at least {format_frames_per_second(least)} per interface."
        )
    if found.per_interface_fps < least:
        raise AssertionError(
            f"{report.goal.name} is {format_frames_per_second(found.per_interface_fps)} per interface "
            f"({format_regularity(report)}); it should be at least {format_frames_per_second(least)}."
        )


def _goal(result: Result, name: str | None) -> GoalReport:
    if not isinstance(result, ThroughputResult):
        raise SearchError(
            f"The result of {result.test.name} is of kind {result.kind!r} and has no conditional throughput. "
            f"Search for one first, e.g. with 'Find NDR And PDR'."
        )
    return result.goals[0] if name is None else goal_named(result, name)
