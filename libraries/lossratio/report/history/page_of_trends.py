"""The page of trends: one HTML file in the design of the page of a run, with a picture and results of each series.

A picture has a true date axis, the bounds of each value as error bars, and the steps. A table has the newest results
with their runs.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from functools import partial
from operator import attrgetter
from urllib.parse import quote

import numpy as np

from lossratio import drawing
from lossratio.report.history.analysis import Analysis
from lossratio.report.history.annotations import KnownChange
from lossratio.report.history.entries import FAILED, IRREGULAR
from lossratio.report.history.series import Series
from lossratio.report.history.trend import Trend
from lossratio.report.history.trend_words import describe_trend, details_of, sentence_of
from lossratio.report.history.unmeasured import describe_nothing_measured
from lossratio.values import FRAMES_PER_SECOND, format_change, range_in_words

_HEIGHT = 240.0
_LEFT = 78.0
_TOP = 32.0
_BOTTOM = 182.0
_DAY = 86_400.0
_FIRST_DAY = date(1970, 1, 1)
_STEP = "#D55E00"
_KNOWN = "#777777"
_BOUNDS = "#8FBBD9"
_MEASURED = drawing.Mark("measured", "measured", "circle", "#0072B2")
_DOUBTFUL = drawing.Mark("doubtful", "irregular or doubtful", "square", "#0072B2", is_filled=False)
_MISSING = drawing.Mark("missing", "no value", "cross", "#B3261E", is_filled=False)
_NEWEST = 20
"""How many results a table has."""
_DATE = 90.0
"""Room of a date, in pixels."""
_RESULT = 9.0
"""Room of a result."""
_WEEK = 168
_HOURS = (1, 2, 3, 6, 12, 24, 48, _WEEK)
"""Distances of dates on an axis; larger ones are whole weeks."""


def _quoted_number(row: Trend) -> float | None:
    """The newest value, if it was measured as requested."""
    value = float(row.series.values[-1])
    if not np.isfinite(value) or IRREGULAR in row.series.kinds[-1]:
        return None
    return value


def _quoted(row: Trend) -> str:
    if _quoted_number(row) is None:
        return drawing.NOTHING
    return row.series.value_in_words(-1)


def _verdict(row: Trend) -> str:
    """The verdict, with notes, doubts and reasons, as markup."""
    kinds = row.series.kinds[-1]
    notes = ["old"] if row.is_old else []
    reasons = (*(kind for kind in (IRREGULAR, FAILED) if kind in kinds), row.series["reason"][-1])
    notes.append(": ".join(filter(None, reasons)))
    known = row.known or (row.change and row.change.known)
    notes += [str(note) for note in (known, *row.notes) if note is not None]
    notes += [f"doubt: {kind}" for kind in sorted(kinds - {IRREGULAR, FAILED})]
    return drawing.verdict(_kind(row), row.verdict.value, filter(None, notes))


def _kind(trend: Trend) -> str:
    """The class of the verdict's colour."""
    if trend.verdict.is_alarm and not trend.is_alarm:
        return "measured"
    return trend.verdict.kind


def _frame_size(row: Trend) -> str:
    size = row.series["frame_size_bytes"][-1]
    if size is None:
        return "not known"
    return f"{size:g} B"


def _ratio(row: Trend) -> float | None:
    """The last change, as a share of the earlier value."""
    change = row.last_change
    if change is None or not np.isfinite(change.ratio):
        return None
    return change.ratio


def _change(row: Trend) -> str:
    change = row.last_change
    if change is None:
        return ""
    return f"{format_change(change.ratio)} since {change.began:%Y-%m-%d}"


def _size(row: Trend) -> int:
    return len(row.series.times)


def _bounds(row: Trend) -> str:
    return row.series.bounds_in_words(-1)


def _began(row: Trend) -> str:
    return f"{row.series.times[-1]:%Y-%m-%d %H:%M}"


def _series_of(row: Trend) -> str:
    return "latency and telemetry" if row.series.is_reading else "results"


# Table: the columns of the overview.
_COLUMNS: tuple[drawing.Column[Trend], ...] = (
    drawing.test_column(Trend),
    drawing.Column("newest value", _quoted, _quoted_number, style="number quote"),
    drawing.Column("verdict", attrgetter("verdict.value"), style="words", markup=_verdict),
    drawing.Column("goal", attrgetter("series.key.quantity"), style="words"),
    drawing.Column("stream", attrgetter("series.stream"), style="words"),
    drawing.Column("frame size", _frame_size),
    drawing.Column("testbed", attrgetter("series.key.testbed")),
    drawing.Column("bounds", _bounds, style="number"),
    drawing.Column("last change", _change, _ratio, style="number"),
    drawing.number_column("results", _size, str),
    drawing.Column("newest result, UTC", _began, style="date"),
)
# Table: for each filter, its label, and the text of a row that it filters by.
_FILTERS: Mapping[str, tuple[str, Callable[[Trend], str | Sequence[str]]]] = {
    "verdict": ("Verdict", attrgetter("verdict.value")),
    "goal": ("Goal", attrgetter("series.key.quantity")),
    "size": ("Frame size", _frame_size),
    "testbed": ("Testbed", attrgetter("series.key.testbed")),
    "tags": ("Tag", attrgetter("series.tags")),
    "of": ("Series of", _series_of),
}


def trend_page(
    analysis: Analysis, title: str, links: Callable[[str], str | None] = lambda run: None
) -> str:
    """The page of some trends, which begins with the sentence that the console shows."""
    trends = sorted(
        (*analysis.trends, *analysis.readings), key=attrgetter("series.is_reading", "verdict.order")
    )
    body = partial(drawing.html_fragment, drawing.PAGES, "trend_section.html.jinja", address=links)
    rows = []
    sections = []
    for number, trend in enumerate(trends, start=1):
        series = trend.series
        row = replace(trend, number=number)
        rows.append(row)
        # Record: what the template shows.
        shown = body(
            series=series,
            kind=_kind(trend),
            verdict=trend.verdict.value,
            details=list(details_of(trend)),
            picture=draw_trend(trend, analysis.known),
            scale="per interface" if series.unit == FRAMES_PER_SECOND else "",
            newest=range(len(series.times))[-_NEWEST:],
        )
        sections.append((row.link, str(series), shown))

    problems = [
        *describe_nothing_measured(analysis.unmeasured),
        *(f"Not read: {problem}" for problem in analysis.problems),
    ]
    return drawing.Overview(rows, _COLUMNS, _FILTERS, only="Only changed").page(
        "trend.html.jinja",
        sections,
        title=title,
        sentences=[sentence_of(analysis.trends)],
        headline=_headline(rows),
        problems=problems,
    )


def address_of_run(pages: str | None, added: Mapping[str, str]) -> Callable[[str], str | None]:
    """A function that finds the address of a run's page by the run's name."""

    def address(run: str) -> str | None:
        if pages is None:
            return added.get(run)
        name = quote(run, safe="")
        if "{run}" in pages:
            return pages.replace("{run}", name)
        return f"{pages.rstrip('/')}/{name}/lossratio.html"

    return address


def _headline(rows: Sequence[Trend]) -> str:
    if not rows:
        return "No results."

    testbeds = sorted({row.series.key.testbed for row in rows})
    first = min(row.series.times[0] for row in rows)
    last = max(row.series.times[-1] for row in rows)
    parts = (
        f"{len(rows)} series",
        f"testbed{'s' if len(testbeds) > 1 else ''} {', '.join(testbeds)}",
        range_in_words(f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"),
        "rates are per interface",
    )
    return " · ".join(parts)


def draw_trend(trend: Trend, known: Iterable[KnownChange]) -> str:
    """Draws a trend."""
    series = trend.series
    times = [time.timestamp() / _DAY for time in series.times]
    bars = list(_error_bars(series, times))
    plot = drawing.Plot(*_axes(series, times, bars))
    about, in_words = drawing.values_axis(series.unit, series.key.quantity, plot.y.high)
    ticks, words = date_ticks(plot.x.low, plot.x.high, int((plot.x.end - _LEFT) / _DATE))
    plot.frame(ticks, plot.y.ticks(4), words, in_words)
    plot.text(4.0, 14.0, about)
    changes = [change for change in known if change.concerns(series.key)]

    for change in changes:
        day = float((change.date - _FIRST_DAY).days)
        if plot.x.holds(day):
            plot.line([(day, plot.y.low), (day, plot.y.high)], _KNOWN, dash="2 3")
            plot.text(plot.x.place(day) + 4, _TOP - 2, str(change))

    if bars:
        path = "".join(
            f"M{plot.x.place(x):.1f} {plot.y.place(low):.1f}V{plot.y.place(high):.1f}"
            for x, low, high in bars
        )
        plot.add("path", d=path, fill="none", stroke=_BOUNDS, stroke_width=1.6)

    by_mark: dict[drawing.Mark, list[tuple[float, float, str]]] = {
        mark: [] for mark in (_MEASURED, _DOUBTFUL, _MISSING)
    }
    for index, (day, value) in enumerate(zip(times, series.values, strict=True)):
        mark = _DOUBTFUL if series.kinds[index] else _MEASURED
        height = float(value)
        if not np.isfinite(value):
            mark = _MISSING
            height = plot.y.low

        by_mark[mark].append((day, height, _hint(series, index)))

    for mark, points in by_mark.items():
        plot.marks(mark, points)

    lines = [(times[step.first], times[step.last], step.mean) for step in trend.steps]
    for step in trend.steps:
        if step.upper is not None:
            lines.append((times[step.first], times[step.last], step.upper))
    plot.steps(lines, _STEP)

    swatches = [("steps", _STEP, 1.0)]
    if bars:
        swatches.append(("bounds", _BOUNDS, 1.0))
    if changes:
        swatches.append(("known changes", _KNOWN, 1.0))
    end = plot.legend(
        [mark for mark, points in by_mark.items() if points], swatches, _LEFT, _HEIGHT - 12.0
    )

    return plot.svg(end + 12.0, describe_trend(trend))


def date_ticks(low: float, high: float, most: int) -> tuple[list[float], Callable[[float], str]]:
    """About so many dates for an axis, in days since 1970, each once, and a function that formats a date."""
    weeks = math.ceil((high - low) / 7 / most)
    fitting = (hours for hours in _HOURS if (high - low) * 24 / hours <= most)
    hours = next(fitting, weeks * _WEEK)
    # Weeks begin on Monday. The fifth day of 1970 was a Monday.
    first = math.floor(low)
    if hours >= _WEEK:
        first -= (first - 4) % (hours // 24)
    ticks = np.arange(first, high, hours / 24)
    pattern = "%m-%d %H:%M" if hours < 24 else "%Y-%m-%d"
    return ticks[ticks >= low].tolist(), lambda day: f"{_moment(day):{pattern}}"


def _axes(
    series: Series, times: Sequence[float], bars: Sequence[tuple[float, float, float]]
) -> tuple[drawing.Axis, drawing.Axis]:
    shown = series.values[np.isfinite(series.values)].tolist() or [0.0, 1.0]
    for _, *ends in bars:
        shown += ends
    low, high = min(shown), max(shown)
    room = 0.1 * (high - low) or 0.05 * high or 1.0
    margin = 0.04 * (times[-1] - times[0]) or 0.5
    right = drawing.right_end(_LEFT, len(times), _RESULT)
    return (
        drawing.Axis(times[0] - margin, times[-1] + margin, _LEFT, right),
        drawing.Axis(max(0.0, low - room), high + room, _BOTTOM, _TOP),
    )


def _error_bars(series: Series, times: Sequence[float]) -> Iterator[tuple[float, float, float]]:
    """The bounds of each value that has both: day, lower and upper bound."""
    for index, day in enumerate(times):
        low, high = series.bounds_of(index)
        if low is not None and high is not None and np.isfinite(series.values[index]):
            yield day, low, high


def _hint(series: Series, index: int) -> str:
    words = series.value_in_words(index)
    if not np.isfinite(series.values[index]):
        words = f"{words}: {series['reason'][index]}"

    kinds = "".join(f", {kind}" for kind in sorted(series.kinds[index]))
    return f"{series.times[index]:%Y-%m-%d %H:%M}: {words}{kinds}"


def _moment(day: float) -> datetime:
    # Days have rounding errors of microseconds.
    return datetime.fromtimestamp(round(day * _DAY, 3), tz=timezone.utc)
