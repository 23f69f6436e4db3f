"""Job files: the suites of a night with their frame sizes, cores and testbeds; and the resulting tests on a testbed.

Suites are expanded, and the tests that the job names are chosen. A run without a job has the suites that it names. The
matrix of a job is for CI systems.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from robot.api import SuiteVisitor
from robot.errors import DataError
from robot.running import TestCase, TestSuite
from robot.running.builder import TestSuiteBuilder

from lossratio.checked_arguments import shortened, shown_value
from lossratio.dut import CABLE
from lossratio.errors import JobError, LossRatioError, TrafficError
from lossratio.input_file import MOST_RECORDED_BYTES, read_input_file, shown_name
from lossratio.keywords import SuiteExpander, problem_with_variable
from lossratio.records import FileModel
from lossratio.results import VARIATION
from lossratio.runs.robot_run import RunRequest, words_of
from lossratio.shipped import SUITES, TOPOLOGIES, Shipped, names_near
from lossratio.testbed import open_testbed
from lossratio.topology import FileName, Topology, load_topology
from lossratio.traffic import check_frame_size, load_profile, mix_names, parse_frame_size
from lossratio.trials import TrialInput
from lossratio.units import format_frame_rate, parse_frame_rate
from lossratio.yaml_file import Location, Problem, describe_problem, load_yaml_file

_LONGEST_PATH = 300
_MOST_PROBLEMS = 20


class JobTests(FileModel):
    """Some of the tests of a job."""

    suites: tuple[Path, ...] = Field(min_length=1)
    """Files and directories with Robot suites, relative to the job file, or names of suites of lossratio."""
    include: tuple[str, ...] = ()
    """Only tests with one of these tags, or Robot Framework's patterns of tags (``ndrpdrAND64b``)."""
    exclude: tuple[str, ...] = ()
    """No tests with one of these tags, or patterns of tags."""
    frame_sizes: tuple[str, ...] = ()
    """Frame sizes that replace the suites' own, e.g. ``64B`` and ``IMIX``."""
    cores: tuple[Annotated[int, Field(strict=True, ge=1)], ...] = ()
    """Numbers of cores that replace the suites' own."""
    testbeds: tuple[str, ...] = ()
    """Names of the topologies that they are for; none: all topologies of the job."""


class TesterDemand(FileModel):
    """The load that the tester must send and receive before the first test."""

    load: str
    """Load per interface at which it must send and receive every frame over a cable, e.g. ``10 Mfps``."""
    frame_size: str = "64B"
    """Size of the frames, or the name of a mix."""
    profile: str = "ethip4-udp"
    """Name of the traffic profile."""
    trials: int = Field(default=3, ge=1)
    """Number of trials of one second each."""
    topologies: dict[str, Path] = Field(default={})
    """Topologies with the cable, as above, by testbed name; other testbeds have the cable in their own file."""

    @field_validator("load")
    @classmethod
    def _is_a_rate(cls, load: str) -> str:
        parse_frame_rate(load)
        return load


class JobFile(FileModel):
    """The content of a job file."""

    format: Literal["lossratio-job/1"]
    """Format of the file."""
    name: FileName
    """Name of the job."""
    description: str = ""
    """The purpose of the job."""
    topologies: tuple[Path, ...] = Field(min_length=1)
    """The testbeds' topology files, relative to the job file, or names such as ``local`` that come with lossratio."""
    tests: tuple[JobTests, ...] = Field(min_length=1)
    """The tests."""
    variables: dict[str, str] = Field(default={})
    """Variables of Robot Framework, e.g. ``GOALS: quick``."""
    self_test: TesterDemand | None = None
    """The load that the tester must send and receive, to check that the testbed is fit tonight."""


@dataclass(frozen=True)
class Testbed:
    """A testbed of a job."""

    __test__ = False

    file: Path
    """Its topology file."""
    topology: Topology
    """The topology in it."""


@dataclass(frozen=True)
class Job:
    """A job. Paths in it are relative to the job file."""

    path: Path
    """The job file."""
    file: JobFile
    """Its content."""
    testbeds: tuple[Testbed, ...]
    """Its testbeds."""

    def testbed(self, name_or_file: str | Path) -> Testbed:
        """One of its testbeds, by the topology's name or file.

        Raises:
            JobError: If the job has no such testbed.
        """
        for testbed in self.testbeds:
            if (
                testbed.topology.name == str(name_or_file)
                or testbed.file.resolve() == Path(name_or_file).resolve()
            ):
                return testbed
        near = names_near(str(name_or_file), [testbed.topology.name for testbed in self.testbeds])
        raise JobError(f"{self.path}: the job has no testbed {name_or_file}. It has {near}")

    def cable_of(self, testbed: Testbed, demand: TesterDemand) -> Path:
        """The topology file with the cable for the self-test of a testbed's tester."""
        file = demand.topologies.get(testbed.topology.name)
        if file is None:
            return testbed.file
        return TOPOLOGIES.path(file, self.path.parent)

    def tests_on(self, testbed: Testbed) -> tuple[JobTests, ...]:
        """The tests for a testbed."""
        name = testbed.topology.name
        return tuple(
            tests for tests in self.file.tests if not tests.testbeds or name in tests.testbeds
        )

    def suites(self, tests: JobTests) -> tuple[Path, ...]:
        """The files and directories of some tests."""
        return tuple(SUITES.path(suite, self.path.parent) for suite in tests.suites)

    def suites_on(self, testbed: Testbed) -> tuple[Path, ...]:
        """All suites for a testbed, each once, in the job's order."""
        return tuple(
            dict.fromkeys(suite for tests in self.tests_on(testbed) for suite in self.suites(tests))
        )


def load_job(path: str | Path) -> Job:
    """Reads a job file and its topology files.

    Raises:
        JobError: If the job file cannot be used: each problem with file, line and field.
        TopologyError: If a topology file cannot be used.
    """
    path = Path(path)
    file = load_yaml_file(path, JobFile, JobError, lambda loaded: _problems(path, loaded))
    files = (TOPOLOGIES.path(topology, path.parent) for topology in file.topologies)
    job = Job(path, file, tuple(Testbed(topology, load_topology(topology)) for topology in files))
    # Each description reads the file again, so that a file with a thousand mistakes would take seconds.
    first = islice(_problems_of_names(job), _MOST_PROBLEMS)
    problems = [describe_problem(path, *problem) for problem in first]
    if problems:
        raise JobError("\n".join(problems))
    return job


def _problems_of_names(job: Job) -> Iterator[Problem]:
    """Finds testbeds that have the same name, and names that no testbed has."""
    names = [testbed.topology.name for testbed in job.testbeds]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield (
                ("topologies", number),
                f"another topology is also named {name!r}, but names must distinguish the results of testbeds",
            )

    named: list[tuple[Location, str]] = [
        (("tests", number, "testbeds", index), name)
        for number, tests in enumerate(job.file.tests)
        for index, name in enumerate(tests.testbeds)
    ]
    if job.file.self_test is not None:
        named += [
            (("self_test", "topologies", name), name) for name in job.file.self_test.topologies
        ]
    for where, name in named:
        if name not in names:
            near = names_near(name, dict.fromkeys(names))
            yield (
                where,
                f"no testbed of the job is named {shown_value(name)}. Its testbeds are {near}",
            )


def _problems(path: Path, file: JobFile) -> Iterator[Problem]:
    cables = {} if file.self_test is None else file.self_test.topologies
    named: list[tuple[Location, Shipped, Path]] = []
    for number, topology in enumerate(file.topologies):
        named.append((("topologies", number), TOPOLOGIES, topology))
    for name, cable in cables.items():
        named.append((("self_test", "topologies", name), TOPOLOGIES, cable))
    for number, tests in enumerate(file.tests):
        for index, suite in enumerate(tests.suites):
            named.append((("tests", number, "suites", index), SUITES, suite))

    yield from _problems_of_values(file)
    for where, kind, given in named:
        if not kind.is_there(found := kind.path(given, path.parent)):
            hint = kind.hint(given)
            shown = shortened(shown_name(found), _LONGEST_PATH)
            yield where, f"there is no file {shown}{f'.{hint}' if hint else ''}"


def _problems_of_values(file: JobFile) -> Iterator[Problem]:
    """Finds frame sizes that no traffic has, and values of variables that no suite can read."""
    for number, tests in enumerate(file.tests):
        for index, size in enumerate(tests.frame_sizes):
            yield from _problem_of(("tests", number, "frame_sizes", index), check_frame_size, size)

    for name, value in file.variables.items():
        problem = problem_with_variable(name, value)
        if problem is not None:
            yield ("variables", name), problem

    if file.self_test is not None:
        demand = file.self_test
        profile = partial(load_profile, frame_size=demand.frame_size)
        yield from _problem_of(("self_test",), profile, demand.profile)


def _problem_of(where: Location, read: Callable[[str], Any], given: str) -> Iterator[Problem]:
    """The problem with a value, if the value cannot be read."""
    try:
        read(given)
    except (ValueError, LossRatioError) as error:
        yield where, str(error)


def matrix(places: Iterable[Path], kinds: Iterable[str] = ()) -> dict[str, Any]:
    """The jobs of a nightly for CI systems, one per testbed: ``{"include": [{"testbed": …, "topology": …}, …]}``.

    The kinds are those of `Topology.testbed`; no kinds mean all.

    Raises:
        JobError: If there is no testbed, or two have the same name.
        TopologyError: If a topology cannot be used.
    """
    places = tuple(places)
    wanted = frozenset(kinds)
    include = [job for place in places for job in _jobs(place, wanted)]
    names = [job["testbed"] for job in include]
    if not include:
        shown = ", ".join(map(shown_name, places))
        raise JobError(
            f"No testbed in {shown}. Name topology files, job files, or folders with such files."
        )
    if len(set(names)) < len(names):
        raise JobError(
            f"Two testbeds have the same name, which must distinguish their results: {', '.join(names)}."
        )
    return {"include": include}


def _jobs(place: Path, kinds: frozenset[str]) -> list[dict[str, str]]:
    """The jobs of a file or a folder on testbeds of some kinds; no kinds mean all."""
    # Unlike Path, os.path has an answer for a name that is too long for a file.
    if os.path.isdir(place):
        return [job for file in sorted(place.glob("*.yaml")) for job in _jobs(file, kinds)]
    if _is_job(place):
        job = load_job(place)
        return [
            {
                "testbed": testbed.topology.name,
                "topology": TOPOLOGIES.name(testbed.file),
                "job": str(place),
            }
            for testbed in job.testbeds
            if not kinds or testbed.topology.testbed in kinds
        ]

    topology = load_topology(place)
    if not kinds or topology.testbed in kinds:
        return [{"testbed": topology.name, "topology": str(place)}]
    return []


def _is_job(file: Path) -> bool:
    try:
        return b"lossratio-job/" in read_input_file(file, JobError, MOST_RECORDED_BYTES)
    except JobError:
        return False


class JobSelection(SuiteVisitor):  # type: ignore[misc]
    """Expands suites as `SuiteExpander` does, and chooses a job's tests on a testbed; a pre-run modifier.

    A suite that the job names several times runs that many times, each time as a child suite.
    """

    def __init__(self, job: Job, testbed: Testbed) -> None:
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
        sizes, cores = (
            ",".join(map(str, asked)) or None for asked in (tests.frame_sizes, tests.cores)
        )
        suite.visit(SuiteExpander(str(self._file), frame_sizes=sizes, cores=cores))
        suite.filter(
            included_tags=list(tests.include) or None, excluded_tags=list(tests.exclude) or None
        )


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
            raise JobError(
                f"{job.path}: entry {number} of the tests on {testbed.topology.name} selects no test: "
                f"no test in {', '.join(map(str, tests.suites))} has its tags."
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
            problem = f"{shown_value(size)} is neither a size, such as 64B, nor a mix of sizes. The mixes are "
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


_MOST_TAGS = 20
"""The largest number of tags in an error."""


def suite_tests(
    suites: tuple[Path, ...], file: Path, include: tuple[str, ...] = ()
) -> tuple[TestCase, ...]:
    """The tests of suites on a testbed, without a job.

    Args:
        suites: Files and folders of Robot Framework.
        file: The topology file of the testbed.
        include: Tags that select tests, as with ``robot --include``; empty: all tests.

    Raises:
        JobError: If there are no tests, or the suites cannot be read.
    """
    root = _built(suites)
    root.visit(SuiteExpander(str(file)))
    tags = sorted({str(tag) for test in root.all_tests for tag in test.tags})
    root.filter(included_tags=list(include) or None)
    if not root.test_count:
        named = ", ".join(map(SUITES.name, suites))
        some = ", ".join(tags[:_MOST_TAGS]) + (", ..." if len(tags) > _MOST_TAGS else "")
        raise JobError(
            f"No test in {named} has the tags {', '.join(include)}. Their tags are: {some}."
        )
    return tuple(root.all_tests)


def expanded_tests(suites: tuple[Path, ...]) -> tuple[TestCase, ...]:
    """The tests of suites in all frame sizes, with all numbers of cores, for no testbed.

    Raises:
        JobError: If Robot Framework cannot read a suite.
    """
    root = _built(suites)
    root.visit(SuiteExpander())
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


@dataclass(frozen=True)
class Assignment:
    """The tests for one testbed."""

    name: str
    """Name of the job, or of the suites."""
    file: Path
    """The topology file."""
    topology: Topology
    """The topology in it."""
    suites: tuple[Path, ...]
    """Files and directories with suites."""
    modifier: SuiteVisitor
    """Expands the suites, and chooses their tests."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of Robot Framework."""
    check: Callable[[], None] = lambda: None
    """Checks that the reserved testbed is fit, and raises an error if it is not."""


def assignments_of(request: RunRequest) -> list[Assignment]:
    """The tests that a request has for each of its testbeds.

    Raises:
        JobError: If the job cannot be used, is for several testbeds and none is chosen, or suites are also named.
        TopologyError: If a topology file cannot be used.
    """
    if request.job is None:
        name = " ".join(str(suite) for suite in request.suites)
        files = [TOPOLOGIES.path(file) for file in request.topologies]
        return [
            Assignment(name, file, load_topology(file), request.suites, SuiteExpander(str(file)))
            for file in files
        ]

    if request.suites:
        raise JobError("The job names its own suites: leave out other suites.")

    job = load_job(request.job)
    testbeds = [job.testbed(file) for file in request.topologies] or list(job.testbeds)
    if len(testbeds) > 1 and not request.topologies:
        names = ", ".join(testbed.topology.name for testbed in testbeds)
        raise JobError(
            f"{request.job}: the job is for {names}. Choose one of them: --topology FILE."
        )
    return [_of_job(job, testbed) for testbed in testbeds]


def _of_job(job: Job, testbed: Testbed) -> Assignment:
    if not job_tests(job, testbed):
        raise JobError(f"{job.path}: the job has nothing to measure on {testbed.topology.name}.")

    demand = job.file.self_test
    fit = {}
    # The limit of a simulated tester is in its topology.
    if demand is not None and load_topology(job.cable_of(testbed, demand)).testbed != "simulated":
        fit = {"check": partial(check_tester, job, testbed, demand)}
    return Assignment(
        job.file.name,
        testbed.file,
        testbed.topology,
        job.suites_on(testbed),
        JobSelection(job, testbed),
        job.file.variables,
        **fit,
    )


_TRIAL_SECONDS = 1.0


class UnfitTesterError(TrafficError):
    """The tester does not send and receive the load that the job demands."""


def check_tester(job: Job, testbed: Testbed, demand: TesterDemand) -> None:
    """Measures whether the tester sends and receives the demanded load over a cable, without a lost or unsent frame.

    Raises:
        UnfitTesterError: If the tester does not do that.
        LossRatioError: If the testbed cannot be opened, or a trial cannot be performed.
    """
    load = parse_frame_rate(demand.load)
    profile = load_profile(demand.profile, frame_size=demand.frame_size)
    with (
        open_testbed(job.cable_of(testbed, demand), dut=CABLE, traffics=[profile]) as opened,
        opened.ready_for(profile) as ready,
    ):
        trial = TrialInput(_TRIAL_SECONDS, load).sendable(opened.load_step(profile))
        for number in range(1, demand.trials + 1):
            output = ready.measurer.measure(trial)
            if output.lost_frames or output.unsent_frames:
                behind = max(
                    (direction.lateness_s or 0.0 for direction in output.directions), default=0.0
                )
                lost = f"{output.lost_frames or 0:,}"
                unsent = f"{output.unsent_frames or 0:,}"
                if output.unsent_frames:
                    cause = "other work on its machine"
                else:
                    cause = "faults of the cable"

                raise UnfitTesterError(
                    f"The traffic generator of testbed {testbed.topology.name} is too slow: at "
                    f"{format_frame_rate(load)} per interface over a cable, it could not send {unsent} frames "
                    f"and lost {lost} (trial {number}, late by up to {behind * 1e3:.1f} ms). Look for {cause}."
                )
