"""A comparison in words: one sentence, a table of text or of Markdown, JUnit cases, and the lines of its summary."""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from lossratio import results
from lossratio.drawing import NOTHING
from lossratio.report.comparison.differences import NO_SPREAD, Difference, Sample
from lossratio.report.comparison.quantity import ComparedQuantity, Comparison
from lossratio.report.junit import Case, judged_case
from lossratio.report.markdown import markdown_cell, markdown_table
from lossratio.report.verdict import Verdict, verdicts_counted
from lossratio.values import (
    Unit,
    and_more,
    change_in_words,
    counted,
    format_change,
    format_ratio,
    in_one_line,
    range_in_words,
)

_HEADER = ("test", "goal", "stream", "A", "B", "change", "95 % interval", "p", "verdict")
_NO_SPREAD = (
    " All values on each side are equal, so nothing shows how much they vary by chance: repeat the "
    "runs to be sure."
)
_CLAIMS = {
    Verdict.SEEMS_WORSE: ("seems worse", _NO_SPREAD),
    Verdict.PROGRESSION: ("is better", ""),
    Verdict.SEEMS_BETTER: ("seems better", _NO_SPREAD),
}
"""What is said of B if nothing got worse, with advice: the first of these verdicts counts."""


def comparison_table(comparison: Comparison) -> str:
    """Formats the comparison as plain text: one sentence, a table, and the summary."""
    rows = _rows(comparison.quantities)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    below = map(in_one_line, summary_of(comparison))
    return "\n".join((in_one_line(sentence_of(comparison)), "", *lines, "", *below))


def comparison_markdown(comparison: Comparison) -> str:
    """Formats the comparison as Markdown: one sentence, the summary, then a table with the regressions first."""
    summary = [markdown_cell(line) for line in summary_of(comparison)]
    first = markdown_cell(sentence_of(comparison))
    head, *rows = _rows(comparison.by_verdict)
    return "\n".join((first, "", *summary, "", *markdown_table(head, rows)))


def sentence_of(comparison: Comparison) -> str:
    """What the comparison proves, in one sentence, for people who read nothing else.

    If nothing shows how much some values vary by chance, a second sentence says so.
    """
    worse, lost = comparison.worse, comparison.broken
    seems_worse = comparison.having(Verdict.SEEMS_WORSE)
    among = counted(len(comparison.quantities), "quantity", "quantities")

    if worse:
        also = f"; it no longer has a value for {len(lost):,} more" if lost else ""
        proved = f"B is worse than A in {len(worse):,} of {among}: {_largest(worse)}{also}."
        return f"{proved}{_also_seeming(seems_worse)}"
    if lost:
        named = ", ".join((lost[0].test, lost[0].quantity))
        proved = f"B no longer has a value for {len(lost):,} of {among}: {named}{and_more(len(lost) - 1)}."
        return f"{proved}{_also_seeming(seems_worse)}"
    for verdict, (claim, advice) in _CLAIMS.items():
        found = comparison.having(verdict)
        if found:
            return f"B {claim} than A in {len(found):,} of {among}: {_largest(found)}.{advice}"
    if comparison.has_verdict:
        return _nothing_proved(comparison)
    return _undecided(comparison)


def _undecided(comparison: Comparison) -> str:
    """Why nothing is decided, and what to do about it."""
    if comparison.having(Verdict.TOO_FEW):
        return (
            "Undecided: there are too few results. Repeat the runs at least twice on both sides, or three times on one "
            "side."
        )
    for one in comparison.quantities:
        for side, findings in (("B", one.findings_after), ("A", one.findings_before)):
            share = max(
                (results.unsent_share_of(finding) or 0.0 for finding in findings), default=0.0
            )
            if share:
                return (
                    f"Undecided: {side}'s generator did not send or count {_share_in_words(share)} of its frames: "
                    f"repeat {side}."
                )
    named = comparison.quantities[0]
    more = and_more(len(comparison.quantities) - 1)
    return f"Undecided: {named.test}, {named.quantity}{more} cannot be compared: {named.note}."


def _share_in_words(share: float) -> str:
    if share == 1.0:
        return "enough"
    return f"up to {format_ratio(share)}"


def _also_seeming(seems_worse: Sequence[ComparedQuantity]) -> str:
    """A sentence on the quantities that only seem worse, after a blank; empty: there are none."""
    if not seems_worse:
        return ""
    return (
        f" B seems worse in {len(seems_worse):,} more, whose values are all equal on each side: "
        "repeat the runs to be sure."
    )


def _nothing_proved(comparison: Comparison) -> str:
    """That no difference is proved, and how many quantities have no verdict at all."""
    all_of_them = counted(len(comparison.quantities), "quantity", "quantities")
    where = ""
    also = ""
    if comparison.undecided:
        where = f" in {len(comparison.having(Verdict.UNCHANGED)):,} of {all_of_them}"
        also = f" There is no verdict on {len(comparison.undecided):,} more."
    return (
        f"No difference between A and B is proved{where}: each is too small, or chance may explain "
        f"it.{also}"
    )


def _largest(changed: Sequence[ComparedQuantity]) -> str:
    """The largest of some proved changes in words, e.g. ``64B-mrr, MRR, fell by 5.00 %, and 2 more``."""
    changes = [(one, one.difference) for one in changed if one.difference is not None]
    one, largest = max(changes, key=lambda named: abs(named[1].change))
    words = change_in_words(largest.change, is_least=largest.is_least)
    return f"{one.test}, {one.quantity}, {words}{and_more(len(changes) - 1)}"


def _rows(quantities: Sequence[ComparedQuantity]) -> list[tuple[str, ...]]:
    """The column headings, and the cells of each quantity; without streams, there is no column for them."""
    has_streams = any(compared.newest.stream for compared in quantities)
    heads = [head for head in _HEADER if head != "stream" or has_streams]
    cells = itemgetter(*heads)
    named = map(cells, map(quantity_in_words, quantities))
    return [tuple(heads), *(tuple(map(in_one_line, row)) for row in named)]


def comparison_cases(comparison: Comparison) -> list[Case]:
    """Converts the comparison into JUnit cases: a regression is a failure, an undecided quantity is skipped."""
    return [
        judged_case(one.test, one.quantity, one.verdict, describe_quantity(one), one.newest.stream)
        for one in comparison.quantities
    ]


def describe_quantity(compared: ComparedQuantity) -> str:
    """Describes one quantity in one line."""
    words = quantity_in_words(compared)
    verdict = ": ".join(filter(None, (words["verdict"], compared.note)))
    if compared.difference is None:
        return verdict
    return (
        f"{verdict}: {words['A']} before, {words['B']} after: {words['change']} "
        f"(95 % interval {words['95 % interval']}; p {words['p']})"
    )


def quantity_in_words(compared: ComparedQuantity) -> Mapping[str, str]:
    """The cells of a quantity's row, by the column headings of the table."""
    cells = (
        compared.test,
        compared.quantity,
        compared.newest.stream or "",
        _sample_in_words(compared.before, compared.newest.unit),
        _sample_in_words(compared.after, compared.newest.unit),
        _change_in_words(compared.difference),
        _interval_in_words(compared),
        _p_value_in_words(compared),
        compared.verdict.value,
    )

    return dict(zip(_HEADER, cells, strict=True))


def _sample_in_words(sample: Sample, unit: Unit) -> str:
    if not sample.values:
        return "none"

    if sample.stdev is None:
        spread = ""
    elif sample.mean:
        spread = f" ± {100 * sample.stdev / sample.mean:.2f} %"
    else:
        spread = " ± 0.00 %"

    return f"{unit.format(sample.mean)}{spread} (n={len(sample.values)})"


def _change_in_words(difference: Difference | None) -> str:
    if difference is None:
        return NOTHING
    return format_change(difference.change, is_least=difference.is_least)


def _interval_in_words(compared: ComparedQuantity) -> str:
    difference = compared.difference
    if difference is None:
        return NOTHING
    if difference.is_least:
        return "none: some values are only lower bounds"
    if difference.interval is not None:
        return range_in_words(
            *(format_change(end).removesuffix(" %") for end in difference.interval)
        )
    if difference.test is not None and compared.before.mean:
        return "none: the values do not vary"
    return NOTHING


def _p_value_in_words(compared: ComparedQuantity) -> str:
    difference = compared.difference
    if difference is None or difference.test is None:
        return NOTHING
    if difference.test == NO_SPREAD:
        return f"not known ({NO_SPREAD})"
    return f"{compared.p_value:.2g} ({difference.test})"


def summary_of(comparison: Comparison) -> Iterator[str]:
    """Lines that count the quantities by verdict, have the notes on each, and name what is missing."""
    yield (
        f"Testbed {comparison.testbed}: {verdicts_counted(comparison.quantities)}. "
        "Rates are per interface; p is adjusted for the number of comparisons."
    )
    for one in comparison.quantities:
        if one.note:
            yield f"{one.test}, {one.quantity}: {one.note}."
    yield from results.quick_goals_in(compared.quantity for compared in comparison.quantities)
    yield from (f"Missing: {problem}" for problem in comparison.problems)
