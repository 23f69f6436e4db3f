"""The view of latency: over percentile, with a line per load and direction.

CSIT has latency at 90, 50 and 10 % of PDR and at the minimum load, in whole microseconds, for each direction. If there
are several links, CSIT's latency covers all frames in this direction.
"""

import math
from collections.abc import Iterator, Sequence
from operator import mul
from typing import Any

from lossratio import drawing
from lossratio.measurements import CsitExportError
from lossratio.measurements.latency.delays import delays_of
from lossratio.measurements.latency.histogram import Histogram
from lossratio.measurements.latency.result import (
    DirectionLatency,
    LatencyAtLoad,
    LatencyResult,
    faults_in_words,
    format_microseconds,
    latency_lines,
    latency_points,
    name_load,
)
from lossratio.results import (
    USUAL,
    Conditions,
    Finding,
    LatencyPoint,
    Picture,
    Rfc2544Row,
    View,
    frames_in_words,
    headline,
    load_in_words,
    numbers,
)
from lossratio.values import format_ratio

_ROOM = 1.2
_LATENCY = "latency, µs"
_STEPS = 400
_ABOUT = "One-way latency of frames that are part of the load. The percentile axis is logarithmic."
_SHARES = {"pdr_90": 0.9, "pdr_50": 0.5, "pdr_10": 0.1, "pdr_0": 0.0}


@headline
def _found(result: LatencyResult) -> Iterator[str]:
    """The latency at the largest load without loss, or else at the smallest load: the worst of its directions."""
    measured = sorted(
        (at_load for at_load in result.latency if at_load.is_measured),
        key=lambda at_load: at_load.load.per_interface_fps,
    )
    if not measured:
        return

    lossless = [at_load for at_load in measured if at_load.missing_ratio == 0.0]
    shown = lossless[-1] if lossless else measured[0]
    asked, frames = shown.load.per_interface_fps, frames_in_words(result.conditions)
    load = load_in_words(asked, () if shown.offered is None else (shown.offered,), frames)
    length = "" if shown.duration_s is None else f" in a trial of {shown.duration_s:.4g} s"
    unknown = [one.direction for one in shown.directions if one.error is not None]
    but = f", but nothing is known about {' and '.join(unknown)}" if unknown else ""
    lost = "" if lossless else f", of which {format_ratio(shown.missing_ratio or 0.0)} are missing"
    yield f"Latency: at {load}{length}{lost}, {shown.takes()}{but}."


@numbers
def _numbers(result: LatencyResult) -> Iterator[str]:
    """Some lines for each load."""
    return latency_lines(result.latency, result.trials)


class LatencyView(View[LatencyResult]):
    """How latency at given loads is shown."""

    rules = (_found, _numbers, *USUAL)

    def pictures(self, result: LatencyResult) -> Iterator[Picture]:
        """Latency over percentile."""
        yield latency_picture(result.latency, result.test.name)

    def findings(self, result: LatencyResult) -> Iterator[Finding]:
        """Only the outcome, because a latency is not a rate."""
        faults = faults_in_words(result.latency)
        yield Finding(result, "latency", result.outcome, faults or None, has_value=False)

    def latencies(self, result: LatencyResult) -> Iterator[LatencyPoint]:
        """The latencies of the result."""
        return latency_points(result.latency)

    def rfc2544_rows(self, result: LatencyResult) -> Iterator[Rfc2544Row]:
        """The rows of all delays."""
        for delays in delays_of(result):
            yield from delays.rows()

    def csit(self, result: LatencyResult) -> dict[str, Any]:
        """CSIT has no such test case.

        Raises:
            CsitExportError: Always.
        """
        raise CsitExportError(
            f"{result.test.full_name} measures latency alone, but CSIT has latency only as a part "
            "of NDR and PDR. Export a search that measured latency."
        )


def latency_picture(latency: Sequence[LatencyAtLoad], test_name: str) -> Picture:
    """Latency over percentile, of all loads, with its table; the drawing is empty if there is nothing to draw."""
    filters: dict[str, Any] = {"microseconds": format_microseconds, "name_load": name_load}
    table = drawing.html_fragment(__package__, "table.html.jinja", filters=filters, latency=latency)
    curves = []
    for index, at_load in enumerate(latency):
        for way, direction in enumerate(at_load.directions):
            points = _points(direction)
            if points:
                name = f"{name_load(at_load)}, {direction.direction}"
                curves.append(drawing.Curve(name, points, index, way))

    if not curves:
        return Picture("Latency", "", _ABOUT, table)

    heights = [height for curve in curves for _, height in curve.points]
    x = drawing.Axis(
        1.0,
        max(place for curve in curves for place, _ in curve.points),
        drawing.LEFT,
        drawing.RIGHT,
        is_logarithmic=True,
    )
    low = max(min(heights), 1e-3) / _ROOM
    high = max(heights) * _ROOM
    plot = drawing.Plot(
        x, drawing.Axis(low, high, drawing.BOTTOM, drawing.TOP, is_logarithmic=True)
    )
    ticks = [
        place for place in (1.0, 2.0, *(10.0**power for power in range(1, 8))) if x.holds(place)
    ]
    plot.frame(
        ticks, plot.y.ticks(8), lambda place: f"{100.0 * (1.0 - 1.0 / place):.7g} %", "{:g}".format
    )
    about = f"Latency by percentile of {test_name}."
    drawn = plot.finished(("percentile", _LATENCY), about, curves)
    return Picture("Latency", drawn, _ABOUT, table)


def _points(direction: DirectionLatency) -> list[tuple[float, float]]:
    """Points of the curve: 1 divided by the share of slower frames, and the latency.

    There are no more points than the eye can see.
    """
    if direction.histogram is None:
        return []

    histogram = Histogram.decode(direction.histogram, direction.histogram_unit_us)
    if not histogram.count:
        return []

    # Half a frame is assumed to be slower than the slowest one.
    beyond = 50.0 / histogram.count
    step = math.log(100.0 / beyond) / _STEPS
    curve = histogram.curve()
    points = [(1.0, curve[0][1])]
    last = 0.0

    for percentile, value in curve:
        place = 100.0 / max(100.0 - percentile, beyond)
        if math.log(place) - last >= step or percentile >= 100.0:
            last = math.log(place)
            points.append((place, value))

    return points


def csit_latencies(latency: Sequence[LatencyAtLoad], conditions: Conditions) -> dict[str, Any]:
    """The latencies of each direction at all of CSIT's loads.

    Directions without traffic, or without one of the loads, are left out.
    """
    # Each link has its directions one after the other, forward first.
    names = ("latency_forward", "latency_reverse")[
        : 1 + (conditions.traffic.pattern == "bidirectional")
    ]
    ways = {}
    for way, name in enumerate(names):
        directions = conditions.load.directions[way :: len(names)]
        known = {
            share: at
            for share, ratio in _SHARES.items()
            if (at := _at(latency, ratio, directions)) is not None
        }
        if len(known) == len(_SHARES):
            ways[name] = known
    return ways


def _at(
    latency: Sequence[LatencyAtLoad], share: float, directions: Sequence[str]
) -> dict[str, Any] | None:
    """The latency of all links together, in whole microseconds, as TRex reports it."""
    at_load = next((one for one in latency if one.share_ratio == share), None)
    if at_load is None:
        links = []
    else:
        links = [one for one in at_load.directions if one.direction in directions]

    # CSIT leaves out a direction whose largest latency rounds to nothing.
    whole = [
        [round(value) for value in values if value is not None]
        for link in links
        if None not in (values := (link.least_us, link.mean_us, link.most_us))
        and round(link.most_us or 0.0)
    ]
    histograms = [
        Histogram.decode(one.histogram, one.histogram_unit_us)
        for one in links
        if one.histogram is not None
    ]
    if not whole or not len(whole) == len(histograms) == len(directions):
        return None

    least, means, most = zip(*whole, strict=True)
    frames = [histogram.count for histogram in histograms]
    if len(means) == 1:
        mean = means[0]
    else:
        mean = round(sum(map(mul, means, frames)) / sum(frames))
    if len(whole) == 1 and histograms[0].unit == 1.0:
        encoded = links[0].histogram
    else:
        encoded = Histogram.merged(histograms).encode()

    return {"min": min(least), "avg": mean, "max": max(most), "hdrh": encoded, "unit": "us"}
