"""Figures of a study: numbers computed from its rows, and the demands on our controller.

There are demands on figures in comparison with the peer, on figures with hints, and on figures of long searches. Data
frames have the columns of `lossratio_study.search.Row`; series have a value for each family, by its name.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from lossratio.mlrsearch import NDR, PDR, MLRsearch
from lossratio.simulation import SharpKnee
from lossratio_study.algorithms import EARLY, OURS, PEER, SEQUENTIAL
from lossratio_study.nights import CHANGES, Change
from lossratio_study.outcome import Outcome, searched
from lossratio_study.suts import Overhead, Subject

TIME = {"G1": (1.0, 0.95), "G2": (0.75, 0.7), "G3": (0.8, 0.75), "G4": (0.83, 0.8), "G5": (1.0, 0.95)}
"""The demands (must and aim) on search time divided by the peer's, by goal set. The searches are as users run them."""
EARLY_TIME = {"G1": (0.86, 0.8), "G2": (0.56, 0.45), "G3": (0.46, 0.38), "G4": (0.6, 0.5), "G5": (0.88, 0.82)}
"""The same demands with early verdicts. The peer's trials take their whole duration."""
SEQUENTIAL_TIME = {"G1": (1.0, 0.6), "G5": (1.0, 0.65)}
"""The same demands for sequential goals, compared with the peer's search for goals of RFC 9971."""
BIAS = {"G1": 0.1, "G2": 0.5, "G3": 0.5, "G4": 0.1, "G5": 0.1}
"""Percent of the load."""


def searches(rows: Any) -> Any:
    """One row for each search, even for a search with several goals."""
    return rows[rows.goal_number == 0]


def at_overhead(rows: Any, seconds: float, *, counted: bool) -> Any:
    """Rows of one overhead."""
    return rows[(rows.overhead == seconds) & (rows.counted == counted)]


def by_goal_set(rows: Any) -> Mapping[str, Any]:
    """Rows by the name of their goal set."""
    return {str(name): chosen for name, chosen in rows.groupby("goal_set")}


def time(rows: Any, algorithm: str, column: str = "elapsed") -> Any:
    """Mean search time of an algorithm in seconds, for each family; or mean certificate of its results."""
    one = searches(rows)
    return one[one.algorithm == algorithm].groupby("family", sort=False)[column].mean()


def bias(rows: Any, algorithm: str) -> Any:
    """Difference of lower bounds from the truth (if any) in percent: mean over searches and goals, for each family."""
    known = rows[(rows.algorithm == algorithm) & rows.truth.notna() & rows.lower.notna()]
    return 100.0 * (known.lower / known.truth - 1.0).groupby(known.family, sort=False).mean()


def spread(rows: Any, algorithm: str) -> Any:
    """Standard deviation of the lower bound of searches on one SUT, in percent: mean over SUTs and goals, by family."""
    known = rows[(rows.algorithm == algorithm) & rows.lower.notna()]
    by_sut = known.groupby(["family", "seed", "goal"], sort=False).lower
    return 100.0 * (by_sut.std() / by_sut.mean()).groupby("family", sort=False).mean()


def geometric_mean(ratios: Any) -> float:
    """The geometric mean; NaN for no values."""
    if not len(ratios):
        return math.nan
    return float(np.exp(np.mean(np.log(ratios))))


def standard_error(figure: Callable[[Any], float], rows: Any) -> float:
    """Standard error of a figure, by leaving out one seed at a time (jackknife); NaN with one seed."""
    seeds = rows.seed.unique()
    if len(seeds) < 2:
        return math.nan
    return float(np.sqrt((len(seeds) - 1) * np.var([figure(rows[rows.seed != seed]) for seed in seeds])))


@dataclass(frozen=True)
class Figure:
    """A number, and the demands on it."""

    name: str
    """Its name."""
    goals: str
    """The goal set; ``all`` for all goal sets together."""
    value: float
    """The number; NaN where nothing was measured."""
    error: float
    """Its standard error; NaN where it is unknown."""
    must: float
    """The largest accepted value."""
    aim: float
    """The largest value that we aim at."""

    @property
    def verdict(self) -> str:
        """``pass``, ``aim missed``, ``FAIL``, or ``-`` where nothing was measured, or nothing is demanded."""
        if math.isnan(self.value) or self.must == math.inf:
            return "-"
        if self.value > self.must:
            return "FAIL"
        return "pass" if self.value <= self.aim else "aim missed"


def mean_time_ratio(rows: Any, algorithm: str = OURS) -> float:
    """Geometric mean over families of search time divided by the peer's."""
    return geometric_mean(time(rows, algorithm) / time(rows, PEER))


def worst_time_ratio(rows: Any, algorithm: str = OURS) -> float:
    """Search time divided by the peer's on the worst family."""
    return float((time(rows, algorithm) / time(rows, PEER)).max())


def bias_beside_peer(rows: Any, algorithm: str = OURS) -> float:
    """Distance of the mean lower bound from the peer's, in percent of the truth: mean over families with a truth."""
    return abs(float((bias(rows, algorithm) - bias(rows, PEER)).mean()))


def spread_ratio(rows: Any) -> float:
    """Spread of the lower bound, mean over families, divided by the peer's; NaN where the peer has none."""
    theirs = float(spread(rows, PEER).mean())
    if not theirs:
        return math.nan
    return float(spread(rows, OURS).mean()) / theirs


def mean_spread_ratio(rows: Any) -> float:
    """Geometric mean over goal sets of `spread_ratio`."""
    ratios = [spread_ratio(chosen) for chosen in by_goal_set(rows).values()]
    return geometric_mean([ratio for ratio in ratios if ratio > 0])


def figures(rows: Any, growth: float) -> Iterator[Figure]:
    """All figures of a study; rows of goal sets without demands are left out.

    The growth is the time per decision in a long search, as a multiple of the time in a short search.
    """
    rows = rows[rows.goal_set.isin(list(TIME))]
    free = at_overhead(rows, 0.0, counted=False)

    yield from _by_goal_set("time / peer's", mean_time_ratio, free, TIME)
    if SEQUENTIAL in set(rows.algorithm.unique()):
        tests_time = partial(mean_time_ratio, algorithm=SEQUENTIAL)
        tested = free[free.goal_set.isin(list(SEQUENTIAL_TIME))]
        yield from _by_goal_set(f"{SEQUENTIAL}: time / peer's", tests_time, tested, SEQUENTIAL_TIME)
    yield from _by_goal_set("time / peer's, worst family", worst_time_ratio, free, dict.fromkeys(TIME, (1.10, 1.02)))
    for counted in (False, True):
        name = f"time / peer's, overhead 0.5 s {'' if counted else 'not '}counted"
        loaded = at_overhead(rows, 0.5, counted=counted)
        yield from _by_goal_set(name, mean_time_ratio, loaded, dict.fromkeys(TIME, (1.0, 1.0)))

    yield from _by_goal_set(
        "bias beside peer's, %", bias_beside_peer, free, {name: (most, most) for name, most in BIAS.items()}
    )
    yield from _by_goal_set("spread / peer's", spread_ratio, free, dict.fromkeys(TIME, (1.3, 1.0)))
    over_all = mean_spread_ratio(free)
    yield Figure("spread / peer's", "all", over_all, standard_error(mean_spread_ratio, free), 1.0, 1.0)

    if EARLY in set(rows.algorithm.unique()):
        worst = dict.fromkeys(EARLY_TIME, (1.10, 1.02))
        most = {name: (each, each) for name, each in BIAS.items()}
        for what, early, limits in (
            ("time / peer's", mean_time_ratio, EARLY_TIME),
            ("time / peer's, worst family", worst_time_ratio, worst),
            ("bias beside peer's, %", bias_beside_peer, most),
        ):
            yield from _by_goal_set(f"early verdicts: {what}", partial(early, algorithm=EARLY), free, limits)

    for other in sorted(set(free.algorithm.unique()) - {OURS, PEER, SEQUENTIAL, EARLY}):
        beside = free[free.goal_set.isin(free[free.algorithm == other].goal_set.unique())]
        no_demands = dict.fromkeys(beside.goal_set.unique(), (math.inf, math.inf))
        ratio = partial(mean_time_ratio, algorithm=other)
        yield from _by_goal_set(f"{other}: time / peer's", ratio, beside, no_demands)

    ours = searches(rows[rows.algorithm.isin([OURS, EARLY])])
    milliseconds = 1000.0 * float(ours.controller_seconds.sum() / ours.trials.sum())
    yield Figure("results with faults", "all", float((ours.faults != "").sum()), math.nan, 0.0, 0.0)
    yield Figure("ms per decision", "all", milliseconds, math.nan, 1.0, 1.0)
    yield Figure("time per decision, 1,000 trials / 100", "all", growth, math.nan, 2.0, 1.5)


def _by_goal_set(
    name: str, figure: Callable[[Any], float], rows: Any, limits: Mapping[str, tuple[float, float]]
) -> Iterator[Figure]:
    for goals, chosen in by_goal_set(rows).items():
        must, aim = limits[goals]
        yield Figure(name, goals, figure(chosen), standard_error(figure, chosen), must, aim)


HINTED_TIME_UNCHANGED: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"G1": (0.92, 0.89), "G2": (0.78, 0.74), "G3": (0.84, 0.80), "G4": (0.77, 0.73), "G5": (0.94, 0.91)}
)
"""The demands (must and aim) on search time divided by the time without hints, on an unchanged SUT."""

HINTED_TIME = {"up to 5 %": (1.02, 1.0), "20 %": (1.05, 1.0), "nonsense": (1.15, 1.1)}
"""The same demands after a change, for all goal sets alike."""
HINTED_BIAS = {"G1": 0.1, "G2": 0.25, "G3": 0.1, "G4": 0.1, "G5": 0.1}
"""Percent of the load."""
SEEN = 5.0
"""A change may be seen less often by this many percentage points."""
HALF_A_CHANGE = 0.005
"""A change of 1 % is seen if the lower bound moves by at least this share in the same direction."""


def hint_figures(rows: Any) -> Iterator[Figure]:
    """All figures of a study with hints, at overhead 0."""
    rows = rows[rows.goal_set.isin(list(HINTED_TIME_UNCHANGED))]
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

    def mean_ratio(chosen: Any) -> float:
        return geometric_mean(ratios(chosen))

    def worst_ratio(chosen: Any) -> float:
        return float(ratios(chosen).max())

    def off(chosen: Any) -> float:
        return abs(bias_by_hints(chosen, change))

    def figure(name: str, value: Callable[[Any], float], must: float, aim: float) -> Figure:
        return Figure(f"{name}, {change.name}", goals, value(rows), standard_error(value, rows), must, aim)

    limits = HINTED_TIME.get(change.name)
    if change.name == "unchanged":
        limits = HINTED_TIME_UNCHANGED[goals]
    if limits is not None:
        yield figure("time / without hints", mean_ratio, *limits)
        yield figure("time / without hints, worst family", worst_ratio, 1.3, 1.2)

    most = HINTED_BIAS[goals]
    yield figure("bias by hints, %", off, most, most)


def bias_by_hints(rows: Any, change: Change) -> float:
    """Relative difference of lower bounds with hints from those without hints, in percent: mean over families."""
    lowers = [
        rows[(rows.algorithm == name) & rows.lower.notna()].groupby(["family", "seed", "goal"], sort=False).lower.mean()
        for name in (change.with_hints, change.without_hints)
    ]
    off = 100.0 * (lowers[0] / lowers[1] - 1.0)
    return float(off.groupby("family", sort=False).mean().mean())


def seen(rows: Any, *, with_hints: bool) -> float:
    """Percentage of 1 % changes that move the lower bound by at least half a change in the right direction."""
    changes = (CHANGES["1 %"], CHANGES["unchanged"])
    names = [change.with_hints if with_hints else change.without_hints for change in changes]
    keys = ["family", "seed", "goal"]
    after, before = (
        rows[(rows.algorithm == name) & rows.lower.notna()][[*keys, "repeat", "lower", "truth"]] for name in names
    )
    pairs = after.merge(before, on=keys, suffixes=("", "_before")).dropna()
    if not len(pairs):
        return math.nan
    moved = (pairs.lower / pairs.lower_before - 1.0) * ((pairs.truth > pairs.truth_before) * 2 - 1)
    return 100.0 * float((moved >= HALF_A_CHANGE).groupby(pairs.family, sort=False).mean().mean())


SHORT_SUM = 61.0
"""A duration sum in seconds with which NDR and PDR take some 100 trials."""
LONG_SUM = 661.0
"""A duration sum in seconds with which NDR and PDR take some 1,000 trials."""


def decision_time_growth() -> float:
    """Measures the processor time per decision in a long search, as a multiple of the time in a short search."""
    # The first search also loads code. There is a short search before and after the long one, so that a busy machine
    # slows both down alike.
    _search(SHORT_SUM)
    before, long, after = map(_search, (SHORT_SUM, LONG_SUM, SHORT_SUM))
    short = (_decision_time(before) + _decision_time(after)) / 2.0
    return _decision_time(long) / short


def _search(duration_sum: float) -> Outcome:
    subject = Subject("sharp knee", 0, SharpKnee(4.321e6), 9001.0, 14_880_952.0)
    goals = [replace(goal, duration_sum=duration_sum) for goal in (NDR, PDR)]
    return searched(MLRsearch(goals, subject.min_load, subject.max_load), subject.measurer(Overhead(0.0)))


def _decision_time(outcome: Outcome) -> float:
    return outcome.controller_seconds / len(outcome.trials)
