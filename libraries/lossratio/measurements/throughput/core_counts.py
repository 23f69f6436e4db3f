"""Throughput over cores: what each further core adds to the throughput of the fewest cores, as rows and as a graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lossratio.drawing import Axis, Mark, Plot, drawing, in_unit, legend, series_colour, text_at, unit_of
from lossratio.measurements.throughput.result import ThroughputResult
from lossratio.records import Rate
from lossratio.units import format_frame_rate

_CORES = re.compile(r"(\d+)c", re.IGNORECASE)
_WIDTH, _HEIGHT = 900.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 880.0, 30.0, 262.0
_EVEN = "#333333"


@dataclass(frozen=True)
class CoreRow:
    """The throughput with a number of cores.

    Attributes:
        cores: Number of cores.
        throughput: Conditional throughput; None: there is none.
        is_regular: Whether the goal result is regular.
        efficiency: Throughput per core over that of the fewest cores; None: one of both is not known or not regular.
    """

    cores: int
    throughput: Rate | None
    is_regular: bool
    efficiency: float | None


@dataclass(frozen=True)
class CoreSeries:
    """Results of tests that differ only in the number of cores of the DUT.

    Attributes:
        name: The tests' name, with ``*`` in place of the number of cores.
        goal: Name of the goal.
        testbed: Name of the testbed.
        rows: The numbers of cores, from the smallest.
    """

    name: str
    goal: str
    testbed: str
    rows: tuple[CoreRow, ...]

    @property
    def fewest(self) -> CoreRow:
        """The row that efficiencies refer to."""
        return self.rows[0]


def core_series(results: Iterable[ThroughputResult]) -> list[CoreSeries]:
    """The series with at least two numbers of cores among some results, goal by goal.

    Tests belong together if their names are the same but for a part like ``2c``, and so are suite, testbed and goal.
    A number of cores that was measured several times has its newest result.
    """
    groups: dict[tuple[str, str, str, str], dict[int, tuple[Rate | None, bool]]] = {}
    for result in results:
        parts = result.test.name.split("-")
        found = [match for part in parts if (match := _CORES.fullmatch(part))]
        if len(found) != 1 or int(found[0][1]) < 1:
            continue
        name = "-".join("*" if _CORES.fullmatch(part) else part for part in parts)
        for report in result.goals:
            outcome = report.result
            key = (result.test.suite, name, report.goal.name, result.conditions.testbed.name)
            throughput = None if outcome is None else outcome.conditional_throughput
            groups.setdefault(key, {})[int(found[0][1])] = (throughput, outcome is not None and outcome.regular)
    return [
        CoreSeries(name, goal, testbed, tuple(_rows(measured)))
        for (_, name, goal, testbed), measured in groups.items()
        if len(measured) > 1
    ]


def _rows(measured: dict[int, tuple[Rate | None, bool]]) -> Iterable[CoreRow]:
    fewest = min(measured)
    rate, regular = measured[fewest]
    per_core = rate.aggregate_fps / fewest if rate is not None and regular else None
    for cores, (throughput, is_regular) in sorted(measured.items()):
        known = per_core and throughput is not None and is_regular
        efficiency = throughput.aggregate_fps / cores / per_core if known and throughput and per_core else None
        yield CoreRow(cores, throughput, is_regular, efficiency)


def by_core_tests(series: Iterable[CoreSeries]) -> list[list[CoreSeries]]:
    """Series of the same tests together, each list with one series for each goal."""
    groups: dict[tuple[str, str], list[CoreSeries]] = {}
    for goal_series in series:
        groups.setdefault((goal_series.name, goal_series.testbed), []).append(goal_series)
    return list(groups.values())


def draw_cores(series: Sequence[CoreSeries]) -> str:
    """Draws throughput over cores for the goals of the same tests; a dashed line has that of the fewest cores for each.

    Args:
        series: Series of the same tests, one for each goal.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is.
    """
    rows = [row for goal_series in series for row in goal_series.rows]
    most = max(row.cores for row in rows)
    highest = max((row.throughput.per_interface_fps for row in rows if row.throughput), default=1.0) or 1.0
    plot = Plot(Axis(0.0, 1.05 * most, _LEFT, _RIGHT), Axis(0.0, 1.15 * highest, _BOTTOM, _TOP))
    prefix, scale = unit_of(highest)
    plot.frame(sorted({float(row.cores) for row in rows}), plot.y.ticks(6), in_unit(1.0), in_unit(scale))
    plot.parts.append(text_at(4.0, 14.0, f"rate per interface, {prefix}fps"))
    plot.parts.append(text_at((_LEFT + _RIGHT) / 2, _BOTTOM + 36.0, "cores", text_anchor="middle"))
    swatches = []
    for index, goal_series in enumerate(series):
        colour = series_colour(index)
        first = goal_series.fewest
        if first.throughput is not None and first.is_regular:
            per_core = first.throughput.per_interface_fps / first.cores
            end = min(1.05 * most, 1.15 * highest / per_core) if per_core else 1.05 * most
            plot.line([(0.0, 0.0), (end, per_core * end)], _EVEN, width=1.0, dash="6 3")
        points = [(row.cores, row.throughput.per_interface_fps) for row in goal_series.rows if row.throughput]
        if points:
            plot.line(points, colour)
        mark = Mark(goal_series.goal, goal_series.goal, "circle", colour)
        hints = [(x, y, f"{goal_series.goal}, {x} cores: {format_frame_rate(y)}") for x, y in points]
        plot.marks(mark, hints)
        swatches.append((goal_series.goal, colour, 1.0))
    swatches.append(("throughput per core of the fewest cores", _EVEN, 1.0))
    parts = [*plot.parts, *legend((), swatches, _LEFT, _HEIGHT - 10.0)]
    return drawing(_WIDTH, _HEIGHT, f"Rate over cores, {series[0].name}.", parts)
