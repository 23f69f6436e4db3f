"""The data of the site: an index, and a slice for each test on each testbed, for each run, and for each testbed.

Names of slices are digests of what they are about (testbed and test, or the run), so that a slice never belongs to
another test after the next build. Rows are lists, because 100,000 objects would repeat the names of their fields
100,000 times.
"""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from itertools import count, groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from lossratio.history import (
    BETWEEN,
    FAILED,
    IRREGULAR,
    LINE,
    Analysis,
    Series,
    Trend,
    TrendVerdict,
    describe_trend,
    with_rates_per_interface,
)

Slice: TypeAlias = dict[str, Any]

NEWEST = 10
"""How many of the newest results of a series represent its testbed in a comparison."""
_SPARK = 30
_DIGEST_LENGTH = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_latencies_of = itemgetter("load", "direction", "p50_us", "p90_us", "p99_us", "most_us")
_TEXTS = (
    "testbed",
    "test",
    "quantity",
    "outcome",
    "reason",
    "measured_as",
    "unit",
    "generator",
    "run",
    "build",
    "device",
)
_NUMBERS = (
    "value",
    "lower_bound",
    "upper_bound",
    "seconds",
    "frame_size_bytes",
    "unsent_share",
    "most",
    "resolution",
    "aggregate_factor",
)
_VALUE_AND_BOUNDS = ("value", "lower_bound", "upper_bound")
_REPEATED = ("test", "quantity", "unit", "outcome", "measured_as", "generator", "build", "device")
"""Texts that a row refers to by their positions in a list of names."""
_OTHERS = (*_NUMBERS, "doubts", "lower_is_better", "tags")


@dataclass(frozen=True)
class Job:
    """The part of a run on one testbed; for results that belong to no run, those of a day."""

    testbed: str
    """Name of the testbed."""
    name: str | None
    """Name of the run's directory; None: not known."""
    started: int
    """When its first test began, seconds since 1970, which distinguishes runs of the same name."""
    microseconds: int
    """The same time, exactly."""

    @cached_property
    def id(self) -> str:
        """Name of its slice."""
        return _digest("job", self.testbed, self.name, self.microseconds)


Names: TypeAlias = defaultdict[Any, int]
"""Names that rows refer to by their numbers."""


def _names() -> Names:
    """No names yet; each new name gets the next number."""
    return defaultdict(count().__next__)


@dataclass(frozen=True)
class Results:
    """The entries of a history as columns, ordered by testbed, test, quantity and time."""

    table: Any
    """The entries, from `lossratio.history.History.read`, with rates per interface."""

    @cached_property
    def columns(self) -> Mapping[str, list[Any]]:
        """The columns that rows consist of."""
        return {name: self.table.column(name).to_pylist() for name in (*_TEXTS, *_OTHERS, LINE)}

    @cached_property
    def microseconds(self) -> list[int]:
        """When each test began, microseconds since 1970."""
        return _microseconds(self.table.column("started"))

    @cached_property
    def times(self) -> list[int]:
        """The same in seconds."""
        return [time // 1_000_000 for time in self.microseconds]

    @cached_property
    def latency(self) -> list[Any]:
        """The latencies of each result; empty if no result has any."""
        column = self.table.column("latency")
        values: list[Any] = []
        if column.null_count < len(column):
            values = column.to_pylist()
        return values

    @cached_property
    def jobs(self) -> list[Job]:
        """The run of each result."""
        starts = _microseconds(
            self.table.column("run_started").fill_null(self.table.column("started"))
        )
        jobs: dict[tuple[str, str | None, int], Job] = {}
        of_results = []
        for testbed, name, start in zip(
            self.columns["testbed"], self.columns["run"], starts, strict=True
        ):
            if name is not None:
                first = start
            else:
                first = start // 86_400_000_000 * 86_400_000_000

            key = (testbed, name, first)
            if key not in jobs:
                jobs[key] = Job(testbed, name, first // 1_000_000, first)
            of_results.append(jobs[key])
        return of_results

    @cached_property
    def test_ids(self) -> dict[tuple[str, str], str]:
        """Names of the slices of tests, by testbed and test."""
        keys = set(zip(self.columns["testbed"], self.columns["test"], strict=True))
        return {key: _digest("test", *key) for key in keys}

    def line_of(self, number: int) -> tuple[Any, ...]:
        """The line that a result belongs to: testbed, test, quantity and number."""
        return tuple(self.columns[name][number] for name in ("testbed", "test", "quantity", LINE))

    def blocks(self, numbers: range, *names: str) -> Iterator[range]:
        """The numbers, split wherever one of the columns changes."""
        columns = [self.columns[name] for name in names]
        for _, block in groupby(numbers, lambda number: [column[number] for column in columns]):
            first, *more = block
            yield range(first, first + len(more) + 1)

    def value_and_bounds(self, number: int) -> list[float | None]:
        """The value of a result and its bounds; None for each that is missing."""
        return [_number(self.columns[name][number]) for name in _VALUE_AND_BOUNDS]

    def row(self, number: int, names: Names) -> list[Any]:
        """A result for runs and comparisons. Repeated texts are in the names."""
        fields = {name: column[number] for name, column in self.columns.items()}
        texts = [names[fields[name]] for name in _REPEATED]
        test_id = self.test_ids[fields["testbed"], fields["test"]]

        # Record: the script of the page knows these places.
        return [
            *texts,
            *self.value_and_bounds(number),
            fields["reason"],
            fields["doubts"] or [],
            bool(fields["lower_is_better"]),
            self.times[number],
            _number(fields["seconds"]),
            fields["unsent_share"] or 0,
            _number(fields["most"]),
            fields["resolution"],
            names[test_id],
            fields["aggregate_factor"],
        ]

    def rows(self, numbers: Iterable[int]) -> Slice:
        """Results with their names."""
        names = _names()
        # The rows fill the names.
        rows = [self.row(number, names) for number in numbers]
        return {"names": list(names), "rows": rows}


def slices(
    table: Any, analysis: Analysis, links: Mapping[Job, str], readings: Iterable[Series] = ()
) -> Iterator[tuple[str, Slice]]:
    """All slices of a site except the index's own description, with their names; ``index`` is the last."""
    results = Results(with_rates_per_interface(table))
    telemetry: dict[tuple[str, str], list[Any]] = {}
    for course in readings:
        telemetry.setdefault((course.key.testbed, course.key.test), []).append(_course(course))
    trends = _trends_by_line(results, analysis)
    index = _names(), _names()
    tests: list[Any] = []
    latest: list[Any] = []
    newest: dict[str, list[int]] = {}

    for block in results.blocks(range(len(results.times)), "testbed", "test"):
        series = list(results.blocks(block, "quantity", LINE))
        name, data = _test_slice(results, series, trends, analysis)
        data["telemetry"] = telemetry.get((data["testbed"], data["test"]), [])
        yield f"test-{name}", data
        tests.append(_test_row(results, name, series, trends, index))
        if data["latency"]:
            latest.append([len(tests) - 1, *_latest(data["latency"])])

        of_testbed = newest.setdefault(data["testbed"], [])
        for numbers in series:
            of_testbed += _newest(results, numbers, trends[results.line_of(numbers.start)])

    for testbed, numbers_of in newest.items():
        yield f"newest-{_digest('testbed', testbed)}", results.rows(numbers_of)
    yield from _job_slices(results, links)
    yield "latency", {"rows": latest}
    testbeds = {testbed: _digest("testbed", testbed) for testbed in newest}
    builds, words = index
    yield (
        "index",
        {
            "testbeds": [[testbed, name] for testbed, name in testbeds.items()],
            "builds": list(builds),
            "words": list(words),
            "verdicts": [verdict.value for verdict in TrendVerdict],
            "tests": tests,
            "results": len(results.times),
        },
    )


def _latest(latency: Sequence[list[Any]]) -> tuple[int, list[list[Any]]]:
    """The time of the newest latencies of a test, and these latencies."""
    last = max(time for time, *_ in latency)
    return last, [rest for time, *rest in latency if time == last]


def _newest(results: Results, numbers: range, trend: Trend) -> list[int]:
    """The newest of the results that mean the same as the newest result of a series."""
    times = {_microsecond(time) for time in trend.series.times}
    alike = [number for number in numbers if results.microseconds[number] in times]
    return alike[-NEWEST:]


def _trends_by_line(results: Results, analysis: Analysis) -> dict[tuple[Any, ...], Trend]:
    """The trends, by the lines that their newest results belong to."""
    numbers = range(len(results.times))
    lines = {
        (*results.line_of(number)[:3], results.microseconds[number]): results.line_of(number)
        for number in numbers
    }
    found = {}
    for trend in analysis.trends:
        if trend.series.is_of_nights:
            # Its values are in the rows of another quantity.
            continue
        key = trend.series.key
        newest = (key.testbed, key.test, key.quantity, _microsecond(trend.series.times[-1]))
        found[lines[newest]] = trend
    return found


def _test_slice(
    results: Results, series: Sequence[range], trends: Mapping[Any, Trend], analysis: Analysis
) -> tuple[str, Slice]:
    """The name of a test's slice, and the slice: each series with its points, steps and notes, and the latencies."""
    column = results.columns
    first = series[0].start
    testbed, test = column["testbed"][first], column["test"][first]
    names, jobs = _names(), _names()
    latency: dict[int, list[list[Any]]] = {}
    shown = []

    for numbers in series:
        trend = trends[results.line_of(numbers.start)]
        number_of = {
            time: number
            for number, time in enumerate(results.microseconds[numbers.start : numbers.stop])
        }
        alike = [number_of[_microsecond(time)] for time in trend.series.times]

        for number in numbers:
            loads = results.latency[number] if results.latency else None
            if loads:
                time = results.times[number]
                latency[time] = [[time, *_latencies_of(load)] for load in loads]

        points = [_point(results, number, names, jobs) for number in numbers]
        steps = [[alike[step.first], alike[step.last], *step.levels] for step in trend.steps]
        known = [change for change in analysis.known if change.concerns(trend.series.key)]
        notes = [[change.date.isoformat(), str(change)] for change in known]
        # Record: a series as the script of the page reads it.
        fields = {
            "quantity": trend.series.quantity,
            "unit": trend.series.unit.name,
            "lower": trend.series.unit.lower_is_better,
            "factor": trend.series.aggregate_factor,
            "verdict": trend.verdict.value,
            "alarm": trend.is_alarm,
            "text": describe_trend(trend),
            "points": points,
            "alike": alike,
            "steps": steps,
            "notes": notes,
        }
        shown.append(fields)

    # Record: the slice as the script of the page reads it.
    data = {
        "testbed": testbed,
        "test": test,
        "tags": column["tags"][series[0].stop - 1] or [],
        "names": list(names),
        "jobs": [[job.id, job.name, job.started] for job in jobs],
        "series": shown,
        "latency": [row for rows in latency.values() for row in rows],
    }
    return results.test_ids[testbed, test], data


def _course(readings: Series) -> list[Any]:
    """A series of telemetry: quantity, place, unit, times and values."""
    quantity, _, place = readings.key.quantity.partition(BETWEEN)
    times = [_microsecond(time) // 1_000_000 for time in readings.times]
    return [
        quantity,
        place,
        readings.unit.name,
        times,
        [_short(value) for value in readings.values],
    ]


def _point(results: Results, number: int, names: Names, jobs: Names) -> list[Any]:
    """A result of a series: time, value, bounds, outcome, kinds of doubts, reason, run, build, generator."""
    column = results.columns
    # Record: the script of the page knows these places.
    return [
        results.times[number],
        *results.value_and_bounds(number),
        names[column["outcome"][number]],
        [names[kind] for kind in column["doubts"][number] or ()],
        names[column["reason"][number]],
        jobs[results.jobs[number]],
        names[column["build"][number]],
        names[column["generator"][number]],
    ]


def _test_row(
    results: Results,
    name: str,
    series: Sequence[range],
    trends: Mapping[Any, Trend],
    index: tuple[Names, Names],
) -> list[Any]:
    """A test in the index: what lists, filters and sweeps need."""
    column = results.columns
    last = series[0].stop - 1
    _, words = index
    testbed = words[column["testbed"][last]]
    tags = [words[tag] for tag in column["tags"][last] or ()]
    rows = [
        _series_row(results, numbers, trends[results.line_of(numbers.start)], index)
        for numbers in series
    ]
    frame_size = _number(column["frame_size_bytes"][last])
    return [name, testbed, column["test"][last], frame_size, tags, rows]


def _series_row(
    results: Results, numbers: range, trend: Trend, index: tuple[Names, Names]
) -> list[Any]:
    column = results.columns
    last = numbers.stop - 1
    builds, words = index
    odd = trend.new_kinds or trend.is_old or trend.bands
    quiet = trend.verdict in (TrendVerdict.STEADY, TrendVerdict.TOO_FEW) and not odd
    change = trend.last_change
    ratio = None if change is None else _number(change.ratio)
    began = None if change is None else _microsecond(change.began) // 1_000_000

    # Record: the script of the page knows these places.
    return [
        words[trend.series.quantity],
        words[trend.series.unit.name],
        trend.series.unit.lower_is_better,
        len(numbers),
        results.times[numbers.start],
        results.times[last],
        *results.value_and_bounds(last),
        words[column["outcome"][last]],
        [words[kind] for kind in sorted(trend.series.kinds[-1])],
        builds[column["build"][last]],
        list(TrendVerdict).index(trend.verdict),
        ratio,
        began,
        "" if quiet else describe_trend(trend),
        trend.is_old,
        [_short(value) for value in trend.series.values[-_SPARK:]],
        trend.series.aggregate_factor,
    ]


def _job_slices(results: Results, links: Mapping[Job, str]) -> Iterator[tuple[str, Slice]]:
    """The runs: one slice for each with its results, and a list of all."""
    column = results.columns
    numbers_of: dict[Job, list[int]] = {}
    for number, job in enumerate(results.jobs):
        numbers_of.setdefault(job, []).append(number)
    builds = _names()
    listed = []

    for job in sorted(numbers_of, key=lambda job: (-job.microseconds, job.testbed, job.name or "")):
        numbers = numbers_of[job]
        yield f"job-{job.id}", {"testbed": job.testbed, "name": job.name, **results.rows(numbers)}
        outcomes = Counter(column["outcome"][number] for number in numbers)
        ended = max(
            results.times[number] + int(column["seconds"][number] or 0) for number in numbers
        )
        doubtful = sum(bool(column["doubts"][number]) for number in numbers)
        # Record: the script of the page knows these places.
        row = [
            job.id,
            job.testbed,
            job.name,
            job.started,
            ended,
            len(numbers),
            outcomes[FAILED],
            outcomes[IRREGULAR],
            doubtful,
            sorted({builds[column["build"][number]] for number in numbers}),
            links.get(job),
        ]
        listed.append(row)

    yield "jobs", {"builds": list(builds), "rows": listed}


def as_script(name: str, data: Slice) -> bytes:
    """A slice as a script that hands it to the page. Browsers load scripts from files, but no other data.

    The text has ASCII characters only, and no ``<``: nothing in a name can end a script or begin an element.
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False).replace(
        "<", "\\u003c"
    )
    return f'lossratio.take("{name}",{text});\n'.encode("ascii")


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[
        :_DIGEST_LENGTH
    ]


def _microseconds(column: Any) -> list[int]:
    return [
        int(time)
        for time in column.to_numpy(zero_copy_only=False).astype("datetime64[us]").astype(np.int64)
    ]


def _microsecond(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def _number(value: float | None) -> float | None:
    if value is not None and math.isfinite(value):
        return value
    return None


def _short(value: float) -> float | None:
    """A value with the precision that a small picture needs."""
    if math.isfinite(value):
        return float(f"{value:.5g}")
    return None
