"""The tests for each testbed of a run: those of a job, or of the suites that the run names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from robot.api import SuiteVisitor

from lossratio.errors import JobError
from lossratio.files import TOPOLOGIES
from lossratio.keywords import SuiteExpander
from lossratio.runs.job import Job, Testbed, load_job
from lossratio.runs.job_tests import JobSelection, job_tests
from lossratio.runs.robot_run import RunRequest
from lossratio.topology import Topology, load_topology


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


def assignments_of(request: RunRequest) -> list[Assignment]:
    """The tests that a request has for each of its testbeds.

    Raises:
        JobError: If the job cannot be used, is for several testbeds and none is chosen, or suites are also named.
        TopologyError: If a topology file cannot be used.
    """
    if request.job is None:
        name = " ".join(str(suite) for suite in request.suites)
        sizes, cores = map(request.variable, ("FRAME_SIZE", "CORES"))
        assignments = []
        for file in map(TOPOLOGIES.path, request.topologies):
            # A suite is made for the user's values in place of its own.
            expander = SuiteExpander(str(file), frame_sizes=sizes, cores=cores)
            topology = load_topology(file)
            assignments.append(Assignment(name, file, topology, request.suites, expander))
        return assignments

    if request.suites:
        raise JobError("The job names its own suites: leave out other suites.")

    job = load_job(request.job)
    testbeds = [job.testbed(file) for file in request.topologies] or list(job.testbeds)
    if len(testbeds) > 1 and not request.topologies:
        names = ", ".join(testbed.topology.name for testbed in testbeds)
        raise JobError(
            f"{request.job}: the job is for {names}. Choose one of them: --topology FILE."
        )
    return [_of_job(job, testbed, request) for testbed in testbeds]


def _of_job(job: Job, testbed: Testbed, request: RunRequest) -> Assignment:
    if not job_tests(job, testbed):
        raise JobError(
            f"{job.path}: the job has nothing to measure on {testbed.topology.name}. Choose another --topology, or "
            "give the job tests for it."
        )

    return Assignment(
        job.file.name,
        testbed.file,
        testbed.topology,
        job.suites_on(testbed),
        JobSelection(job, testbed, request),
        job.file.variables,
    )
