"""How long tests will take: as long as they took lately, and if nobody knows, what their searches are expected to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from robot.running import Keyword, TestCase
from robot.utils import NormalizedDict, timestr_to_secs

from lossratio.history import FAILED
from lossratio.measurements.throughput import NdrPdrGoals
from lossratio.mlrsearch import MLRsearch
from lossratio.plrsearch import TIMEOUT
from lossratio.results import MRR_TRIAL_DURATION, MRR_TRIALS

UNKNOWN_SECONDS = 60.0
"""How long a test is taken for of which nothing is known."""

_LATEST = 5
_MIN_LOAD, _MAX_LOAD = 9001.0, 1e7


@dataclass(frozen=True)
class History:
    """How long tests took, by testbed and full name of the test: seconds, the oldest first."""

    seconds: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Any) -> History:
        """From a table of entries, as `lossratio.history.store.History.read` gives it.

        A test that failed may have ended early, and tells nothing; one with several goals took its time once.
        """
        taken: dict[tuple[str, str], dict[datetime, float]] = {}
        columns = [table.column(name).to_pylist() for name in ("testbed", "test", "started", "seconds", "outcome")]
        for testbed, test, started, seconds, outcome in zip(*columns, strict=True):
            if seconds is not None and outcome != FAILED:
                taken.setdefault((testbed, test), {})[started] = seconds
        return cls({key: tuple(each[started] for started in sorted(each)) for key, each in taken.items()})

    def expected(self, testbed: str, test: str) -> float | None:
        """Median of the latest times on a testbed, or else on any; None: it was never measured."""
        here = self.seconds.get((testbed, test))
        anywhere = [each for (_, name), times in self.seconds.items() if name == test for each in times]
        return median((here or anywhere)[-_LATEST:]) if here or anywhere else None


def expected_seconds(test: TestCase, variables: Mapping[str, str]) -> float:
    """How long a test will take of which there is no history: that of all measurements in it.

    Args:
        test: The test; its keywords are looked at, and those that measure nothing take no time.
        variables: Variables of the run by name; ``GOALS`` matters.
    """
    measurements = NormalizedDict(
        {
            "Find NDR And PDR": lambda named: _search_seconds(named.get("goals", variables.get("GOALS", "csit"))),
            "Measure MRR": _mrr_seconds,
            "Find Critical Load": lambda named: _seconds(named.get("timeout"), TIMEOUT),
        },
        ignore="_",
    )
    found = [
        measurements[each.name](_named(each.args))
        for each in test.body
        if isinstance(each, Keyword) and each.name in measurements
    ]
    return sum(found) if found else UNKNOWN_SECONDS


def _search_seconds(goals: str) -> float:
    known = NdrPdrGoals.__members__
    name = goals if goals in known else "csit"
    return MLRsearch(known[name].value, _MIN_LOAD, _MAX_LOAD).forecast().seconds


def _mrr_seconds(named: Mapping[str, str]) -> float:
    trials = named.get("trials", str(MRR_TRIALS))
    count = int(trials) if trials.isdecimal() else MRR_TRIALS
    return count * _seconds(named.get("trial_duration"), MRR_TRIAL_DURATION)


def _seconds(text: str | None, otherwise: float) -> float:
    if text is None:
        return otherwise
    try:
        return float(timestr_to_secs(text))
    except ValueError:
        return otherwise


def _named(arguments: Iterable[Any]) -> dict[str, str]:
    return dict(str(each).split("=", 1) for each in arguments if "=" in str(each))
