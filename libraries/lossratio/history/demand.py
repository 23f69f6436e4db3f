"""The demand that a result has not regressed, against the history of its test on its testbed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lossratio.errors import RegressionError, ReportError
from lossratio.history.analysis import known_changes
from lossratio.history.entries import Entry, entries_of
from lossratio.history.series import MEASURED, Series, SeriesKey, series_of
from lossratio.history.store import History
from lossratio.history.trend import FRESH, LAST, LEAST_CHANGE, Trend, trends_of
from lossratio.history.trend_text import describe_trend
from lossratio.report import Run
from lossratio.results import TestResult
from lossratio.units import Unit


def trends_with(history: History, result: TestResult, *, fresh: int, least_change: float) -> list[Trend]:
    """The trends of a test with a result at the end of its history, which is not changed.

    Args:
        history: The history.
        result: The result.
        fresh: A change that began among this many newest values is fresh.
        least_change: Smaller relative changes raise no alarm.

    Raises:
        ReportError: If the history or its known changes cannot be read.
    """
    entries = list(entries_of(Run(history.path, (result,))))
    earlier = {series.key: series for series in series_of(history.read(testbed=entries[0].testbed).table, LAST)}
    series = [_continued(earlier.get(_key(entry)), entry) for entry in entries]
    return trends_of(series, known_changes(history, None), fresh=fresh, least_change=least_change)


def require_no_regression(
    history: History,
    result: TestResult,
    quantity: str | None = None,
    *,
    fresh: int = FRESH,
    least_change: float = LEAST_CHANGE,
) -> list[Trend]:
    """Checks that a result is no regression.

    Args:
        history: The history.
        result: The result; it need not be in the history.
        quantity: Name of a goal, or MRR; None: all quantities of the result.
        fresh: A change that began among this many newest values is fresh.
        least_change: Smaller relative changes raise no alarm.

    Returns:
        The trends, also those with too few results for a verdict.

    Raises:
        RegressionError: If a value got worse or is missing, and no known change explains it.
        ReportError: If the history cannot be read, or the result has no such quantity.
    """
    trends = trends_with(history, result, fresh=fresh, least_change=least_change)
    chosen = [trend for trend in trends if quantity in (None, trend.series.key.quantity)]
    if not chosen:
        known = ", ".join(trend.series.key.quantity for trend in trends)
        raise ReportError(f"{result.test.full_name} has no {quantity}; it has: {known}.")
    alarms = [describe_trend(trend) for trend in chosen if trend.is_alarm]
    if alarms:
        raise RegressionError("\n".join(alarms))
    return chosen


def _key(entry: Entry) -> SeriesKey:
    return SeriesKey(entry.testbed, entry.test, entry.quantity)


def _continued(earlier: Series | None, entry: Entry) -> Series:
    """A series with a result at its end. A result that is in the series already counts once."""
    value = np.nan if entry.value is None else entry.value
    kinds = frozenset((*entry.doubts, *(() if entry.outcome == MEASURED else (entry.outcome,))))
    newest = Series(
        _key(entry),
        (entry.started,),
        np.array([value]),
        (kinds,),
        (entry.reason,),
        (entry.measured_as,),
        Unit(entry.unit, entry.lower_is_better),
    )
    if earlier is None:
        return newest
    before = earlier.chosen([place for place, time in enumerate(earlier.times) if time < entry.started])
    return replace(
        newest,
        times=before.times + newest.times,
        values=np.concatenate([before.values, newest.values]),
        kinds=before.kinds + newest.kinds,
        reasons=before.reasons + newest.reasons,
        measured_as=before.measured_as + newest.measured_as,
    )
