"""The picture of latencies: latency over percentile, a line for each load and direction.

The percentile's axis is logarithmic in what is above it: 90 %, 99 % and 99.9 % are equally far apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lossratio.drawing import Axis, Plot, drawing, element, text_at, title
from lossratio.measurements.throughput import goal_colour
from lossratio.results import DirectionLatency, Histogram, LatencyAtLoad, name_load

_WIDTH = 900.0
_LEFT, _RIGHT = 78.0, 880.0
_TOP, _BOTTOM = 30.0, 330.0
_LINE = 18.0
_DASHES = (None, "6 3", "2 3", "8 3 2 3")
_ROOM = 1.2
_STEPS = 400


@dataclass(frozen=True)
class _Curve:
    name: str
    colour: str
    dash: str | None
    points: list[tuple[float, float]]


def draw_latency(latency: Sequence[LatencyAtLoad], test_name: str) -> str:
    """Draws the latencies of all loads.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is; an empty string if there is nothing to draw.
    """
    curves = list(_curves(latency))
    if not curves:
        return ""
    heights = [height for curve in curves for _, height in curve.points]
    x = Axis(1.0, max(place for curve in curves for place, _ in curve.points), _LEFT, _RIGHT, is_logarithmic=True)
    low, high = max(min(heights), 1e-3) / _ROOM, max(heights) * _ROOM
    plot = Plot(x, Axis(low, high, _BOTTOM, _TOP, is_logarithmic=True))
    plot.frame(_ticks(x), plot.y.ticks(8), _percent, lambda value: f"{value:g}")
    for curve in curves:
        plot.parts.append(title(curve.name))
        plot.line(curve.points, curve.colour, dash=curve.dash)
    labels = [
        text_at(4.0, 14.0, "latency, µs"),
        text_at((_LEFT + _RIGHT) / 2, _BOTTOM + 34.0, "percentile", text_anchor="middle"),
    ]
    legend = [part for number, curve in enumerate(curves) for part in _key(curve, number)]
    height = _BOTTOM + 56.0 + _LINE * math.ceil(len(curves) / 2)
    return drawing(_WIDTH, height, f"Latency by percentile of {test_name}.", [*plot.parts, *labels, *legend])


def _curves(latency: Sequence[LatencyAtLoad]) -> Iterator[_Curve]:
    for place, each in enumerate(latency):
        for way, direction in enumerate(each.directions):
            points = _points(direction)
            if points:
                name = f"{name_load(each)}, {direction.direction}"
                yield _Curve(name, goal_colour(place), _DASHES[way % len(_DASHES)], points)


def _points(direction: DirectionLatency) -> list[tuple[float, float]]:
    """One over the share of frames that took longer, and the latency; no more points than can be seen."""
    if direction.histogram is None:
        return []
    histogram = Histogram.decode(direction.histogram, direction.histogram_unit_us)
    if not histogram.count:
        return []
    # The slowest frame stands for the half of a frame beyond it.
    beyond = 50.0 / histogram.count
    step = math.log(100.0 / beyond) / _STEPS
    curve = histogram.curve()
    points, last = [(1.0, curve[0][1])], 0.0
    for percentile, value in curve:
        place = 100.0 / max(100.0 - percentile, beyond)
        if math.log(place) - last >= step or percentile >= 100.0:
            last = math.log(place)
            points.append((place, value))
    return points


def _ticks(x: Axis) -> list[float]:
    nines = [10.0**power for power in range(1, 8)]
    return [place for place in (1.0, 2.0, *nines) if x.holds(place)]


def _percent(place: float) -> str:
    return f"{100.0 * (1.0 - 1.0 / place):.7g} %"


def _key(curve: _Curve, number: int) -> list[str]:
    x = _LEFT + (number % 2) * (_RIGHT - _LEFT) / 2
    y = _BOTTOM + 56.0 + _LINE * (number // 2)
    stroke = {"stroke": curve.colour, "stroke_width": 1.6, "stroke_dasharray": curve.dash}
    return [element("path", d=f"M{x:.0f} {y - 4:.0f}h26", fill="none", **stroke), text_at(x + 34, y, curve.name)]
