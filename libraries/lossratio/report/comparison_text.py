"""A comparison in words: a table for people, and JUnit cases for CI systems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lossratio.report.comparison import ComparedQuantity, Comparison, Verdict
from lossratio.report.difference import Sample
from lossratio.report.junit import Case
from lossratio.units import Unit

_HEADER = ("test", "goal", "A", "B", "change", "95 % interval", "p", "verdict")
_STATES = {
    Verdict.REGRESSION: "failure",
    Verdict.TOO_FEW: "skipped",
    Verdict.NOT_COMPARABLE: "skipped",
}


def comparison_table(comparison: Comparison) -> str:
    """Formats the comparison as a table of plain text, with a summary below."""
    rows = [_HEADER, *(_row(compared) for compared in comparison.quantities)]
    lines = [*aligned(rows), "", *_summary(comparison)]
    return "\n".join(lines)


def comparison_cases(comparison: Comparison) -> list[Case]:
    """Converts the comparison into JUnit cases: a regression is a failure, an undecided quantity is skipped."""
    return [
        Case(
            suite=compared.test,
            name=compared.quantity,
            state=_STATES.get(compared.verdict, "passed"),
            message=told(compared),
            output=told(compared),
        )
        for compared in comparison.quantities
    ]


def told(compared: ComparedQuantity) -> str:
    """Describes one quantity in one line."""
    _, _, before, after, change, interval, p_value, verdict = _row(compared)
    if compared.difference is None:
        return verdict
    return f"{verdict}: {before} before, {after} after: {change} ({interval}; p {p_value})"


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Formats the rows of a table as lines; each column is as wide as its widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(compared: ComparedQuantity) -> tuple[str, ...]:
    difference = compared.difference
    interval = (
        "-"
        if difference is None or difference.interval is None
        else " to ".join(f"{100 * end:+.2f}" for end in difference.interval)
    )
    return (
        compared.test,
        compared.quantity,
        _sample(compared.before, compared.unit),
        _sample(compared.after, compared.unit),
        "-" if difference is None else f"{100 * difference.change:+.2f} %",
        interval,
        "-" if difference is None or difference.test is None else f"{compared.p_value:.2g} ({difference.test})",
        compared.verdict.value + (f": {compared.note}" if compared.note else ""),
    )


def _sample(sample: Sample, unit: Unit) -> str:
    if not sample.values:
        return "none"
    spread = "" if sample.stdev is None else f" ± {100 * sample.stdev / sample.mean if sample.mean else 0.0:.2f} %"
    return f"{unit.format(sample.mean)}{spread} (n={len(sample.values)})"


def _summary(comparison: Comparison) -> Iterator[str]:
    counts = {verdict: sum(compared.verdict is verdict for compared in comparison.quantities) for verdict in Verdict}
    summary = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)
    yield f"Testbed {comparison.testbed}: {summary}. Rates are aggregates; p is adjusted for the number of comparisons."
    if not comparison.has_verdict:
        yield "No verdict: repeat the runs, at least twice on both sides, or three times on one."
    yield from (f"Not read: {problem}" for problem in comparison.problems)
