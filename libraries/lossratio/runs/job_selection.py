"""The tests that a job has on a testbed: its suites are expanded, and the tests that it names are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from robot.api import SuiteVisitor
from robot.errors import DataError
from robot.running import TestCase, TestSuite
from robot.running.builder import TestSuiteBuilder

from lossratio.errors import JobError
from lossratio.keywords import Catalogue
from lossratio.runs.job import Job, JobTests, Testbed


class JobSelection(SuiteVisitor):  # type: ignore[misc]
    """Expands suites as `Catalogue` does, and chooses a job's tests on a testbed; a modifier before a run.

    A suite that the job names several times runs as often, each time as a suite of its own within the suite.
    """

    def __init__(self, job: Job, testbed: Testbed) -> None:
        self._asked = [
            (number, path.resolve(), tests)
            for number, tests in enumerate(job.tests_on(testbed), start=1)
            for path in job.suites(tests)
        ]
        self._file = testbed.file

    def start_suite(self, suite: TestSuite) -> bool | None:
        """Chooses the tests of a suite that has some."""
        if not suite.tests:
            return None
        asked = [(number, tests) for number, path, tests in self._asked if _is_in(suite.source, path)]
        if len(asked) == 1:
            self._choose(suite, asked[0][1])
            return False
        copies = [suite.deepcopy(name=f"{suite.name} {number}") for number, _ in asked]
        for copy, (_, tests) in zip(copies, asked, strict=True):
            self._choose(copy, tests)
        suite.tests.clear()
        suite.resource.imports.clear()
        suite.setup = suite.teardown = None
        suite.suites = [copy for copy in copies if copy.test_count]
        return False

    def end_suite(self, suite: TestSuite) -> None:
        """Leaves out suites without a chosen test."""
        suite.suites = [child for child in suite.suites if child.test_count]

    def _choose(self, suite: TestSuite, tests: JobTests) -> None:
        suite.visit(
            Catalogue(
                str(self._file),
                frame_sizes=",".join(tests.frame_sizes) or None,
                cores=",".join(str(count) for count in tests.cores) or None,
            )
        )
        suite.filter(included_tags=list(tests.include) or None, excluded_tags=list(tests.exclude) or None)


def job_tests(job: Job, testbed: Testbed) -> tuple[TestCase, ...]:
    """The tests that a job has on a testbed, in the order of the run.

    Raises:
        JobError: If suites cannot be read, or an entry of the job selects no test.
    """
    for number, tests in enumerate(job.tests_on(testbed), start=1):
        alone = Job(job.path, job.file.model_copy(update={"tests": (tests,)}), job.testbeds)
        if not any(True for _ in _selected(alone, testbed)):
            raise JobError(
                f"{job.path}: entry {number} of the tests on {testbed.topology.name} selects no test: "
                f"no test in {', '.join(map(str, tests.suites))} has its tags."
            )
    return tuple(_selected(job, testbed))


def suite_tests(suites: tuple[Path, ...], file: Path, include: tuple[str, ...] = ()) -> tuple[TestCase, ...]:
    """The tests of suites on a testbed, without a job.

    Args:
        suites: Files and directories.
        file: The topology file.
        include: Tag patterns that select tests; none: all.

    Raises:
        JobError: If suites cannot be read, or no test is selected.
    """
    root = _built(suites)
    root.visit(Catalogue(str(file)))
    root.filter(included_tags=list(include) or None)
    if not root.test_count:
        raise JobError(f"No test in {', '.join(map(str, suites))} has the tags {', '.join(include)}.")
    return tuple(root.all_tests)


def _selected(job: Job, testbed: Testbed) -> Iterator[TestCase]:
    suites = job.suites_on(testbed)
    if not suites:
        return
    root = _built(suites)
    root.visit(JobSelection(job, testbed))
    yield from root.all_tests


def _built(suites: tuple[Path, ...]) -> TestSuite:
    try:
        return TestSuiteBuilder().build(*suites)
    except DataError as error:
        raise JobError(f"Suites cannot be read: {error.message}") from error


def _is_in(source: Path | None, path: Path) -> bool:
    return source is not None and (source.resolve() == path or path in source.resolve().parents)
