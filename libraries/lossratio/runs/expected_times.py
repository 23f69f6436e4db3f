"""How long each test is expected to take: as in earlier nights, or else by a forecast of its measurements."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from robot.running import Keyword, TestCase
from robot.utils import is_truthy, normalize, timestr_to_secs

from lossratio.history import FAILED
from lossratio.measurements.latency import LATENCY_DURATION, LATENCY_SHARES
from lossratio.measurements.mrr import MrrRequest
from lossratio.measurements.telemetry import TELEMETRY_DURATION
from lossratio.measurements.throughput import NdrPdrGoals, duration_after_search
from lossratio.mlrsearch import MLRsearch, SearchGoal
from lossratio.plrsearch import TIMEOUT

_SEARCH = "findndrandpdr"
_MRR = "measuremrr"
_SOAK = "findcriticalload"
_AFTER_SEARCHES = (
    ("latency", len(LATENCY_SHARES) + 1, LATENCY_DURATION),
    ("telemetry", 1, TELEMETRY_DURATION),
)
"""Measurements after searches for NDR and PDR: the argument, the number of trials, and their usual duration."""
UNKNOWN_SECONDS = 60.0
"""Expected time of a test about which nothing is known."""
_LATEST = 5
_MIN_LOAD, _MAX_LOAD = 9001.0, 1e7


@dataclass(frozen=True)
class KnownTimes:
    """How long tests took in earlier nights."""

    seconds: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    """Times by testbed and full name of the test, oldest first."""

    @classmethod
    def of(cls, table: Any) -> "KnownTimes":
        """Reads the times from a table of entries, as `lossratio.history.History.read` gives it.

        Failed tests are left out because they may have ended early. A test with several goals counts once.
        """
        taken: dict[tuple[str, str], dict[datetime, float]] = {}
        columns = [
            table.column(name).to_pylist()
            for name in ("testbed", "test", "started", "seconds", "outcome")
        ]
        for testbed, test, started, seconds, outcome in zip(*columns, strict=True):
            if seconds is not None and outcome != FAILED:
                taken.setdefault((testbed, test), {})[started] = seconds
        in_order = {}
        for key, times in taken.items():
            in_order[key] = tuple(times[started] for started in sorted(times))
        return cls(in_order)

    def expected(self, testbed: str, test: str) -> float | None:
        """Median of the latest times on a testbed, or else on any testbed, in seconds; None: never measured."""
        here = self.seconds.get((testbed, test))
        times = here or self._anywhere(test)
        if times:
            return median(times[-_LATEST:])
        return None

    def _anywhere(self, test: str) -> list[float]:
        """The times of a test on any testbed."""
        return [
            seconds
            for (_, name), times in self.seconds.items()
            if name == test
            for seconds in times
        ]


def expected_seconds(test: TestCase, variables: Mapping[str, str]) -> float:
    """Expected time of a test without history, in seconds: the sum over all its measurements.

    Keywords that measure nothing take no time. The variables ``GOALS``, ``LATENCY`` and ``TELEMETRY`` count.
    """
    times = []
    usual = MrrRequest.model_fields
    for keyword, named in _keywords(test):
        if keyword == _SEARCH:
            times.append(
                MLRsearch(_goals(named, variables), _MIN_LOAD, _MAX_LOAD).forecast().seconds
            )
        elif keyword == _MRR:
            trials = named.get("trials", "")
            count = int(trials) if trials.isdecimal() else usual["trials"].default
            times.append(
                count * _seconds(named.get("trial_duration"), usual["trial_duration"].default)
            )
        elif keyword == _SOAK:
            times.append(_seconds(named.get("timeout"), TIMEOUT))

    if times:
        return sum(times) + _seconds_after_searches(test, variables)
    return UNKNOWN_SECONDS


def has_forecast(test: TestCase) -> bool:
    """Whether the time of a test can be forecast; otherwise, it is only a guess."""
    return any(keyword in (_SEARCH, _MRR, _SOAK) for keyword, _ in _keywords(test))


def _seconds_after_searches(test: TestCase, variables: Mapping[str, str]) -> float:
    seconds = 0.0
    searches = [named for keyword, named in _keywords(test) if keyword == _SEARCH]
    for named in searches:
        for what, trials, usual in _AFTER_SEARCHES:
            if is_truthy(named.get(what, variables.get(what.upper(), "on"))):
                seconds += trials * duration_after_search(_goals(named, variables), usual)
    return seconds


def _keywords(test: TestCase) -> Iterator[tuple[str, dict[str, str]]]:
    """The keywords of a test: their names, ignoring case, spaces and underscores, and their named arguments."""
    for keyword in test.body:
        if isinstance(keyword, Keyword):
            named = dict(
                str(argument).split("=", 1) for argument in keyword.args if "=" in str(argument)
            )
            yield normalize(keyword.name, ignore="_"), named


def _goals(named: Mapping[str, str], variables: Mapping[str, str]) -> tuple[SearchGoal, ...]:
    title = named.get("goals", variables.get("GOALS", NdrPdrGoals.csit.title))
    pair = NdrPdrGoals.titled(title) or NdrPdrGoals.csit
    goals: tuple[SearchGoal, ...] = pair.value
    return goals


def _seconds(text: str | None, otherwise: float) -> float:
    if text is None:
        return otherwise
    try:
        return float(timestr_to_secs(text))
    except ValueError:
        return otherwise
