"""The tests that suites and jobs have on a testbed: suites are expanded, and the tests that a job names are chosen."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from robot.api import SuiteVisitor
from robot.errors import DataError
from robot.running import TestCase, TestSuite
from robot.running.builder import TestSuiteBuilder

from lossratio.errors import JobError
from lossratio.files import describe_problem
from lossratio.keywords import SuiteExpander
from lossratio.results import VARIATION
from lossratio.runs.job import Job, JobTests, Testbed
from lossratio.runs.robot_run import RunRequest, tags_near, without_tests, words_of
from lossratio.traffic import mix_names, parse_frame_size
from lossratio.values import names_near, shown_value


class JobSelection(SuiteVisitor):  # type: ignore[misc]
    """Expands suites as `SuiteExpander` does, and chooses a job's tests on a testbed; a pre-run modifier.

    A suite that the job names several times runs that many times, each time as a child suite.
    """

    def __init__(self, job: Job, testbed: Testbed, request: RunRequest | None = None) -> None:
        names = ("FRAME_SIZE", "CORES")
        self._variables = {name: job.file.variables.get(name) for name in names}
        """The frame sizes and numbers of cores of tests for which the job names no other ones."""
        self._given = {name: request and request.variable(name) for name in names}
        """Those of the command line, which replace all others."""
        self._asked = [
            (number, path.resolve(), tests)
            for number, tests in enumerate(job.tests_on(testbed), start=1)
            for path in job.suites(tests)
        ]
        self._file = testbed.file

    def start_suite(self, suite: TestSuite) -> bool | None:
        """Chooses tests of a suite, if it has any."""
        if not suite.tests:
            return None

        asked = [
            (number, tests) for number, path, tests in self._asked if _is_in(suite.source, path)
        ]
        if len(asked) == 1:
            self._choose(suite, asked[0][1])
            return False

        copies = [suite.deepcopy(name=f"{suite.name} {number}") for number, _ in asked]
        known: set[str] = set()
        for copy, (number, tests) in zip(copies, asked, strict=True):
            self._choose(copy, tests)
            chosen = {test.name for test in copy.all_tests}
            if chosen & known:
                # Repetitions of the same tests, e.g. with other arguments, are other tests.
                _vary(copy, str(number))
            known |= chosen

        suite.tests.clear()
        suite.resource.imports.clear()
        suite.setup = suite.teardown = None
        suite.suites = [copy for copy in copies if copy.test_count]

        return False

    def end_suite(self, suite: TestSuite) -> None:
        """Leaves out suites without a chosen test."""
        suite.suites = [child for child in suite.suites if child.test_count]

    def _choose(self, suite: TestSuite, tests: JobTests) -> None:
        sizes = self._values("FRAME_SIZE", tests.frame_sizes)
        cores = self._values("CORES", tests.cores)
        suite.visit(SuiteExpander(str(self._file), frame_sizes=sizes, cores=cores))
        suite.filter(
            included_tags=list(tests.include) or None, excluded_tags=list(tests.exclude) or None
        )

    def _values(self, name: str, of_tests: Iterable[object]) -> str | None:
        """The values of a variable that suites are made for; None: the suites' own."""
        return self._given[name] or ",".join(map(str, of_tests)) or self._variables[name]


def _vary(suite: TestSuite, variation: str) -> None:
    """Gives a suite and its child suites their own identities."""
    known = suite.metadata.get(VARIATION)
    suite.metadata[VARIATION] = variation if known is None else f"{known} {variation}"
    for child in suite.suites:
        _vary(child, variation)


def job_tests(job: Job, testbed: Testbed) -> tuple[TestCase, ...]:
    """The tests that a job has on a testbed, in the order of the run.

    Raises:
        JobError: If an entry of the job selects no tests.
    """
    for number, tests in enumerate(job.tests_on(testbed), start=1):
        alone = Job(job.path, job.file.model_copy(update={"tests": (tests,)}), job.testbeds)
        selected = list(_selected(alone, testbed))
        _check_mixes(job, tests, selected)

        if not selected:
            there = tags_near(tests.include, expanded_tests(job.suites(tests), testbed.file))
            raise JobError(
                f"{job.path}: entry {number} of the tests on {testbed.topology.name} selects no test: "
                f"no test in {', '.join(map(str, tests.suites))} has its tags.{there}"
            )

        missing = without_tests(tests.include, selected)
        if missing:
            there = tags_near(missing, expanded_tests(job.suites(tests), testbed.file))
            raise JobError(
                f"{job.path}: entry {number} of the tests on {testbed.topology.name}: no test matches the tag "
                f"{missing[0]!r}. Correct it, or leave it out.{there}"
            )
    return tuple(_selected(job, testbed))


def _check_mixes(job: Job, tests: JobTests, selected: Sequence[TestCase]) -> None:
    """Makes sure that a frame size that is a name is a mix of sizes in a profile of the tests."""
    profiles = {profile for test in selected for profile in _profiles_of(test)}
    # The value of a variable is known only when the test runs.
    if any("{" in profile for profile in profiles):
        return

    mixes = mix_names(profiles)
    number = job.file.tests.index(tests)
    problems = []
    for index, given in enumerate(tests.frame_sizes):
        size = parse_frame_size(given)
        if isinstance(size, str) and size not in mixes:
            problem = f"{shown_value(size)} is neither a size, such as 64B, nor a mix of sizes. Known mixes: "
            place = ("tests", number, "frame_sizes", index)
            problems.append(describe_problem(job.path, place, problem + names_near(size, mixes)))
    if problems:
        raise JobError("\n".join(problems))


def _profiles_of(test: TestCase) -> Iterator[str]:
    """The traffic profiles that are arguments of a test's keywords."""
    for step in test.body:
        for word in getattr(step, "args", ()):
            name, _, value = str(word).partition("=")
            if name == "profile" and value:
                yield value


def expanded_tests(suites: tuple[Path, ...], file: Path | None = None) -> tuple[TestCase, ...]:
    """The tests of suites in all frame sizes, with all numbers of cores, without a job.

    Args:
        suites: Files and folders of Robot Framework.
        file: The topology file of the testbed; None: for no testbed.

    Raises:
        JobError: If Robot Framework cannot read a suite.
    """
    root = _built(suites)
    root.visit(SuiteExpander(None if file is None else str(file)))
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
        raise JobError(f"Suites cannot be read: {words_of(error)}") from error


def _is_in(source: Path | None, path: Path) -> bool:
    return source is not None and (source.resolve() == path or path in source.resolve().parents)
