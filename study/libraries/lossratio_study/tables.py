"""A study's rows as text."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lossratio_study.algorithms import OURS, PEER
from lossratio_study.figures import Figure, bias, by_goal_set, geometric_mean, searches, spread, time
from lossratio_study.nights import CHANGES
from lossratio_study.promises import Kept
from lossratio_study.search import GoalSet
from lossratio_study.systems import System

GROUPS = ("quiet", "jittery", "mix")
ALL_FAMILIES = "geometric mean"


def group_table(rows: Any, groups: Mapping[str, str]) -> str:
    """Mean search time and certificate in seconds, for each group of families; rows of one overhead."""
    one = searches(rows)
    one = one.assign(group=one.family.map(groups))
    names = list(by_goal_set(one))
    lines = []
    for algorithm in one.algorithm.unique():
        means = one[one.algorithm == algorithm].groupby(["goal_set", "group"])[["elapsed", "certificate"]].mean()
        for label, column in ((algorithm, "elapsed"), ("  certificate for the same", "certificate")):
            lines.append([label, *(_by_group(means[column], name) for name in names)])
    return text_table(["", *names], lines)


def figure_table(figures: Iterable[Figure]) -> str:
    """A table of figures, their demands and verdicts."""
    lines = []
    for figure in figures:
        measured = [_number(figure.value, 3), _number(figure.error, 3)]
        demanded = [f"{figure.must:g}", f"{figure.aim:g}"]
        lines.append([figure.name, figure.goals, *measured, *demanded, figure.verdict])
    return text_table(["", "goals", "value", "+-", "must", "aim", "verdict"], lines)


def family_tables(rows: Any) -> Iterator[tuple[str, str]]:
    """For each family: time divided by the peer's, and both biases and spreads; titles and tables of one overhead."""
    by_name = by_goal_set(rows)
    ratios = [time(chosen, OURS) / time(chosen, PEER) for chosen in by_name.values()]
    yield "Search time divided by the peer's", _family_table(rows, map(_cell, ratios))
    for title, figure in (
        ("Bias of the lower bound against the truth, %: ours | peer's", bias),
        ("Spread of the lower bound over searches on one SUT, %: ours | peer's", spread),
    ):
        cells = (_cell(figure(chosen, OURS), figure(chosen, PEER)) for chosen in by_name.values())
        yield title, _family_table(rows, cells)


def hint_family_tables(rows: Any) -> Iterator[tuple[str, str]]:
    """For each change and family: search time with hints, and certificate, both divided by the time without hints.

    Titles and tables of one overhead; the last line is the geometric mean over families.
    """
    for change in CHANGES.values():
        of_change = rows[rows.algorithm.isin([change.with_hints, change.without_hints])]
        if not len(of_change):
            continue
        columns = []
        for chosen in by_goal_set(of_change).values():
            without = time(chosen, change.without_hints)
            times = (time(chosen, change.with_hints), time(chosen, change.without_hints, "certificate"))
            shares = [seconds / without for seconds in times]
            for share in shares:
                share[ALL_FAMILIES] = geometric_mean(share)
            columns.append(_cell(*shares))
        title = f"Divided by the search time without hints, {change.name}: time with hints | certificate without"
        yield title, _family_table(of_change, columns, ALL_FAMILIES)


def _family_table(rows: Any, cells: Iterable[Callable[[str], str]], *more: str) -> str:
    """A line for each family, and more lines; a column of cells for each goal set."""
    columns = list(cells)
    lines = []
    for name in (*rows.family.unique(), *more):
        lines.append([name, *(cell(name) for cell in columns)])
    return text_table(["", *by_goal_set(rows)], lines)


def algorithm_table(rows: Any) -> str:
    """The cost of each algorithm, and the quality of its results; rows of one overhead."""
    lines = []
    for name, of_goals in by_goal_set(rows).items():
        for algorithm in of_goals.algorithm.unique():
            chosen = of_goals[of_goals.algorithm == algorithm]
            one = searches(chosen)
            costs = [*_distribution(one.elapsed), *_distribution(one.trials), _number(one.certificate.mean(), 0)]
            errors = [figure(chosen, algorithm).mean() for figure in (bias, spread)]
            irregular = 100.0 * (1.0 - chosen.regular.mean())
            faults = int((one.faults != "").sum())
            per_decision = 1000.0 * one.controller_seconds.sum() / max(1, one.trials.sum())
            quality = [*(_number(error, 3) for error in errors), f"{irregular:.1f}", str(faults)]
            lines.append([f"{name} {algorithm}", *costs, *quality, f"{per_decision:.2f}"])

    times = ["seconds", "median", "95 %", "trials", "median", "95 %", "certificate"]
    return text_table(["", *times, "bias %", "spread %", "irregular %", "faults", "ms/decision"], lines)


def bounds_table(rows: Any) -> str:
    """For each SUT, goal and algorithm: the time of a search, and between which loads the lower bound was."""
    groups = rows.groupby(["family", "goal_set", "goal", "algorithm"], sort=False)
    lines = []
    for (family, goal_set, goal, algorithm), chosen in groups:
        costs = [_number(numbers.mean(), 0) for numbers in (chosen.elapsed, chosen.trials)]
        lower = [_number(chosen.lower.agg(name), 0) for name in ("min", "median", "max")]
        regular = f"{int(chosen.regular.sum())} of {len(chosen)}"
        lines.append([f"{family}: {goal_set}, {goal}, {algorithm}", *costs, *lower, regular])
    return text_table(["", "seconds", "trials", "least lower bound", "median", "largest", "regular"], lines)


def promise_table(kept: Iterable[Kept]) -> str:
    """How often sequential goals have a wrong bound, beside their promises."""
    lines = []
    for promise in kept:
        searches = [str(promise.goal), str(promise.searches)]
        errors = [f"{promise.goal.error:g}", _number(promise.error, 4)]
        counts = [str(number) for number in (promise.wrong_lower, promise.wrong_upper, promise.irregular)]
        lines.append([*searches, *errors, *counts, _number(promise.trials, 0)])

    header = ["lossy trials allowed", "SUTs", "promised", "wrong", "lower", "upper", "irregular", "trials"]
    return text_table(header, lines)


def system_table(systems: Iterable[System], goal_sets: Sequence[GoalSet]) -> str:
    """The systems by name, with the goal sets that each can search for, and the document that describes it."""
    rows = []
    for system in systems:
        goals = [goal_set.name for goal_set in goal_sets if system.algorithm.applies(goal_set.goals)]
        rows.append((system.name, " ".join(goals), system.source))
    longest_name, longest_goals, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(f"{name:{longest_name}}  {goals:{longest_goals}}  {source}" for name, goals, source in rows)


def text_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in columns: the first is aligned to the left, the others to the right."""
    table = [list(header), *(list(line) for line in lines)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = []
    for line in table:
        others = map(str.rjust, line[1:], widths[1:])
        rows.append("  ".join([line[0].ljust(widths[0]), *others]))
    return "\n".join(rows)


def _by_group(means: Any, name: str) -> str:
    """The numbers of a goal set, one for each group."""
    return " / ".join(_number(means.get((name, group), math.nan), 0) for group in GROUPS)


def _cell(*by_family: Any) -> Callable[[str], str]:
    """Numbers of one family, side by side."""

    def cell(family: str) -> str:
        return " | ".join(_number(series.get(family, math.nan)) for series in by_family)

    return cell


def _number(value: float, digits: int = 2) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _distribution(values: Any) -> list[str]:
    return [f"{values.mean():.1f}", f"{values.median():.0f}", f"{values.quantile(0.95):.0f}"]
