"""The page of a comparison: one HTML file, in the design of the page of a run.

An undecided quantity has its reason instead of a number, and each quantity has a section with every single value.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from lossratio import drawing
from lossratio.report.comparison import (
    SEEMING,
    ComparedQuantity,
    Comparison,
    Verdict,
    quantity_in_words,
    sentence_of,
    summary_of,
)
from lossratio.report.overview import FindingRow, rows_of
from lossratio.report.run import Run
from lossratio.results import build_of
from lossratio.units import FRAMES_PER_SECOND, range_in_words

_FEW, _MANY = 3, 200
_KINDS = {
    Verdict.REGRESSION: "alarm",
    Verdict.SEEMS_WORSE: "undecided",
    Verdict.SEEMS_BETTER: "undecided",
    Verdict.TOO_FEW: "undecided",
    Verdict.NOT_COMPARABLE: "irregular",
}
"""Classes of verdicts; all other verdicts have the class `measured`."""


@dataclass(frozen=True)
class _Row:
    compared: ComparedQuantity
    values: tuple[tuple[str, FindingRow], ...]
    """The compared values, each with its side."""
    link: str
    in_words: Mapping[str, str]

    @property
    def test(self) -> str:
        """Full name of the test."""
        return self.compared.test

    @property
    def newest(self) -> FindingRow:
        """The newest of the values, for what all of them share."""
        return self.values[-1][1]

    @property
    def words(self) -> str:
        """The text that a search looks at, in lower case."""
        return self.newest.words

    @property
    def is_odd(self) -> bool:
        """Whether it changed, or seems to have changed."""
        return self.compared.verdict in (Verdict.REGRESSION, Verdict.PROGRESSION, *SEEMING)

    @property
    def is_decided(self) -> bool:
        """Whether there is a number to quote."""
        return self.compared.p_value is not None

    @property
    def kind(self) -> str:
        """The class of the verdict's colour."""
        return _KINDS.get(self.compared.verdict, "measured")

    @property
    def notes(self) -> Iterator[str]:
        """What the number does not show, and kinds of doubts with the number of values that have them."""
        if self.compared.note:
            yield self.compared.note
        for side in ("A", "B"):
            of_side = [value for of, value in self.values if of == side]
            having = Counter(kind for value in of_side for kind in value.kinds_of_doubts)
            for kind, count in having.items():
                yield f"doubt: {side}, {count} of {len(of_side)}: {kind}"

    @property
    def has_rates(self) -> bool:
        """Whether its values are rates, which have aggregates."""
        return self.compared.unit == FRAMES_PER_SECOND

    @property
    def change(self) -> float | None:
        """The change as a share; None: it is undecided."""
        difference = self.compared.difference
        if difference and self.is_decided:
            return difference.change
        return None

    @property
    def change_in_words(self) -> str:
        """The change in words; `lossratio.drawing.NOTHING`: it is undecided."""
        if self.change is None:
            return drawing.NOTHING
        return self.in_words["change"]

    @property
    def width(self) -> float | None:
        """The width of the change's interval, per cent; None: there is no interval."""
        difference = self.compared.difference
        interval = None if difference is None else difference.interval
        if interval is None:
            return None
        return 100 * (interval[1] - interval[0])

    @property
    def mean_before(self) -> float | None:
        """The mean of A; None: A has no values."""
        if self.compared.before.values:
            return self.compared.before.mean
        return None

    @property
    def mean_after(self) -> float | None:
        """The mean of B; None: B has no values."""
        if self.compared.after.values:
            return self.compared.after.mean
        return None

    @property
    def verdict(self) -> str:
        """The verdict with its notes, as markup."""
        return drawing.verdict(self.kind, self.compared.verdict.value, self.notes)


def _words(column: str) -> Callable[[_Row], str]:
    """A column with words of a comparison."""

    def text(row: _Row) -> str:
        return row.in_words[column]

    return text


# Table: the columns of the overview.
_COLUMNS: tuple[drawing.Column[_Row], ...] = (
    drawing.test_column(_Row),
    drawing.Column(
        "change", attrgetter("change_in_words"), attrgetter("change"), style="number quote"
    ),
    drawing.Column("verdict", _words("verdict"), style="name", markup=attrgetter("verdict")),
    drawing.Column("goal", attrgetter("compared.quantity")),
    drawing.Column("stream", _words("stream")),
    drawing.Column(
        "frame size", attrgetter("newest.frame_size"), attrgetter("newest.average_size_bytes")
    ),
    drawing.Column(
        "95 % interval, %", _words("95 % interval"), attrgetter("width"), style="number"
    ),
    drawing.Column("A", _words("A"), attrgetter("mean_before"), style="number"),
    drawing.Column("B", _words("B"), attrgetter("mean_after"), style="number"),
    drawing.Column("p, adjusted", _words("p"), attrgetter("compared.p_value"), style="number"),
)


def comparison_page(
    comparison: Comparison,
    before: Sequence[Run],
    after: Sequence[Run],
    names: tuple[str, str] = ("A", "B"),
) -> str:
    """Makes the page of a comparison, which begins with the sentence that the console shows."""
    order = list(Verdict)
    rows = sorted(
        _rows(comparison, (*before, *after)), key=lambda row: order.index(row.compared.verdict)
    )
    body = partial(drawing.html_fragment, drawing.PAGES, "comparison_section.html.jinja")
    sections = [
        (row.link, f"{row.compared.test}, {row.compared.quantity}", (body(row=row),))
        for row in rows
    ]
    # Table: for each filter, its label, and the text of a row that it filters by.
    filters: dict[str, tuple[str, Callable[[_Row], str]]] = {
        "verdict": ("Verdict", attrgetter("compared.verdict.value")),
        "goal": ("Goal", attrgetter("compared.quantity")),
        "size": ("Frame size", attrgetter("newest.frame_size")),
        "testbed": ("Testbed", attrgetter("newest.testbed")),
        "tags": ("Tag", attrgetter("newest.tags")),
    }
    overview = drawing.Overview(
        rows=rows, columns=_COLUMNS, filters=filters, only="Only changed", few=_FEW
    )
    if names[0] != names[1]:
        title = f"{names[0]} and {names[1]}"
    else:
        title = f"{names[0]}, twice"

    return overview.page(
        "comparison.html.jinja",
        sections,
        is_large=len(rows) > _MANY,
        data={},
        title=title,
        sentences=[sentence_of(comparison)],
        headline=_headline(comparison, before, after, names),
        summary=next(summary_of(comparison)),
        problems=comparison.problems,
    )


def _rows(comparison: Comparison, runs: Sequence[Run]) -> Iterator[_Row]:
    known = {
        (id(row.result), row.finding.quantity): replace(row, run=str(run.path))
        for run in runs
        for row in rows_of(run)
    }
    for number, compared in enumerate(comparison.quantities, start=1):
        values = tuple(
            (side, known[id(finding.result), finding.quantity])
            for side, findings in (("A", compared.findings_before), ("B", compared.findings_after))
            for finding in findings
        )
        yield _Row(compared, values, f"quantity-{number}", quantity_in_words(compared))


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
        builds = sorted({build for result in results if (build := build_of(result)) is not None})
        days = range_in_words(f"{began:%Y-%m-%d}", f"{ended:%Y-%m-%d}")

        count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
        sides.append(f"{side}: {name} ({', '.join((count, days, *builds))})")

    return f"{' · '.join(sides)} · testbed {comparison.testbed}"
