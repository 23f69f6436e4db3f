"""The rule for the next load in a phase of MLRsearch of 2021 (draft-ietf-bmwg-mlrsearch-01, non-initial phases, 2.)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from lossratio.arena.baselines.measured_bounds import MeasuredBounds
from lossratio.arena.baselines.widths import clamped, is_wide, log_distance, multiplied, step_down, step_up


class Exit(Enum):
    """Where the search goes on when there is nothing more to measure."""

    ITERATION = "the next target loss ratio"
    PHASE = "the next phase"


@dataclass(frozen=True)
class Choice:
    """A load to measure, in frames per second, and why."""

    load: float
    purpose: str


@dataclass(frozen=True)
class PhaseRule:
    """What a phase decides by.

    Attributes:
        width_goal: The phase's logarithmic width goal.
        expansion_coefficient: By how much external search multiplies interval widths.
        min_load: Smallest load, frames per second.
        max_load: Largest load, frames per second.
    """

    width_goal: float
    expansion_coefficient: float
    min_load: float
    max_load: float

    def choose(self, current: MeasuredBounds, previous: MeasuredBounds) -> Choice | Exit:
        """The next load for one target loss ratio.

        Args:
            current: The bounds among trials of the phase's duration.
            previous: The bounds among trials of the phase before.
        """
        lower = _if_better_lower(previous.lower, current)
        upper = _if_better_upper(previous.upper, current)
        if lower is not None and upper is not None:
            middle = self._bisect(lower, upper)
            if middle is not None:
                return Choice(middle, "initial bisect")
        if lower is not None:
            return Choice(lower, "re-measures the lower bound")
        if upper is not None:
            return Choice(upper, "re-measures the upper bound")
        if current.lower is None:
            return self._extend_down(current, previous)
        if current.upper is None:
            return self._extend_up(current, previous)
        return self._narrow(current.lower, current.upper, current, previous)

    def _narrow(self, lower: float, upper: float, current: MeasuredBounds, previous: MeasuredBounds) -> Choice | Exit:
        middle = self._bisect(lower, upper)
        if middle is None:
            return Exit.ITERATION
        below = self._extend_down(current, previous)
        if isinstance(below, Choice) and below.load > middle:
            return below
        return Choice(middle, "bisect")

    def _bisect(self, lower: float, upper: float) -> float | None:
        """A load that splits the interval in even multiples of the width goal; None if it is narrow enough."""
        width = log_distance(lower, upper)
        if not is_wide(width, self.width_goal):
            return None
        multiple = width / self.width_goal
        if multiple <= 2.0:
            return step_up(lower, width / 2.0)
        return step_up(lower, multiplied(self.width_goal, float(math.ceil(multiple / 2.0))))

    def _extend_down(self, current: MeasuredBounds, previous: MeasuredBounds) -> Choice | Exit:
        upper = current.upper
        if upper is None or upper <= self.min_load:
            return Exit.PHASE
        others = [load for load in (current.second_upper, previous.upper) if load is not None and load > upper]
        width = self._expanded([log_distance(upper, other) for other in others])
        return Choice(clamped(step_down(upper, width), self.min_load, self.max_load), "external search down")

    def _extend_up(self, current: MeasuredBounds, previous: MeasuredBounds) -> Choice | Exit:
        lower = current.lower
        if lower is None or lower >= self.max_load:
            return Exit.ITERATION
        others = [load for load in (current.second_lower, previous.lower) if load is not None and load < lower]
        width = self._expanded([log_distance(other, lower) for other in others])
        return Choice(clamped(step_up(lower, width), self.min_load, self.max_load), "external search up")

    def _expanded(self, widths: list[float]) -> float:
        """The narrowest of the widths that there are, but at least the goal, multiplied."""
        narrowest = max(self.width_goal, min(widths, default=self.width_goal))
        return multiplied(narrowest, self.expansion_coefficient)


def _if_better_lower(load: float | None, current: MeasuredBounds) -> float | None:
    """The previous lower bound, if it is tighter than the current one and compatible with the current upper one."""
    if load is None or (current.upper is not None and load >= current.upper):
        return None
    return load if current.lower is None or load > current.lower else None


def _if_better_upper(load: float | None, current: MeasuredBounds) -> float | None:
    if load is None or (current.lower is not None and load <= current.lower):
        return None
    return load if current.upper is None or load < current.upper else None
