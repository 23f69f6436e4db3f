"""The graphs of the report that RFC 2544 asks for: throughput over frame size, and frame loss over load."""

from collections.abc import Sequence
from typing import Any

from lossratio.drawing import LINE_HEIGHT, RIGHT, Axis, Mark, Plot, in_unit, series_colour
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test, throughput_of
from lossratio.measurements.throughput import ThroughputResult
from lossratio.results import MaxLoad

_HEIGHT = 340.0
_LEFT = 90.0
_TOP = 30.0
_BOTTOM = 280.0


def theoretical_rate(load: MaxLoad) -> float:
    """The maximum frame rate of the links, per interface; the maximum load if the links' maximum is not known."""
    return (load.theoretical_maximum or load.rate).per_interface_fps


def draw_throughput(run: Rfc2544Run) -> str:
    """The graph of section 26.1: frame rate over frame size, theoretical and measured."""
    theoretical: list[tuple[float, float]] = []
    measured: list[tuple[float, float]] = []
    results: Sequence[ThroughputResult] = run.results_of(Rfc2544Test.THROUGHPUT)

    for result in results:
        size = result.conditions.traffic.average_frame_size_bytes
        theoretical.append((size, theoretical_rate(result.max_load)))
        rate = throughput_of(result)
        measured += [] if rate is None else [(size, rate)]

    if len(theoretical) < 2:
        return ""

    known = all(result.max_load.theoretical_maximum is not None for result in results)
    if known:
        upper = "theoretical maximum of the links"
    else:
        upper = "theoretical maximum, or maximum load where it is not known"

    highest = max(rate for _, rate in theoretical) * 1.05
    plot = Plot(
        Axis(0.0, theoretical[-1][0] * 1.02, _LEFT, RIGHT), Axis(0.0, highest, _BOTTOM, _TOP)
    )
    plot.frame([size for size, _ in theoretical], plot.y.ticks(8), in_unit(1), in_unit(1))
    plot.line(theoretical, series_colour(1), dash="6 3")
    plot.line(measured, series_colour(0))
    _dots(plot, measured, series_colour(0), "{0:g} bytes: {1:,.0f} fps")
    names = ((upper, series_colour(1), "6 3"), ("throughput", series_colour(0), None))

    return _finish(
        plot,
        names,
        "frame rate, frames per second per interface",
        "frame size, bytes",
        "Throughput",
    )


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
    names = []

    for index, (name, points) in enumerate(lines):
        colour = series_colour(index)
        dash = dashes[index % len(dashes)]
        plot.line(points, colour, dash=dash)
        _dots(plot, points, colour, f"{name}: {{1:.4g}} % lost at {{0:.4g}} % load")
        names.append((name, colour, dash))

    known = all(
        result.max_load.theoretical_maximum is not None
        for result in run.results_of(Rfc2544Test.FRAME_LOSS)
    )
    if known:
        load = "load, % of the theoretical maximum"
    else:
        load = "load, % of the maximum load"

    return _finish(plot, names, "frame loss rate, %", load, "Frame loss rate")


def _dots(plot: Plot, points: Sequence[tuple[float, float]], colour: str, hint: str) -> None:
    """Marks measured points. The hint is a format string for both values."""
    plot.marks(
        Mark("measured", "measured", "circle", colour),
        [(x, y, hint.format(x, y)) for x, y in points],
    )


def _finish(
    plot: Plot, names: Sequence[tuple[str, str, str | None]], y: str, x: str, title: str
) -> str:
    plot.titles(x, y)
    columns = 2 if len(names) < 3 else 4
    for index, (name, colour, dash) in enumerate(names):
        left = _LEFT + (index % columns) * (RIGHT - _LEFT) / columns
        plot.line_key(left, _BOTTOM + 54.0 + LINE_HEIGHT * (index // columns), name, colour, dash)
    return plot.svg(_HEIGHT + LINE_HEIGHT, f"{title}.")
