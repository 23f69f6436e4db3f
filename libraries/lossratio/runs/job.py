"""Job files: the suites of a night, their frame sizes, cores and testbeds, and the load that the tester must send."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from lossratio.checked_arguments import shortened, shown_value
from lossratio.errors import JobError, LossRatioError
from lossratio.input_file import shown_name
from lossratio.keywords import problem_with_variable
from lossratio.quantities import FilePath
from lossratio.records import FileModel
from lossratio.shipped import SUITES, TOPOLOGIES, Shipped, names_near
from lossratio.topology import FileName, Topology, load_topology
from lossratio.traffic import check_frame_size, load_profile
from lossratio.units import parse_frame_rate
from lossratio.yaml_file import Location, Problem, describe_problem, load_yaml_file

_LONGEST_PATH = 300
_MOST_PROBLEMS = 20


class JobTests(FileModel):
    """Some of the tests of a job."""

    suites: tuple[FilePath, ...] = Field(min_length=1)
    """Files and directories with Robot suites, relative to the job file, or names of suites of lossratio."""
    include: tuple[str, ...] = ()
    """Only tests with one of these tags, or Robot Framework's patterns of tags (``ndrpdrAND64b``)."""
    exclude: tuple[str, ...] = ()
    """No tests with one of these tags, or patterns of tags."""
    frame_sizes: tuple[str, ...] = ()
    """Frame sizes that replace the suites' own, e.g. ``64B`` and ``IMIX``."""
    cores: tuple[Annotated[int, Field(ge=1)], ...] = ()
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
    topologies: dict[str, FilePath] = Field(default={})
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
    topologies: tuple[FilePath, ...] = Field(min_length=1)
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
        raise JobError(
            f"{self.path}: the job has no testbed {name_or_file}. Its testbeds are {near}"
        )

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
