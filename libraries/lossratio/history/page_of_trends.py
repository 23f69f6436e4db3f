"""The page of trends: one HTML file in the design of the page of a run, with a picture and all results of each series.

A picture has a true date axis, the bounds of each value as error bars, and the steps. Pictures of more than some
hundred results have no hints; the page's script lists the results with their runs when a section is opened.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from operator import attrgetter
from urllib.parse import quote

import numpy as np
from pydantic import JsonValue

from lossratio import drawing
from lossratio.history.analysis import Analysis
from lossratio.history.annotations import KnownChange
from lossratio.history.entries import FAILED, IRREGULAR
from lossratio.history.series import Series
from lossratio.history.trend import Trend, TrendVerdict
from lossratio.history.trend_words import describe_trend, details_of, sentence_of
from lossratio.history.unmeasured import describe_nothing_measured
from lossratio.units import FRAMES_PER_SECOND, format_change, range_in_words, results_counted

_HEIGHT = 240.0
_LEFT = 78.0
_TOP = 32.0
_BOTTOM = 182.0
_DAY = 86_400.0
_STEP = "#D55E00"
_KNOWN = "#777777"
_BOUNDS = "#8FBBD9"
_MEASURED = drawing.Mark("measured", "measured", "circle", "#0072B2")
_DOUBTFUL = drawing.Mark("doubtful", "irregular or doubtful", "square", "#0072B2", is_filled=False)
_MISSING = drawing.Mark("missing", "no value", "cross", "#B3261E", is_filled=False)
_MOST_HINTS = 300
"""A picture with more results than this has no hints."""
_FEW = 3
_MANY_SERIES = 200
_MANY_RESULTS = 20_000
_DATE = 90.0
"""Room of a date, in pixels."""
_RESULT = 9.0
"""Room of a result."""
_HOURS = (1, 2, 3, 6, 12, 24, 48, 168, 336)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
_KINDS = {
    TrendVerdict.TOO_FEW: "undecided",
    **dict.fromkeys((TrendVerdict.NOT_OFFERED, TrendVerdict.TESTER), "irregular"),
    **dict.fromkeys((TrendVerdict.UNCONFIRMED, TrendVerdict.ONE_OTHER), "irregular"),
}
"""Classes of the verdicts that are neither alarms nor decided."""


class _Row:
    """A row of the overview, with the numbers behind its words; values come from the newest result."""

    def __init__(self, trend: Trend, number: int) -> None:
        series = trend.series
        kinds = trend.series.kinds[-1]
        size = trend.series["frame_size_bytes"][-1]
        self.frame_size_bytes = size
        outcome = next((kind for kind in (IRREGULAR, FAILED) if kind in kinds), "")
        self.trend = trend
        self.series = series
        self.link = f"series-{number}"
        self.test = series.key.test
        self.goal = series.key.quantity
        self.stream = series.stream or ""
        self.testbed = series.key.testbed
        self.tags = "\n".join(series.tags)
        self.series_of = "latency and telemetry" if series.is_reading else "results"
        self.results = len(series.times)
        self.newest_in_words = f"{series.times[-1]:%Y-%m-%d %H:%M}"
        self.words = " ".join((self.test, series.key.testbed, *series.tags)).lower()
        self.frame_size = "not known" if size is None else f"{size:g} B"
        self.is_odd = trend.change is not None or trend.is_alarm or bool(trend.new_kinds)
        # The scale of a rate; empty: it is no rate.
        self.scale = ""
        if series.unit == FRAMES_PER_SECOND:
            self.scale = "per interface"
        # A value that was measured as requested.
        self.is_quotable = bool(np.isfinite(series.values[-1])) and IRREGULAR not in kinds
        self.value, self.bounds = _in_words(series, -1), _bounds(series, -1)
        self.aggregate = _aggregate(series)
        # The class of the verdict's colour.
        self.kind = "alarm" if trend.is_alarm else _KINDS.get(trend.verdict, "measured")
        self.verdict = trend.verdict.value
        # Why it is irregular or failed; empty: it was measured.
        self.reason = ": ".join(filter(None, (outcome, series["reason"][-1])))
        self.doubts = sorted(kinds - {IRREGULAR, FAILED})
        self.details = list(details_of(trend))
        last = trend.last_change
        self.change = ""
        self.since = ""
        if last is not None:
            self.change = format_change(last.ratio)
            self.since = f"{last.began:%Y-%m-%d}"

    @property
    def quoted_in_words(self) -> str:
        """The value, if it may be quoted."""
        return self.value if self.is_quotable else drawing.NOTHING

    @property
    def quoted_number(self) -> float | None:
        """The value; None: it may not be quoted."""
        return float(self.series.values[-1]) if self.is_quotable else None

    @property
    def ratio(self) -> float | None:
        """The last change, as a share of the earlier value."""
        change = self.trend.last_change
        if change is None or not np.isfinite(change.ratio):
            return None
        return change.ratio

    @property
    def marked_verdict(self) -> str:
        """The verdict, with notes, doubts and reasons, as markup."""
        known = self.trend.known or (self.trend.change and self.trend.change.known)
        noted = (f"{note}" for note in (known, *self.trend.notes) if note is not None)
        doubts = (f"doubt: {doubt}" for doubt in self.doubts)
        old = "old" if self.trend.is_old else ""
        return drawing.verdict(
            self.kind, self.verdict, filter(None, (old, self.reason, *noted, *doubts))
        )


# Table: the columns of the overview.
_COLUMNS: tuple[drawing.Column[_Row], ...] = (
    drawing.test_column(_Row),
    drawing.Column(
        "newest value",
        attrgetter("quoted_in_words"),
        attrgetter("quoted_number"),
        style="number quote",
    ),
    drawing.Column(
        "verdict", attrgetter("verdict"), style="words", markup=attrgetter("marked_verdict")
    ),
    drawing.Column("goal", attrgetter("goal"), style="words"),
    drawing.Column("stream", attrgetter("stream"), style="words"),
    drawing.Column("frame size", attrgetter("frame_size"), attrgetter("frame_size_bytes")),
    drawing.Column("testbed", attrgetter("testbed")),
    drawing.Column("bounds", attrgetter("bounds"), style="number"),
    drawing.Column("aggregate", attrgetter("aggregate"), style="number beside"),
    drawing.Column("last change", attrgetter("change"), attrgetter("ratio"), style="number"),
    drawing.Column("since", attrgetter("since"), style="date"),
    drawing.number_column("results", attrgetter("results"), str),
    drawing.Column("newest result, UTC", attrgetter("newest_in_words"), style="date"),
)
# Table: for each filter, its label, and the text of a row that it filters by.
_FILTERS: Mapping[str, tuple[str, Callable[[_Row], str]]] = {
    "verdict": ("Verdict", attrgetter("verdict")),
    "goal": ("Goal", attrgetter("goal")),
    "size": ("Frame size", attrgetter("frame_size")),
    "testbed": ("Testbed", attrgetter("testbed")),
    "tags": ("Tag", attrgetter("tags")),
    "of": ("Series of", attrgetter("series_of")),
}


def trend_page(
    analysis: Analysis, title: str, links: Callable[[str], str | None] = lambda run: None
) -> str:
    """The page of some trends, which begins with the sentence that the console shows."""
    order = list(TrendVerdict)
    trends = sorted(
        (*analysis.trends, *analysis.readings),
        key=lambda trend: (trend.series.is_reading, order.index(trend.verdict)),
    )
    rows = [_Row(trend, number) for number, trend in enumerate(trends, start=1)]
    numbers = sum(len(row.series.times) for row in rows)
    body = partial(drawing.html_fragment, drawing.PAGES, "trend_section.html.jinja")
    sections = [
        (row.link, str(row.series), (body(row=row, picture=draw_trend(row.trend, analysis.known)),))
        for row in rows
    ]
    overview = drawing.Overview(rows, _COLUMNS, _FILTERS, only="Only changed", few=_FEW)
    data = {}
    if rows:
        series = {row.link: _columns(row.series, links) for row in rows}
        data["series"] = drawing.packed(series)
    problems = [
        *describe_nothing_measured(analysis.unmeasured),
        *(f"Not read: {problem}" for problem in analysis.problems),
    ]

    return overview.page(
        "trend.html.jinja",
        sections,
        is_large=len(rows) > _MANY_SERIES or numbers > _MANY_RESULTS,
        data=data,
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


def _headline(rows: Sequence[_Row]) -> str:
    if not rows:
        return "No results."

    of_results = [row for row in rows if not row.series.is_reading]
    results = sum(len(row.series.times) for row in of_results)
    testbeds = sorted({row.series.key.testbed for row in rows})
    first = min(row.series.times[0] for row in rows)
    last = max(row.series.times[-1] for row in rows)
    alarms = sum(row.trend.is_alarm for row in rows)
    readings = len(rows) - len(of_results)

    counted = f"{len(of_results)} series of {results_counted(results)}"
    parts = [f"{counted}, {alarms or 'none'} of them with an alarm"]
    if readings:
        parts.append(f"{readings} of latency and telemetry")
    parts.append(f"testbed{'s' if len(testbeds) > 1 else ''} {', '.join(testbeds)}")
    parts.append(range_in_words(f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"))
    parts.append("rates are per interface")
    return " · ".join(parts)


def _columns(series: Series, links: Callable[[str], str | None]) -> dict[str, JsonValue]:
    """All results of a series in columns: minutes since the first, values and bounds, and texts by their index."""
    texts: dict[str, int] = {"": 0}
    first = series.times[0]
    count = len(series.times)
    runs = series["run"]

    def places(column: Iterable[str]) -> list[JsonValue]:
        return [texts.setdefault(text, len(texts)) for text in column]

    minutes: list[JsonValue] = [
        round((time - first).total_seconds() / 60.0) for time in series.times
    ]
    # Record: the script of the page reads these columns.
    columns: dict[str, JsonValue] = {
        "first": first.astimezone(timezone.utc).isoformat(timespec="minutes"),
        "minutes": minutes,
        "values": places(_in_words(series, index) for index in range(count)),
        "bounds": places(_bounds(series, index) for index in range(count)),
        "states": places(_state(series, index) for index in range(count)),
        "runs": places(run or "" for run in runs),
    }
    linked = {run: links(run) for run in dict.fromkeys(runs) if run}
    columns["texts"] = list(texts)
    columns["links"] = {str(texts[run]): link for run, link in linked.items() if link is not None}
    return columns


def _state(series: Series, index: int) -> str:
    """The doubts about a result and its reason, in words."""
    return "; ".join(filter(None, (*sorted(series.kinds[index]), series["reason"][index])))


def _in_words(series: Series, index: int) -> str:
    value = float(series.values[index])
    if np.isfinite(value):
        return series.unit.format(value)
    return "no value"


def _aggregate(series: Series) -> str:
    """The newest value as an aggregate; empty: there is no value, or it already is an aggregate."""
    value = float(series.values[-1])
    if series.aggregate_factor is None or not np.isfinite(value):
        return ""
    return series.unit.format(value * series.aggregate_factor)


def _bounds(series: Series, index: int) -> str:
    ends = [series.unit.format(end) for end in series.bounds_of(index) if end is not None]
    return range_in_words(ends[0], ends[-1]) if ends else ""


def draw_trend(trend: Trend, known: Iterable[KnownChange]) -> str:
    """Draws a trend."""
    series = trend.series
    times = [time.timestamp() / _DAY for time in series.times]
    bars = list(_error_bars(series, times))
    plot = drawing.Plot(*_axes(series, times, [end for bar in bars for end in bar[1:]]))
    about, in_words = drawing.values_axis(series.unit, series.key.quantity, plot.y.high)
    ticks, words = date_ticks(plot.x.low, plot.x.high, int((plot.x.end - _LEFT) / _DATE))
    plot.frame(ticks, plot.y.ticks(4), words, in_words)
    plot.text(4.0, 14.0, about)
    changes = [change for change in known if change.concerns(series.key)]

    for change in changes:
        day = (
            datetime(
                change.date.year, change.date.month, change.date.day, tzinfo=timezone.utc
            ).timestamp()
            / _DAY
        )
        if plot.x.holds(day):
            plot.line([(day, plot.y.low), (day, plot.y.high)], _KNOWN, dash="2 3")
            plot.text(plot.x.place(day) + 4, _TOP - 2, str(change))

    if bars:
        path = "".join(
            f"M{plot.x.place(x):.1f} {plot.y.place(low):.1f}V{plot.y.place(high):.1f}"
            for x, low, high in bars
        )
        plot.add("path", d=path, fill="none", stroke=_BOUNDS, stroke_width=1.6)

    hints = len(times) <= _MOST_HINTS
    by_mark: dict[drawing.Mark, list[tuple[float, float, str]]] = {
        mark: [] for mark in (_MEASURED, _DOUBTFUL, _MISSING)
    }
    for index, (day, value) in enumerate(zip(times, series.values, strict=True)):
        mark = _DOUBTFUL if series.kinds[index] else _MEASURED
        if np.isfinite(value):
            height = float(value)
        else:
            mark = _MISSING
            height = plot.y.low

        by_mark[mark].append((day, height, _hint(series, index) if hints else ""))

    for mark, points in by_mark.items():
        if hints or mark is not _MEASURED:
            plot.marks(mark, points)
        else:
            path = "".join(
                f"M{plot.x.place(day):.1f} {plot.y.place(height):.1f}h0"
                for day, height, _ in points
            )
            dots = {
                "fill": "none",
                "stroke": mark.colour,
                "stroke_width": 3.0,
                "stroke_linecap": "round",
            }
            plot.add("path", d=path or "M0 0", **dots)

    plot.steps(
        (
            (times[step.first], times[step.last], level)
            for step in trend.steps
            for level in step.levels
        ),
        _STEP,
    )
    swatches = [("steps", _STEP, 1.0)]
    swatches += [("bounds", _BOUNDS, 1.0)] if bars else []
    swatches += [("known changes", _KNOWN, 1.0)] if changes else []
    end = plot.legend(
        [mark for mark, points in by_mark.items() if points], swatches, _LEFT, _HEIGHT - 12.0
    )

    return plot.svg(end + 12.0, describe_trend(trend))


def date_ticks(low: float, high: float, most: int) -> tuple[list[float], Callable[[float], str]]:
    """At most so many dates for an axis, in days since 1970, each once, and a function that formats a date."""
    hours = next((hours for hours in _HOURS if (high - low) * 24 / hours <= most), None)
    if hours is not None:
        # Weeks begin on Monday. The fifth day of 1970 was a Monday.
        midnight = math.floor(low)
        first = midnight - ((midnight - 4) % 7 if hours >= 168 else 0)
        ticks = (
            second / _DAY
            for second in range(first * 86_400, math.ceil(high * _DAY) + 1, hours * 3600)
        )
        pattern = "%m-%d %H:%M" if hours < 24 else "%Y-%m-%d"
        return [day for day in ticks if low <= day <= high], lambda day: f"{_moment(day):{pattern}}"

    months = next((step for step in _MONTHS if (high - low) / 30.44 / step <= most), _MONTHS[-1])
    whole = [
        year * 12 + month
        for year in range(_moment(low).year, _moment(high).year + 1)
        for month in range(12)
    ]
    dates = (
        datetime(month // 12, month % 12 + 1, 1, tzinfo=timezone.utc)
        for month in whole
        if month % months == 0
    )
    days = [day for date in dates if low <= (day := date.timestamp() / _DAY) <= high]

    return days, lambda day: f"{_moment(day):%Y-%m}" if months < 12 else f"{_moment(day):%Y}"


def _axes(
    series: Series, times: Sequence[float], ends: Sequence[float]
) -> tuple[drawing.Axis, drawing.Axis]:
    shown = [*series.values[np.isfinite(series.values)], *ends] or [0.0, 1.0]
    low, high = float(min(shown)), float(max(shown))
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
    value = float(series.values[index])
    if np.isfinite(value):
        words = series.unit.format(value)
    else:
        words = f"no value: {series['reason'][index]}"

    kinds = "".join(f", {kind}" for kind in sorted(series.kinds[index]))
    return f"{series.times[index]:%Y-%m-%d %H:%M}: {words}{kinds}"


def _moment(day: float) -> datetime:
    # Days have rounding errors of microseconds.
    return datetime.fromtimestamp(round(day * _DAY, 3), tz=timezone.utc)
