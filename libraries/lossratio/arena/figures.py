"""Figures of a study: numbers computed from its rows.

Data frames have the columns of `lossratio.arena.search.Row`; series have a value for each family, by its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def searches(rows: Any) -> Any:
    """One row for each search, also for a search with several goals."""
    return rows[rows.goal_number == 0]


def at_overhead(rows: Any, seconds: float, *, counted: bool) -> Any:
    """Rows of one overhead."""
    return rows[(rows.overhead == seconds) & (rows.counted == counted)]


def by_goal_set(rows: Any) -> Mapping[str, Any]:
    """Rows by the name of their goal set."""
    return {str(name): chosen for name, chosen in rows.groupby("goal_set")}


def time(rows: Any, algorithm: str) -> Any:
    """Mean search time of an algorithm in seconds, for each family."""
    one = searches(rows)
    return one[one.algorithm == algorithm].groupby("family", sort=False).elapsed.mean()


def proof(rows: Any, algorithm: str) -> Any:
    """Mean certificate of an algorithm's results in seconds, for each family."""
    one = searches(rows)
    return one[one.algorithm == algorithm].groupby("family", sort=False).certificate.mean()


def bias(rows: Any, algorithm: str) -> Any:
    """Difference of lower bounds from the truth, in percent: mean over searches and goals, for each family.

    Families without a truth have no bias.
    """
    known = rows[(rows.algorithm == algorithm) & rows.truth.notna() & rows.lower.notna()]
    return 100.0 * (known.lower / known.truth - 1.0).groupby(known.family, sort=False).mean()


def spread(rows: Any, algorithm: str) -> Any:
    """Standard deviation of the lower bound over repeated searches on one SUT, in percent.

    Mean over SUTs and goals, for each family.
    """
    known = rows[(rows.algorithm == algorithm) & rows.lower.notna()]
    by_sut = known.groupby(["family", "seed", "goal"], sort=False).lower
    return 100.0 * (by_sut.std() / by_sut.mean()).groupby("family", sort=False).mean()


def geometric_mean(ratios: Any) -> float:
    """The geometric mean; NaN for no values."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else math.nan


def standard_error(figure: Callable[[Any], float], rows: Any) -> float:
    """Standard error of a figure, by leaving out one seed at a time (jackknife); NaN with one seed."""
    seeds = rows.seed.unique()
    if len(seeds) < 2:
        return math.nan
    left = [figure(rows[rows.seed != seed]) for seed in seeds]
    return float(np.sqrt((len(seeds) - 1) * np.var(left)))
