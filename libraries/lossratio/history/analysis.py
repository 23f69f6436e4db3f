"""The trends of a whole history: the history is read and divided into series, and each series has a trend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from lossratio.history.annotations import ANNOTATIONS_NAME, KnownChange, load_known_changes
from lossratio.history.entries import entries_of
from lossratio.history.series import Series, series_of
from lossratio.history.store import History
from lossratio.history.trend import FRESH, LAST, LEAST_CHANGE, Trend, TrendVerdict, trends_of
from lossratio.report import read_run


@dataclass(frozen=True)
class TrendRequest:
    """Which trends to compute.

    Attributes:
        testbed: Name of the testbed; None: all.
        test: Full names of tests: one, or a pattern with ``*``.
        quantity: Names of goals (or MRR), likewise.
        fresh: A change that began among this many newest values is fresh.
        last: How many of the newest results of a series are looked at.
        least_change: Smaller relative changes raise no alarm.
        annotations: File of known changes; None: the file in the history's folder, if there is one.
    """

    testbed: str | None = None
    test: str = "*"
    quantity: str = "*"
    fresh: int = FRESH
    last: int = LAST
    least_change: float = LEAST_CHANGE
    annotations: Path | None = None


@dataclass(frozen=True)
class Analysis:
    """The trends of a history.

    Attributes:
        trends: The trends, by testbed, test and quantity.
        known: Known changes.
        problems: Files that could not be read.
    """

    trends: tuple[Trend, ...]
    known: tuple[KnownChange, ...]
    problems: tuple[str, ...]

    @property
    def alarms(self) -> tuple[Trend, ...]:
        """The trends that somebody should look at."""
        return tuple(trend for trend in self.trends if trend.is_alarm)

    @property
    def has_verdict(self) -> bool:
        """Whether any series has enough results for a verdict."""
        return any(trend.verdict is not TrendVerdict.TOO_FEW for trend in self.trends)


def analyse(history: History, request: TrendRequest) -> Analysis:
    """Computes the trends of a history.

    Raises:
        ReportError: If the history or the known changes cannot be read.
    """
    known = known_changes(history, request.annotations)
    stored = history.read(testbed=request.testbed)
    whole = list(series_of(stored.table, request.last))
    newest = _newest_by_testbed(whole)
    chosen = [
        series
        for series in whole
        if fnmatchcase(series.key.test, request.test) and fnmatchcase(series.key.quantity, request.quantity)
    ]
    trends = (
        replace(trend, idle=newest[trend.series.key.testbed] - trend.series.times[-1])
        for trend in trends_of(chosen, known, fresh=request.fresh, least_change=request.least_change)
    )
    return Analysis(tuple(trends), known, stored.problems)


def _newest_by_testbed(whole: Sequence[Series]) -> dict[str, datetime]:
    newest: dict[str, datetime] = {}
    for series in whole:
        testbed = series.key.testbed
        newest[testbed] = max(newest.get(testbed, series.times[-1]), series.times[-1])
    return newest


def known_changes(history: History, file: Path | None) -> tuple[KnownChange, ...]:
    """The known changes of a history.

    Args:
        history: The history.
        file: The file of known changes; None: the file in the history's folder, if there is one.

    Raises:
        ReportError: If the file cannot be read.
    """
    default = history.path / ANNOTATIONS_NAME
    chosen = file or (default if default.exists() else None)
    return () if chosen is None else load_known_changes(chosen)


def add_runs(history: History, runs: Iterable[Path]) -> list[str]:
    """Adds runs to a history. A run that is added again changes nothing.

    Returns:
        Messages about files that cannot be read; all others were added.

    Raises:
        ReportError: If a path is no run directory, or the history cannot be written.
    """
    problems: list[str] = []
    for path in runs:
        run = read_run(path)
        history.add(entries_of(run))
        problems += [*run.problems, *(f"{path}: {test.name} was cut off, and is not added." for test in run.cut_off)]
    return problems
