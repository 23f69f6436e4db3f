"""What our controller is to reach beside the peer: figures, each with what it must be and what is hoped for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lossratio.arena.algorithms import OURS, PEER
from lossratio.arena.figures import (
    at_overhead,
    bias,
    by_goal_set,
    geometric_mean,
    searches,
    spread,
    standard_error,
    time,
)

TIME: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"G1": (0.95, 0.90), "G2": (0.77, 0.70), "G3": (0.86, 0.80), "G4": (0.84, 0.80), "G5": (0.95, 0.88)}
)
"""Must and aim of search time divided by the peer's, for the goal sets that there are demands for."""

BIAS: Mapping[str, float] = MappingProxyType({"G1": 0.1, "G2": 0.5, "G3": 0.5, "G4": 0.1, "G5": 0.1})
"""Percent of the load."""


@dataclass(frozen=True)
class Figure:
    """A number, and what it is to be.

    Attributes:
        name: What it is.
        goals: For which goal set; ``all`` for all together.
        value: The number; not a number where nothing was measured.
        error: Its standard error; not a number where it is not known.
        must: The largest value that is accepted.
        aim: The largest value that is hoped for.
    """

    name: str
    goals: str
    value: float
    error: float
    must: float
    aim: float

    @property
    def verdict(self) -> str:
        """``pass``, ``aim missed``, ``FAIL``, or ``-`` where nothing was measured."""
        if math.isnan(self.value):
            return "-"
        if self.value > self.must:
            return "FAIL"
        return "pass" if self.value <= self.aim else "aim missed"


def mean_time_ratio(rows: Any) -> float:
    """Geometric mean over families of search time divided by the peer's."""
    return geometric_mean(time(rows, OURS) / time(rows, PEER))


def worst_time_ratio(rows: Any) -> float:
    """Search time divided by the peer's on the worst family."""
    return float((time(rows, OURS) / time(rows, PEER)).max())


def bias_beside_peer(rows: Any) -> float:
    """Distance between the mean lower bounds of both, in percent of the truth (mean over families that have one)."""
    return abs(float((bias(rows, OURS) - bias(rows, PEER)).mean()))


def spread_ratio(rows: Any) -> float:
    """Spread of the lower bound, mean over families, divided by the peer's; not a number where the peer has none."""
    theirs = float(spread(rows, PEER).mean())
    return float(spread(rows, OURS).mean()) / theirs if theirs else math.nan


def mean_spread_ratio(rows: Any) -> float:
    """Geometric mean over goal sets of `spread_ratio`."""
    ratios = [spread_ratio(chosen) for chosen in by_goal_set(rows).values()]
    return geometric_mean([ratio for ratio in ratios if ratio > 0])


def figures(rows: Any, growth: float) -> Iterator[Figure]:
    """All figures that the rows of a study give.

    Args:
        rows: All rows; those of goal sets without demands are left alone.
        growth: Time per decision in a long search, as a multiple of that in a short one.
    """
    rows = rows[rows.goal_set.isin(list(TIME))]
    free = at_overhead(rows, 0.0, counted=False)
    yield from _each("time / peer's", mean_time_ratio, free, TIME)
    yield from _each("time / peer's, worst family", worst_time_ratio, free, dict.fromkeys(TIME, (1.10, 1.02)))
    for counted in (False, True):
        name = f"time / peer's, overhead 0.5 s {'' if counted else 'not '}counted"
        loaded = at_overhead(rows, 0.5, counted=counted)
        yield from _each(name, mean_time_ratio, loaded, dict.fromkeys(TIME, (1.0, 1.0)))
    yield from _each(
        "bias beside peer's, %", bias_beside_peer, free, {name: (most, most) for name, most in BIAS.items()}
    )
    yield from _each("spread / peer's", spread_ratio, free, dict.fromkeys(TIME, (1.3, 1.0)))
    over_all = mean_spread_ratio(free)
    yield Figure("spread / peer's", "all", over_all, standard_error(mean_spread_ratio, free), 1.0, 1.0)
    ours = searches(rows[rows.algorithm == OURS])
    milliseconds = 1000.0 * float(ours.controller_seconds.sum() / ours.trials.sum())
    yield Figure("results with faults", "all", float((ours.faults != "").sum()), math.nan, 0.0, 0.0)
    yield Figure("ms per decision", "all", milliseconds, math.nan, 1.0, 1.0)
    yield Figure("time per decision, 1,000 trials / 100", "all", growth, math.nan, 2.0, 1.5)


def _each(
    name: str, figure: Callable[[Any], float], rows: Any, limits: Mapping[str, tuple[float, float]]
) -> Iterator[Figure]:
    for goals, chosen in by_goal_set(rows).items():
        must, aim = limits[goals]
        yield Figure(name, goals, figure(chosen), standard_error(figure, chosen), must, aim)
