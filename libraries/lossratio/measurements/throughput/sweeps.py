"""Graphs of throughput over frame size (RFC 2544, section 26.1) or cores, from tests that differ in nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lossratio import drawing
from lossratio.measurements.throughput.result import GoalReport, GoalsResult
from lossratio.values import L1_OVERHEAD, Rate, format_frame_rate

_SIZE = re.compile(r"(\d+B|IMIX\w*)", re.IGNORECASE)
_CORES = re.compile(r"([1-9]\d*)c", re.IGNORECASE)
_REFERENCE = "#333333"
_STEPS = 80
_VALUE = 80.0
"""Room of a value, in pixels."""


@dataclass(frozen=True)
class SweepRow:
    """The throughput at one frame size, or with one number of cores."""

    at: float
    """(Average) frame size in bytes, with the frame check sequence; or number of cores."""
    throughput: Rate | None
    """Conditional throughput; None: there is none."""
    is_regular: bool
    """Whether the goal result is regular."""
    is_mix: bool
    """Whether the frame size is the average of several sizes."""
    theoretical_maximum: Rate | None
    """The largest frame rate of the links; None: not known."""


@dataclass(frozen=True)
class Sweep:
    """Results of tests that differ only in their frame size, or in the number of cores of the DUT."""

    name: str
    """The tests' name, with ``*`` in place of the part that differs."""
    goal: str
    """Name of the goal."""
    protocol: str
    """The protocols of the frames."""
    testbed: str
    """Name of the testbed."""
    rows: tuple[SweepRow, ...]
    """The rows, from the smallest frame or the fewest cores."""

    @property
    def per_core(self) -> float | None:
        """Throughput per core with the fewest cores, frames per second per interface; None: it is not regular."""
        first = self.rows[0]
        if first.throughput and first.is_regular:
            return first.throughput.per_interface_fps / first.at
        return None

    def efficiency(self, row: SweepRow) -> float | None:
        """Throughput per core, divided by its value with the fewest cores; None: either is not known or not regular."""
        if not (self.per_core and row.throughput and row.is_regular):
            return None
        return row.throughput.per_interface_fps / row.at / self.per_core


def size_sweeps(results: Iterable[GoalsResult]) -> list[list[Sweep]]:
    """Sweeps over frame size: tests whose names differ only in one part, such as ``64B`` or ``IMIX_v4_1``."""
    return _sweeps(results, _SIZE, _size_of)


def core_sweeps(results: Iterable[GoalsResult]) -> list[list[Sweep]]:
    """Sweeps over cores: tests whose names differ only in one part, such as ``2c``."""
    return _sweeps(results, _CORES, _cores_of)


def _size_of(result: GoalsResult, part: str) -> float:
    return result.conditions.traffic.average_frame_size_bytes


def _cores_of(result: GoalsResult, part: str) -> float:
    return float(part[:-1])


def _sweeps(
    results: Iterable[GoalsResult],
    pattern: re.Pattern[str],
    value: Callable[[GoalsResult, str], float],
) -> list[list[Sweep]]:
    """The sweeps with at least two values; sweeps of the same tests come together, one for each goal.

    Tests belong together if suite, testbed and protocols are also the same. If a value was measured several times, the
    newest result counts.
    """
    groups: dict[tuple[str, str, str, str], dict[str, dict[float, SweepRow]]] = {}
    for result in results:
        parts = result.test.name.split("-")
        found = [part for part in parts if pattern.fullmatch(part)]
        if len(found) != 1:
            continue
        name = "-".join("*" if part == found[0] else part for part in parts)
        traffic = result.conditions.traffic
        key = (result.test.suite, name, traffic.frame_format, result.conditions.testbed.name)
        for report in result.goals:
            row = _row(result, report, value(result, found[0]))
            groups.setdefault(key, {}).setdefault(report.goal.name, {})[row.at] = row
    sweeps = []
    for (_, name, protocol, testbed), goals in groups.items():
        several = {goal: rows for goal, rows in goals.items() if len(rows) > 1}
        of_group = []
        for goal, rows in several.items():
            in_order = tuple(rows[at] for at in sorted(rows))
            of_group.append(Sweep(name, goal, protocol, testbed, in_order))
        sweeps.append(of_group)

    return [of_tests for of_tests in sweeps if of_tests]


def _row(result: GoalsResult, report: GoalReport, at: float) -> SweepRow:
    """What one result adds to a sweep."""
    return SweepRow(
        at,
        throughput=report.throughput,
        is_regular=report.result is not None and report.result.regular,
        is_mix=len(result.conditions.traffic.frame_sizes) > 1,
        theoretical_maximum=result.max_load.theoretical_maximum,
    )


def sizes_of_run(results: Sequence[GoalsResult]) -> Sweep:
    """The sweep over the frame sizes of one run, from its results with one goal each.

    Args:
        results: The results, at least one, from the smallest frame size.
    """
    first = results[0]
    rows = [_row(one, one.goals[0], _size_of(one, "")) for one in results]
    format_of_frames = first.conditions.traffic.frame_format
    testbed = first.conditions.testbed.name
    return Sweep("RFC 2544", "throughput", format_of_frames, testbed, tuple(rows))


def draw_frame_sizes(sweeps: Sequence[Sweep]) -> str:
    """Draws rate over frame size for the goals of the same tests, with the theoretical maximum."""
    rows = [row for sweep in sweeps for row in sweep.rows]
    sizes = [row.at for row in rows]
    room = 0.04 * (max(sizes) - min(sizes))
    limits = {
        row.at: row.theoretical_maximum.per_interface_fps for row in rows if row.theoretical_maximum
    }
    highest = max((*_rates(sweeps), *limits.values()), default=1.0)
    right = drawing.right_end(drawing.LEFT, len(set(sizes)), _VALUE)
    x = drawing.Axis(min(sizes) - room, max(sizes) + room, drawing.LEFT, right)
    plot, about = _framed(x, x.ticks(8), highest, 1.08)

    if limits:
        speeds = [rate * (size + L1_OVERHEAD) for size, rate in limits.items()]
        line = sorted(limits.items())
        if max(speeds) <= 1.001 * min(speeds):
            # All links have the same speed, so the maximum is a hyperbola.
            low, high = min(limits), max(limits)
            points = [low + (high - low) * step / _STEPS for step in range(_STEPS + 1)]
            line = [(size, speeds[0] / (size + L1_OVERHEAD)) for size in points]
        plot.line(line, _REFERENCE, width=1.2, dash="6 3")

    swatches = [("theoretical maximum of the links", _REFERENCE, 1.0)] if limits else []
    _draw_goals(plot, sweeps, "B")
    titles = ("frame size, bytes (a mix is at its average)", about)
    described = f"Rate over frame size, {sweeps[0].name}."
    return plot.finished(titles, described, swatches=[*swatches, *_goals(sweeps)])


def draw_cores(sweeps: Sequence[Sweep]) -> str:
    """Draws rate over cores for the goals of the same tests; dashed lines continue the rate of the fewest cores."""
    cores = sorted({row.at for sweep in sweeps for row in sweep.rows})
    highest = max(_rates(sweeps), default=1.0) or 1.0
    x = drawing.Axis(
        0.0, 1.05 * cores[-1], drawing.LEFT, drawing.right_end(drawing.LEFT, len(cores), _VALUE)
    )
    plot, about = _framed(x, cores, highest, 1.15)
    for sweep in sweeps:
        if sweep.per_core is not None:
            if sweep.per_core:
                end = min(plot.x.high, plot.y.high / sweep.per_core)
            else:
                end = plot.x.high

            plot.line([(0.0, 0.0), (end, sweep.per_core * end)], _REFERENCE, width=1.0, dash="6 3")
    swatches = [*_goals(sweeps), ("throughput per core with the fewest cores", _REFERENCE, 1.0)]
    _draw_goals(plot, sweeps, "cores")
    described = f"Rate over cores, {sweeps[0].name}."
    return plot.finished(("cores", about), described, swatches=swatches)


def _rates(sweeps: Iterable[Sweep]) -> list[float]:
    return [
        row.throughput.per_interface_fps for sweep in sweeps for row in sweep.rows if row.throughput
    ]


def _framed(
    x: drawing.Axis, x_ticks: Sequence[float], highest: float, room: float
) -> tuple[drawing.Plot, str]:
    """A plot of rates, and the title of their axis."""
    plot = drawing.Plot(x, drawing.Axis(0.0, room * highest, drawing.BOTTOM, drawing.TOP))
    about, in_words = drawing.rates_axis("rate per interface", highest)
    plot.frame(x_ticks, plot.y.ticks(6), drawing.in_unit(1.0), in_words)
    return plot, about


def _goals(sweeps: Sequence[Sweep]) -> list[tuple[str, str, float]]:
    return [(sweep.goal, drawing.series_colour(index), 1.0) for index, sweep in enumerate(sweeps)]


def _draw_goals(plot: drawing.Plot, sweeps: Sequence[Sweep], unit: str) -> None:
    for index, sweep in enumerate(sweeps):
        colour = drawing.series_colour(index)
        points = [
            (row.at, row.throughput.per_interface_fps) for row in sweep.rows if row.throughput
        ]
        if points:
            plot.line(points, colour)
        hints = [
            (at, rate, f"{sweep.goal}, {at:g} {unit}: {format_frame_rate(rate)}")
            for at, rate in points
        ]
        plot.marks(drawing.Mark(sweep.goal, sweep.goal, "circle", colour), hints)
