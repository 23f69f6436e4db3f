"""How far the results of the same search, made several times, are apart."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from pydantic import Field

from lossratio.records import Rate, Record
from lossratio.units import format_ratio

_LABEL_WIDTH = 22


class GoalSpread(Record):
    """The conditional throughputs that repeated searches found for one goal."""

    goal: str
    """Name of the goal."""
    values_fps: tuple[float | None, ...] = Field(min_length=2)
    """Conditional throughput per interface of each search, in their order; null: it found none."""
    regular: int = Field(ge=0)
    """How many of the searches had a regular result."""

    @property
    def found(self) -> tuple[float, ...]:
        """The values that there are, in frames per second per interface."""
        return tuple(value for value in self.values_fps if value is not None)

    @property
    def mean(self) -> float | None:
        """Mean of the values, in frames per second per interface; None: there are none."""
        return statistics.fmean(self.found) if self.found else None

    @property
    def stdev(self) -> float | None:
        """Sample standard deviation of the values; None: there are fewer than two."""
        return statistics.stdev(self.found) if len(self.found) > 1 else None

    @property
    def relative_range(self) -> float | None:
        """Difference of the largest and the smallest value, over the mean; None: there are none."""
        return (max(self.found) - min(self.found)) / self.mean if self.mean else None


def goal_spread(goal: str, values: Sequence[Rate | None], regular: int) -> GoalSpread:
    """The spread of one goal's conditional throughputs.

    Args:
        goal: Name of the goal.
        values: What each search found.
        regular: How many of the searches had a regular result.
    """
    return GoalSpread(
        goal=goal,
        values_fps=tuple(None if value is None else value.per_interface_fps for value in values),
        regular=regular,
    )


def spread_lines(spread: Sequence[GoalSpread]) -> Iterator[str]:
    """The spread in words: some lines for each goal."""
    for each in spread:
        searches = len(each.values_fps)
        yield f"spread of {each.goal} over {searches} searches, {each.regular} of them regular"
        if each.mean is not None:
            yield f"  {'mean':<{_LABEL_WIDTH}}  {each.mean:>12,.0f} fps per interface"
        if each.stdev is not None and each.mean:
            share = format_ratio(each.stdev / each.mean)
            yield f"  {'standard deviation':<{_LABEL_WIDTH}}  {each.stdev:>12,.1f} fps per interface, {share}"
        if each.relative_range is not None:
            yield f"  {'largest to smallest':<{_LABEL_WIDTH}}  {format_ratio(each.relative_range)} of the mean"
        values = " ".join("none" if value is None else f"{value:,.0f}" for value in each.values_fps)
        yield f"  {'values':<{_LABEL_WIDTH}}  {values} fps per interface"
