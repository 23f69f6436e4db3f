"""The comparison of two builds in words: a line for each test, and a comment in Markdown."""

import math
from collections.abc import Mapping
from html import escape

from lossratio.results import ROUNDING, share_in_words
from lossratio.runs.builds.outcome import AbRequest, ComparisonResult, ComparisonVerdict
from lossratio.values import counted, format_change, format_change_size, range_in_words

_WORST_FIRST = (
    ComparisonVerdict.SLOWER,
    ComparisonVerdict.UNDECIDED,
    ComparisonVerdict.FASTER,
    ComparisonVerdict.SAME,
)


def describe_comparison(name: str, result: ComparisonResult) -> str:
    """A verdict in a line."""
    difference = _difference_in_words(result)
    interval = ""
    if _has_no_spread(result):
        interval = " (no interval: the values do not vary)"
    elif _is_bounded(result):
        low, high = result.interval
        interval = f" (change between {format_change(low)} and {format_change(high)})"

    verdict = _verdict_in_words(result.verdict)
    missing = _missing_in_words(result)
    return f"{name}: {verdict}{difference}{interval}, after {counted(result.measurements, 'measurement')}.{missing}"


def _is_bounded(result: ComparisonResult) -> bool:
    """Whether there were enough measurements for both ends of the interval."""
    _, high = result.interval
    # The lower end is never infinite: a throughput can fall by no more than all of it.
    return not math.isinf(high)


def _has_no_spread(result: ComparisonResult) -> bool:
    """Whether all pairs have the same difference, so that the interval is a single number."""
    low, high = result.interval
    return math.isclose(low, high, abs_tol=ROUNDING)


def _verdict_in_words(verdict: ComparisonVerdict) -> str:
    if verdict is ComparisonVerdict.SAME:
        return "B is the same as A"
    if verdict is ComparisonVerdict.UNDECIDED:
        return "undecided: B differs from A"
    return f"B is {verdict.value} than A"


def _difference_in_words(result: ComparisonResult) -> str:
    """How much B differs, in words that follow the verdict; empty: not known."""
    if result.difference is None:
        return ""
    if result.verdict is ComparisonVerdict.SAME:
        return f": it differs by {format_change(result.difference)}"
    if result.verdict is ComparisonVerdict.UNDECIDED:
        return f" by {format_change(result.difference)}"
    if math.isinf(result.difference):
        return ", which passes nothing"
    # The word "slower" or "faster" already says the sign.
    return f" by {format_change_size(result.difference)}"


def _missing_in_words(result: ComparisonResult) -> str:
    """A sentence on frames that neither build lost, with a space before it; empty: there are few of them."""
    missing = share_in_words([result.share])
    if not missing:
        return ""

    may_be = ""
    if result.verdict is ComparisonVerdict.UNDECIDED:
        may_be = ", and may explain the difference"

    as_measured = ""
    if result.measured is not None:
        measured = format_change(result.measured)
        if result.difference is None or format_change(result.difference) != measured:
            as_measured = f"; it differs by {measured} as measured"

    return f" Up to {missing}{may_be}{as_measured}."


def comparison_comment(results: Mapping[str, ComparisonResult], request: AbRequest) -> str:
    """The verdicts as Markdown, for a comment on a pull request: a table."""
    verdicts = {result.verdict for result in results.values()}
    worst = next(verdict.value for verdict in _WORST_FIRST if verdict in verdicts)
    lines = [
        f"### Data plane throughput of B compared with A: {worst}",
        "",
        f"| test | B is | change | {100 * request.certainty:.4g} % interval | measurements |",
        "| --- | --- | ---: | ---: | ---: |",
    ]

    lines += (_row(name, result) for name, result in results.items())
    lines += ["", "Measured in turns until each verdict was clear, or the limit was reached.", ""]
    missing = share_in_words(result.share for result in results.values())
    if missing:
        lines += [
            f"Up to {missing}: the verdicts hold with and without these frames, and the smaller change is given.",
            "",
        ]

    return "\n".join(lines)


def _row(name: str, result: ComparisonResult) -> str:
    """The row of a test."""
    cell = escape(name).replace("|", "\\|")
    verdict = result.verdict.value
    if result.verdict is ComparisonVerdict.SLOWER:
        verdict = f"**{verdict}**"

    change = ""
    if result.difference is not None:
        change = format_change(result.difference)

    interval = ""
    if _has_no_spread(result):
        interval = "none: the values do not vary"
    elif _is_bounded(result):
        low, high = result.interval
        interval = range_in_words(format_change(low), format_change(high))

    return f"| {cell} | {verdict} | {change} | {interval} | {result.measurements} |"
