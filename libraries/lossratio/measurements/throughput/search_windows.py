"""Which loads a picture of a search shows: the whole search, and close-ups of the loads where goals were decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lossratio.mlrsearch import GoalBounds
from lossratio.results import ThroughputResult

_ROOM_IN_WIDTHS = 3.0
_LOGARITHMIC_FROM = 10.0


@dataclass(frozen=True)
class Window:
    """A range of loads, in frames per second per interface.

    Attributes:
        low: Smallest load.
        high: Largest load.
        goals: Which goals have their last bounds in the middle of it, by their place among the goals.
        is_logarithmic: Whether the range is so wide that it wants a logarithmic axis.
    """

    low: float
    high: float
    goals: tuple[int, ...]
    is_logarithmic: bool = False

    def holds(self, load: float) -> bool:
        """Whether a load is in the window."""
        return self.low <= load <= self.high

    def place(self, load: float) -> float:
        """Where a load is between low (0) and high (1), on a linear axis."""
        return (load - self.low) / (self.high - self.low)


def windows_of(result: ThroughputResult, history: Mapping[int, tuple[GoalBounds, ...]]) -> list[Window]:
    """The windows of a picture, from top to bottom.

    Goals whose close-ups would overlap share one. The whole search comes first, unless one close-up shows it anyway.
    A goal without any bounds belongs to the last window.
    """
    close_ups = _close_ups(result, history[max(history)] if history else ())
    loads = [trial.load_per_interface_fps for trial in result.trials]
    if len(close_ups) == 1 and all(close_ups[0].holds(load) for load in loads):
        return close_ups
    loads = loads or [result.min_load.per_interface_fps, result.max_load.rate.per_interface_fps]
    goals = () if close_ups else tuple(range(len(result.goals)))
    low, high = min(loads), max(loads)
    if high > _LOGARITHMIC_FROM * low:
        return [Window(low / 1.3, high * 1.3, goals, is_logarithmic=True), *close_ups]
    room = 0.12 * (high - low) or 0.1 * high
    return [Window(low - room, high + room, goals), *close_ups]


def _close_ups(result: ThroughputResult, last: tuple[GoalBounds, ...]) -> list[Window]:
    close_ups: list[Window] = []
    unbounded = []
    for index, bounds in enumerate(last):
        edges = [load for load in (bounds.leaning.lower, bounds.leaning.upper) if load is not None]
        if not edges:
            unbounded.append(index)
            continue
        room = _ROOM_IN_WIDTHS * result.goals[index].goal.width_ratio * max(edges)
        merged = Window(max(0.0, min(edges) - room), max(edges) + room, (index,))
        for other in [each for each in close_ups if each.low <= merged.high and merged.low <= each.high]:
            close_ups.remove(other)
            merged = Window(min(other.low, merged.low), max(other.high, merged.high), (*other.goals, *merged.goals))
        close_ups.append(merged)
    close_ups.sort(key=lambda window: window.low, reverse=True)
    if close_ups and unbounded:
        lowest = close_ups.pop()
        close_ups.append(Window(lowest.low, lowest.high, (*lowest.goals, *unbounded)))
    return close_ups
