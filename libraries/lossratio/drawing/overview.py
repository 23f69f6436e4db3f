"""The overview of a page: a table whose columns are declared once, with a row for each finding."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Generic, Protocol, TypeVar

from lossratio.drawing.html import PAGES, html_fragment
from lossratio.values import printable

NOTHING = "–"
"""The text for a missing value."""
Section = tuple[str, str, str]
"""A section of a page: the name that addresses link to, its heading, and its markup."""


class Row(Protocol):
    """A row of an overview."""

    @property
    def test(self) -> str:
        """Name of the test."""

    @property
    def link(self) -> str:
        """The name of the section that it links to."""

    @property
    def words(self) -> str:
        """The text that is searched, in lower case."""

    @property
    def is_odd(self) -> bool:
        """Whether somebody should look at it."""


RowT = TypeVar("RowT", bound=Row)


@dataclass(frozen=True)
class Column(Generic[RowT]):
    """A column of an overview."""

    head: str
    """Its heading."""
    text: Callable[[RowT], str | None]
    """The value of a row as text; `NOTHING`, empty or None: there is none."""
    number: Callable[[RowT], float | None] | None = None
    """The number that rows are sorted by; None: they are sorted by the text."""
    style: str = ""
    """The class of its cells: ``number``, ``name``, ``date``."""
    markup: Callable[[RowT], str] | None = None
    """The value as HTML; None: the text is shown."""

    def cell(self, row: RowT) -> str:
        """The cell of a row; empty: the row has no value."""
        content = escape(self.text(row) or "") if self.markup is None else self.markup(row)
        if content in ("", NOTHING):
            return ""

        data = ""
        if self.number is not None:
            number = self.number(row)
            is_known = number is not None and not math.isnan(number)
            data = f' data-value="{number if is_known else ""}"'

        return f"<td{_class(self.style)}{data}>{content}</td>"

    @property
    def empty(self) -> str:
        """The cell of a row without a value, which is sorted after the others."""
        return f'<td{_class(self.style)} data-value="">{NOTHING}</td>'


@dataclass(frozen=True)
class Overview(Generic[RowT]):
    """The rows of a page, with their filters and sections."""

    rows: Sequence[RowT]
    """The rows."""
    columns: Sequence[Column[RowT]]
    """The columns; the page leaves out those without any value."""
    filters: Mapping[str, tuple[str, Callable[[RowT], str | Sequence[str]]]]
    """The filters of rows, by their names in addresses: a label, and the value of a row, or several."""
    only: str
    """The label of the filter for rows that somebody should look at."""
    few: int = 3
    """Up to this many sections are initially open."""
    fewest: int = 3
    """Fewer sections than this have no table, because they show all that it has."""

    def page(
        self, template: str, sections: Sequence[Section], *, package: str = PAGES, **values: object
    ) -> str:
        """Makes the page from a template of a package."""
        heads, rows = self.table()
        return html_fragment(
            package,
            template,
            filters={},
            overview=self,
            heads=heads,
            rows=rows,
            sections=sections,
            **values,
        )

    @property
    def has_table(self) -> bool:
        """Whether the page has the table."""
        return len({row.link for row in self.rows}) >= self.fewest

    def table(self) -> tuple[list[str], list[str]]:
        """The headings of the columns that have values, and the rows as markup."""
        shown: dict[Column[RowT], list[str]] = {}
        for column in self.columns:
            cells = [column.cell(row) for row in self.rows]
            if any(cells) or not self.rows:
                shown[column] = cells

        columns = []
        for column, cells in shown.items():
            columns.append([cell or column.empty for cell in cells])

        marked = []
        for row, *cells in zip(self.rows, *columns, strict=True):
            chosen = "".join(
                f' data-{name}="{escape(_in_lines(value(row)))}"'
                for name, (_, value) in self.filters.items()
            )
            only = str(row.is_odd).lower()
            words = f'data-words="{escape(row.words)}" data-only="{only}"'
            marked.append(printable(f"<tr{chosen} {words}>{''.join(cells)}</tr>"))
        return [column.head for column in shown], marked


def _in_lines(values: str | Sequence[str]) -> str:
    """One value, or several, one per line."""
    if isinstance(values, str):
        return values
    return "\n".join(values)


def test_column(row_type: type[RowT]) -> Column[RowT]:
    """The first column: the test, with a link to its section."""
    return Column(
        "test",
        lambda row: row.test,
        style="name",
        markup=lambda row: f'<a href="#{escape(row.link)}">{escape(row.test)}</a>',
    )


def number_column(
    head: str, number: Callable[[RowT], float | None], words: Callable[[float], str]
) -> Column[RowT]:
    """A column of numbers."""

    def text(row: RowT) -> str:
        value = number(row)
        if value is None:
            return NOTHING
        return words(value)

    return Column(head, text, number, style="number")


def verdict(kind: str, words: str, notes: Iterable[str] = ()) -> str:
    """A verdict with its notes below."""
    below = (f'<br><span class="doubt">{escape(note)}</span>' for note in notes)
    return f'<span class="{kind}">{escape(words)}</span>{"".join(below)}'


def _class(style: str) -> str:
    if style:
        return f' class="{style}"'
    return ""
