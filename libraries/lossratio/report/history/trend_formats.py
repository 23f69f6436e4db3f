"""The trends of a history as text, as JSON, and as cases of JUnit."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

import numpy as np

from lossratio.report import Case, Verdict, judged_case, verdicts_counted
from lossratio.report.history.analysis import Analysis
from lossratio.report.history.bands import Bands
from lossratio.report.history.trend import Change, Trend
from lossratio.report.history.trend_words import describe_trend, sentence_of
from lossratio.report.history.unmeasured import describe_nothing_measured
from lossratio.results import quick_goals_in
from lossratio.values import counted, in_one_line, results_counted

FORMAT = "lossratio-trend/2"
_QUIET = (Verdict.STEADY, Verdict.TOO_FEW)
"""Verdicts that alone are not worth a line."""


def trend_text(analysis: Analysis) -> str:
    """One sentence; a line for each alarm, known change, progression and change of kind; a summary; readings."""
    lines = [sentence_of(analysis.trends), *_lines(analysis.trends), *_summary(analysis)]
    if analysis.readings:
        results = sum(len(trend.series.times) for trend in analysis.readings)
        lines += _lines(analysis.readings)
        lines.append(
            f"{counted(len(analysis.readings), 'reading')} of latency and telemetry, {counted(results, 'number')}: "
            f"{verdicts_counted(analysis.readings)}. They explain changes and raise no alarms."
        )
    return "\n".join(map(in_one_line, lines))


def _lines(trends: Sequence[Trend]) -> list[str]:
    """A line for each trend that is worth one, in the order of the verdicts."""
    # Changes that come from the tester are in the tester's line.
    told = {follower.series.key for trend in trends for follower in trend.followers}
    shown = [trend for trend in trends if _is_worth_a_line(trend) and trend.series.key not in told]
    return [describe_trend(trend) for trend in sorted(shown, key=attrgetter("verdict.order"))]


def _is_worth_a_line(trend: Trend) -> bool:
    """Whether a trend says more than that nothing is known to have changed."""
    if trend.verdict not in _QUIET:
        return True
    return bool(trend.new_kinds or trend.bands or trend.successor)


def _summary(analysis: Analysis) -> Iterator[str]:
    results = sum(len(trend.series.times) for trend in analysis.trends)
    yield (
        f"{len(analysis.trends)} series of {results_counted(results)}: "
        f"{verdicts_counted(analysis.trends) or 'no series'}. Rates are per interface."
    )

    banded = sum(trend.bands is not None for trend in analysis.trends)
    if banded:
        yield f"Two bands: {banded} of these series, whose values flip between two levels; real changes move both."
    begun_anew = Counter(trend.series.begins for trend in analysis.trends if trend.series.begins)
    for change, count in begun_anew.items():
        yield f"starts again: {change}: {count} of these series"
    old = sum(trend.is_old for trend in analysis.trends)
    if old:
        yield f"Old: {old} of these series have not been measured recently; their verdicts are just as old."
    yield from quick_goals_in(trend.series.key.quantity for trend in analysis.trends)
    yield from describe_nothing_measured(analysis.unmeasured)
    yield from (f"Not read: {problem}" for problem in analysis.problems)


def trend_cases(analysis: Analysis) -> list[Case]:
    """The trends as JUnit cases: an alarm is a failure, a series with too few results is skipped."""
    return [
        judged_case(
            f"{trend.series.key.testbed}.{trend.test}",
            trend.series.quantity,
            trend.verdict,
            describe_trend(trend),
            trend.series.stream,
        )
        for trend in analysis.trends
    ]


def trend_json(analysis: Analysis) -> str:
    """All trends as JSON: the verdict, change, bands and newest result of each. The trends of readings come last."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "trends": [trend_as_data(trend) for trend in analysis.trends],
    }

    if analysis.readings:
        fields["readings"] = [trend_as_data(trend) for trend in analysis.readings]
    fields["unmeasured"] = [
        {**asdict(test), "time": test.time.isoformat()} for test in analysis.unmeasured
    ]
    return json.dumps({**fields, "problems": analysis.problems}, indent=2) + "\n"


def trend_as_data(trend: Trend) -> dict[str, Any]:
    """A trend as JSON data: its series, verdict, change, bands and newest result."""
    # Record: the format's fields of a trend.
    return {
        **asdict(trend.series.key),
        "stream": trend.series.stream,
        "unit": trend.series.unit.name,
        "aggregate_factor": trend.series["aggregate_factor"][-1],
        "verdict": trend.verdict.value,
        "is_alarm": trend.is_alarm,
        "text": describe_trend(trend),
        "change": None if trend.change is None else _change(trend.change),
        "bands": None if trend.bands is None else _bands(trend.bands),
        "builds": trend.builds,
        "notes": [str(note) for note in trend.notes],
        "new_kinds": trend.new_kinds,
        "results": len(trend.series.times),
        "newest": {
            "started": trend.series.times[-1].isoformat(),
            "value": _finite(trend.series.values[-1]),
            "reason": trend.series["reason"][-1],
        },
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "ratio": _finite(change.ratio),
        "before": change.before,
        "after": change.after,
        "began": change.began.isoformat(),
        "known": None if change.known is None else str(change.known),
    }


def _bands(bands: Bands) -> dict[str, Any]:
    return {
        "low": bands.low,
        "high": bands.high,
        "in_lower": bands.in_lower_count,
        "in_upper": bands.in_upper_count,
        "switches": bands.switches,
    }


def _finite(value: float) -> float | None:
    if np.isfinite(value):
        return float(value)
    return None
