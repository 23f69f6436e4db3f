"""What our controller is to reach: its figures beside the peer's, each with what it must be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from lossratio.study.algorithms import OURS, PEER
from lossratio.study.figures import (
    Figure,
    at_overhead,
    bias,
    by_goal_set,
    geometric_mean,
    searches,
    spread,
    time_ratios,
)

TIME_MUST: Mapping[str, float] = MappingProxyType({"G1": 0.95, "G2": 0.77, "G3": 0.86, "G4": 0.84, "G5": 0.95})
TIME_AIM: Mapping[str, float] = MappingProxyType({"G1": 0.90, "G2": 0.70, "G3": 0.80, "G4": 0.80, "G5": 0.88})
BIAS_MUST: Mapping[str, float] = MappingProxyType({"G1": 0.1, "G2": 0.5, "G3": 0.5, "G4": 0.1, "G5": 0.1})
"""Percent of the load."""

WORST_FAMILY_MUST, WORST_FAMILY_AIM = 1.10, 1.02
SPREAD_MUST, SPREAD_MUST_OVER_ALL = 1.3, 1.0
LARGE_OVERHEAD = 0.5
"""Seconds."""


def figures(rows: Any) -> Iterator[Figure]:
    """All figures that the rows give."""
    free = by_goal_set(at_overhead(rows, 0.0, False))
    for name, chosen in free.items():
        ratios = time_ratios(chosen, OURS, PEER)
        yield Figure("time / peer's, geometric mean", name, geometric_mean(ratios), TIME_MUST[name], TIME_AIM[name])
    for name, chosen in free.items():
        ratios = time_ratios(chosen, OURS, PEER)
        worst = f"time / peer's, worst family ({ratios.idxmax()})" if len(ratios) else "time / peer's, worst family"
        yield Figure(worst, name, float(ratios.max()), WORST_FAMILY_MUST, WORST_FAMILY_AIM)
    for counted in (False, True):
        loaded = by_goal_set(at_overhead(rows, LARGE_OVERHEAD, counted))
        for name, chosen in loaded.items():
            told = f"time / peer's, 0.5 s overhead {'counted' if counted else 'not counted'}"
            yield Figure(told, name, geometric_mean(time_ratios(chosen, OURS, PEER)), 1.0, 1.0)
    for name, chosen in free.items():
        off = abs(bias(chosen, OURS) - bias(chosen, PEER)) * 100.0
        yield Figure("lower bound's bias off peer's, %", name, off, BIAS_MUST[name], BIAS_MUST[name])
    spreads = {name: _ratio(spread(chosen, OURS), spread(chosen, PEER)) for name, chosen in free.items()}
    for name, value in spreads.items():
        yield Figure("spread / peer's", name, value, SPREAD_MUST, SPREAD_MUST_OVER_ALL)
    over_all = geometric_mean(list(spreads.values()))
    yield Figure("spread / peer's, geometric mean", "all", over_all, SPREAD_MUST_OVER_ALL, SPREAD_MUST_OVER_ALL)
    ours = searches(rows[rows.algorithm == OURS])
    yield Figure("results with faults", "all", float((ours.faults != "").sum()), 0.0, 0.0, digits=0)
    decision = 1000.0 * float(ours.controller_seconds.sum() / ours.trials.sum())
    yield Figure("controller time per decision, ms", "all", decision, 1.0, 1.0)


def _ratio(ours: float, peers: float) -> float:
    return ours / peers if peers else math.nan
