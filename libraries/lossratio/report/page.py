"""The page of a run: one HTML file with all results, which needs no network.

The headline has the numbers to quote, the overview a row for each of them, and each test a section. A script sorts and
filters the overview; without it, the page shows the same. Only a report of very many tests keeps the sections
compressed, and needs the script to show them.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from lossratio.drawing import html_page, html_template
from lossratio.records import Rate
from lossratio.report.run import Run
from lossratio.report.tables import NOTHING, OverviewRow, describe_frame_size, methods_in_words, overview, value_names
from lossratio.results import Doubt, Finding, Outcome, Picture, TestResult, findings_of, message, number_of, view_of

PAGE_NAME = "lossratio.html"
"""Name of the page in the directory of a run; ``report.html`` there is Robot Framework's own."""

_CARDS = 8
_FEW_TESTS = 12
_MANY_BYTES = 4_000_000


@dataclass(frozen=True)
class TestSection:
    """The section of the page about one test.

    Attributes:
        result: The result of the test.
        pictures: The pictures of the result, without empty ones.
        doubts: Doubts about the result.
        conditions: Conditions that only results of this kind have, as HTML.
    """

    __test__ = False

    result: TestResult
    pictures: tuple[Picture, ...]
    doubts: tuple[Doubt, ...]
    conditions: str


@dataclass(frozen=True)
class PageRow:
    """A row of the overview with the numbers behind its words: what the page sorts, filters and draws by.

    Attributes:
        text: The row in words.
        finding: The finding of the row.
        place: Position of the row's test among all tests of the page, from 1.
        doubts: The doubts about the result, in a few words each.
    """

    text: OverviewRow
    finding: Finding
    place: int
    doubts: tuple[str, ...]

    @property
    def is_quotable(self) -> bool:
        """Whether the value may be quoted: it was measured."""
        return self.text.outcome is Outcome.MEASURED and self.finding.value is not None

    @property
    def is_odd(self) -> bool:
        """Whether it asks for a look: it is irregular, failed or doubtful."""
        return self.text.outcome is not Outcome.MEASURED or bool(self.doubts)

    @property
    def is_rate(self) -> bool:
        """Whether the value is a frame rate."""
        return isinstance(self.finding.value, Rate)

    @property
    def bar(self) -> tuple[float, float] | None:
        """Left end and width, in per cent of the maximum load, of the bounds or of the value; None: no rate."""
        most = self.finding.result.max_load.rate.aggregate_fps
        rates = (self.finding.lower_bound, self.finding.upper_bound, self.finding.value)
        shares = [100.0 * rate.aggregate_fps / most for rate in rates if isinstance(rate, Rate) and most]
        if not shares or not self.is_quotable:
            return None
        left = min(shares) if self.text.lower_bound != NOTHING else 0.0
        return round(min(left, 100.0), 2), round(min(max(shares), 100.0) - min(left, 100.0), 2)

    @property
    def bounds(self) -> str:
        """The bounds in words; empty if there are none."""
        if view_of(self.finding.result).is_at_limit(self.finding.result, self.finding):
            return f"at least {self.text.lower_bound}"
        known = [bound for bound in (self.text.lower_bound, self.text.upper_bound) if bound != NOTHING]
        if len(known) == 1:
            return f"{'at least' if self.text.lower_bound != NOTHING else 'at most'} {known[0]}"
        return " to ".join(known)

    @property
    def number(self) -> float | str:
        """The value as a number; empty if there is none to quote."""
        number = number_of(self.finding.value)
        return "" if number is None or not self.is_quotable else number

    @property
    def size(self) -> float:
        """Average size of the frames, in bytes."""
        return self.finding.result.conditions.traffic.average_frame_size_bytes

    @property
    def testbed(self) -> str:
        """Name of the testbed."""
        return self.finding.result.conditions.testbed.name

    @property
    def words(self) -> str:
        """The text that a search looks at, in lower case."""
        test = self.finding.result.test
        return " ".join((test.suite, test.name, *test.tags)).lower()

    @property
    def columns(self) -> Iterator[tuple[str, float | str]]:
        """The columns after the outcome: the text, and the number to sort by, which is empty if there is none."""
        finding, text = self.finding, self.text
        rate = finding.value if isinstance(finding.value, Rate) else None
        share = finding.theoretical_share
        yield text.lower_bound, _sortable(number_of(finding.lower_bound))
        yield text.upper_bound, _sortable(number_of(finding.upper_bound))
        yield text.aggregate, _sortable(None if rate is None else rate.aggregate_fps)
        yield text.bandwidth, _sortable(None if rate is None else rate.aggregate_l1_bps)
        yield text.share, _sortable(share)
        yield text.trials, len(finding.result.trials)
        yield text.duration, sum(trial.elapsed_s for trial in finding.result.trials)


def report_page(runs: Sequence[Run], title: str) -> str:
    """Makes the page of one run or several runs.

    Args:
        runs: The runs, in the order of the page.
        title: Heading of the page.
    """
    rows = list(_rows(runs))
    results = [result for run in runs for result in run.results]
    body = html_template("section.html.jinja", filters={"as_json": _as_json, "text": _as_text})
    sections = [
        (result.test.name, body(section=_section(result, doubts), message=message, frame_size=describe_frame_size))
        for run in runs
        for result, doubts in zip(run.results, run.doubts, strict=True)
    ]
    is_large = sum(len(body) for _, body in sections) > _MANY_BYTES
    return html_page(
        "page.html.jinja",
        title=title,
        headline=_headline(runs, rows),
        runs=runs,
        rows=rows,
        cards=rows[:_CARDS],
        nothing=NOTHING,
        quoted=value_names(results),
        methods=methods_in_words(results),
        overviews=[overview for run in runs for overview in _overviews(run.results)],
        sections=sections,
        few=_FEW_TESTS,
        packed=_packed([body for _, body in sections]) if is_large else "",
    )


def _rows(runs: Sequence[Run]) -> Iterator[PageRow]:
    before = 0
    for run in runs:
        for row, finding in zip(overview(run.results), findings_of(run.results), strict=True):
            doubts = tuple(doubt.kind.value for doubt in run.doubts[finding.place - 1])
            yield PageRow(row, finding, before + finding.place, doubts)
        before += len(run.results)


def _headline(runs: Sequence[Run], rows: Sequence[PageRow]) -> str:
    """What was measured, where and when, and how much of it needs a look, in a line."""
    results = [result for run in runs for result in run.results]
    if not results:
        return "No results."
    testbeds = sorted({result.conditions.testbed.in_words for result in results})
    began, ended = min(result.started for result in results), max(result.ended for result in results)
    last = f"{ended:%H:%M}" if began.date() == ended.date() else f"{ended:%Y-%m-%d %H:%M}"
    odd = sum(row.is_odd for row in rows)
    counts = f"{len(rows)} values of {len(results)} tests, {odd or 'none'} of them irregular, failed or doubtful"
    where = f"testbed{'s' if len(testbeds) > 1 else ''} {', '.join(testbeds)}"
    return f"{counts} · {where} · {began:%Y-%m-%d %H:%M} to {last} UTC"


def _sortable(number: float | None) -> float | str:
    return "" if number is None else number


def _packed(bodies: Sequence[str]) -> str:
    """The sections as one compressed text, which the page's script unpacks."""
    return base64.b64encode(gzip.compress(json.dumps(bodies).encode(), 9, mtime=0)).decode()


def _section(result: TestResult, doubts: tuple[Doubt, ...]) -> TestSection:
    view = view_of(result)
    pictures = tuple(picture for picture in view.pictures(result) if picture.svg or picture.table)
    return TestSection(result, pictures, doubts, view.conditions(result))


def _overviews(results: Sequence[TestResult]) -> Iterator[str]:
    """The sections about all results of one run. Results of several runs would hide each other in them."""
    by_kind: dict[str, list[TestResult]] = {}
    for result in results:
        by_kind.setdefault(result.kind, []).append(result)
    for of_kind in by_kind.values():
        yield from view_of(of_kind[0]).overviews(of_kind)


def _as_text(text: str) -> str:
    """Escapes plain text for HTML. Quotes stay as they are, as the text is never in an attribute."""
    return html.escape(text, quote=False)


def _as_json(value: object) -> str:
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(data, indent=1, ensure_ascii=False)
