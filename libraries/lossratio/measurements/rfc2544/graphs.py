"""The graphs of the report that RFC 2544 asks for: throughput over frame size, and frame loss over load."""

from collections.abc import Sequence
from typing import Any

from lossratio.drawing import LINE_HEIGHT, RIGHT, Axis, Mark, Plot, in_unit, series_colour
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test
from lossratio.measurements.throughput import ThroughputResult
from lossratio.measurements.throughput.sweeps import draw_frame_sizes, sizes_of_run
from lossratio.results import MaxLoad

_HEIGHT = 340.0
_LEFT = 90.0
_TOP = 30.0
_BOTTOM = 280.0
_COLUMNS = 4
"""Columns of the legend."""


def theoretical_rate(load: MaxLoad) -> float:
    """The maximum frame rate of the links, per interface; the maximum load if the links' maximum is not known."""
    return (load.theoretical_maximum or load.rate).per_interface_fps


def draw_throughput(run: Rfc2544Run) -> str:
    """The graph of section 26.1: frame rate over frame size, theoretical and measured."""
    results: Sequence[ThroughputResult] = run.results_of(Rfc2544Test.THROUGHPUT)
    if len(results) < 2:
        return ""
    return draw_frame_sizes([sizes_of_run(results)])


def draw_loss(run: Rfc2544Run) -> str:
    """The graph of section 26.3: both axes from 0 to 100 %."""
    lines: list[tuple[str, list[tuple[float, float]]]] = []
    for part in run.of(Rfc2544Test.FRAME_LOSS):
        result: Any = part.result
        if result is not None and result.frame_loss is not None:
            share = result.max_load.rate.per_interface_fps / theoretical_rate(result.max_load)
            points = [
                (100 * share * loss.share_of_max_load_ratio, 100 * loss.frame_loss_ratio)
                for loss in result.frame_loss.loads
            ]
            lines.append((part.frame_size, points))

    if not lines:
        return ""

    plot = Plot(Axis(0.0, 100.0, _LEFT, RIGHT), Axis(0.0, 100.0, _BOTTOM, _TOP))
    plot.frame(plot.x.ticks(11), plot.y.ticks(11), in_unit(1), in_unit(1))
    dashes = (None, "6 3", "2 3", "8 3 2 3")
    for index, (name, points) in enumerate(lines):
        colour = series_colour(index)
        dash = dashes[index % len(dashes)]
        hints = [(x, y, f"{name}: {y:.4g} % lost at {x:.4g} % load") for x, y in points]
        row, column = divmod(index, _COLUMNS)
        left = _LEFT + column * (RIGHT - _LEFT) / _COLUMNS
        plot.line(points, colour, dash=dash)
        plot.marks(Mark("measured", "measured", "circle", colour), hints)
        plot.line_key(left, _BOTTOM + 54.0 + LINE_HEIGHT * row, name, colour, dash)

    known = all(
        result.max_load.theoretical_maximum is not None
        for result in run.results_of(Rfc2544Test.FRAME_LOSS)
    )
    what = "theoretical maximum" if known else "maximum load"
    plot.titles(f"load, % of the {what}", "frame loss rate, %")
    return plot.svg(_HEIGHT + LINE_HEIGHT, "Frame loss rate.")
