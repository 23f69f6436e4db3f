"""A night's plan: how long each test is expected to take, and which testbed runs it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from glob import escape
from pathlib import Path
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
from lossratio.results import fitting, identity_of
from lossratio.runs.job import Job, Testbed
from lossratio.runs.job_tests import job_tests, suite_tests
from lossratio.units import tests_counted

_SEARCH = "findndrandpdr"
_MRR = "measuremrr"
_SOAK = "findcriticalload"
_AFTER_SEARCHES = (
    ("latency", len(LATENCY_SHARES) + 1, LATENCY_DURATION),
    ("telemetry", 1, TELEMETRY_DURATION),
)
"""Measurements after searches for NDR and PDR: the argument, the number of trials, and their usual duration."""


@dataclass(frozen=True)
class PlannedTest:
    """A test with its expected time."""

    name: str
    """Its full name."""
    seconds: Mapping[str, float]
    """The expected time in seconds, by name of testbed. The test can run on these testbeds only."""
    is_known: bool
    """Whether the times come from earlier nights."""
    is_forecast: bool = True
    """Whether times that do not come from earlier nights are forecasts; otherwise, each is the guess
    `UNKNOWN_SECONDS`."""


@dataclass(frozen=True)
class Share:
    """The tests of one testbed."""

    testbed: str
    """Name of the testbed."""
    tests: tuple[PlannedTest, ...]
    """Its tests, in the order of the job or the suites."""

    @property
    def seconds(self) -> float:
        """The expected time of all its tests, in seconds."""
        return sum(test.seconds[self.testbed] for test in self.tests)


@dataclass(frozen=True)
class Plan:
    """A night's plan."""

    shares: tuple[Share, ...]
    """The tests of each testbed."""

    @property
    def seconds(self) -> float:
        """The expected time until the last testbed ends, in seconds."""
        return max((share.seconds for share in self.shares), default=0.0)


def spread(tests: Sequence[PlannedTest], testbeds: Sequence[str]) -> Plan:
    """Spreads tests over testbeds: the longest test first, each to the testbed where it ends earliest.

    With equal testbeds, the night is at most a third longer than the shortest possible one (Graham 1969).
    """
    ends = dict.fromkeys(testbeds, 0.0)
    places: dict[str, str] = {}
    for test in sorted(tests, key=lambda planned: -min(planned.seconds.values())):
        place = min(
            test.seconds, key=lambda testbed: (ends[testbed] + test.seconds[testbed], testbed)
        )
        ends[place] += test.seconds[place]
        places[test.name] = place
    shares = []
    for name in testbeds:
        own = tuple(test for test in tests if places[test.name] == name)
        shares.append(Share(name, own))
    return Plan(tuple(shares))


UNKNOWN_SECONDS = 60.0
"""Expected time of a test about which nothing is known."""
_LATEST = 5
_MIN_LOAD, _MAX_LOAD = 9001.0, 1e7


@dataclass(frozen=True)
class History:
    """How long tests took in earlier nights."""

    seconds: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    """Times by testbed and full name of the test, oldest first."""

    @classmethod
    def of(cls, table: Any) -> "History":
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
        anywhere = [
            seconds
            for (_, name), times in self.seconds.items()
            if name == test
            for seconds in times
        ]
        if not anywhere:
            earlier = fitting((name for _, name in self.seconds), [test])
            anywhere = [
                seconds
                for (_, name), times in self.seconds.items()
                if name in earlier
                for seconds in times
            ]

        if here or anywhere:
            return median((here or anywhere)[-_LATEST:])
        return None


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


def plan_job(job: Job, history: History) -> Plan:
    """Plans a job: a test for several testbeds runs on the testbed that has time for it.

    Raises:
        JobError: If the job cannot be used.
    """
    tests = {testbed.topology.name: job_tests(job, testbed) for testbed in job.testbeds}
    return _plan(tests, history, job.file.variables)


def plan_suites(
    suites: Sequence[Path],
    testbeds: Sequence[Testbed],
    history: History,
    include: tuple[str, ...] = (),
) -> Plan:
    """Plans suites on equal testbeds.

    Raises:
        JobError: If the suites cannot be used.
    """
    tests = {
        testbed.topology.name: suite_tests(tuple(suites), testbed.file, include)
        for testbed in testbeds
    }
    return _plan(tests, history, {})


def write_argument_files(plan: Plan, directory: Path) -> list[Path]:
    """Writes an argument file for Robot Framework, ``<testbed>.args``, for each testbed with tests.

    Returns:
        The files.

    Raises:
        OSError: If a file cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files = {
        directory / f"{share.testbed}.args": share.tests for share in plan.shares if share.tests
    }
    for file, tests in files.items():
        file.write_text(
            "".join(f"--test {escape(test.name)}\n" for test in tests), encoding="utf-8"
        )
    return list(files)


def describe_plan(plan: Plan) -> str:
    """A plan as text."""
    lines = []
    for share in plan.shares:
        lines.append(f"{share.testbed}: {tests_counted(len(share.tests))}, {_clock(share.seconds)}")
        lines += [
            f"  {_clock(test.seconds[share.testbed])}{_origin(test)}  {test.name}"
            for test in share.tests
        ]

    forecast = sum(not test.is_known for share in plan.shares for test in share.tests)
    if forecast:
        note = f" {forecast} of the tests were never measured; their time is a forecast."
    else:
        note = ""

    guessed = sum(
        not test.is_known and not test.is_forecast for share in plan.shares for test in share.tests
    )
    note += (
        f" For {guessed} of these, there is only a guess: {UNKNOWN_SECONDS:g} s each."
        if guessed
        else ""
    )

    return "\n".join([*lines, f"The last testbed ends after {_clock(plan.seconds)}.{note}"])


def _origin(test: PlannedTest) -> str:
    if test.is_known:
        return ""
    if test.is_forecast:
        return " (forecast)"
    return " (a guess)"


def _plan(
    tests: Mapping[str, Sequence[TestCase]], history: History, variables: Mapping[str, str]
) -> Plan:
    planned: dict[str, PlannedTest] = {}
    for testbed, cases in tests.items():
        for case in cases:
            known = history.expected(testbed, identity_of(case))
            seconds = expected_seconds(case, variables) if known is None else known
            times = planned[case.full_name].seconds if case.full_name in planned else {}
            times = {**times, testbed: seconds}
            is_forecast = any(keyword in (_SEARCH, _MRR, _SOAK) for keyword, _ in _keywords(case))
            planned[case.full_name] = PlannedTest(
                case.full_name, times, known is not None, is_forecast
            )
    return spread(list(planned.values()), list(tests))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
