"""The trends of a whole history, and the check that a result has not regressed against it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path

from lossratio.errors import RegressionError, ReportError
from lossratio.report import Run, Verdict, read_run
from lossratio.report.history.annotations import (
    ANNOTATIONS_NAME,
    KnownChange,
    KnownChanges,
    add_known_changes,
    load_known_changes,
)
from lossratio.report.history.entries import Entry, entries_of
from lossratio.report.history.series import Series, SeriesKey, series_of
from lossratio.report.history.store import History, Query, StoredEntries
from lossratio.report.history.testers import with_testers
from lossratio.report.history.trend import Trend, TrendRules, trends_of
from lossratio.report.history.trend_words import describe_trend
from lossratio.report.history.unmeasured import NothingMeasured, left_out_of
from lossratio.results import TestResult
from lossratio.values import did_you_mean, names_near, shown_value

_MOST_SHOWN = 20
"""The largest number of names in an error. Nobody reads more."""


@dataclass(frozen=True)
class TrendRequest(TrendRules):
    """Which trends to compute."""

    testbed: str | None = None
    """Name of the testbed; None: all."""
    test: str = "*"
    """The full name of a test, or a pattern with ``*``."""
    quantity: str = "*"
    """The name of a goal (or MRR), or a pattern with ``*``."""
    device: str = "*"
    """A device with its options, in words, or a pattern with ``*``, e.g. ``linux_router, police=*``. A series whose
    device is not known matches any pattern."""
    last: int = 250
    """How many of the newest results of a series are used."""
    annotations: Path | None = None
    """File of known changes; None: the file in the history's folder, if there is one."""
    readings: bool = False
    """Whether readings also have trends: latency at each load, and numbers of the devices' telemetry."""


@dataclass(frozen=True)
class Analysis:
    """The trends of a history."""

    trends: tuple[Trend, ...]
    """The trends, by testbed, test and quantity."""
    known: tuple[KnownChange, ...]
    """Known changes."""
    problems: tuple[str, ...]
    """Files that could not be read."""
    readings: tuple[Trend, ...] = ()
    """The trends of readings, by testbed and test. They explain other trends, and are never alarms."""
    unmeasured: tuple[NothingMeasured, ...] = ()
    """Tests that measured nothing the last time. They are no alarms, because the run itself failed."""

    @property
    def alarms(self) -> tuple[Trend, ...]:
        """The trends that somebody should look at."""
        return tuple(trend for trend in self.trends if trend.is_alarm)

    @property
    def of_tester(self) -> tuple[Trend, ...]:
        """The trends whose change comes from the tester."""
        return tuple(trend for trend in self.trends if trend.verdict is Verdict.TESTER)

    @property
    def has_verdict(self) -> bool:
        """Whether any series has enough results for a verdict."""
        return not all(trend.verdict.is_open for trend in self.trends)


def analyse(history: History, request: TrendRequest, added: Sequence[Entry] = ()) -> Analysis:
    """Computes the trends of a history.

    Args:
        history: The history.
        request: Which trends to compute.
        added: The entries of a result that follow the history, which is not changed.

    Raises:
        ReportError: If the history or the known changes cannot be read, or the history has no such testbed, test,
            quantity or device.
    """
    changes = _known_changes(history, request.annotations)
    fresh = request.fresh if request.readings else None
    stored = history.read(Query(request.testbed, fresh, changes.names, added))
    if request.testbed is not None and not added:
        _check_known("testbed", request.testbed, history.testbeds())
    known = changes.followed
    whole = list(series_of(stored.table, request.last))
    # The latest time of a testbed comes last, and is kept.
    newest = dict(sorted((series.key.testbed, series.times[-1]) for series in whole))
    readings = list(_readings_of(stored, whole, request.last))

    for what in ("test", "quantity", "device"):
        wanted = getattr(request, what)
        names = dict.fromkeys(getattr(series.key, what) for series in (*whole, *readings))
        names |= dict.fromkeys(each.test for each in stored.unmeasured) if what == "test" else {}
        names.pop("", None)
        if names:
            _check_known(what, wanted, list(names))

    # Entries of other testbeds were not read.
    chosen = replace(request, testbed="*")
    trends = list(_with_successors(_asked_trends(whole, newest, known, chosen), whole))
    explaining = _asked_trends(readings, newest, known, chosen)
    # The tester's own tests have no device.
    twins = trends_of([series for series in whole if series.has_no_device], known, request)
    judged = with_testers(trends, twins, request)
    unmeasured = (one for one in stored.unmeasured if fnmatchcase(one.test, request.test))
    # Record: what is known now.
    return Analysis(tuple(judged), known, stored.problems, tuple(explaining), tuple(unmeasured))


def _readings_of(stored: StoredEntries, whole: Sequence[Series], last: int) -> Iterator[Series]:
    """The series of readings, if they were read, of devices that were not replaced."""
    if stored.readings is not None:
        measured = {(one.key.testbed, one.key.test, one.key.device) for one in whole}
        for one in series_of(stored.readings, last, are_readings=True):
            if (one.key.testbed, one.key.test, one.key.device) in measured:
                yield one


def _check_known(what: str, wanted: str, names: Sequence[str]) -> None:
    """Refuses a name, or a pattern with ``*``, that fits none of the names."""
    if any(fnmatchcase(name, wanted) for name in names):
        return
    rest = ", ..." if len(names) > _MOST_SHOWN else ""
    known = f" It has: {', '.join(names[:_MOST_SHOWN])}{rest}."
    meant = did_you_mean(wanted, names) or known
    raise ReportError(f"The history has no {what} {shown_value(wanted)}.{meant}")


def _asked_trends(
    found: Iterable[Series],
    newest: Mapping[str, datetime],
    known: tuple[KnownChange, ...],
    request: TrendRequest,
) -> list[Trend]:
    """The trends of the requested series, each with the time for which its testbed has newer results."""
    asked = [series for series in found if series.key.fits(request)]
    return [
        replace(trend, idle=newest[trend.series.key.testbed] - trend.series.times[-1])
        for trend in trends_of(asked, known, request)
    ]


def _may_follow(ended: Series, other: Series) -> bool:
    """Whether a series of another test, which measures the same, began after one had ended, in at least two runs."""
    runs = ended["run_started"][-1], other["run_started"][0]
    if not ended.key.measured_as or None in runs or len(other.times) < 2:
        return False
    return bool(runs[0] < runs[1]) and ended.times[-1] < other.times[0]


def _with_successors(trends: Iterable[Trend], whole: Sequence[Series]) -> Iterator[Trend]:
    """The trends; those of a test that is no longer measured name the next series that measures the same."""
    alike: dict[SeriesKey, list[Series]] = {}
    for one in whole:
        alike.setdefault(replace(one.key, test=""), []).append(one)
    for trend in trends:
        candidates = alike[replace(trend.series.key, test="")]
        later = [one for one in candidates if _may_follow(trend.series, one)]
        first = min(later, key=lambda one: one.times[0], default=None)
        yield replace(trend, successor=None if first is None else first.key)


def _known_changes(history: History, file: Path | None) -> KnownChanges:
    """The known changes of a history.

    Raises:
        ReportError: If the file cannot be read.
    """
    default = history.path / ANNOTATIONS_NAME
    if file is None and not default.exists():
        return KnownChanges()
    return load_known_changes(file or default)


def explain_alarms(
    history: History, request: TrendRequest, note: str, by: str, *, keeps_open: bool = False
) -> tuple[Trend, ...]:
    """Adds the reason of each alarm to the known changes of a history, so that it is no longer an alarm.

    Raises:
        ReportError: If the history or the known changes cannot be read, or nothing can be added to the changes.
        StorageError: If the known changes cannot be written.
    """
    analysis = analyse(history, request)
    alarms = (*analysis.alarms, *analysis.of_tester)
    if alarms:
        changes = [
            KnownChange.of(trend.series.key, trend.began, note, by, keeps_open=keeps_open)
            for trend in alarms
        ]
        add_known_changes(request.annotations or history.path / ANNOTATIONS_NAME, changes)
        return tuple(trend.with_note(change) for trend, change in zip(alarms, changes, strict=True))
    return ()


def add_runs(history: History, runs: Iterable[Path]) -> list[str]:
    """Adds runs to a history. A run that is added again changes nothing.

    Returns:
        Messages about files that cannot be read, and about tests that were not added. All other tests were added.

    Raises:
        ReportError: If a path is not a run directory, or the history cannot be written.
    """
    problems: list[str] = []
    for path in runs:
        run = read_run(path)
        history.add(entries_of(run))
        problems += [*run.problems, *left_out_of(run)]
    return problems


def require_no_regression(
    history: History,
    result: TestResult,
    quantity: str | None = None,
    *,
    fresh: int = TrendRules.fresh,
    least_change: float = TrendRules.least_change,
) -> list[Trend]:
    """Checks that a result is no regression by `TrendRules`, and returns all trends of the quantity.

    It judges the history with the result at its end; the history itself is not changed.

    Args:
        history: The earlier results.
        result: The result to judge.
        quantity: Name of the only quantity to judge; None: all quantities.
        fresh: Number of newest values among which a change is fresh; see `TrendRules`.
        least_change: Smaller changes, relative to the earlier value, are no regression.

    Raises:
        RegressionError: If a value got worse or is missing, and no known change explains it.
        ReportError: If the history cannot be read, or the result has no such quantity.
    """
    entries = list(entries_of(Run(history.path, (result,))))
    judged = entries[0]
    name: str = judged["test"]
    renamed = _known_changes(history, None).names
    # One result more than usual: the result to judge, which needs no confirmation.
    request = TrendRequest(
        fresh,
        least_change,
        confirm=1,
        testbed=judged["testbed"],
        test=escape(renamed.get(name, name)),
        last=TrendRequest.last + 1,
    )
    found = analyse(history, request, entries).trends
    trends = [trend for trend in found if trend.series.times[-1] == judged["started"]]
    chosen = [trend for trend in trends if quantity in (None, trend.series.key.quantity)]
    if not chosen:
        names = [trend.series.key.quantity for trend in trends]
        raise ReportError(
            f"{result.test.full_name} has no {quantity}. Its quantities are {names_near(str(quantity), names)}"
        )

    alarms = [describe_trend(trend) for trend in chosen if trend.is_alarm]
    if alarms:
        raise RegressionError("\n".join(alarms))
    return chosen
