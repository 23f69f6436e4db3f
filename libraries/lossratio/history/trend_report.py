"""Trends to read, alarms first: a short text, JUnit cases, and one HTML page with a picture of each series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

import numpy as np

from lossratio.drawing import Axis, Mark, Plot, drawing, html_page, in_unit, legend, text_at, unit_of
from lossratio.history.analysis import Analysis
from lossratio.history.annotations import KnownChange
from lossratio.history.entries import Series
from lossratio.history.trend import Trend, TrendVerdict, describe_trend
from lossratio.report import Case
from lossratio.units import FRAMES_PER_SECOND

_WIDTH, _HEIGHT = 900.0, 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 880.0, 32.0, 182.0
_DAY = 86_400.0
_STEP, _KNOWN = "#D55E00", "#777777"
_MEASURED = Mark("measured", "measured", "circle", "#0072B2")
_DOUBTFUL = Mark("doubtful", "irregular, or doubts about it", "square", "#0072B2", is_filled=False)
_MISSING = Mark("missing", "no value", "cross", "#B3261E", is_filled=False)


def trend_text(analysis: Analysis) -> str:
    """Alarms, known changes, progressions and changes of kind, one line each; then a summary."""
    order = list(TrendVerdict)
    trends = sorted(analysis.trends, key=lambda trend: order.index(trend.verdict))
    quiet = (TrendVerdict.STEADY, TrendVerdict.TOO_FEW)
    lines = [describe_trend(trend) for trend in trends if trend.verdict not in quiet or trend.new_kinds]
    return "\n".join((*lines, *_summary(analysis)))


def trend_cases(analysis: Analysis) -> list[Case]:
    """The trends as JUnit cases: an alarm is a failure, a series with too few results is skipped."""
    return [_case(trend) for trend in analysis.trends]


def _summary(analysis: Analysis) -> Iterator[str]:
    counts = {verdict: sum(trend.verdict is verdict for trend in analysis.trends) for verdict in TrendVerdict}
    verdicts = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count) or "no series"
    results = sum(len(trend.series.times) for trend in analysis.trends)
    yield f"{len(analysis.trends)} series of {results:,} results: {verdicts}. Rates are aggregates."
    old = sum(trend.is_old for trend in analysis.trends)
    if old:
        yield f"Old: {old} of these series, whose tests seem not to run any more; their verdicts are as old."
    if not analysis.has_verdict:
        yield "No verdict: there are too few results."
    yield from (f"Not read: {problem}" for problem in analysis.problems)


def _case(trend: Trend) -> Case:
    state = "failure" if trend.is_alarm else "skipped" if trend.verdict is TrendVerdict.TOO_FEW else "passed"
    key = trend.series.key
    text = describe_trend(trend)
    return Case(suite=f"{key.testbed}.{key.test}", name=key.quantity, state=state, message=text, output=text)


def draw_trend(trend: Trend, known: Iterable[KnownChange]) -> str:
    """Draws a trend.

    Args:
        trend: The trend.
        known: Known changes; those of this series are drawn.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is.
    """
    series = trend.series
    plot = Plot(*_axes(series))
    is_rate = series.unit == FRAMES_PER_SECOND
    prefix, scale = unit_of(plot.y.high) if is_rate else ("", 1.0)
    days = plot.x.ticks(8)
    plot.frame(days, plot.y.ticks(4), lambda day: f"{_day(day):%Y-%m-%d}", in_unit(scale))
    plot.parts.append(
        text_at(4.0, 14.0, f"{'aggregate rate' if is_rate else series.key.quantity}, {prefix}{series.unit.name}")
    )
    changes = [change for change in known if change.concerns(series.key)]
    for change in changes:
        day = datetime(change.date.year, change.date.month, change.date.day, tzinfo=timezone.utc).timestamp() / _DAY
        if plot.x.holds(day):
            plot.line([(day, plot.y.low), (day, plot.y.high)], _KNOWN, dash="2 3")
            plot.parts.append(text_at(plot.x.place(day) + 4, _TOP - 2, change.note))
    times = [time.timestamp() / _DAY for time in series.times]
    plot.steps([(times[step.first], times[step.last], step.mean) for step in trend.steps], _STEP)
    for mark in (_MEASURED, _DOUBTFUL, _MISSING):
        shown = [index for index in range(len(times)) if _mark(series, index) is mark]
        plot.marks(mark, [(times[index], _value(series, index, plot.y), _hint(series, index)) for index in shown])
    swatches = [("steps", _STEP, 1.0), ("known changes", _KNOWN, 1.0)]
    used = {_mark(series, index).name for index in range(len(times))}
    marks = [mark for mark in (_MEASURED, _DOUBTFUL, _MISSING) if mark.name in used]
    plot.parts += legend(marks, swatches[: 2 if changes else 1], _LEFT, _HEIGHT - 12.0)
    return drawing(_WIDTH, _HEIGHT, describe_trend(trend), plot.parts)


def _axes(series: Series) -> tuple[Axis, Axis]:
    times = [time.timestamp() / _DAY for time in series.times]
    values = series.values[np.isfinite(series.values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    room = 0.1 * (high - low) or 0.05 * high or 1.0
    margin = 0.02 * (times[-1] - times[0]) or 0.5
    return (
        Axis(times[0] - margin, times[-1] + margin, _LEFT, _RIGHT),
        Axis(max(0.0, low - room), high + room, _BOTTOM, _TOP),
    )


def _mark(series: Series, index: int) -> Mark:
    if not np.isfinite(series.values[index]):
        return _MISSING
    return _DOUBTFUL if series.kinds[index] else _MEASURED


def _value(series: Series, index: int, axis: Axis) -> float:
    value = float(series.values[index])
    return value if np.isfinite(value) else axis.low


def _hint(series: Series, index: int) -> str:
    value = float(series.values[index])
    words = series.unit.format(value) if np.isfinite(value) else f"no value: {series.reasons[index]}"
    kinds = "".join(f", {kind}" for kind in sorted(series.kinds[index]))
    return f"{series.times[index]:%Y-%m-%d %H:%M}: {words}{kinds}"


def _day(day: float) -> datetime:
    return datetime.fromtimestamp(day * _DAY, tz=timezone.utc)


def trend_page(analysis: Analysis, title: str) -> str:
    """The page of some trends.

    Args:
        analysis: The trends.
        title: The title of the page.
    """
    order = list(TrendVerdict)
    trends = sorted(analysis.trends, key=lambda trend: order.index(trend.verdict))
    return html_page(
        "trend.html.jinja",
        title=title,
        trends=[(trend, draw_trend(trend, analysis.known), describe_trend(trend)) for trend in trends],
        problems=analysis.problems,
    )
