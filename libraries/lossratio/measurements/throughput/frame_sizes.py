"""Throughput over frame size: the reporting format of RFC 2544, section 26.1, as rows and as a graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lossratio.drawing import Axis, Mark, Plot, drawing, in_unit, legend, series_colour, text_at, unit_of
from lossratio.measurements.throughput.result import ThroughputResult
from lossratio.records import Rate
from lossratio.units import L1_OVERHEAD, format_frame_rate

_SIZE = re.compile(r"(\d+B|IMIX\w*)", re.IGNORECASE)
_WIDTH, _HEIGHT = 900.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 880.0, 30.0, 262.0
_THEORY = "#333333"
_STEPS = 80


@dataclass(frozen=True)
class FrameSizeRow:
    """The throughput at one frame size.

    Attributes:
        frame_size: (Average) frame size in bytes, with the frame check sequence.
        is_mix: Whether it is the average of several sizes.
        throughput: Conditional throughput; None: there is none.
        is_regular: Whether the goal result is regular.
        theoretical_maximum: The largest frame rate of the links; None: not known.
    """

    frame_size: float
    is_mix: bool
    throughput: Rate | None
    is_regular: bool
    theoretical_maximum: Rate | None


@dataclass(frozen=True)
class FrameSizeSeries:
    """Results of tests that differ only in their frame size.

    Attributes:
        name: The tests' name, with ``*`` in place of the frame size.
        goal: Name of the goal.
        protocol: The protocols of the frames.
        testbed: Name of the testbed.
        rows: The frame sizes, from the smallest.
    """

    name: str
    goal: str
    protocol: str
    testbed: str
    rows: tuple[FrameSizeRow, ...]


def frame_size_series(results: Iterable[ThroughputResult]) -> list[FrameSizeSeries]:
    """The series with at least two frame sizes among some results, goal by goal.

    Tests belong together if their names are the same but for a part like ``64B`` or ``IMIX_v4_1``, and so are suite,
    testbed, protocols and goal.
    """
    groups: dict[tuple[str, str, str, str, str], list[FrameSizeRow]] = {}
    for result in results:
        traffic = result.conditions.traffic
        parts = result.test.name.split("-")
        name = "-".join("*" if _SIZE.fullmatch(part) else part for part in parts)
        for report in result.goals:
            outcome = report.result
            row = FrameSizeRow(
                frame_size=traffic.average_frame_size_bytes,
                is_mix=len(traffic.frame_sizes) > 1,
                throughput=None if outcome is None else outcome.conditional_throughput,
                is_regular=outcome is not None and outcome.regular,
                theoretical_maximum=result.max_load.theoretical_maximum,
            )
            testbed = result.conditions.testbed.name
            key = (result.test.suite, name, report.goal.name, traffic.frame_format, testbed)
            groups.setdefault(key, []).append(row)
    return [
        FrameSizeSeries(name, goal, protocol, testbed, tuple(sorted(rows, key=lambda row: row.frame_size)))
        for (_, name, goal, protocol, testbed), rows in groups.items()
        if len({row.frame_size for row in rows}) > 1
    ]


def draw_frame_sizes(series: Sequence[FrameSizeSeries]) -> str:
    """Draws rate over frame size for the goals of the same tests, with the theoretical maximum.

    Args:
        series: Series of the same tests, one for each goal.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is.
    """
    rows = [row for goal_series in series for row in goal_series.rows]
    sizes = [row.frame_size for row in rows]
    known = [rate.per_interface_fps for row in rows for rate in (row.throughput, row.theoretical_maximum) if rate]
    highest = max(known, default=1.0)
    room = 0.04 * (max(sizes) - min(sizes))
    plot = Plot(
        Axis(min(sizes) - room, max(sizes) + room, _LEFT, _RIGHT),
        Axis(0.0, 1.08 * highest, _BOTTOM, _TOP),
    )
    prefix, scale = unit_of(highest)
    plot.frame(plot.x.ticks(8), plot.y.ticks(6), in_unit(1.0), in_unit(scale))
    plot.parts.append(text_at(4.0, 14.0, f"rate per interface, {prefix}fps"))
    label = "frame size, bytes (a mix is at its average)"
    plot.parts.append(text_at((_LEFT + _RIGHT) / 2, _BOTTOM + 36.0, label, text_anchor="middle"))
    limits = {row.frame_size: row.theoretical_maximum.per_interface_fps for row in rows if row.theoretical_maximum}
    swatches = []
    if limits:
        plot.line(_limit_line(limits), _THEORY, width=1.2, dash="6 3")
        swatches.append(("theoretical maximum of the links", _THEORY, 1.0))
    for index, goal_series in enumerate(series):
        points = [(row.frame_size, row.throughput.per_interface_fps) for row in goal_series.rows if row.throughput]
        if points:
            plot.line(points, series_colour(index))
        mark = Mark(goal_series.goal, goal_series.goal, "circle", series_colour(index))
        plot.marks(
            mark, [(size, rate, f"{goal_series.goal}, {size:g} B: {format_frame_rate(rate)}") for size, rate in points]
        )
        swatches.append((goal_series.goal, series_colour(index), 1.0))
    parts = [*plot.parts, *legend((), swatches, _LEFT, _HEIGHT - 10.0)]
    return drawing(_WIDTH, _HEIGHT, f"Rate over frame size, {series[0].name}.", parts)


def _limit_line(limits: Mapping[float, float]) -> list[tuple[float, float]]:
    """The links' largest frame rate over frame size: a hyperbola if all links have the same speed."""
    speeds = [rate * (size + L1_OVERHEAD) for size, rate in limits.items()]
    if max(speeds) > 1.001 * min(speeds):
        return sorted(limits.items())
    low, high = min(limits), max(limits)
    sizes = [low + (high - low) * step / _STEPS for step in range(_STEPS + 1)]
    return [(size, speeds[0] / (size + L1_OVERHEAD)) for size in sizes]


def by_tests(series: Iterable[FrameSizeSeries]) -> list[list[FrameSizeSeries]]:
    """Series of the same tests together, each list with one series for each goal."""
    groups: dict[tuple[str, str, str], list[FrameSizeSeries]] = {}
    for goal_series in series:
        groups.setdefault((goal_series.name, goal_series.protocol, goal_series.testbed), []).append(goal_series)
    return list(groups.values())
