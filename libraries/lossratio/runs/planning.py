"""From a job, or from suites and testbeds, to a plan with the time that every test is expected to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from robot.running import TestCase

from lossratio.runs.durations import History, expected_seconds
from lossratio.runs.job import Job, Testbed
from lossratio.runs.job_selection import job_tests, suite_tests
from lossratio.runs.plan import Plan, PlannedTest, spread


def plan_job(job: Job, history: History) -> Plan:
    """Plans a job: tests for several testbeds run on one of them, whichever has time.

    Raises:
        JobError: If the job cannot be used.
    """
    tests = {each.topology.name: job_tests(job, each) for each in job.testbeds}
    return _plan(tests, history, job.file.variables)


def plan_suites(
    suites: Sequence[Path], testbeds: Sequence[Testbed], history: History, include: tuple[str, ...] = ()
) -> Plan:
    """Plans suites on equal testbeds.

    Raises:
        JobError: If the suites cannot be used.
    """
    tests = {each.topology.name: suite_tests(tuple(suites), each.file, include) for each in testbeds}
    return _plan(tests, history, {})


def write_argument_files(plan: Plan, directory: Path) -> list[Path]:
    """Writes, for each testbed, an argument file for Robot Framework that selects its tests.

    Returns:
        The files, ``<testbed>.args`` each. A testbed without tests has none.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for share in plan.shares:
        if share.tests:
            files.append(directory / f"{share.testbed}.args")
            files[-1].write_text("".join(f"--test {_escaped(test.name)}\n" for test in share.tests), encoding="utf-8")
    return files


def describe_plan(plan: Plan) -> str:
    """A plan as a table of text."""
    lines = []
    for share in plan.shares:
        lines.append(f"{share.testbed}: {len(share.tests)} tests, {_clock(share.seconds)}")
        lines += [
            f"  {_clock(test.seconds[share.testbed])}{'' if test.is_known else ' (forecast)'}  {test.name}"
            for test in share.tests
        ]
    forecast = sum(not test.is_known for share in plan.shares for test in share.tests)
    said = f" {forecast} of the tests were never measured before; their time is a forecast." if forecast else ""
    return "\n".join([*lines, f"The last testbed ends after {_clock(plan.seconds)}.{said}"])


def _plan(tests: Mapping[str, Sequence[TestCase]], history: History, variables: Mapping[str, str]) -> Plan:
    seconds: dict[str, dict[str, float]] = {}
    known: dict[str, bool] = {}
    for testbed, cases in tests.items():
        for case in cases:
            expected = history.expected(testbed, case.full_name)
            known[case.full_name] = expected is not None
            told = expected_seconds(case, variables) if expected is None else expected
            seconds.setdefault(case.full_name, {})[testbed] = told
    planned = [PlannedTest(name, each, known[name]) for name, each in seconds.items()]
    return spread(planned, list(tests))


def _escaped(name: str) -> str:
    """A name in which Robot Framework sees no pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
