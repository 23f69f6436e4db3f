"""The page of a comparison: one HTML file, in the design of the page of a run.

An undecided quantity has its reason instead of a number, and each quantity has a section with every single value.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from lossratio import drawing
from lossratio.report.comparison import ComparedQuantity, Comparison, quantity_in_words, sentence_of
from lossratio.report.overview import aggregate_in_words, bounds_in_words, run_of, value_in_words
from lossratio.report.page import evidence_of
from lossratio.report.run import Run
from lossratio.report.verdict import verdicts_counted
from lossratio.values import FRAMES_PER_SECOND, range_in_words


def _cell(column: str) -> Callable[[ComparedQuantity], str]:
    """A column with words of a comparison."""

    def text(row: ComparedQuantity) -> str:
        return quantity_in_words(row)[column]

    return text


def _change(row: ComparedQuantity) -> float | None:
    """The change as a share; None: it is undecided."""
    if row.difference is None or row.p_value is None:
        return None
    return row.difference.change


def _change_in_words(row: ComparedQuantity) -> str:
    if _change(row) is None:
        return drawing.NOTHING
    return quantity_in_words(row)["change"]


def _width(row: ComparedQuantity) -> float | None:
    """The width of the change's interval, per cent; None: there is no interval."""
    if row.difference is None or row.difference.interval is None:
        return None
    low, high = row.difference.interval
    return 100 * (high - low)


def _notes(row: ComparedQuantity) -> Iterator[str]:
    """What the number does not show, and kinds of doubts with the number of values that have them."""
    if row.note:
        yield row.note
    for side, findings in row.sides:
        having = Counter(kind for finding in findings for kind in finding.kinds_of_doubts)
        for kind, count in having.items():
            yield f"doubt: {side}, {count} of {len(findings)}: {kind}"


def _has_doubts(row: ComparedQuantity) -> bool:
    """Whether there is a doubt about a value of A or B."""
    return any(finding.doubts for _, findings in row.sides for finding in findings)


def _verdict(row: ComparedQuantity) -> str:
    """The verdict with its notes, as markup."""
    return drawing.verdict(row.verdict.kind, row.verdict.value, _notes(row))


_TRAFFIC = "newest.result.conditions.traffic"
_SIZES = attrgetter(f"{_TRAFFIC}.sizes_in_words")
# Table: the columns of the overview.
_COLUMNS: tuple[drawing.Column[ComparedQuantity], ...] = (
    drawing.test_column(ComparedQuantity),
    drawing.Column("change", _change_in_words, _change, style="number quote"),
    drawing.Column("verdict", _cell("verdict"), style="words", markup=_verdict),
    drawing.Column("goal", attrgetter("quantity")),
    drawing.Column("stream", _cell("stream")),
    drawing.Column("frame size", _SIZES, attrgetter(f"{_TRAFFIC}.average_frame_size_bytes")),
    drawing.Column("95 % interval, %", _cell("95 % interval"), _width, style="number"),
    drawing.Column("A", _cell("A"), attrgetter("before.mean"), style="number"),
    drawing.Column("B", _cell("B"), attrgetter("after.mean"), style="number"),
    drawing.Column("p, adjusted", _cell("p"), attrgetter("p_value"), style="number"),
)
# Table: for each filter, its label, and the text of a row that it filters by.
_FILTERS: Mapping[str, tuple[str, Callable[[ComparedQuantity], str | Sequence[str]]]] = {
    "verdict": ("Verdict", attrgetter("verdict.value")),
    "goal": ("Goal", attrgetter("quantity")),
    "size": ("Frame size", _SIZES),
    "testbed": ("Testbed", attrgetter("newest.result.conditions.testbed.name")),
    "tags": ("Tag", attrgetter("newest.result.test.tags")),
}
# What the template of a section calls, by its names there.
_IN_SECTION: Mapping[str, Callable[[Any], Any]] = {
    "run": run_of,
    "value": value_in_words,
    "aggregate": aggregate_in_words,
    "bounds": bounds_in_words,
    "words": quantity_in_words,
    "notes": _notes,
    "has_doubts": _has_doubts,
}


def comparison_page(
    comparison: Comparison,
    before: Sequence[Run],
    after: Sequence[Run],
    names: tuple[str, str] = ("A", "B"),
) -> str:
    """Makes the page of a comparison, which begins with the sentence that the console shows."""
    rows = comparison.by_verdict
    body = partial(
        drawing.html_fragment,
        drawing.PAGES,
        "comparison_section.html.jinja",
        filters=_IN_SECTION,
        rates=FRAMES_PER_SECOND,
    )
    overview = drawing.Overview(rows, _COLUMNS, _FILTERS, only="Only changed")
    sections = []
    shown: set[str] = set()
    for row in rows:
        # The first quantity of a test shows what all of them share.
        evidence = "" if row.test in shown else evidence_of(row.newest.result)
        shown.add(row.test)
        shown_here = body(row=row, evidence=evidence, is_listed=overview.has_table)
        sections.append((row.link, f"{row.test}, {row.quantity}", shown_here))
    if names[0] != names[1]:
        title = f"{names[0]} and {names[1]}"
    else:
        title = f"{names[0]}, twice"

    return overview.page(
        "comparison.html.jinja",
        sections,
        title=title,
        sentences=[sentence_of(comparison)],
        headline=_headline(comparison, before, after, names),
        problems=comparison.problems,
    )


def _headline(
    comparison: Comparison, before: Sequence[Run], after: Sequence[Run], names: tuple[str, str]
) -> str:
    sides = []
    for side, name, runs in zip("AB", names, (before, after), strict=True):
        results = [result for run in runs for result in run.results]
        if not results:
            sides.append(f"{side}: {name} (nothing measured)")
            continue

        began, ended = (
            min(result.started for result in results),
            max(result.ended for result in results),
        )
        builds = sorted(filter(None, {result.conditions.build for result in results}))
        days = range_in_words(f"{began:%Y-%m-%d}", f"{ended:%Y-%m-%d}")

        count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
        sides.append(f"{side}: {name} ({', '.join((count, days, *builds))})")

    return " · ".join(
        (verdicts_counted(comparison.quantities), *sides, f"testbed {comparison.testbed}")
    )
