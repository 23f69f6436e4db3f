"""Job files: the suites of a night, their frame sizes, cores and testbeds."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lossratio.errors import JobError
from lossratio.files import (
    SUITES,
    TOPOLOGIES,
    Location,
    Problem,
    Shipped,
    describe_problem,
    load_yaml_file,
    shown_name,
)
from lossratio.keywords import problem_with_variable
from lossratio.topology import FileName, Topology, load_topology
from lossratio.traffic import check_frame_size
from lossratio.values import FileModel, FilePath, names_near, shortened, shown_value

_LONGEST_PATH = 300
_MOST_PROBLEMS = 20


def _frame_size(size: str) -> str:
    check_frame_size(size)
    return size


class JobTests(FileModel):
    """Some of the tests of a job."""

    suites: tuple[FilePath, ...] = Field(min_length=1)
    """Files and directories with Robot suites, relative to the job file, or names of suites of lossratio."""
    include: tuple[str, ...] = ()
    """Only tests with one of these tags, or Robot Framework's patterns of tags (``ndrpdrAND64b``)."""
    exclude: tuple[str, ...] = ()
    """No tests with one of these tags, or patterns of tags."""
    frame_sizes: tuple[Annotated[str, AfterValidator(_frame_size)], ...] = ()
    """Frame sizes that replace the suites' own, e.g. ``64B`` and ``IMIX``."""
    cores: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Numbers of cores that replace the suites' own."""
    testbeds: tuple[str, ...] = ()
    """Names of the topologies that they are for; none: all topologies of the job."""


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

    for number, tests in enumerate(job.file.tests):
        for index, name in enumerate(tests.testbeds):
            if name not in names:
                near = names_near(name, dict.fromkeys(names))
                yield (
                    ("tests", number, "testbeds", index),
                    f"no testbed of the job is named {shown_value(name)}. Its testbeds are {near}",
                )


def _problems(path: Path, file: JobFile) -> Iterator[Problem]:
    named: list[tuple[Location, Shipped, Path]] = []
    for number, topology in enumerate(file.topologies):
        named.append((("topologies", number), TOPOLOGIES, topology))
    for number, tests in enumerate(file.tests):
        for index, suite in enumerate(tests.suites):
            named.append((("tests", number, "suites", index), SUITES, suite))

    for name, value in file.variables.items():
        problem = problem_with_variable(name, value)
        if problem is not None:
            yield ("variables", name), problem
    for where, kind, given in named:
        if not kind.is_there(found := kind.path(given, path.parent)):
            hint = kind.hint(given)
            shown = shortened(shown_name(found), _LONGEST_PATH)
            yield where, f"there is no file {shown}{f'.{hint}' if hint else ''}"
