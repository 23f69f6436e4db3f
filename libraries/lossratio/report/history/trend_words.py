"""Trends in words: one sentence for all, and a line for each with its change, what is new, and what is left out."""

from collections.abc import Iterator, Sequence

import numpy as np

from lossratio.report import Verdict
from lossratio.report.history.series import Series
from lossratio.report.history.trend import LEAST_RESULTS, Trend
from lossratio.results import share_in_words
from lossratio.values import (
    and_more,
    change_in_words,
    counted,
    format_change,
    in_one_line,
    results_counted,
)

_WITHOUT_VALUE = (Verdict.NO_VALUE, Verdict.NOT_OFFERED, Verdict.TESTER)
_MOST_FOLLOWERS = 5
"""Maximum number of tests that are named beside the tester's own. Any more are only counted."""


def sentence_of(trends: Sequence[Trend]) -> str:
    """What the trends prove, in one sentence, for people who read nothing else."""
    found: dict[Verdict, list[Trend]] = {verdict: [] for verdict in Verdict}
    for trend in trends:
        found[trend.verdict].append(trend)

    worse = found[Verdict.REGRESSION]
    lost = found[Verdict.NO_VALUE]
    if worse:
        also = f"; {len(lost):,} more no longer {_have(lost)} a value" if lost else ""
        return f"{_among(worse, trends)} got worse and did not recover: {_largest(worse)}{also}."
    if lost:
        more = and_more(len(lost) - 1)
        return f"{_among(lost, trends)} no longer {_have(lost)} a value: {lost[0].series}{more}."

    with_tester = found[Verdict.TESTER]
    if with_tester:
        return f"No alarm is open, but {_among(with_tester, trends)} got worse when the tester's own test did."
    if all(trend.verdict.is_open for trend in trends):
        return _undecided(found[Verdict.TOO_FEW], trends)

    once = found[Verdict.UNCONFIRMED]
    better = found[Verdict.PROGRESSION]
    if once:
        few = f"{_among(once, trends)} {_have(once)}"
        return f"No alarm is open, but {few} a bad result that no second one has confirmed yet."
    if better:
        return f"No alarm is open, and {_among(better, trends)} got better: {_largest(better)}."
    return "No alarm is open."


def _undecided(few: Sequence[Trend], trends: Sequence[Trend]) -> str:
    """Why no series has a verdict, and what to do about it."""
    if not trends:
        return "Undecided: there are no results yet. Add a run."
    if few:
        return f"Undecided: {_among(few, trends)} {_have(few)} fewer than {LEAST_RESULTS} values. Measure again."
    return "Undecided: the generator sent too few frames in the newest results. Measure again."


def _among(some: Sequence[Trend], trends: Sequence[Trend]) -> str:
    return f"{len(some):,} of {len(trends):,} series"


def _have(some: Sequence[Trend]) -> str:
    return "has" if len(some) == 1 else "have"


def _largest(changing: Sequence[Trend]) -> str:
    """The largest of some changes in words, e.g. ``64B-ndrpdr, NDR, on lab-1, fell by 5.00 % since 2026-03-28``."""
    changes = [(trend, trend.change) for trend in changing if trend.change is not None]
    trend, change = max(changes, key=lambda pair: abs(pair[1].ratio))
    words = change_in_words(change.ratio, is_least=change.is_least)
    changed = f"{words} since {change.began:%Y-%m-%d}"
    return f"{trend.series}, {changed}{and_more(len(changes) - 1)}"


def describe_trend(trend: Trend) -> str:
    """A trend in one line."""
    details = "; ".join(details_of(trend)) or "nothing changed recently"
    return in_one_line(f"{trend.verdict.value}: {trend.series}: {details}")


def details_of(trend: Trend) -> Iterator[str]:
    """The details of a trend: its change, what is new, how old it is, and what is left out."""
    yield from _of_change(trend)
    yield from _of_doubts(trend)
    yield from _of_newest(trend)
    yield from _of_tester(trend)
    yield from _of_age(trend)
    yield from _of_what_is_left_out(trend.series)


def _of_change(trend: Trend) -> Iterator[str]:
    """The change of a trend, and what people know of it."""
    change = trend.change
    unit = trend.series.unit
    known = trend.known
    if change is not None:
        known = change.known
        size = format_change(change.ratio, is_least=change.is_least)
        if change.measured_ratio is not None and any(trend.shares):
            measured = format_change(change.measured_ratio)
            size = f"{measured} as measured, {size} if these frames had passed"
        yield (
            f"{unit.format(change.before)} to {unit.format(change.after)} ({size}) "
            f"since {change.began:%Y-%m-%d %H:%M} UTC"
        )

    if known is not None:
        yield f"known: {known}"
    yield from (f"noted: {note}" for note in trend.notes)
    if trend.bands is not None:
        yield trend.bands.describe(unit)


def _of_doubts(trend: Trend) -> Iterator[str]:
    """The frames that no device lost, and that a trend may come from."""
    if trend.verdict is Verdict.NOT_OFFERED:
        yield (
            "frames that the generator did not send or did not count may be the reason, so this says nothing about "
            "the SUT"
        )

    for share, when in zip(trend.shares, ("before the change", "recently"), strict=True):
        words = share_in_words([share])
        if words:
            yield f"{when}, up to {words}"


def _of_newest(trend: Trend) -> Iterator[str]:
    """Why the newest result has no value, and the later nights that only confirmed it."""
    series = trend.series
    if not np.isfinite(series.values[-1]) and trend.verdict in _WITHOUT_VALUE:
        yield f"the newest result of {series.times[-1]:%Y-%m-%d %H:%M} UTC: {series['reason'][-1]}"
    if series.as_before:
        newest = series.as_before[-1]
        yield (
            f"as before in {counted(len(series.as_before), 'later night')}, the last of {newest:%Y-%m-%d %H:%M} UTC, "
            "without a search"
        )


def _of_age(trend: Trend) -> Iterator[str]:
    """New kinds of values, too few values, and values that are old."""
    series = trend.series
    if trend.new_kinds:
        yield f"change of kind: {', '.join(trend.new_kinds)}"
    if trend.verdict is Verdict.TOO_FEW:
        count = int(np.isfinite(series.values).sum())
        yield f"{results_counted(len(series.times))}, {count or 'none'} of them with a value"

    if trend.successor is not None:
        yield (
            f"ends on {series.times[-1]:%Y-%m-%d}; {trend.successor.test}, which measures the same, begins later. If "
            "it is the same test, write both names as 'same' into the file of known changes"
        )
    elif trend.is_old:
        yield (
            f"old: not measured since {series.times[-1]:%Y-%m-%d %H:%M} UTC, "
            f"{counted(trend.idle.days, 'day')} before the testbed's newest result"
        )


def _of_what_is_left_out(series: Series) -> Iterator[str]:
    """The earlier results that a series leaves out."""
    if series.begins:
        yield f"starts again: {series.begins}; left out: {results_counted(series.left_out)} before that"
    elif series.left_out:
        yield (
            f"left out: {counted(series.left_out, 'earlier result')} with other traffic, another path, another goal or "
            "another generator"
        )


def _of_tester(trend: Trend) -> Iterator[str]:
    """How the tester's own test is related to a trend."""
    if trend.tester is not None:
        yield f"{_worse(trend.tester)} at the same time, and has no device"
    elif trend.verdict is Verdict.TESTER:
        yield "this test has no device"
    if trend.followers:
        named = [_worse(one) for one in trend.followers[:_MOST_FOLLOWERS]]
        if len(trend.followers) > _MOST_FOLLOWERS:
            named.append(f"{len(trend.followers) - _MOST_FOLLOWERS} more")
        yield f"at the same time {', and '.join(named)}"


def _worse(trend: Trend) -> str:
    key = trend.series.key
    change = trend.change
    if change is None:
        said = "no longer has a value"
    else:
        said = f"changed by {format_change(change.ratio)}"

    return f"{key.test}, {trend.series.quantity}, {said}"
