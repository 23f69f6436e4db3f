"""A night's plan: how long each test is expected to take, and which testbed runs it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from robot.running import TestCase

from lossratio.results import identity_of
from lossratio.runs.expected_times import (
    UNKNOWN_SECONDS,
    KnownTimes,
    expected_seconds,
    has_forecast,
)
from lossratio.runs.job import Job, Testbed
from lossratio.runs.job_tests import job_tests, suite_tests
from lossratio.units import tests_counted


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


def plan_job(job: Job, known: KnownTimes) -> Plan:
    """Plans a job: a test for several testbeds runs on the testbed that has time for it.

    Raises:
        JobError: If the job cannot be used.
    """
    tests = {testbed.topology.name: job_tests(job, testbed) for testbed in job.testbeds}
    return _plan(tests, known, job.file.variables)


def plan_suites(
    suites: Sequence[Path],
    testbeds: Sequence[Testbed],
    known: KnownTimes,
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
    return _plan(tests, known, {})


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
    note = ""
    if forecast:
        note = f" {forecast} of the tests were never measured; their time is a forecast."

    guessed = sum(
        not test.is_known and not test.is_forecast for share in plan.shares for test in share.tests
    )
    if guessed:
        note += f" For {guessed} of these, there is only a guess: {UNKNOWN_SECONDS:g} s each."

    return "\n".join([*lines, f"The last testbed ends after {_clock(plan.seconds)}.{note}"])


def _origin(test: PlannedTest) -> str:
    if test.is_known:
        return ""
    if test.is_forecast:
        return " (forecast)"
    return " (a guess)"


def _plan(
    tests: Mapping[str, Sequence[TestCase]], known: KnownTimes, variables: Mapping[str, str]
) -> Plan:
    planned: dict[str, PlannedTest] = {}
    for testbed, cases in tests.items():
        for case in cases:
            seconds = known.expected(testbed, identity_of(case))
            is_known = seconds is not None
            if seconds is None:
                seconds = expected_seconds(case, variables)

            times = planned[case.full_name].seconds if case.full_name in planned else {}
            planned[case.full_name] = PlannedTest(
                case.full_name, {**times, testbed: seconds}, is_known, has_forecast(case)
            )
    return spread(list(planned.values()), list(tests))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
