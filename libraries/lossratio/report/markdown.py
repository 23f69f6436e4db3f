"""Formats runs as Markdown, for people, and tables of Markdown for others."""

import re
from collections.abc import Iterable, Iterator, Sequence

from lossratio.drawing import Column
from lossratio.report.failures import CUT_OFF, FAILED, skips_in_words
from lossratio.report.formats import ReportFormat
from lossratio.report.overview import COLUMNS, methods_in_words, terms_in_words, value_or_sentence
from lossratio.report.run import Run
from lossratio.results import Finding, view_of
from lossratio.values import in_one_line

_VALUE = "conditional throughput (or other value)"
_LEFT_OUT = ("number to quote", "stream", "latency")
_TEST, *_OTHERS = (column for column in COLUMNS if column.head not in _LEFT_OUT)
_MEASURED: Column[Finding] = Column(_VALUE, value_or_sentence)
_COLUMNS = (_TEST, _MEASURED, *_OTHERS)
"""Unlike the number to quote, the value is also shown for irregular results, with the reason beside it."""


def markdown_report(runs: Sequence[Run]) -> str:
    """Makes the overview of each run as a Markdown table, with doubts, tests without a result, and problems."""
    return "\n\n".join("\n".join(_lines(run)) for run in runs) + "\n"


def _lines(run: Run) -> Iterator[str]:
    yield f"# {markdown_cell(run.path.resolve().name)}"
    yield ""
    unreadable = (f"- **not readable**: {markdown_cell(problem)}" for problem in run.problems)
    remarks = [*_without_result(run), *unreadable, *_doubts(run)]
    yield from remarks
    if remarks:
        yield ""
    rows = ([column.text(row) or "" for column in _COLUMNS] for row in run.rows)
    yield from markdown_table(_header(run), rows)
    yield ""
    yield _below(run)


def _without_result(run: Run) -> Iterator[str]:
    """The tests that have no result: those that were cut off, that failed, or that were skipped."""
    for test in run.having(CUT_OFF, FAILED):
        yield f"- **{test.state}**{test.when}: {markdown_cell(f'{test.full_name}: {test.reason}')}"
        yield from (f"  - {markdown_cell(bounds)}" for bounds in test.known)
    for line in skips_in_words(run.skipped):
        yield f"- {markdown_cell(line)}"


def _doubts(run: Run) -> Iterator[str]:
    names = {row.number: row.test for row in run.rows}
    for number, (result, doubts) in enumerate(zip(run.results, run.doubts, strict=True), start=1):
        name = markdown_cell(names.get(number, result.test.name))
        yield from (f"- **doubt** about {name}: {markdown_cell(str(doubt))}" for doubt in doubts)
        if result.queues_in_words is not None:
            yield f"- receive queues in {name}: {markdown_cell(result.queues_in_words)}"


def _header(run: Run) -> list[str]:
    """The column headings. If all values are of one kind, such as critical loads, their column has its name."""
    header = [column.head for column in _COLUMNS]
    names = {view_of(result).value_name for result in run.results}
    if len(names) == 1:
        name = names.pop()
        if name is not None and name not in _VALUE:
            header[_COLUMNS.index(_MEASURED)] = name
    return header


def _below(run: Run) -> str:
    """Explains the numbers of the table, and names the simulated testbeds that they were measured on."""
    testbeds = [result.conditions.testbed for result in run.results]
    simulated = sorted({testbed.in_words for testbed in testbeds if testbed.is_simulated})
    return (
        "Loads and rates are per transmitting interface, and the bounds of a rate are offered "
        "loads. The aggregate is the sum over these interfaces; its bandwidth is counted on the "
        "wire (layer 1)."
        + terms_in_words(run.results)
        + methods_in_words(run.results)
        + "".join(f" Testbed {markdown_cell(name)}." for name in simulated)
    )


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Formats a table as lines of Markdown."""
    yield "| " + " | ".join(map(markdown_cell, header)) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(markdown_cell(cell) for cell in row) + " |"


def markdown_cell(text: str) -> str:
    """Text as a cell of a Markdown table, in one line."""
    escaped = re.sub(r"([\\|\[`*])", r"\\\1", in_one_line(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


MARKDOWN = ReportFormat("lossratio.md", markdown_report)
"""The overview, for chats and merge requests."""
