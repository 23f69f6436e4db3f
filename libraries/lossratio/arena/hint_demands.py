"""What hints from earlier nights are to save, and what they must not spoil, as figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from lossratio.arena.demands import Figure
from lossratio.arena.figures import by_goal_set, geometric_mean, standard_error, time
from lossratio.arena.nights import CHANGES, Change

UNCHANGED: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"G1": (0.92, 0.89), "G2": (0.78, 0.74), "G3": (0.84, 0.80), "G4": (0.77, 0.73), "G5": (0.94, 0.91)}
)
"""Must and aim of search time divided by that without hints, on an unchanged SUT."""

TIME: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"up to 5 %": (1.02, 1.0), "20 %": (1.05, 1.0), "nonsense": (1.15, 1.1)}
)
"""The same after a change, for all goal sets alike."""

WORST_FAMILY = (1.3, 1.2)

BIAS: Mapping[str, float] = MappingProxyType({"G1": 0.1, "G2": 0.25, "G3": 0.1, "G4": 0.1, "G5": 0.1})
"""Percent of the load."""

SEEN = 5.0
"""Percentage points by which a change may be seen less often."""

HALF_A_CHANGE = 0.005
"""A change of 1 % is seen if the lower bound moves by at least so much with it, relatively."""


def hint_figures(rows: Any) -> Iterator[Figure]:
    """All figures that the rows of a study with hints give; overhead 0."""
    rows = rows[rows.goal_set.isin(list(UNCHANGED))]
    present = set(rows.algorithm.unique())
    for change in CHANGES.values():
        if not {change.with_hints, change.without_hints} <= present:
            continue
        for goals, chosen in by_goal_set(rows).items():
            yield from _of_change(change, goals, chosen)
    if {CHANGES["1 %"].with_hints, CHANGES["unchanged"].with_hints} <= present:
        for goals, chosen in by_goal_set(rows).items():
            lost = seen(chosen, with_hints=False) - seen(chosen, with_hints=True)
            yield Figure("change of 1 % seen less often, points", goals, lost, math.nan, SEEN, SEEN)


def _of_change(change: Change, goals: str, rows: Any) -> Iterator[Figure]:
    def ratios(chosen: Any) -> Any:
        return time(chosen, change.with_hints) / time(chosen, change.without_hints)

    def figure(name: str, value: Callable[[Any], float], must: float, aim: float) -> Figure:
        return Figure(f"{name}, {change.name}", goals, value(rows), standard_error(value, rows), must, aim)

    limits = UNCHANGED[goals] if change.name == "unchanged" else TIME.get(change.name)
    if limits is not None:
        yield figure("time / without hints", lambda chosen: geometric_mean(ratios(chosen)), *limits)
        yield figure("time / without hints, worst family", lambda chosen: float(ratios(chosen).max()), *WORST_FAMILY)
    yield figure("bias by hints, %", lambda chosen: abs(bias_by_hints(chosen, change)), BIAS[goals], BIAS[goals])


def bias_by_hints(rows: Any, change: Change) -> float:
    """How far lower bounds with hints are off those without, in percent of these: mean over families."""
    lowers = [
        rows[(rows.algorithm == name) & rows.lower.notna()].groupby(["family", "seed", "goal"], sort=False).lower.mean()
        for name in (change.with_hints, change.without_hints)
    ]
    off = 100.0 * (lowers[0] / lowers[1] - 1.0)
    return float(off.groupby("family", sort=False).mean().mean())


def seen(rows: Any, *, with_hints: bool) -> float:
    """How often, in percent, a change of 1 % moves the lower bound by half of it, the way the SUT went."""
    small, none = CHANGES["1 %"], CHANGES["unchanged"]
    names = [each.with_hints if with_hints else each.without_hints for each in (small, none)]
    keys = ["family", "seed", "goal"]
    after, before = (
        rows[(rows.algorithm == name) & rows.lower.notna()][[*keys, "repeat", "lower", "truth"]] for name in names
    )
    pairs = after.merge(before, on=keys, suffixes=("", "_before")).dropna()
    if not len(pairs):
        return math.nan
    went = (pairs.truth > pairs.truth_before) * 2 - 1
    moved = (pairs.lower / pairs.lower_before - 1.0) * went
    return 100.0 * float((moved >= HALF_A_CHANGE).groupby(pairs.family, sort=False).mean().mean())
