"""Trends: the steps in each series, whether the newest is a regression, and whether results changed in kind."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from lossratio.report import Difference, Verdict, difference_at_most, real_change
from lossratio.report.history.annotations import KnownChange
from lossratio.report.history.bands import Bands, bands_in
from lossratio.report.history.entries import FAILED
from lossratio.report.history.series import Series, SeriesKey
from lossratio.report.history.steps import group_starts
from lossratio.results import Ends, agreed_change, least_news

LEAST_RESULTS = 4
"""Fewer values make no trend."""
LOOK_AT = 3
"""Number of the newest values of which some must be worse for an alarm."""
OLD = timedelta(days=7)
"""A series is old if its newest result is this much older than the testbed's newest result."""


@dataclass(frozen=True)
class Step:
    """A sequence of values around one mean, or in two bands."""

    first: int
    """Index of its first result in the series."""
    last: int
    """Index of its last result."""
    mean: float
    """Mean of its values, in the unit of the series; with bands, the level of the lower band."""
    upper: float | None = None
    """Level of the upper band; None: no value is in it."""


@dataclass(frozen=True)
class Change:
    """The newest change of a trend."""

    ratio: float
    """The difference divided by the mean before. If frames are missing that the SUT did not lose, it is the smaller of
    two differences: between the values as they are, and between their upper ends."""
    before: float
    """Mean before, in the unit of the series; with bands, the level of the lower band."""
    after: float
    """Mean after, in the same unit and band."""
    began: datetime
    """When the first result after the change was measured."""
    known: KnownChange | None
    """The known change that explains this one; None: there is none."""
    measured_ratio: float | None = None
    """The change of the measured values, divided by the mean before; None: the same as `ratio`."""
    is_least: bool = False
    """Whether some of the larger values are only lower bounds, so that the change may be larger."""


@dataclass(frozen=True)
class Trend:
    """The trend of a series."""

    series: Series
    """Its results."""
    steps: tuple[Step, ...]
    """Its steps, in the order of time."""
    verdict: Verdict
    """The verdict."""
    change: Change | None
    """The newest change, if it is fresh, or else the open regression; None: there is neither."""
    new_kinds: tuple[str, ...]
    """Kinds of the newest result that the fresh results before it lack, which is a change of kind."""
    idle: timedelta = timedelta()
    """Time from the newest result of the series to the newest result of its testbed."""
    bands: Bands | None = None
    """The two bands between which the values flip from run to run; None: there are none."""
    known: KnownChange | None = None
    """The known change that explains why the newest result has no value; None: there is none."""
    notes: tuple[KnownChange, ...] = ()
    """Notes about the open alarm: who looks at it, and what a bisection found."""
    shares: tuple[float, float] = (0.0, 0.0)
    """Largest share of a value's missing frames that the SUT did not lose: for the results before the newest change,
    and for the fresh results."""
    tester: "Trend | None" = None
    """The trend of the tester's own test, without a device, which got worse at the same time; None: there is none."""
    followers: tuple["Trend", ...] = ()
    """Only for the tester's own test: the trends that changed because the tester did."""
    successor: SeriesKey | None = None
    """The series that began after this one ended, of another test that measures the same; None: there is none."""
    number: int = 1
    """Position among the trends of a page, from 1."""

    @property
    def test(self) -> str:
        """Full name of the test."""
        return self.series.key.test

    @property
    def link(self) -> str:
        """The name of its section on a page, to which addresses link."""
        return f"series-{self.number}"

    @property
    def words(self) -> str:
        """The text that a search on a page looks at, in lower case."""
        return " ".join((self.test, self.series.key.testbed, *self.series.tags)).lower()

    @property
    def is_odd(self) -> bool:
        """Whether it changed."""
        return bool(self.change or self.is_alarm or self.new_kinds)

    @property
    def is_alarm(self) -> bool:
        """Whether somebody should look at it. A reading explains a value, and is never an alarm itself."""
        return self.verdict.is_alarm and not self.series.is_reading

    @property
    def is_news(self) -> bool:
        """Whether it has a line of its own: an alarm, or a change of the tester, which is reported once."""
        return self.is_alarm or (self.verdict is Verdict.TESTER and self.tester is None)

    @property
    def began(self) -> datetime:
        """When the first result of its newest change, or the first one without a value, was measured."""
        if self.change is not None:
            return self.change.began
        return self.series.times[-max(1, missing_in_a_row(self.series))]

    @property
    def builds(self) -> tuple[str | None, str | None]:
        """The builds of the last result before its newest change, and of the first result after it; None: not known."""
        builds = self.series["build"]
        index = self.series.times.index(self.began)
        if index:
            return (builds[index - 1], builds[index])
        return (None, None)

    @property
    def last_change(self) -> Change | None:
        """Its newest change, or else the change between its last two steps, even if it is old; None: there is none."""
        if self.change is not None or len(self.steps) < 2:
            return self.change
        before, after = self.steps[-2:]
        return _change(self.series, before, after, ())

    def with_note(self, note: KnownChange) -> "Trend":
        """The alarm with a note, or explained by it."""
        if note.keeps_open:
            return replace(self, notes=(*self.notes, note))
        change = None if self.change is None else replace(self.change, known=note)
        return replace(self, verdict=Verdict.EXPLAINED, change=change, known=note)

    @property
    def is_old(self) -> bool:
        """Whether its test no longer seems to run, so that the verdict is as old as its newest result."""
        return self.idle >= OLD


@dataclass(frozen=True)
class TrendRules:
    """The rules for changes and alarms."""

    fresh: int = 5
    """A change that began among this many newest values is fresh."""
    least_change: float = 0.01
    """Smaller relative changes raise no alarm."""
    confirm: int = 2
    """How many of the newest `LOOK_AT` values must be worse for an alarm."""


_USUAL = TrendRules()


def trends_of(
    series: Sequence[Series], known: Sequence[KnownChange] = (), rules: TrendRules = _USUAL
) -> list[Trend]:
    """Computes the trends of some series. Known changes explain alarms."""
    trends = []
    for whole in series:
        trend = _trend(_Judged(whole), known, rules)
        notes = tuple(_notes(trend, known))
        trends.append(replace(trend, notes=notes, shares=_shares(trend, rules.fresh)))
    return trends


def _notes(trend: Trend, known: Sequence[KnownChange]) -> Iterator[KnownChange]:
    if trend.is_alarm:
        noted = (
            change for change in known if change.keeps_open and change.concerns(trend.series.key)
        )
        yield from (change for change in noted if change.date >= trend.began.date())


class _Judged:
    """A series with its steps, or with its bands if these explain it better."""

    def __init__(self, series: Series) -> None:
        indices = np.flatnonzero(np.isfinite(series.values))
        values = series.values[indices]
        starts: Sequence[int] = group_starts(values)
        bands = bands_in(values, starts, series["resolution"][-1])
        if bands is not None:
            starts = bands.starts
            values = bands.lowered(values)

        steps = []
        for start, end in pairwise([*starts, len(indices)]):
            mean = float(values[start:end].mean())
            upper = None
            if bands is not None and bands.in_upper[start:end].any():
                upper = mean * bands.ratio
            steps.append(Step(int(indices[start]), int(indices[end - 1]), mean, upper))

        self.series = series
        self.steps = tuple(steps)
        self.bands = bands
        # The indices of the results that have values, and these values as they would be in the lower band.
        self.indices, self.values = indices, values

    def sure(self, change: Change, before: Step, after: Step, least_change: float) -> Change | None:
        """A change that both the values and their upper ends show; None: they do not both show a change.

        In that case, frames that the SUT did not lose may have caused the change.
        """
        sides = self._ends(before), self._ends(after)
        # The steps have tested the values as they are.
        plain = Difference(change.ratio, None, "steps", 0.0)
        at_most = difference_at_most(*sides, self.series.unit, plain)
        if at_most is not None and not any(one.share for side in sides for one in side):
            at_most = replace(at_most, p_value=plain.p_value)

        ratio = agreed_change(change.ratio, real_change(at_most, least_change))
        if ratio is None:
            return None
        if ratio != change.ratio:
            return replace(change, ratio=ratio, measured_ratio=change.ratio)
        # A change from zero is infinite, too.
        has_no_end = at_most is not None and math.isinf(at_most.change)
        is_least = has_no_end and not math.isinf(change.ratio)
        return replace(change, is_least=is_least)

    def _ends(self, step: Step) -> list[Ends]:
        """The range of a step's values."""
        found = []
        for index, value in zip(self.indices, self.values, strict=True):
            if step.first <= index <= step.last:
                ends = self.series.ends_of(int(index))
                # With bands, values of the upper band are lowered.
                lowered = float(value) / ends.least if ends.least else 1.0
                found.append(Ends(float(value), ends.most * lowered, ends.share))
        return found


def _trend(judged: _Judged, known: Sequence[KnownChange], rules: TrendRules) -> Trend:
    series = judged.series
    indices = judged.indices
    steps = judged.steps
    least_change = least_news(rules.least_change, series["resolution"][-1])
    rules = replace(rules, least_change=least_change)
    earlier = series.kinds[-1 - rules.fresh : -1]
    # The first result of a series has changed from nothing.
    new_kinds = tuple(sorted(series.kinds[-1].difference(*earlier))) if earlier else ()
    # A series without values is judged by its failures.
    if 0 < missing_in_a_row(series) < len(series.times):
        return _without_a_value(judged, new_kinds, known)

    if len(indices) < LEAST_RESULTS:
        return Trend(series, steps, Verdict.TOO_FEW, None, new_kinds)

    before = _last_old_step(steps, indices, rules.fresh)
    change = None if before is steps[-1] else _change(series, before, steps[-1], known)
    verdict = _verdict(change, series, rules.least_change)
    if change is not None and verdict in (Verdict.REGRESSION, Verdict.PROGRESSION):
        sure = judged.sure(change, before, steps[-1], rules.least_change)
        if sure is None:
            verdict = Verdict.NOT_OFFERED
        else:
            change = sure

    if change is not None and not _is_confirmed(judged, change, rules):
        verdict = _UNCONFIRMED.get(verdict, verdict)

    if verdict is not Verdict.REGRESSION and not series.is_reading:
        still_open = _open_regression(judged, known, rules)
        if still_open is not None:
            verdict = Verdict.REGRESSION
            change = still_open

    return Trend(series, steps, verdict, change, new_kinds, bands=judged.bands)


def _without_a_value(
    judged: _Judged, new_kinds: tuple[str, ...], known: Sequence[KnownChange]
) -> Trend:
    """The trend of a series whose newest result has no value."""
    series = judged.series
    first = len(series.times) - missing_in_a_row(series)
    cause = _explanation(series, first - 1, first, known)
    if series["unsent_share"][-1]:
        verdict = Verdict.NOT_OFFERED
    elif cause is None:
        verdict = Verdict.NO_VALUE
    else:
        verdict = Verdict.EXPLAINED
    return Trend(series, judged.steps, verdict, None, new_kinds, bands=judged.bands, known=cause)


def _is_confirmed(judged: _Judged, change: Change, rules: TrendRules) -> bool:
    """Whether enough results show a change: those of its step, or those of the newest that are as far off."""
    in_step = int(np.count_nonzero(judged.indices >= judged.steps[-1].first))
    # How many of the newest values lie in the direction of the change, by the minimum change or more.
    off = (judged.values[-LOOK_AT:] - change.before) * np.sign(change.after - change.before)
    worse = int(np.count_nonzero((off > 0.0) & (off >= rules.least_change * abs(change.before))))
    return max(in_step, worse) >= rules.confirm


def _open_regression(
    judged: _Judged, known: Sequence[KnownChange], rules: TrendRules
) -> Change | None:
    """The regression that has neither recovered nor been explained since its alarm; None: there is none.

    Steps of fewer than ``confirm`` values neither raise an alarm nor end one. A known change in between moves the level
    that counts as a recovery, but only explains itself.
    """
    series, indices = judged.series, judged.indices
    steps = [
        step
        for step in judged.steps
        if np.sum((indices >= step.first) & (indices <= step.last)) >= rules.confirm
    ]
    found = None
    origin = None
    level = 0.0

    for number, step in enumerate(steps[1:], start=1):
        if found is None or origin is None:
            # The confirming value raised the alarm, compared with the step before the fresh values.
            raised = int(np.searchsorted(indices, step.first)) + rules.confirm
            origin = _last_old_step(tuple(steps[:number]), indices[:raised], rules.fresh)
            level = origin.mean

        change = _change(series, origin if found is None else steps[number - 1], step, known)
        if change.known is not None:
            level *= 1.0 + change.ratio if np.isfinite(change.ratio) else 1.0
            continue

        difference = step.mean - level
        if (
            abs(difference) < rules.least_change * abs(level)
            or not difference
            or series.unit.is_better(difference)
        ):
            found = None
            continue

        sure = judged.sure(_change(series, origin, step, ()), origin, step, rules.least_change)
        if sure is None:
            continue
        if level == origin.mean:
            opened = found or change
            found = replace(sure, began=opened.began, known=opened.known)

    return found


def _shares(trend: Trend, fresh: int) -> tuple[float, float]:
    """Largest shares of missing frames that the SUT did not lose: before the newest change, and in fresh values."""
    known = np.array([share or 0.0 for share in trend.series["unsent_share"]])
    # A value that is only a lower bound has no share.
    known[known >= 1.0] = 0.0
    began = 0 if trend.change is None else trend.series.times.index(trend.change.began)
    before = known[max(0, began - fresh) : began]
    return before.max(initial=0.0), known[-fresh:].max(initial=0.0)


def missing_in_a_row(series: Series) -> int:
    """Number of newest results in a row without a value; in a series without values, of failed results."""
    there = np.isfinite(series.values)
    if not there.any():
        there = np.array([FAILED not in kinds for kinds in series.kinds])
    return len(there) - (int(np.flatnonzero(there)[-1]) + 1 if there.any() else 0)


def _last_old_step(steps: tuple[Step, ...], indices: np.ndarray, fresh: int) -> Step:
    """The step before the fresh values, or the first step. Steps between this step and the newest do not count."""
    last_old = int(indices[-1 - fresh]) if len(indices) > fresh else int(indices[0])
    return next((step for step in reversed(steps) if step.first <= last_old), steps[0])


def _change(series: Series, before: Step, after: Step, known: Sequence[KnownChange]) -> Change:
    ratio = (after.mean - before.mean) / before.mean if before.mean else float("inf")
    began = series.times[after.first]
    return Change(
        ratio, before.mean, after.mean, began, _explanation(series, before.last, after.first, known)
    )


def _explanation(
    series: Series, before: int, after: int, known: Sequence[KnownChange]
) -> KnownChange | None:
    """The known change that explains a difference between two results, by their indices."""
    times = series.times
    return next(
        (change for change in known if change.explains(series.key, times[before], times[after])),
        None,
    )


_UNCONFIRMED = {Verdict.REGRESSION: Verdict.UNCONFIRMED, Verdict.CHANGED: Verdict.ONE_OTHER}
"""Verdicts that need a second result, and their names until then."""


def _verdict(change: Change | None, series: Series, least_change: float) -> Verdict:
    if change is None or abs(change.ratio) < least_change:
        return Verdict.STEADY
    if series.is_reading:
        if change.known is None:
            return Verdict.CHANGED
        return Verdict.EXPLAINED
    if series.unit.is_better(change.ratio):
        return Verdict.PROGRESSION
    if change.known is None:
        return Verdict.REGRESSION
    return Verdict.EXPLAINED
