"""The rule for the next load in a phase of MLRsearch of 2019 (draft-vpolak-mkonstan-bmwg-mlrsearch-02)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lossratio.arena.baselines.interval import Interval
from lossratio.arena.baselines.phases import Phase
from lossratio.arena.baselines.widths import clamped, is_wide, step_down, step_up

EXTERNAL_WIDTHS = 2.0
"""External search moves a bound by this many widths of its interval."""


@dataclass(frozen=True)
class Choice:
    """A load to measure, in frames per second, and why."""

    load: float
    purpose: str


def choose(intervals: Mapping[str, Interval], phase: Phase, min_load: float) -> Choice | None:
    """The next load; None to leave the phase.

    Invalid bounds come first, then intervals that are too wide, then bounds of shorter trials. An interval whose lower
    bound is invalid at the minimum load is not refined, until that is measured again.

    Args:
        intervals: NDR's and PDR's interval, in this order.
        phase: The present phase.
        min_load: Smallest load, frames per second.
    """
    refined = {
        name: interval
        for name, interval in intervals.items()
        if interval.is_lower_valid or interval.lower.load > min_load
    }
    for name, interval in refined.items():
        if not interval.is_lower_valid:
            load = clamped(
                step_down(interval.lower.load, _external_width(interval, phase)), min_load, interval.max_load
            )
            return Choice(load, f"external search down for {name}")
    for name, interval in refined.items():
        if not interval.is_upper_valid:
            load = clamped(step_up(interval.upper.load, _external_width(interval, phase)), min_load, interval.max_load)
            return Choice(load, f"external search up for {name}")
    for name, interval in refined.items():
        if is_wide(interval.width, phase.width_goal):
            return Choice(step_up(interval.lower.load, interval.width / 2.0), f"internal search for {name}")
    for name, interval in intervals.items():
        if interval.lower.duration < phase.duration:
            return Choice(interval.lower.load, f"re-measures the lower bound for {name}")
    for name, interval in intervals.items():
        if interval.upper.duration < phase.duration:
            return Choice(interval.upper.load, f"re-measures the upper bound for {name}")
    return None


def _external_width(interval: Interval, phase: Phase) -> float:
    """Two widths of the interval, or more where the new interval would be narrower than the phase's goal."""
    return max(EXTERNAL_WIDTHS * interval.width, phase.width_goal)
