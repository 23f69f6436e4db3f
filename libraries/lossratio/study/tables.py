"""A study's rows as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lossratio.study.algorithms import OURS, PEER
from lossratio.study.demands import figures
from lossratio.study.figures import at_overhead, bias, by_goal_set, searches, spread, time_ratio_error, time_ratios

GROUPS = ("quiet", "jittery", "mix")


def study_tables(rows: Any, groups: Mapping[str, str]) -> Iterator[str]:
    """All tables, each with its title.

    Args:
        rows: Rows of a study.
        groups: Group of each family.
    """
    free = at_overhead(rows, 0.0, False)
    peer_took_part = bool((rows.algorithm == PEER).any())
    if len(free):
        yield "Mean seconds of a search: quiet / jittery / mix; overhead 0\n" + _group_means(free, groups)
    if peer_took_part:
        yield "Figures of lossratio\n" + _figures(rows)
        if len(free):
            yield f"Time / {PEER}'s, by family; overhead 0\n" + _families(free)
    for (overhead, counted), chosen in rows.groupby(["overhead", "counted"]):
        title = f"Overhead {overhead:g} s{', counted' if counted else ''}: seconds and trials of a search"
        yield f"{title} (mean, median, 95th percentile)\n" + _algorithms(chosen)


def _group_means(rows: Any, groups: Mapping[str, str]) -> str:
    names = list(by_goal_set(rows))
    one = searches(rows)
    one = one.assign(group=one.family.map(groups))
    lines = []
    for algorithm in one.algorithm.unique():
        chosen = one[one.algorithm == algorithm]
        for label, column in ((algorithm, "elapsed"), ("  certificate for the same", "certificate")):
            means = chosen.groupby(["goal_set", "group"])[column].mean()
            lines.append(
                [label, *(" / ".join(_number(means.get((name, group))) for group in GROUPS) for name in names)]
            )
    return text_table(["", *names], lines)


def _figures(rows: Any) -> str:
    lines = [
        [
            figure.name,
            figure.goal_set,
            f"{figure.value:.{figure.digits}f}",
            f"{figure.must:g}",
            f"{figure.aim:g}",
            figure.verdict,
        ]
        for figure in figures(rows)
    ]
    return text_table(["", "goals", "value", "must", "aim", "verdict"], lines)


def _families(rows: Any) -> str:
    by_name = {name: time_ratios(chosen, OURS, PEER) for name, chosen in by_goal_set(rows).items()}
    lines = [
        [family, *(f"{ratios.get(family, math.nan):.2f}" for ratios in by_name.values())]
        for family in rows.family.unique()
    ]
    errors = [time_ratio_error(chosen, OURS, PEER) for chosen in by_goal_set(rows).values()]
    lines.append(["standard error of the mean", *(f"{error:.3f}" for error in errors)])
    return text_table(["", *by_name], lines)


def _algorithms(rows: Any) -> str:
    lines = []
    for name, of_goals in by_goal_set(rows).items():
        for algorithm in of_goals.algorithm.unique():
            chosen = of_goals[of_goals.algorithm == algorithm]
            one = searches(chosen)
            lines.append(
                [
                    name,
                    algorithm,
                    *_distribution(one.elapsed),
                    *_distribution(one.trials),
                    f"{one.certificate.mean():.0f}",
                    f"{100 * bias(chosen, algorithm):+.3f}",
                    f"{100 * spread(chosen, algorithm):.3f}",
                    f"{100 * (1 - chosen.regular.mean()):.1f}",
                    str(int((one.faults != "").sum())),
                    f"{1000 * one.controller_seconds.sum() / one.trials.sum():.2f}",
                ]
            )
    header = ["goals", "algorithm", "s", "median", "95 %", "trials", "median", "95 %", "certificate s", "bias %"]
    return text_table([*header, "spread %", "irregular %", "faults", "ms/decision"], lines)


def _distribution(values: Any) -> list[str]:
    return [f"{values.mean():.1f}", f"{values.median():.0f}", f"{values.quantile(0.95):.0f}"]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def text_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in columns: the first one or two of text to the left, numbers to the right."""
    table = [list(header), *(list(line) for line in lines)]
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    )
