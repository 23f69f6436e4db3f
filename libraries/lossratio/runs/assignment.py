"""What a run measures on each testbed that it may get: the suites that were named, or what a job file says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from robot.api import SuiteVisitor

from lossratio.errors import JobError
from lossratio.keywords import Catalogue
from lossratio.runs.fitness import check_tester
from lossratio.runs.job import Job, Testbed, load_job
from lossratio.runs.job_selection import JobSelection, job_tests
from lossratio.runs.request import RunRequest
from lossratio.topology import Topology, load_topology


@dataclass(frozen=True)
class Assignment:
    """What is measured on one testbed.

    Attributes:
        name: What it is, in a word.
        file: The topology file.
        topology: What is in it.
        suites: Files and directories with suites.
        modifier: Expands the suites, and chooses their tests.
        variables: Variables of Robot Framework.
        check: Makes sure that the testbed is fit, once it is reserved; raises an error if it is not.
    """

    name: str
    file: Path
    topology: Topology
    suites: tuple[Path, ...]
    modifier: SuiteVisitor
    variables: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[], None] = lambda: None


def assignments_of(request: RunRequest) -> list[Assignment]:
    """What a request means for each of its testbeds.

    Raises:
        JobError: If there is nothing to measure, or the job does not say what to measure on a testbed.
        TopologyError: If a topology cannot be used.
    """
    if request.job is None:
        return [_of_suites(request, file) for file in request.topologies]
    if request.suites:
        raise JobError("The job says which suites to run: name no others.")
    job = load_job(request.job)
    testbeds = [job.testbed(file) for file in request.topologies] or list(job.testbeds)
    if len(testbeds) > 1 and not request.topologies:
        names = ", ".join(each.topology.name for each in testbeds)
        raise JobError(f"{request.job}: the job is for {names}. Say on which of them to run: --topology FILE.")
    return [_of_job(job, each) for each in testbeds]


def _of_suites(request: RunRequest, file: Path) -> Assignment:
    name = " ".join(str(suite) for suite in request.suites)
    return Assignment(name, file, load_topology(file), request.suites, Catalogue(str(file)))


def _of_job(job: Job, testbed: Testbed) -> Assignment:
    if not job_tests(job, testbed):
        raise JobError(f"{job.path}: the job has nothing to measure on {testbed.topology.name}.")
    demand = job.file.self_test
    fit = {} if demand is None else {"check": partial(check_tester, job, testbed, demand)}
    return Assignment(
        job.file.name,
        testbed.file,
        testbed.topology,
        job.suites_on(testbed),
        JobSelection(job, testbed),
        job.file.variables,
        **fit,
    )
