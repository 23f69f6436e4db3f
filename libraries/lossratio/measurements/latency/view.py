"""The view of latency: over percentile, with a line per load and direction; over load, with a line per percentile.

CSIT has latency at 90, 50 and 10 % of PDR and at the minimum load, in whole microseconds, for each direction. If there
are several links, CSIT's latency covers all frames in this direction.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain, product
from operator import mul
from statistics import fmean
from typing import Any

from lossratio.drawing import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    Curve,
    Mark,
    Plot,
    html_fragment,
    rates_axis,
    series_colour,
    trial_hint,
)
from lossratio.measurements import CsitExportError
from lossratio.measurements.latency.delays import delays_of
from lossratio.measurements.latency.histogram import Histogram
from lossratio.measurements.latency.result import (
    PERCENTILES,
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
    Trial,
    View,
    frames_in_words,
    headline,
    load_in_words,
    numbers,
)
from lossratio.units import format_ratio

_ROOM = 1.2
_LATENCY = "latency, µs"
_STEPS = 400
_ABOUT = "One-way latency of frames that are part of the load. The percentile axis is logarithmic."
_ABOUT_LOAD = (
    "One-way latency. Lines are percentiles measured at the loads shown. If the generator knows the latency of "
    "every frame, marks are the median and the 99th percentile of the slower direction in each trial."
)
_MEDIAN = Mark("median", "50 % of a trial", "circle", series_colour(0), is_filled=False)
_OF_99 = Mark("of-99", "99 % of a trial", "square", series_colour(2), is_filled=False)
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
    ways = [one for one in shown.directions if one.error is None]
    means = [one.mean_us for one in ways if one.mean_us is not None]
    most = [one.most_us for one in ways if one.most_us is not None]
    slower = " in the slower direction" if len(ways) > 1 else ""

    takes = []
    if means:
        takes.append(f"{format_microseconds(max(means))} on average{slower}")
    if most:
        takes.append(f"{format_microseconds(max(most))} at most")
    unknown = [one.direction for one in shown.directions if one.error is not None]
    but = f", but nothing is known about {' and '.join(unknown)}" if unknown else ""
    lost = "" if lossless else f", of which {format_ratio(shown.missing_ratio or 0.0)} are missing"
    yield f"Latency: at {load}{length}{lost}, a frame takes {' and '.join(takes)}{but}."


@numbers
def _numbers(result: LatencyResult) -> Iterator[str]:
    """Some lines for each load."""
    return latency_lines(result.latency, result.trials)


class LatencyView(View[LatencyResult]):
    """How latency at given loads is shown."""

    rules = (_found, _numbers, *USUAL)

    def pictures(self, result: LatencyResult) -> Iterator[Picture]:
        """Latency over percentile and over load."""
        yield latency_picture(result.latency, result.test.name)
        yield latency_over_load_picture(result.latency, result.trials, result.test.name)

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
    table = html_fragment(__package__, "table.html.jinja", filters=filters, latency=latency)
    curves = []
    for index, at_load in enumerate(latency):
        for way, direction in enumerate(at_load.directions):
            points = _points(direction)
            if points:
                name = f"{name_load(at_load)}, {direction.direction}"
                curves.append(Curve(name, points, index, way))

    if not curves:
        return Picture("Latency", "", _ABOUT, table)

    heights = [height for curve in curves for _, height in curve.points]
    x = Axis(
        1.0,
        max(place for curve in curves for place, _ in curve.points),
        LEFT,
        RIGHT,
        is_logarithmic=True,
    )
    low = max(min(heights), 1e-3) / _ROOM
    high = max(heights) * _ROOM
    plot = Plot(x, Axis(low, high, BOTTOM, TOP, is_logarithmic=True))
    ticks = [
        place for place in (1.0, 2.0, *(10.0**power for power in range(1, 8))) if x.holds(place)
    ]
    plot.frame(
        ticks, plot.y.ticks(8), lambda place: f"{100.0 * (1.0 - 1.0 / place):.7g} %", "{:g}".format
    )
    about = f"Latency by percentile of {test_name}."
    drawn = plot.finished(("percentile", _LATENCY), about, curves)
    return Picture("Latency", drawn, _ABOUT, table)


def latency_over_load_picture(
    latency: Sequence[LatencyAtLoad], trials: Sequence[Trial], test_name: str
) -> Picture:
    """Percentiles of the latency over the load; the drawing is empty if there are fewer than two loads.

    If a load was measured several times, the line goes through the mean. Marks show trials that measured the latency of
    every frame.
    """
    curves: list[Curve] = []
    ways = dict.fromkeys(
        direction.direction for at_load in latency for direction in at_load.directions
    )
    for (index, percent), (way, name) in product(enumerate(PERCENTILES), enumerate(ways)):
        by_load: dict[float, list[float]] = {}
        for at_load in latency:
            for direction in at_load.directions:
                value = direction.percentiles_us.get(f"{percent:g}")
                if direction.direction == name and value is not None:
                    by_load.setdefault(at_load.load.per_interface_fps, []).append(value)

        means = [(load, fmean(values)) for load, values in sorted(by_load.items())]
        if len(means) > 1:
            curves.append(Curve(f"{percent:g} %, {name}", means, index, way))

    marks: dict[Mark, list[tuple[float, float, str]]] = {}
    for (mark, field), trial in product(
        ((_MEDIAN, "latency_median_us"), (_OF_99, "latency_99_us")), trials
    ):
        known = [value for one in trial.directions if (value := getattr(one, field)) is not None]
        if known and trial.is_evidence:
            # The slower direction.
            marks.setdefault(mark, []).append(
                (trial.load_per_interface_fps, max(known), trial_hint(trial))
            )

    loads = {load for curve in curves for load, _ in curve.points} | {
        load for load, *_ in chain(*marks.values())
    }
    if len(loads) < 2:
        return Picture("Latency over load", "", _ABOUT_LOAD)

    heights = [height for curve in curves for _, height in curve.points]
    heights += [height for _, height, _ in chain(*marks.values())]
    about, in_words = rates_axis("load per interface", max(loads))
    low = max(min(heights), 1e-3) / _ROOM
    high = max(heights) * _ROOM
    plot = Plot(
        Axis(0.0, max(loads) * 1.02, LEFT, RIGHT), Axis(low, high, BOTTOM, TOP, is_logarithmic=True)
    )
    plot.frame(plot.x.ticks(9), plot.y.ticks(8), in_words, "{:g}".format)
    for mark, points in marks.items():
        plot.marks(mark, points)
    described = f"Latency by load of {test_name}."
    drawn = plot.finished((about, _LATENCY), described, curves, marks)
    return Picture("Latency over load", drawn, _ABOUT_LOAD)


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
