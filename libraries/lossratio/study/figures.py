"""The figures that a search algorithm is judged by, computed from a study's rows.

Data frames have the columns of `lossratio.study.search.Row`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

SEARCH = ["goal_set", "overhead", "counted", "algorithm", "family", "seed", "repeat"]
"""Columns that name one search."""


@dataclass(frozen=True)
class Figure:
    """A number, and what it is to be.

    Attributes:
        name: What it is.
        goal_set: For which goal set; ``all`` for all together.
        value: The number; not a number where nothing was measured.
        must: The largest value that is accepted.
        aim: The largest value that is hoped for.
        digits: Decimals to show.
    """

    name: str
    goal_set: str
    value: float
    must: float
    aim: float
    digits: int = 3

    @property
    def verdict(self) -> str:
        """``pass``, ``pass, aim missed``, ``FAIL``, or ``-`` where nothing was measured."""
        if math.isnan(self.value):
            return "-"
        if self.value > self.must:
            return "FAIL"
        return "pass" if self.value <= self.aim else "pass, aim missed"


def searches(rows: Any) -> Any:
    """One row for each search, whatever the number of its goals."""
    return rows[rows.goal_number == 0]


def family_means(rows: Any, algorithm: str, column: str = "elapsed") -> Any:
    """Mean of a column over the searches on each family, by family name."""
    chosen = searches(rows)
    return chosen[chosen.algorithm == algorithm].groupby("family", sort=False)[column].mean()


def time_ratios(rows: Any, ours: str, peer: str) -> Any:
    """Mean search time divided by the peer's, by family name."""
    return family_means(rows, ours) / family_means(rows, peer)


def geometric_mean(ratios: Any) -> float:
    """The geometric mean; not a number for nothing."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else math.nan


def time_ratio_error(rows: Any, ours: str, peer: str) -> float:
    """Standard error of the geometric mean of `time_ratios`, from leaving out one seed at a time (jackknife)."""
    seeds = sorted(rows.seed.unique())
    if len(seeds) < 2:
        return math.nan
    left = [geometric_mean(time_ratios(rows[rows.seed != seed], ours, peer)) for seed in seeds]
    return float(np.sqrt((len(seeds) - 1) * np.var(left)))


def bias(rows: Any, algorithm: str) -> float:
    """How far lower bounds are off the truth, relatively: mean over families of the mean over searches and goals."""
    known = rows[(rows.algorithm == algorithm) & rows.truth.notna() & rows.lower.notna()]
    return float((known.lower / known.truth - 1.0).groupby(known.family).mean().mean())


def spread(rows: Any, algorithm: str) -> float:
    """Relative standard deviation of the lower bound over searches on one SUT: mean over all SUTs and goals."""
    known = rows[(rows.algorithm == algorithm) & rows.lower.notna()]
    by_sut = known.groupby(["family", "seed", "goal"]).lower
    return float((by_sut.std() / by_sut.mean()).mean())


def at_overhead(rows: Any, seconds: float, counted: bool) -> Any:
    """Rows of one overhead."""
    return rows[(rows.overhead == seconds) & (rows.counted == counted)]


def by_goal_set(rows: Any) -> Mapping[str, Any]:
    """Rows by the name of their goal set."""
    return {str(name): chosen for name, chosen in rows.groupby("goal_set")}
