"""Trends to read, alarms first: a short text, JUnit cases, and JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from lossratio.history.analysis import Analysis
from lossratio.history.bands import Bands
from lossratio.history.trend import NO_VERDICT, Change, Trend, TrendVerdict, describe_trend
from lossratio.report import Case

FORMAT = "lossratio-trend/1"


def trend_text(analysis: Analysis) -> str:
    """Alarms, known changes, progressions and changes of kind, one line each; then a summary. Readings are last."""
    lines = [*_lines(analysis.trends), *_summary(analysis)]
    if analysis.readings:
        results = sum(len(trend.series.times) for trend in analysis.readings)
        lines += _lines(analysis.readings)
        lines.append(
            f"{len(analysis.readings)} readings of latency and telemetry, {results:,} numbers: "
            f"{_verdicts(analysis.readings)}. They explain changes, and are no alarms."
        )
    return "\n".join(lines)


def _lines(trends: Sequence[Trend]) -> list[str]:
    order = list(TrendVerdict)
    quiet = (TrendVerdict.STEADY, TrendVerdict.TOO_FEW)
    return [
        describe_trend(trend)
        for trend in sorted(trends, key=lambda trend: order.index(trend.verdict))
        if trend.verdict not in quiet or trend.new_kinds or trend.bands
    ]


def _verdicts(trends: Sequence[Trend]) -> str:
    counts = {verdict: sum(trend.verdict is verdict for trend in trends) for verdict in TrendVerdict}
    return ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count) or "no series"


def trend_cases(analysis: Analysis) -> list[Case]:
    """The trends as JUnit cases: an alarm is a failure, a series with too few results is skipped."""
    return [_case(trend) for trend in analysis.trends]


def _summary(analysis: Analysis) -> Iterator[str]:
    results = sum(len(trend.series.times) for trend in analysis.trends)
    yield f"{len(analysis.trends)} series of {results:,} results: {_verdicts(analysis.trends)}. Rates are aggregates."
    banded = sum(trend.bands is not None for trend in analysis.trends)
    if banded:
        yield f"Two bands: {banded} of these series, whose SUTs flip between two states; real changes move both bands."
    old = sum(trend.is_old for trend in analysis.trends)
    if old:
        yield f"Old: {old} of these series, whose tests seem not to run any more; their verdicts are as old."
    if not analysis.has_verdict:
        yield "No verdict: there are too few results, or the generator did not send enough."
    yield from (f"Not read: {problem}" for problem in analysis.problems)


def _case(trend: Trend) -> Case:
    state = "failure" if trend.is_alarm else "skipped" if trend.verdict in NO_VERDICT else "passed"
    key = trend.series.key
    text = describe_trend(trend)
    return Case(suite=f"{key.testbed}.{key.test}", name=key.quantity, state=state, message=text, output=text)


def trend_json(analysis: Analysis) -> str:
    """The trends as JSON, alarms or not: verdict, change, bands, and the newest result of each; then the readings'."""
    fields: dict[str, Any] = {"format": FORMAT, "trends": [_trend(trend) for trend in analysis.trends]}
    if analysis.readings:
        fields["readings"] = [_trend(trend) for trend in analysis.readings]
    return json.dumps({**fields, "problems": analysis.problems}, indent=2) + "\n"


def _trend(trend: Trend) -> dict[str, Any]:
    return {
        **asdict(trend.series.key),
        "unit": trend.series.unit.name,
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
            "reason": trend.series.reasons[-1],
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


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _bands(bands: Bands) -> dict[str, Any]:
    return {
        "low": bands.low,
        "high": bands.high,
        "in_lower": bands.looked_at - bands.in_upper_count,
        "in_upper": bands.in_upper_count,
        "switches": bands.switches,
    }
