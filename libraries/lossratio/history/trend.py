"""Trends: the steps in each series, whether the newest is a regression, and whether results changed in kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

import numpy as np

from lossratio.history.annotations import KnownChange
from lossratio.history.bands import Bands, bands_in
from lossratio.history.entries import FAILED, Series
from lossratio.history.steps import group_starts

FRESH = 5
"""A change that began among this many newest values is fresh."""

LEAST_CHANGE = 0.01
"""Smaller relative changes raise no alarm."""

LAST = 250
"""Number of the newest results of a series that count."""

LEAST_RESULTS = 4
"""Fewer values make no trend."""

CONFIRM = 2
"""How many of the newest `LOOK_AT` values must be worse, so that a change for the worse is an alarm."""

LOOK_AT = 3
"""Number of the newest values of which `CONFIRM` must be worse."""

OLD = timedelta(days=7)
"""A series is old if its newest result is so much older than the newest result of its testbed."""


class TrendVerdict(str, Enum):
    """The verdict of a trend."""

    REGRESSION = "regression"
    """The value got worse lately, and no known change explains it."""
    NO_VALUE = "no value any more"
    """The newest result has no value, and earlier ones had."""
    UNCONFIRMED = "one bad result"
    """The newest result is worse, and no other one confirms it yet."""
    EXPLAINED = "known change"
    """The value got worse lately, and a known change explains it."""
    PROGRESSION = "progression"
    """The value got better lately."""
    CHANGED = "changed"
    """A reading changed lately: latency or telemetry, of which no change is an alarm."""
    ONE_OTHER = "one other result"
    """The newest reading is another one, and no other result confirms it yet."""
    STEADY = "steady"
    """The value did not change lately."""
    TOO_FEW = "too few results"
    """There are not enough values for a verdict."""


ALARMS = (TrendVerdict.REGRESSION, TrendVerdict.NO_VALUE)
"""Verdicts that somebody should look at."""


@dataclass(frozen=True)
class Step:
    """A sequence of values around one mean, or in two bands.

    Attributes:
        first: Index of its first result in the series.
        last: Index of its last one.
        mean: Mean of its values, in the unit of the series; with bands the level of the lower one.
        upper: Level of the upper band; None: no value is in it.
    """

    first: int
    last: int
    mean: float
    upper: float | None = None

    @property
    def levels(self) -> tuple[float, ...]:
        """Its mean; with bands both levels."""
        return (self.mean,) if self.upper is None else (self.mean, self.upper)


@dataclass(frozen=True)
class Change:
    """The newest change of a trend.

    Attributes:
        ratio: The difference over the mean before.
        before: Mean before, in the unit of the series; of a series with bands the level of the lower one.
        after: Mean after, likewise.
        began: When the first result after the change was measured.
        known: The known change that explains this one; None: there is none.
    """

    ratio: float
    before: float
    after: float
    began: datetime
    known: KnownChange | None


@dataclass(frozen=True)
class Trend:
    """The trend of a series.

    Attributes:
        series: The results with the same meaning as the newest.
        steps: Its steps, in the order of time.
        verdict: The verdict.
        change: The newest change, if it is fresh; None: nothing changed lately.
        new_kinds: Kinds of the newest result that the fresh results before it do not have: a change of kind.
        left_out: Number of earlier results with another meaning (other traffic, another path, goal
            or generator).
        idle: Time from the newest result of the series to the newest result of its testbed.
        bands: The two bands between which the values flip from run to run; None: there are none.
    """

    series: Series
    steps: tuple[Step, ...]
    verdict: TrendVerdict
    change: Change | None
    new_kinds: tuple[str, ...]
    left_out: int = 0
    idle: timedelta = timedelta()
    bands: Bands | None = None

    @property
    def is_alarm(self) -> bool:
        """Whether somebody should look at it. A reading explains a value, and is no alarm of its own."""
        return self.verdict in ALARMS and not self.series.is_reading

    @property
    def is_old(self) -> bool:
        """Whether its test seems not to run any more: the verdict is as old as its newest result."""
        return self.idle >= OLD


def trends_of(
    series: Sequence[Series],
    known: Sequence[KnownChange] = (),
    *,
    fresh: int = FRESH,
    least_change: float = LEAST_CHANGE,
    confirm: int = CONFIRM,
) -> list[Trend]:
    """Computes the trends of some series.

    Args:
        series: The series.
        known: Known changes.
        fresh: A change that began among this many newest values is fresh.
        least_change: Smaller relative changes raise no alarm.
        confirm: How many of the newest `LOOK_AT` values must be worse for an alarm.
    """
    alike = [whole.like_newest() for whole in series]
    places = [np.flatnonzero(np.isfinite(part.values)) for part in alike]
    finite = [part.values[place] for part, place in zip(alike, places, strict=True)]
    trends = [
        _trend(_Judged.of(part, place, begins), known, fresh, least_change, confirm)
        for part, place, begins in zip(alike, places, group_starts(finite), strict=True)
    ]
    return [
        replace(trend, left_out=len(whole.times) - len(trend.series.times))
        for trend, whole in zip(trends, series, strict=True)
    ]


@dataclass(frozen=True)
class _Judged:
    """A series as it is judged.

    Attributes:
        series: The series.
        places: Indices of its results with a value.
        values: Their values, in the lower band.
        steps: Its steps.
        bands: Its bands; None: there are none.
    """

    series: Series
    places: np.ndarray
    values: np.ndarray
    steps: tuple[Step, ...]
    bands: Bands | None

    @classmethod
    def of(cls, series: Series, places: np.ndarray, starts: Sequence[int]) -> _Judged:
        """The series with its steps, or with its bands where these explain it better."""
        values = series.values[places]
        bands = bands_in(values, starts)
        if bands is not None:
            starts, values = bands.starts, bands.lowered(values)
        steps = []
        for start, end in zip(starts, [*starts, len(places)][1:], strict=True):
            mean = float(values[start:end].mean())
            upper = mean * bands.ratio if bands is not None and bands.in_upper[start:end].any() else None
            steps.append(Step(int(places[start]), int(places[end - 1]), mean, upper))
        return cls(series, places, values, tuple(steps), bands)


def _trend(judged: _Judged, known: Sequence[KnownChange], fresh: int, least_change: float, confirm: int) -> Trend:
    series, places, steps = judged.series, judged.places, judged.steps
    new_kinds = tuple(sorted(series.kinds[-1].difference(*series.kinds[-1 - fresh : -1])))
    if _is_missing(series, places):
        return Trend(series, steps, TrendVerdict.NO_VALUE, None, new_kinds, bands=judged.bands)
    if len(places) < LEAST_RESULTS:
        return Trend(series, steps, TrendVerdict.TOO_FEW, None, new_kinds)
    change = _fresh_change(series, steps, places, known, fresh)
    verdict = _verdict(change, series, least_change)
    if verdict in _UNCONFIRMED and change is not None:
        in_step = int(np.count_nonzero(places >= steps[-1].first))
        if max(in_step, _worse(judged.values[-LOOK_AT:], change, least_change)) < confirm:
            verdict = _UNCONFIRMED[verdict]
    return Trend(series, steps, verdict, change, new_kinds, bands=judged.bands)


def _worse(values: np.ndarray, change: Change, least_change: float) -> int:
    """How many values lie in the direction of a change, by the least change or more."""
    differences = (values - change.before) * np.sign(change.after - change.before)
    return int(np.count_nonzero((differences > 0.0) & (differences >= least_change * abs(change.before))))


def _is_missing(series: Series, places: np.ndarray) -> bool:
    """Whether the newest result has no value and earlier ones had; or, in a series without values, failed for once."""
    if len(places):
        return not np.isfinite(series.values[-1])
    return FAILED in series.kinds[-1] and any(FAILED not in kinds for kinds in series.kinds)


def _fresh_change(
    series: Series, steps: tuple[Step, ...], places: np.ndarray, known: Sequence[KnownChange], fresh: int
) -> Change | None:
    """The change from the step before the fresh values to the newest step. Steps in between do not count."""
    last_old = int(places[-1 - fresh]) if len(places) > fresh else int(places[0])
    before = next(step for step in reversed(steps) if step.first <= last_old)
    after = steps[-1]
    if after is before:
        return None
    ratio = (after.mean - before.mean) / before.mean if before.mean else float("inf")
    previous, began = series.times[before.last], series.times[after.first]
    explanation = next((change for change in known if change.explains(series.key, previous, began)), None)
    return Change(ratio, before.mean, after.mean, began, explanation)


_UNCONFIRMED = {
    TrendVerdict.REGRESSION: TrendVerdict.UNCONFIRMED,
    TrendVerdict.CHANGED: TrendVerdict.ONE_OTHER,
}
"""Verdicts that need a second result, and what they are called until then."""


def _verdict(change: Change | None, series: Series, least_change: float) -> TrendVerdict:
    if change is None or abs(change.ratio) < least_change:
        return TrendVerdict.STEADY
    if series.is_reading:
        return TrendVerdict.CHANGED if change.known is None else TrendVerdict.EXPLAINED
    if series.unit.is_better(change.ratio):
        return TrendVerdict.PROGRESSION
    return TrendVerdict.REGRESSION if change.known is None else TrendVerdict.EXPLAINED


def describe_trend(trend: Trend) -> str:
    """A trend in one line."""
    return f"{trend.verdict.value}: {trend.series.key}: {'; '.join(details_of(trend)) or 'nothing changed lately'}"


def details_of(trend: Trend) -> Iterator[str]:
    """What there is to say about a trend: its change, what is new, how old it is, and what is left out."""
    if trend.change is not None:
        change, unit = trend.change, trend.series.unit
        yield (
            f"{unit.format(change.before)} to {unit.format(change.after)} ({100 * change.ratio:+.2f} %) "
            f"since {change.began:%Y-%m-%d %H:%M} UTC"
        )
        if change.known is not None:
            yield f"known: {change.known.note}"
    if trend.bands is not None:
        yield trend.bands.describe(trend.series.unit)
    if trend.verdict is TrendVerdict.NO_VALUE:
        yield f"the newest result of {trend.series.times[-1]:%Y-%m-%d %H:%M} UTC: {trend.series.reasons[-1]}"
    if trend.new_kinds:
        yield f"change of kind: {', '.join(trend.new_kinds)}"
    if trend.verdict is TrendVerdict.TOO_FEW:
        count = int(np.isfinite(trend.series.values).sum())
        yield f"{len(trend.series.times)} results, {count or 'none'} of them with a value"
    if trend.is_old:
        yield (
            f"old: not measured since {trend.series.times[-1]:%Y-%m-%d %H:%M} UTC, {trend.idle.days} days before the "
            "testbed's newest result"
        )
    if trend.left_out:
        yield (
            f"{trend.left_out} earlier results are left out: they are of other traffic, another path, another goal or "
            "another generator"
        )
