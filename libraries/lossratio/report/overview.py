"""The overview of runs: a row for each goal of each test, or for another value, and the columns of these rows."""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from lossratio.drawing import NOTHING, Column, number_column, test_column, verdict
from lossratio.records import Rate
from lossratio.report.run import Run
from lossratio.results import (
    Finding,
    LatencyPoint,
    Note,
    NoteKind,
    Outcome,
    TestResult,
    Traffic,
    Weight,
    caveats_of,
    common_name,
    findings_of,
    format_frames_per_second,
    notes_of,
    number_of,
    view_of,
)
from lossratio.units import Unit, format_bit_rate, format_ratio, range_in_words

_LONGEST_MESSAGE = 300
"""Maximum length of a failed test's message in a table. The test's section has the whole message."""


@dataclass(frozen=True)
class FindingRow:
    """A row of a run's tables: one goal of one test, its MRR, or another value."""

    finding: Finding
    """The finding."""
    number: int = 1
    """Position of the row's test among all tests of the page, from 1."""
    doubts: tuple[Note, ...] = ()
    """The doubts about the result."""
    failure: str | None = None
    """Why the test failed although its values were measured; None: it passed, or there are no values."""
    run: str = ""
    """The directory of the row's run; empty: the page has only one run."""
    tester: str = ""
    """The value of the test's twin without DUTs; empty: the runs have none."""
    is_namesake: bool = False
    """Whether another suite of the run has a test of the same name."""

    @property
    def result(self) -> TestResult:
        """The result of the finding."""
        return self.finding.result

    @property
    def test(self) -> str:
        """Name of the test, with its suite if this is needed to distinguish it from a test of another suite."""
        return self.result.test.full_name if self.is_namesake else self.result.test.name

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
        """The value as a rate; None: the value has another unit, or there is no value."""
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
    def value_or_sentence(self) -> str:
        """The value; for a kind without a single value, such as a confirmation, its sentence."""
        if self.finding.has_value or self.result.error is not None:
            return self.value
        notes = notes_of(self.result, (), Weight.HEADLINE)
        return " ".join(note.text for note in notes) or self.value

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
        """The rate of all directions together on the wire, in bits per second."""
        if self.rate is None:
            return None
        return self.rate.aggregate_l1_bps

    @property
    def aggregate(self) -> str:
        """The rate as an aggregate, with the factor between both."""
        factor = self.result.conditions.load.aggregate_factor
        if self.rate is None or self.finding.stream is not None:
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
        return (f"the test failed: {_shortened(self.failure)}",)

    @property
    def state(self) -> str:
        """The outcome in words, with the reason."""
        if self.finding.outcome is Outcome.FAILED:
            why = "" if self.finding.reason is None else f": {_shortened(self.finding.reason)}"
            return f"failed: no result{why}"
        if self.finding.is_as_before:
            return self.finding.reason or "as before"
        if self.finding.outcome is Outcome.IRREGULAR:
            return self.finding.outcome_in_words
        return view_of(self.result).in_order

    @property
    def notes(self) -> list[str]:
        """Notes that readers of the number need, besides its doubts and the reason for the outcome."""
        notes = caveats_of(self.finding)
        if self.finding.reason is not None:
            # The first caveat is the reason, which the state has.
            notes = notes[1:]
        if self.tester:
            notes.append(f"the tester alone: {self.tester}")
        return notes

    @property
    def verdict(self) -> str:
        """The outcome with notes and doubts, as markup."""
        notes = (
            *self.failed_test,
            *self.notes,
            *(f"doubt: {kind}" for kind in self.kinds_of_doubts),
        )
        return verdict(self.finding.outcome.value, self.state, notes)

    @property
    def latency_in_words(self) -> str:
        """Latency of the slowest direction at the first load of the row's goal; `NOTHING` if it was not measured."""
        p50 = self.median_latency_us
        if p50 is None:
            return NOTHING

        p99 = _slowest(point.p99_us for point in self._latency)
        if p99 is None:
            tail = ""
        else:
            tail = f", 99 % {p99:.4g} µs"

        return f"{p50:.4g} µs{tail} at {self._latency[0].load}"

    @property
    def median_latency_us(self) -> float | None:
        """The median of the latency, in microseconds; None: it was not measured."""
        return _slowest(point.p50_us for point in self._latency)

    @cached_property
    def _latency(self) -> list[LatencyPoint]:
        """The latency of each direction at the first load of the row's goal, or else at a load of no goal."""
        points = list(view_of(self.result).latencies(self.result))
        of_goal = [point for point in points if self.finding.quantity in point.load]
        chosen = of_goal or [point for point in points if " of " not in point.load]
        return [point for point in chosen if point.load == chosen[0].load]

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
    def kinds_of_doubts(self) -> tuple[str, ...]:
        """The doubts about the result, in a few words each."""
        return tuple(dict.fromkeys(doubt.kind.value for doubt in self.doubts))

    @property
    def all_doubts(self) -> str:
        """All doubts on one line."""
        return "; ".join(self.kinds_of_doubts)

    @property
    def bounds(self) -> str:
        """Both bounds in words; `NOTHING`: there is none."""
        ends = (self.finding.lower_bound, _upper_bound(self))
        return range_in_words(*(_in_words(end, self.finding.unit) for end in ends))

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


def _upper_bound(row: FindingRow) -> Rate | float | None:
    """The upper bound; at the generator's limit, there is none."""
    if row.finding.is_at_limit:
        return None
    return row.finding.upper_bound


def _bound(head: str, read: Callable[[FindingRow], Rate | float | None]) -> Column[FindingRow]:
    def text(row: FindingRow) -> str:
        return _in_words(read(row), row.finding.unit)

    def number(row: FindingRow) -> float | None:
        return number_of(read(row))

    return Column(head, text, number, style="number")


# Table: the columns of the overview of a run.
COLUMNS: tuple[Column[FindingRow], ...] = (
    test_column(FindingRow),
    Column(
        "number to quote",
        attrgetter("quoted_in_words"),
        attrgetter("quoted_number"),
        style="number quote",
    ),
    Column("result", attrgetter("state_of_test"), style="name", markup=attrgetter("verdict")),
    Column("goal", attrgetter("finding.quantity")),
    Column("stream", attrgetter("stream")),
    Column("frame size", attrgetter("frame_size"), attrgetter("average_size_bytes")),
    _bound("lower bound", attrgetter("finding.lower_bound")),
    _bound("upper bound", _upper_bound),
    Column(
        "aggregate", attrgetter("aggregate"), attrgetter("aggregate_fps"), style="number beside"
    ),
    number_column("aggregate bandwidth", attrgetter("aggregate_l1_bps"), format_bit_rate),
    number_column("of theoretical maximum", attrgetter("finding.theoretical_share"), format_ratio),
    Column(
        "latency", attrgetter("latency_in_words"), attrgetter("median_latency_us"), style="words"
    ),
    number_column("trials", attrgetter("trials"), str),
    number_column("time of trials", attrgetter("trials_s"), "{:.1f} s".format),
)
"""The columns of the overview, on the page and in Markdown."""

RUN: Column[FindingRow] = Column("run", attrgetter("run"), style="name")
"""The column of pages of several runs."""


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


def _in_words(value: Rate | float | None, unit: Unit) -> str:
    """A value with its unit; for a rate, the value per interface."""
    if isinstance(value, Rate):
        return format_frames_per_second(value.per_interface_fps)
    if value is None:
        return NOTHING
    return unit.format(value)


def _shortened(message: str) -> str:
    return textwrap.shorten(message, _LONGEST_MESSAGE, placeholder=" ...")


def _slowest(latencies_us: Iterable[float | None]) -> float | None:
    """The largest of the known latencies; None: none is known."""
    return max((one for one in latencies_us if one is not None), default=None)


def rows_of(run: Run, runs: Sequence[Run] = ()) -> list[FindingRow]:
    """The rows of a run, in the order of its results. Twins of its tests may be in any of `runs`."""
    found = findings_of(result for one in runs or (run,) for result in one.results)
    alone = {_twin_of(finding): finding.in_short for finding in found if not _has_device(finding)}
    names = Counter(result.test.name for result in run.results)
    rows = []
    for finding in findings_of(run.results):
        if _has_device(finding):
            tester = alone.get(_twin_of(finding), "")
        else:
            tester = ""

        row = FindingRow(
            finding,
            finding.number,
            run.doubts[finding.number - 1],
            failure=run.failure_in_spite_of(finding.result),
            tester=tester,
            is_namesake=names[finding.result.test.name] > 1,
        )
        rows.append(row)
    return rows


def _has_device(finding: Finding) -> bool:
    """Whether there was a device between the tester's ports."""
    return bool(finding.result.conditions.duts)


def _twin_of(finding: Finding) -> tuple[str, str]:
    """The key that a finding shares with the finding of its test's twin."""
    return common_name(finding.result.test.name), finding.quantity


def value_names(results: Sequence[TestResult]) -> str:
    """The name of the value for each kind of result."""
    names = sorted({name for result in results if (name := view_of(result).value_name) is not None})
    if names:
        return f"the {' or the '.join(names)}"
    return "the value of the kind of measurement"


def terms_in_words(results: Sequence[TestResult]) -> str:
    """The abbreviations in the names of quantities, spelled out, with a space before them; empty: there are none."""
    notes = (note for result in results for note in notes_of(result, (), Weight.PROVENANCE))
    terms = dict.fromkeys(note.text for note in notes if note.kind is NoteKind.TERM)
    return "".join(f" {term}" for term in terms)


def methods_in_words(results: Sequence[TestResult]) -> str:
    """A sentence that names the methods of the results, with a space before it; empty if there are none."""
    methods = sorted(
        {method for result in results if (method := view_of(result).method) is not None}
    )
    if methods:
        return f" Method: {', '.join(methods)}."
    return ""
