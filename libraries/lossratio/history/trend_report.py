"""Trends to read, alarms first: a short text, and JUnit cases."""

from __future__ import annotations

from collections.abc import Iterator

from lossratio.history.analysis import Analysis
from lossratio.history.trend import Trend, TrendVerdict, describe_trend
from lossratio.report import Case


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
