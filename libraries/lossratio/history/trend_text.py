"""Trends in words: a short text, alarms first, and JUnit cases."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lossratio.history.analysis import Analysis
from lossratio.history.trend import Trend, TrendVerdict
from lossratio.report import Case


def trend_text(analysis: Analysis) -> str:
    """Alarms, known changes, progressions and changes of kind, one line each; then a summary."""
    order = list(TrendVerdict)
    trends = sorted(analysis.trends, key=lambda trend: order.index(trend.verdict))
    quiet = (TrendVerdict.STEADY, TrendVerdict.TOO_FEW)
    lines = [describe_trend(trend) for trend in trends if trend.verdict not in quiet or trend.new_kinds]
    return "\n".join((*lines, *_summary(analysis)))


def describe_trend(trend: Trend) -> str:
    """A trend in one line."""
    return f"{trend.verdict.value}: {trend.series.key}: {'; '.join(_details(trend)) or 'nothing changed lately'}"


def trend_cases(analysis: Analysis) -> list[Case]:
    """The trends as JUnit cases: an alarm is a failure, a series with too few results is skipped."""
    return [_case(trend) for trend in analysis.trends]


def _details(trend: Trend) -> Iterator[str]:
    if trend.change is not None:
        change, unit = trend.change, trend.series.unit
        yield (
            f"{unit.format(change.before)} to {unit.format(change.after)} ({100 * change.ratio:+.2f} %) "
            f"since {change.began:%Y-%m-%d %H:%M} UTC"
        )
        if change.known is not None:
            yield f"known: {change.known.note}"
    if trend.verdict is TrendVerdict.NO_VALUE:
        yield f"the newest result of {trend.series.times[-1]:%Y-%m-%d %H:%M} UTC: {trend.series.reasons[-1]}"
    if trend.new_kinds:
        yield f"change of kind: {', '.join(trend.new_kinds)}"
    if trend.verdict is TrendVerdict.TOO_FEW:
        count = int(np.isfinite(trend.series.values).sum())
        yield f"{len(trend.series.times)} results, {count or 'none'} of them with a value"
    if trend.is_old:
        yield (
            f"old: not measured since {trend.series.times[-1]:%Y-%m-%d %H:%M} UTC, {trend.idle.days} days before the "
            "testbed's newest result"
        )
    if trend.left_out:
        yield f"{trend.left_out} earlier results are left out: they are of other traffic, another path or another goal"


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
