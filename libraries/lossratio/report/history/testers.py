"""Changes that come from the tester: its own test without a device got worse when tests with a device did.

Such a change is no regression of a device, so it is reported once, and not for each test.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from lossratio.report import Verdict
from lossratio.report.history.trend import Trend, TrendRules
from lossratio.results import common_name

_MORE = 0.25
"""A fall does not come from the tester alone if it exceeds the tester's own fall by more than this share of the
tester's fall, and by more than the minimum change."""


def with_testers(trends: Sequence[Trend], twins: Sequence[Trend], rules: TrendRules) -> list[Trend]:
    """The trends; those that changed with the tester have no alarm of their own.

    Args:
        trends: The trends.
        twins: The trends of all tests without a device, including any that are not among `trends`.
        rules: What a change is.
    """
    judged = []
    for trend in trends:
        if trend.series.has_no_device:
            judged.append(replace(trend, verdict=Verdict.TESTER) if trend.is_alarm else trend)
            continue

        twin = _guilty(trend, twins, rules)
        if twin is None:
            judged.append(trend)
        else:
            most = _size(twin) + max(rules.least_change, _MORE * _size(twin))
            explains = _size(trend) <= most
            judged.append(
                replace(trend, tester=twin, verdict=Verdict.TESTER if explains else trend.verdict)
            )

    followers: dict[object, list[Trend]] = {}
    for trend in judged:
        if trend.verdict is Verdict.TESTER and trend.tester is not None:
            followers.setdefault(trend.tester.series.key, []).append(trend)

    return [
        replace(trend, followers=tuple(followers.get(trend.series.key, ()))) for trend in judged
    ]


def _guilty(trend: Trend, twins: Sequence[Trend], rules: TrendRules) -> Trend | None:
    """The twin that got worse when a test did: the test's own twin, or else a twin with the same quantity."""
    if not trend.is_alarm:
        return None
    key = trend.series.key
    here = [twin for twin in twins if twin.series.key.testbed == key.testbed]
    alike = [twin for twin in here if twin.series.unit == trend.series.unit]
    near = [twin for twin in alike if twin.series.key.quantity == key.quantity]
    own = [twin for twin in near if _name(twin) == _name(trend)]
    worse = [
        twin
        for twin in own or near or alike
        if _is_worse(twin, rules) and _is_simultaneous(twin, trend)
    ]
    return max(worse, key=_size, default=None)


def _name(trend: Trend) -> str:
    """The part of a test's name that its twin shares, in any suite."""
    return common_name(trend.series.key.test.rpartition(".")[2])


def _is_worse(twin: Trend, rules: TrendRules) -> bool:
    """Whether the tester itself got worse, even if the reason is known."""
    if twin.verdict is Verdict.NO_VALUE:
        return True
    change = twin.change
    unit = twin.series.unit
    return (
        change is not None
        and abs(change.ratio) >= rules.least_change
        and not unit.is_better(change.ratio)
    )


def _size(trend: Trend) -> float:
    """The relative size of a change; infinite: the value is missing."""
    if trend.change is None:
        return float("inf")
    return abs(trend.change.ratio)


def _is_simultaneous(twin: Trend, trend: Trend) -> bool:
    """Whether two changes began in the same run, or between the same results."""
    runs = [one.series["run_started"][one.series.times.index(one.began)] for one in (twin, trend)]
    if None not in runs and runs[0] == runs[1]:
        return True
    gaps = [_gap_before(one) for one in (twin, trend)]
    if trend.began - gaps[1] < twin.began <= trend.began:
        return True
    return abs(twin.began - trend.began) <= min(gaps) / 2


def _gap_before(trend: Trend) -> timedelta:
    """The time from the last result before a change to the first result after it."""
    times = trend.series.times
    index = times.index(trend.began)
    if index:
        return times[index] - times[index - 1]
    return timedelta()
