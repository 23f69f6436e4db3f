"""The page of a run: one HTML file with all results, which needs no network.

The headline has the numbers to quote, the overview has a row for each of them, and each test has a section. A script
sorts and filters the overview; without it, the page shows the same contents.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

from pydantic import BaseModel

from lossratio.drawing import PAGES, Overview, Section, html_fragment
from lossratio.report.formats import ReportFormat
from lossratio.report.overview import (
    COLUMNS,
    RUN,
    SIZES,
    methods_in_words,
    run_of,
    terms_in_words,
    value_names,
)
from lossratio.report.run import Run
from lossratio.results import (
    Conditions,
    Finding,
    Note,
    Outcome,
    TestResult,
    Weight,
    findings_of,
    view_of,
)
from lossratio.values import counted, range_in_words, results_counted, tests_counted

PAGE_NAME = "lossratio.html"
"""Name of the page in the directory of a run; ``report.html`` there is Robot Framework's own."""
_FEW_TESTS = 12
# Table: for each filter, its label, and the text of a row that it filters by.
_FILTERS: Mapping[str, tuple[str, Callable[[Finding], str | Sequence[str]]]] = {
    "goal": ("Goal", attrgetter("quantity")),
    "size": ("Frame size", SIZES),
    "testbed": ("Testbed", attrgetter("result.conditions.testbed.name")),
    "tags": ("Tag", attrgetter("result.test.tags")),
}


def report_page(runs: Sequence[Run], title: str) -> str:
    """Makes the page of one run or several runs."""
    rows: list[Finding] = []
    before = 0
    for run in runs:
        # A row links to the section of its result.
        rows += [replace(row, number=before + row.number) for row in run.rows]
        before += len(run.results)

    columns = COLUMNS
    filters = _FILTERS
    if len(runs) > 1:
        columns = (*COLUMNS[:3], RUN, *COLUMNS[3:])
        filters = {"run": ("Run", run_of), **_FILTERS}

    results = [result for run in runs for result in run.results]
    sections = _sections(runs)
    overviews: list[str] = []

    for run in runs:
        # Only for a single run: the results of several runs would hide each other.
        by_kind: dict[str, list[TestResult]] = {}
        for result in run.results:
            by_kind.setdefault(result.kind, []).append(result)
        for of_kind in by_kind.values():
            overviews += view_of(of_kind[0]).overviews(of_kind)

    overview = Overview(
        rows=rows,
        columns=columns,
        filters=filters,
        only="Only irregular, failed or doubtful",
        few=_FEW_TESTS,
    )
    # Record: what the template shows.
    return overview.page(
        "page.html.jinja",
        sections,
        title=title,
        sentences=_sentences(runs, rows),
        headline=_headline(runs),
        runs=runs,
        quoted=value_names(results),
        terms=terms_in_words(results),
        methods=methods_in_words(results),
        overviews=overviews,
    )


def _sections(runs: Sequence[Run]) -> list[Section]:
    """The sections of all tests."""
    facts = _Facts()
    sections: list[Section] = []
    results = [(run, *pair) for run in runs for pair in zip(run.results, run.notes, strict=True)]
    testbeds = {result.conditions.testbed.name for _, result, _ in results}
    for run, result, notes in results:
        name = f"test-{len(sections) + 1}"
        by_weight: dict[str, list[Note]] = {weight.value: [] for weight in Weight}
        for note in notes:
            by_weight[note.weight.value].append(note)
        # Record: what the template shows.
        shown = html_fragment(
            PAGES,
            "section.html.jinja",
            run=run.path if len(runs) > 1 else None,
            result=result,
            is_only=len(results) == 1,
            has_testbeds=len(testbeds) > 1,
            reasons=_reasons(result),
            notes=by_weight,
            failure=run.failure_in_spite_of(result),
        )
        facts_here = facts.of(result.conditions, name, result.test.name)
        markup = f"{shown}{evidence_of(result)}{facts_here}</details>"
        sections.append((name, result.test.name, markup))
    return sections


def evidence_of(result: TestResult) -> str:
    """The pictures of a result and the beginning of its conditions, whose element is still open, as markup."""
    view = view_of(result)
    # Record: what the template shows.
    return html_fragment(
        PAGES,
        "evidence.html.jinja",
        result=result,
        pictures=[one for one in view.pictures(result) if one.svg or one.table],
        of_kind=view.conditions(result),
    )


class _Facts:
    """The facts of the machines, devices and frames of each test: equal ones only once, and then a link to them."""

    def __init__(self) -> None:
        self._made = partial(
            html_fragment, PAGES, "facts.html.jinja", filters={"as_json": _as_json}
        )
        # For each of the facts, the section and the test that have them.
        self._first: dict[str, tuple[str, str]] = {}
        # Links to all facts of conditions. Formatting facts takes longer than comparing them.
        self._links: dict[str, str] = {}

    def of(self, conditions: Conditions, section: str, test: str) -> str:
        """The facts of a test, as markup.

        Args:
            conditions: Its conditions.
            section: The name of its section.
            test: Its name.
        """
        key = conditions.model_dump_json()
        if key in self._links:
            return self._links[key]

        # As in the file of the result: a heading, and facts by their own headings.
        shown: Mapping[str, Mapping[str, object]] = {
            "SUT configuration": {"": conditions.duts},
            "Generator": {"": conditions.generator},
            "Traffic profile": {"": conditions.traffic.profile},
            "Testbed": {"": conditions.testbed},
            "Nodes": {**conditions.nodes, "Controller": conditions.controller},
        }
        here = ""
        links = ""
        for about, named in shown.items():
            whole = self._made(name=about, facts=named, first=None)
            is_new = whole not in self._first
            first = self._first.setdefault(whole, (section, test))
            link = self._made(name=about, facts={}, first=first)
            here += whole if is_new else link
            links += link
        self._links[key] = links
        return here


def _reasons(result: TestResult) -> list[str]:
    """Why quantities of a result are irregular."""
    findings = findings_of([result])
    return [
        f"{finding.quantity} is {finding.outcome_in_words}"
        for finding in findings
        if finding.outcome is Outcome.IRREGULAR and not finding.is_as_before
    ]


def _sentences(runs: Sequence[Run], rows: Sequence[Finding]) -> list[str]:
    """What a page begins with: the sentences of its only result, or how many of its values somebody should look at."""
    found = [notes for run in runs for notes in run.notes]
    if len(found) == 1:
        return [note.text for note in found[0] if note.weight is Weight.HEADLINE]
    odd = sum(row.is_odd for row in rows)
    if not rows:
        return []
    verb = "is" if odd == 1 else "are"
    of_results = f"{counted(len(rows), 'value')} of {results_counted(len(found))}"
    return [f"{odd or 'None'} of {of_results} {verb} irregular, failed or doubtful."]


def _headline(runs: Sequence[Run]) -> str:
    results = [result for run in runs for result in run.results]
    skipped = Counter(test.state for run in runs for test in run.skipped)
    left_out = "".join(
        f" · {tests_counted(count)} {what}" for what, count in sorted(skipped.items())
    )
    if not results:
        return f"No results{left_out}."

    testbeds = sorted({result.conditions.testbed.in_words for result in results})
    began, ended = (
        min(result.started for result in results),
        max(result.ended for result in results),
    )
    first, last = (f"{time:%Y-%m-%d %H:%M}" for time in (began, ended))
    if last != first and began.date() == ended.date():
        last = f"{ended:%H:%M}"

    where = f"testbed{'s' if len(testbeds) > 1 else ''} {', '.join(testbeds)}"

    return f"{where} · {range_in_words(first, last)} UTC{left_out}"


def _as_json(value: object) -> str:
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(data, indent=1, ensure_ascii=False)


def _page_of_runs(runs: Sequence[Run]) -> str:
    title = ", ".join(run.path.resolve().name for run in runs)
    return report_page(runs, title)


HTML = ReportFormat(PAGE_NAME, _page_of_runs)
"""One page with all results, for a browser."""
