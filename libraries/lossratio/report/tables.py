"""Formats runs as text for programs and for people: JSON, CSV and Markdown."""

import csv
import io
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from lossratio.drawing import NOTHING, Column, number_column, range_bar, test_column, verdict
from lossratio.records import Rate
from lossratio.report.formats import ReportFormat
from lossratio.report.run import Run
from lossratio.results import (
    Finding,
    Outcome,
    TestResult,
    Traffic,
    aggregate_of,
    caveats_of,
    common_name,
    findings_of,
    format_frames_per_second,
    integrity_of,
    number_of,
    share_missing_in_words,
    view_of,
)
from lossratio.units import Unit, format_bit_rate, format_ratio, trials_counted

REPORT_FORMAT = "lossratio-report/1"
"""Format of the JSON report."""
_INTEGRITY = (
    "arrived",
    "examined",
    "duplicated",
    "corrupted",
    "wrong_length",
    "misdelivered",
    "reordered",
)
"""Attributes of `lossratio.results.frame_integrity.FrameIntegrity` that have their own column."""
_LONGEST_MESSAGE = 300
"""The most characters of a failed test's message in a table; the test's section has the whole message."""
_VALUE = "conditional throughput (or other value)"


@dataclass(frozen=True)
class FindingRow:
    """A row of a run's tables: one goal of one test, its MRR, or another value."""

    finding: Finding
    """The finding."""
    number: int = 1
    """Position of the row's test among all tests of the page, from 1."""
    doubts: tuple[str, ...] = ()
    """The doubts about the result, in a few words each."""
    failure: str | None = None
    """Why the test failed although its values were measured; None: it passed, or there are no values."""
    run: str = ""
    """The directory of the row's run; empty: the page has only one run."""
    tester: str = ""
    """The value of the test's twin without DUTs; empty: the runs have none."""

    @property
    def result(self) -> TestResult:
        """The result of the finding."""
        return self.finding.result

    @property
    def test(self) -> str:
        """Name of the test."""
        return self.result.test.name

    @property
    def link(self) -> str:
        """The name of the section of the row's test."""
        return section_name(self.number)

    @property
    def words(self) -> str:
        """The text that a search looks at, in lower case."""
        test = self.result.test
        return " ".join((test.suite, test.name, *test.tags)).lower()

    @property
    def stream(self) -> str:
        """The stream whose loss alone counts; empty: the loss of all frames counts."""
        return self.finding.stream or ""

    @property
    def frame_size(self) -> str:
        """Sizes of the frames, in bytes."""
        return describe_frame_size(self.result.conditions.traffic)

    @property
    def average_size_bytes(self) -> float:
        """The average size of the frames."""
        return self.result.conditions.traffic.average_frame_size_bytes

    @property
    def is_quotable(self) -> bool:
        """Whether the value may be quoted: it was measured."""
        return self.finding.outcome is Outcome.MEASURED and self.finding.value is not None

    @property
    def is_odd(self) -> bool:
        """Whether it is irregular, failed or doubtful, or its test failed nevertheless."""
        return (
            self.finding.outcome is not Outcome.MEASURED
            or bool(self.doubts)
            or self.failure is not None
        )

    @property
    def rate(self) -> Rate | None:
        """The value as a rate; None: it has another unit, or there is no value."""
        if isinstance(self.finding.value, Rate):
            return self.finding.value
        return None

    @property
    def value(self) -> str:
        """Conditional throughput (of MRR: the mean with its standard deviation), per interface; or another value."""
        deviation = self.finding.deviation
        if deviation is None:
            spread = ""
        else:
            spread = f" ± {_in_words(deviation, self.finding.unit)}"

        return _in_words(self.finding.value, self.finding.unit) + spread

    @property
    def quoted_in_words(self) -> str:
        """The number to quote; `NOTHING` if it may not be quoted."""
        if self.is_quotable:
            return self.value
        return NOTHING

    @property
    def quoted_number(self) -> float | None:
        """The number to quote, in the finding's unit; None: it may not be quoted."""
        if self.is_quotable:
            return number_of(self.finding.value)
        return None

    @property
    def aggregate_fps(self) -> float | None:
        """The rate of all directions together, in frames per second; None: the value is not a rate."""
        if self.rate is None:
            return None
        return self.rate.aggregate_fps

    @property
    def aggregate_l1_bps(self) -> float | None:
        """The same on the wire, in bits per second."""
        if self.rate is None:
            return None
        return self.rate.aggregate_l1_bps

    @property
    def aggregate(self) -> str:
        """The rate as an aggregate, with the factor between both."""
        factor = self.result.conditions.load.aggregate_factor
        if self.rate is None:
            return NOTHING
        return f"{format_frames_per_second(self.rate.aggregate_fps)} (x {factor:g})"

    @property
    def state_of_test(self) -> str:
        """The outcome in words, with the reason, and why the test failed nevertheless."""
        return "; ".join((self.state, *self.failed_test))

    @property
    def failed_test(self) -> tuple[str, ...]:
        """The remark that the test failed although its values were measured; empty: it did not fail."""
        if self.failure is None:
            return ()
        return (
            f"the test failed: {textwrap.shorten(self.failure, _LONGEST_MESSAGE, placeholder=' ...')}",
        )

    @property
    def state(self) -> str:
        """The outcome in words, with the reason."""
        if self.finding.outcome is Outcome.FAILED:
            return "failed: no result"
        if self.finding.is_as_before:
            return self.finding.reason or "as before"
        if self.finding.outcome is Outcome.IRREGULAR:
            if self.finding.reason is None:
                return "irregular"
            return f"irregular: {self.finding.reason}"
        return view_of(self.result).in_order

    @property
    def notes(self) -> list[str]:
        """What readers of the number need besides its doubts and the reason for the outcome."""
        caveats = caveats_of(self.finding)[0 if self.finding.reason is None else 1 :]
        early = self.result.conditions.timing.has_early_verdicts
        alone = [f"the tester alone: {self.tester}"] if self.tester else []
        return [
            *caveats,
            *(["with early verdicts: not comparable with full-length trials"] if early else []),
            *alone,
        ]

    @property
    def verdict(self) -> str:
        """The outcome with notes and doubts, as markup."""
        notes = (*self.failed_test, *self.notes, *(f"doubt: {doubt}" for doubt in self.doubts))
        return verdict(self.finding.outcome.value, self.state, notes)

    @property
    def bounds(self) -> str:
        """The bounds in words; empty if there are none."""
        ends = (self.finding.lower_bound, self.finding.upper_bound)
        lower, upper = (_in_words(end, self.finding.unit) for end in ends)
        return bounds_in_words(lower, upper, is_at_limit=self.finding.is_at_limit)

    @property
    def offered(self) -> str:
        """What is known about offered loads: which one meets the goal of a search and which does not, or the bounds."""
        finding = self.finding
        ends = [_in_words(end, finding.unit) for end in (finding.lower_bound, finding.upper_bound)]
        if finding.resolution is None or NOTHING in ends or finding.is_at_limit:
            return f"offered load: {self.bounds}"
        return f"forwarded when {ends[0]} is offered{self._lost}. When {ends[1]} is offered, too much is lost."

    @property
    def _lost(self) -> str:
        """What is missing at the lower bound, as the goal allows; empty if nothing is, or the bound is not a rate."""
        lower = self.finding.lower_bound
        if self.rate is None or not isinstance(lower, Rate) or not lower.aggregate_fps:
            return ""
        share = 1.0 - self.rate.aggregate_fps / lower.aggregate_fps
        if share <= 0.0:
            return ""
        missing = share_missing_in_words(share, self.result.trials, lower.per_interface_fps)
        return f": {missing}, as the goal allows"

    @cached_property
    def picture(self) -> str:
        """The small picture of the bounds, or of the value with its standard deviation; empty: no rate to quote."""
        most = self.result.max_load.rate.aggregate_fps
        deviation = self.finding.deviation
        if self.rate is None or not most or not self.is_quotable:
            return ""
        value = self.rate.aggregate_fps
        spread = deviation.aggregate_fps if isinstance(deviation, Rate) else 0.0
        bounds = (self.finding.lower_bound, self.finding.upper_bound)
        ends = [bound.aggregate_fps for bound in bounds if isinstance(bound, Rate)] or [
            value - spread,
            value + spread,
        ]
        return range_bar(*(100.0 * rate / most for rate in (value, min(ends), max(ends))))

    @cached_property
    def latency(self) -> tuple[str, float | None]:
        """Latency of the slowest direction at the first load of the row's goal: in words, and the median in us."""
        points = list(view_of(self.result).latencies(self.result))
        of_goal = [point for point in points if self.finding.quantity in point.load]
        chosen = of_goal or [point for point in points if " of " not in point.load]
        at_load = [point for point in chosen if point.load == chosen[0].load]
        p50 = max((point.p50_us for point in at_load if point.p50_us is not None), default=None)
        p99 = max((point.p99_us for point in at_load if point.p99_us is not None), default=None)
        if p50 is None:
            return NOTHING, None
        percentiles = f"{p50:.4g} µs" + ("" if p99 is None else f", 99 % {p99:.4g} µs")
        return f"{percentiles} at {at_load[0].load}", p50

    @property
    def latency_in_words(self) -> str:
        """The latency in words; `NOTHING` if it was not measured."""
        return self.latency[0]

    @property
    def median_latency_us(self) -> float | None:
        """The median of the latency, in microseconds; None: it was not measured."""
        return self.latency[1]

    @property
    def testbed(self) -> str:
        """Name of the testbed."""
        return self.result.conditions.testbed.name

    @property
    def tags(self) -> str:
        """The tags of the test, one per line."""
        return "\n".join(self.result.test.tags)

    @property
    def started(self) -> str:
        """When the test started, as a date and time of ISO 8601."""
        return self.result.started.isoformat()

    @property
    def all_doubts(self) -> str:
        """All doubts on one line."""
        return "; ".join(self.doubts)

    @property
    def unit(self) -> str | None:
        """Name of the value's unit; None: the finding has no value."""
        if self.finding.has_value:
            return self.finding.unit.name
        return None

    @property
    def trials(self) -> int:
        """Number of the test's trials."""
        return len(self.result.trials)

    @cached_property
    def trials_s(self) -> float:
        """Time of all trials together, on the measurer's clock, seconds."""
        return sum(trial.elapsed_s for trial in self.result.trials)


def _bound(head: str, read: Callable[[FindingRow], Rate | float | None]) -> Column[FindingRow]:
    def text(row: FindingRow) -> str:
        return _in_words(read(row), row.finding.unit)

    def number(row: FindingRow) -> float | None:
        return number_of(read(row))

    return Column(head, text, number, style="number")


_TEST = test_column(FindingRow)
_MEASURED: Column[FindingRow] = Column(_VALUE, attrgetter("value"))
_PICTURE: Column[FindingRow] = Column("bounds", attrgetter("bounds"), markup=attrgetter("picture"))
_LATENCY: Column[FindingRow] = Column(
    "latency", attrgetter("latency_in_words"), attrgetter("median_latency_us"), style="words"
)
_STREAM: Column[FindingRow] = Column("stream", attrgetter("stream"))
_SIZE: Column[FindingRow] = Column(
    "frame size", attrgetter("frame_size"), attrgetter("average_size_bytes")
)
# Table: the columns of the overview of a run.
COLUMNS: tuple[Column[FindingRow], ...] = (
    _TEST,
    Column(
        "number to quote",
        attrgetter("quoted_in_words"),
        attrgetter("quoted_number"),
        style="number quote",
    ),
    Column("result", attrgetter("state_of_test"), style="name", markup=attrgetter("verdict")),
    Column("goal", attrgetter("finding.quantity")),
    _STREAM,
    _SIZE,
    _PICTURE,
    _bound("lower bound", attrgetter("finding.lower_bound")),
    _bound("upper bound", attrgetter("finding.upper_bound")),
    Column(
        "aggregate", attrgetter("aggregate"), attrgetter("aggregate_fps"), style="number beside"
    ),
    number_column("aggregate bandwidth", attrgetter("aggregate_l1_bps"), format_bit_rate),
    number_column("of theoretical maximum", attrgetter("finding.theoretical_share"), format_ratio),
    _LATENCY,
    number_column("trials", attrgetter("trials"), str),
    number_column("time of trials", attrgetter("trials_s"), "{:.1f} s".format),
)
"""The columns of the overview, on the page and in Markdown."""

RUN: Column[FindingRow] = Column("run", attrgetter("run"), style="name")
"""The column of pages of several runs."""
_MARKDOWN = (
    _TEST,
    _MEASURED,
    *(column for column in COLUMNS[2:] if column not in (_PICTURE, _LATENCY, _STREAM)),
)
"""Markdown also has the value of irregular results, beside the reason."""


def section_name(number: int) -> str:
    """The name of a test's section, to which addresses link, by the test's number among all tests of the page."""
    return f"test-{number}"


def describe_frame_size(traffic: Traffic) -> str:
    """Formats the sizes of the frames, e.g. ``64 B``, or ``64, 570, 1518 B (353.83 B on average)``."""
    sizes = ", ".join(str(size.size_bytes) for size in traffic.frame_sizes)
    if len(traffic.frame_sizes) > 1:
        average = f" ({traffic.average_frame_size_bytes:.2f} B on average)"
    else:
        average = ""

    return f"{sizes} B{average}"


def bounds_in_words(lower: str, upper: str, *, is_at_limit: bool) -> str:
    """Bounds in words, each of which may be `NOTHING`; at the generator's limit, there is no upper bound."""
    if lower == upper == NOTHING:
        return ""
    if upper == NOTHING or (is_at_limit and lower != NOTHING):
        return f"at least {lower}"
    if lower == NOTHING:
        return f"at most {upper}"
    return f"{lower} to {upper}"


def _in_words(value: Rate | float | None, unit: Unit) -> str:
    """A value with its unit; for a rate, the value per interface."""
    if isinstance(value, Rate):
        return format_frames_per_second(value.per_interface_fps)
    if value is None:
        return NOTHING
    return unit.format(value)


def json_report(runs: Sequence[Run]) -> str:
    """Makes a JSON report: whole results with their doubts, tests without a result, and problems."""
    data = {"format": REPORT_FORMAT, "runs": [_as_json(run) for run in runs]}
    return json.dumps(data, indent=1) + "\n"


def _as_json(run: Run) -> dict[str, Any]:
    results = []
    for result, doubts in zip(run.results, run.doubts, strict=True):
        fields = {
            "result": result.model_dump(mode="json"),
            "doubts": [asdict(doubt) for doubt in doubts],
            "failure": run.failure_of(result),
        }
        results.append(fields)

    return {
        "run": run.path.resolve().name,
        "results": results,
        "cut_off": [asdict(test) for test in run.cut_off],
        "skipped": [asdict(skipped) for skipped in run.skipped],
        "unmeasured": [asdict(test) for test in run.unmeasured],
        "problems": list(run.problems),
    }


def _plain(cell: object) -> object:
    """A cell without characters that break a row, or that Python 3.10 does not write; numbers are unchanged.

    Names come from users, and a spreadsheet would evaluate a name that begins with ``=``.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\0", "\N{REPLACEMENT CHARACTER}").replace("\r", "\n")
    if text.startswith(("=", "+", "-", "@")):
        return f"'{text}"
    return text


def csv_report(runs: Sequence[Run]) -> str:
    """Makes a CSV table with a row for each finding. The header has the units; a missing value is an empty field."""
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=list(_CSV), lineterminator="\n")
    writer.writeheader()

    for run in runs:
        name = run.path.resolve().name
        for row in rows_of(run):
            writer.writerow(
                {column: _plain(value(replace(row, run=name))) for column, value in _CSV.items()}
            )
        others: list[dict[str, object]] = [
            {
                "run": name,
                "suite": test.suite,
                "test": test.test or test.name,
                "outcome": "cut off",
                "trials": test.trials,
            }
            for test in run.cut_off
        ]
        others += (
            {
                "run": name,
                "suite": test.suite,
                "test": test.test,
                "outcome": "failed",
                "reason": test.error,
                "test_failure": test.error,
            }
            for test in run.unmeasured
        )
        others += (
            {
                "run": name,
                "suite": test.suite,
                "test": test.name,
                "outcome": skipped.what,
                "reason": skipped.reason,
            }
            for skipped in run.skipped
            for test in skipped.tests
        )
        for cells in others:
            writer.writerow({column: _plain(cell) for column, cell in cells.items()})

    return file.getvalue()


def markdown_report(runs: Sequence[Run]) -> str:
    """Makes the overview of each run as a Markdown table, with doubts, tests without a result, and problems."""
    return "\n".join(line for run in runs for line in _markdown_lines(run)) + "\n"


def rows_of(run: Run, runs: Sequence[Run] = ()) -> list[FindingRow]:
    """The rows of a run, in the order of its results; `runs` are all that may have twins of its tests."""
    found = findings_of(result for one in runs or (run,) for result in one.results)
    alone = {_twin_of(finding): finding.in_short for finding in found if not _has_device(finding)}
    rows = []
    for finding in findings_of(run.results):
        doubts = run.doubts[finding.number - 1]
        row = FindingRow(
            finding,
            finding.number,
            tuple(doubt.kind.value for doubt in doubts),
            failure=run.failure_in_spite_of(finding.result),
            tester=alone.get(_twin_of(finding), "") if _has_device(finding) else "",
        )
        rows.append(row)
    return rows


def _has_device(finding: Finding) -> bool:
    """Whether there was a device between the tester's ports."""
    return bool(finding.result.conditions.duts)


def _twin_of(finding: Finding) -> tuple[str, str]:
    """What a finding has in common with the finding of its test's twin."""
    return common_name(finding.result.test.name), finding.quantity


def _per_interface(path: str) -> Callable[[FindingRow], float | None]:
    """A column of a rate per interface, in frames per second; empty if the attribute is None."""

    def read(row: FindingRow) -> float | None:
        value = attrgetter(path)(row)
        if isinstance(value, Rate):
            return value.per_interface_fps
        return None

    return read


def _number(path: str) -> Callable[[FindingRow], float | None]:
    """A column of a number in the unit of the row's finding; a rate is an aggregate."""

    def read(row: FindingRow) -> float | None:
        return aggregate_of(attrgetter(path)(row))

    return read


def _integrity(name: str) -> Callable[[FindingRow], object]:
    """A column of frame integrity; empty if no frame was examined."""

    def read(row: FindingRow) -> object:
        return getattr(integrity_of(row.result), name, None)

    return read


# Table: the columns of CSV, which programs read: names with units, and plain numbers.
_CSV: dict[str, Callable[[FindingRow], object]] = {
    "run": attrgetter("run"),
    "suite": attrgetter("result.test.suite"),
    "test": attrgetter("test"),
    "testbed": attrgetter("testbed"),
    "started": attrgetter("started"),
    "kind": attrgetter("result.kind"),
    "goal": attrgetter("finding.quantity"),
    "stream": attrgetter("finding.stream"),
    "outcome": attrgetter("finding.outcome.value"),
    "reason": attrgetter("finding.reason"),
    "average_frame_size_bytes": attrgetter("average_size_bytes"),
    "lower_bound_per_interface_fps": _per_interface("finding.lower_bound"),
    "upper_bound_per_interface_fps": _per_interface("finding.upper_bound"),
    "value_per_interface_fps": _per_interface("finding.value"),
    "stdev_per_interface_fps": _per_interface("finding.deviation"),
    "aggregate_factor": attrgetter("result.conditions.load.aggregate_factor"),
    "value_aggregate_fps": attrgetter("aggregate_fps"),
    "value_aggregate_l1_bps": attrgetter("aggregate_l1_bps"),
    "theoretical_maximum_ratio": attrgetter("finding.theoretical_share"),
    **{f"{name}_frames": _integrity(name) for name in _INTEGRITY},
    "trials": attrgetter("trials"),
    "trials_elapsed_s": attrgetter("trials_s"),
    "doubts": attrgetter("all_doubts"),
    "unit": attrgetter("unit"),
    "lower_bound": _number("finding.lower_bound"),
    "upper_bound": _number("finding.upper_bound"),
    "value": _number("finding.value"),
    "stdev": _number("finding.deviation"),
    "test_failure": attrgetter("failure"),
}


def _markdown_lines(run: Run) -> Iterator[str]:
    yield f"# {markdown_cell(run.path.resolve().name)}"
    yield ""
    for test in run.cut_off:
        last = "" if test.last is None else f"; the last one: {test.last}"
        yield f"- **cut off**: {markdown_cell(test.name)} after {trials_counted(test.trials)}{last}"
        yield from (f"  - {bounds}" for bounds in test.bounds)

    for failed in run.unmeasured:
        yield f"- **failed** before it measured anything: {markdown_cell(f'{failed.name}: {failed.error}')}"
    for skipped in run.skipped:
        tests = ", ".join(test.full_name for test in skipped.tests)
        yield f"- **{skipped.what}**: {markdown_cell(f'{skipped.reason} Tests: {tests}')}"

    yield from (f"- **not readable**: {markdown_cell(problem)}" for problem in run.problems)
    for result, doubts in zip(run.results, run.doubts, strict=True):
        yield from (
            f"- **doubt** about {markdown_cell(result.test.name)}: {doubt}" for doubt in doubts
        )
    yield ""
    # The column of values has their own name, if all are critical loads or the like.
    names = {view_of(result).value_name for result in run.results}
    name = names.pop() if len(names) == 1 else None
    own = {_VALUE: name} if name is not None and name not in _VALUE else {}
    rows = ([column.text(row) for column in _MARKDOWN] for row in rows_of(run))
    yield from markdown_table([own.get(column.head, column.head) for column in _MARKDOWN], rows)
    yield ""
    testbeds = [result.conditions.testbed for result in run.results]
    simulated = sorted({testbed.in_words for testbed in testbeds if testbed.is_simulated})
    yield (
        "Loads and rates are per transmitting interface, and the bounds of a rate are offered "
        "loads. The aggregate is the rate times its factor; its bandwidth is on the wire (layer "
        "1)."
        + terms_in_words(run.results)
        + methods_in_words(run.results)
        + "".join(f" Testbed {name}." for name in simulated)
    )
    yield ""


def value_names(results: Sequence[TestResult]) -> str:
    """The name of the value for each kind of result."""
    names = sorted({name for result in results if (name := view_of(result).value_name) is not None})
    if names:
        return f"the {' or the '.join(names)}"
    return "the value of the kind of measurement"


def terms_in_words(results: Sequence[TestResult]) -> str:
    """The abbreviations in the names of quantities, spelled out, with a space before them; empty: there are none."""
    terms = dict.fromkeys(term for result in results for term in view_of(result).terms(result))
    return "".join(f" {term}" for term in terms)


def methods_in_words(results: Sequence[TestResult]) -> str:
    """A sentence that names the methods of the results, with a space before it; empty if there are none."""
    methods = sorted(
        {method for result in results if (method := view_of(result).method) is not None}
    )
    if methods:
        return f" Method: {', '.join(methods)}."
    return ""


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Formats a table as lines of Markdown."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(markdown_cell(cell) for cell in row) + " |"


def markdown_cell(text: str) -> str:
    """Text as a cell of a Markdown table, in one line."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())


JSON = ReportFormat("lossratio.json", json_report)
"""All results, for programs."""
CSV = ReportFormat("lossratio.csv", csv_report)
"""A row for each goal of each test, for spreadsheets."""
MARKDOWN = ReportFormat("lossratio.md", markdown_report)
"""The overview, for chats and merge requests."""
