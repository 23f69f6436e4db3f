"""The page of a run: one HTML file with all results, which needs no network.

The headline has the numbers to quote, the overview a row for each of them, and each test a section. A script sorts and
filters the overview; without it, the page shows the same. Only a report of very many tests keeps the sections
compressed, and needs the script to show them.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, JsonValue

from lossratio.drawing import MARKS, html_page, html_template, packed, packed_sections, range_bar, series_colour
from lossratio.records import Rate
from lossratio.report.run import Run, cycles_left_alone
from lossratio.report.tables import NOTHING, OverviewRow, describe_frame_size, methods_in_words, overview, value_names
from lossratio.results import (
    Charts,
    Conditions,
    Finding,
    Outcome,
    Picture,
    TestResult,
    caveats_of,
    findings_of,
    message,
    number_of,
    view_of,
)

PAGE_NAME = "lossratio.html"
"""Name of the page in the directory of a run; ``report.html`` there is Robot Framework's own."""

_CARDS = 8
_FEW_TESTS = 12
_MANY_TESTS, _MANY_TRIALS = 200, 8_000
"""In a page of more tests or trials, everything below the first numbers is compressed, and a script shows it."""
_COLUMNS = (
    "test",
    "frame size",
    "goal",
    "number to quote",
    "bounds",
    "result",
    "lower bound",
    "upper bound",
    "aggregate",
    "bandwidth",
    "of theoretical maximum",
    "latency",
    "trials",
    "time of trials",
)
Section = tuple[str, str, tuple[str, ...]]
"""A section of the page: the name that addresses link to, its heading, and its markup in parts."""

_MARKS = [(mark.label, mark.shape, mark.colour, mark.is_filled) for mark in MARKS]
_COLOURS = [series_colour(place) for place in range(8)]


@dataclass(frozen=True)
class PageRow:
    """A row of the overview with the numbers behind its words: what the page sorts, filters and draws by.

    Attributes:
        text: The row in words.
        finding: The finding of the row.
        place: Position of the row's test among all tests of the page, from 1.
        doubts: The doubts about the result, in a few words each.
        run: The directory of the row's run; empty: the page has one run only.
    """

    text: OverviewRow
    finding: Finding
    place: int
    doubts: tuple[str, ...]
    run: str = ""

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
    def notes(self) -> list[str]:
        """What a reader of the number needs besides its doubts and the reason of the outcome."""
        finding = self.finding
        caveats = caveats_of(finding)[0 if finding.reason is None else 1 :]
        early = finding.result.conditions.timing.has_early_verdicts
        return [*caveats, *(["with early verdicts: not comparable with whole trials"] if early else [])]

    @property
    def latency(self) -> tuple[str, float | str]:
        """Latency of the slowest direction at the first load of the row's goal: in words, and the median in us."""
        result = self.finding.result
        points = list(view_of(result).latencies(result))
        of_goal = [point for point in points if self.finding.quantity in point.load]
        of_none = [point for point in points if " of " not in point.load]
        chosen = of_goal or of_none
        at_load = [point for point in chosen if point.load == chosen[0].load]
        p50, p99 = (
            max((value for value in values if value is not None), default=None)
            for values in ([point.p50_us for point in at_load], [point.p99_us for point in at_load])
        )
        if p50 is None:
            return NOTHING, ""
        percentiles = f"{p50:.4g} µs" + ("" if p99 is None else f", 99 % {p99:.4g} µs")
        return f"{percentiles} at {at_load[0].load}", p50

    @property
    def link(self) -> str:
        """The name of the section of the row's test."""
        return section_name(self.place)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the test."""
        return self.finding.result.test.tags

    @property
    def picture(self) -> str:
        """The small picture of the bounds, or of the value with its standard deviation; empty: no rate."""
        return "" if self.bar is None else range_bar(*self.bar)

    @property
    def bar(self) -> tuple[float, ...] | None:
        """The value and both ends of its error bar, in per cent of the maximum load; None: no rate to quote."""
        most = self.finding.result.max_load.rate.aggregate_fps
        value, deviation = self.finding.value, self.finding.deviation
        if not isinstance(value, Rate) or not most or not self.is_quotable:
            return None
        spread = deviation.aggregate_fps if isinstance(deviation, Rate) else 0.0
        ends = [
            rate.aggregate_fps
            for rate in (self.finding.lower_bound, self.finding.upper_bound)
            if isinstance(rate, Rate)
        ]
        ends = ends or [value.aggregate_fps - spread, value.aggregate_fps + spread]
        return tuple(100.0 * rate / most for rate in (value.aggregate_fps, min(ends), max(ends)))

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
        yield self.latency
        yield text.trials, len(finding.result.trials)
        yield text.duration, sum(trial.elapsed_s for trial in finding.result.trials)


def report_page(runs: Sequence[Run], title: str) -> str:
    """Makes the page of one run or several runs.

    Args:
        runs: The runs, in the order of the page.
        title: Heading of the page.
    """
    with cycles_left_alone():
        return _page(runs, title)


def _page(runs: Sequence[Run], title: str) -> str:
    rows = list(_rows(runs))
    results = [result for run in runs for result in run.results]
    is_large = len(results) > _MANY_TESTS or sum(len(result.trials) for result in results) > _MANY_TRIALS
    sections, searches = _sections(runs, is_large=is_large)
    row = html_template("row.html.jinja")
    marked_rows = [row(row=values, nothing=NOTHING) for values in rows]
    data = {"charts": packed({"marks": _MARKS, "colours": _COLOURS, "searches": searches})} if searches else {}
    if is_large:
        data |= packed_sections(marked_rows, sections)
    return html_page(
        "page.html.jinja",
        title=title,
        headline=_headline(runs, rows),
        runs=runs,
        rows=marked_rows,
        cards=rows[:_CARDS],
        card_name="values",
        columns=(*(["run"] if len(runs) > 1 else []), *_COLUMNS),
        selections={"run": "Run", "goal": "Goal", "size": "Frame size", "testbed": "Testbed", "tags": "Tag"},
        only="Only irregular, failed or doubtful",
        quoted=value_names(results),
        methods=methods_in_words(results),
        overviews=[overview for run in runs for overview in _overviews(run.results)],
        overlay=len(searches) > 1,
        sections=sections,
        few=_FEW_TESTS,
        packed=is_large,
        data=data,
    )


def _sections(runs: Sequence[Run], *, is_large: bool) -> tuple[list[Section], dict[str, Mapping[str, JsonValue]]]:
    """The sections of all tests, and the data of the charts that the page's script draws, by the section's name."""
    body = html_template("section.html.jinja", filters={"text": _as_text})
    conditions = html_template("conditions.html.jinja")
    facts = html_template("facts.html.jinja", filters={"as_json": _as_json})
    known: dict[str, tuple[str, ...]] = {}

    def facts_of(conditions: Conditions) -> tuple[str, ...]:
        # Most tests of a run have equal facts, and to format them takes longer than to compare them.
        key = conditions.model_dump_json()
        if key not in known:
            known[key] = tuple(facts(name=about, facts=named) for about, named in _facts(conditions))
        return known[key]

    sections: list[Section] = []
    searches: dict[str, Mapping[str, JsonValue]] = {}
    results = [(run, *pair) for run in runs for pair in zip(run.results, run.doubts, strict=True)]
    for run, result, doubts in results:
        view, name = view_of(result), section_name(len(sections) + 1)
        charts = view.charts(result) if is_large else None
        data = view.columns(result) if charts is None else charts.data
        if data is not None:
            searches[name] = data
        parts = (
            body(
                run=run.path if len(runs) > 1 else None,
                result=result,
                doubts=doubts,
                pictures=list(_pictures(result, charts)),
                message=message,
            ),
            conditions(result=result, of_kind=view.conditions(result), frame_size=describe_frame_size),
            *facts_of(result.conditions),
            "</details>",
        )
        sections.append((name, result.test.name, parts))
    return sections, searches


def _pictures(result: TestResult, charts: Charts | None) -> Iterator[Picture]:
    if charts is None:
        pictures: Iterable[Picture] = view_of(result).pictures(result)
    else:
        places = {name: f'<div class="chart" data-draw="{name}"></div>' for name in charts.drawn}
        pictures = (*(replace(picture, svg=places[name]) for name, picture in charts.drawn.items()), *charts.others)
    return (picture for picture in pictures if picture.svg or picture.table)


def _facts(conditions: Conditions) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The facts of a measurement that are shown as they are in its file: heading, and facts by their own headings."""
    yield "SUT configuration", {"": conditions.duts}
    yield "Generator", {"": conditions.generator}
    yield "Traffic profile", {"": conditions.traffic.profile}
    yield "Testbed", {"": conditions.testbed}
    yield "Nodes", {**conditions.nodes, "Controller": conditions.controller}


def section_name(place: int) -> str:
    """The name of a test's section, to which addresses link, by the test's place among all tests of the page."""
    return f"test-{place}"


def _rows(runs: Sequence[Run]) -> Iterator[PageRow]:
    before = 0
    for run in runs:
        for row, finding in zip(overview(run.results), findings_of(run.results), strict=True):
            doubts = tuple(doubt.kind.value for doubt in run.doubts[finding.place - 1])
            yield PageRow(row, finding, before + finding.place, doubts, str(run.path) if len(runs) > 1 else "")
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
