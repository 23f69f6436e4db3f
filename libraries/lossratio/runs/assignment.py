"""The tests of a run on each testbed that it may get: the named suites, or the tests of a job file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from robot.api import SuiteVisitor

from lossratio.dut import CABLE
from lossratio.errors import JobError, TrafficError
from lossratio.keywords import SuiteExpander
from lossratio.runs.job import Job, JobSelection, Testbed, TesterDemand, job_tests, load_job
from lossratio.runs.robot_run import RunRequest
from lossratio.shipped import TOPOLOGIES
from lossratio.testbed import open_testbed
from lossratio.topology import Topology, load_topology
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput
from lossratio.units import format_frame_rate, parse_frame_rate


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
    """The tests that a request has for each of its testbeds."""
    if request.job is None:
        name = " ".join(str(suite) for suite in request.suites)
        files = [TOPOLOGIES.path(file) for file in request.topologies]
        return [Assignment(name, file, load_topology(file), request.suites, SuiteExpander(str(file))) for file in files]
    if request.suites:
        raise JobError("The job has its own suites: name no others.")
    job = load_job(request.job)
    testbeds = [job.testbed(file) for file in request.topologies] or list(job.testbeds)
    if len(testbeds) > 1 and not request.topologies:
        names = ", ".join(testbed.topology.name for testbed in testbeds)
        raise JobError(f"{request.job}: the job is for {names}. Choose one of them: --topology FILE.")
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
    """Measures the tester over a cable: UnfitTesterError if it loses frames at the demanded load."""
    load = parse_frame_rate(demand.load)
    profile = load_profile(demand.profile, frame_size=demand.frame_size)
    with open_testbed(job.cable_of(testbed, demand), dut=CABLE) as opened, opened.ready_for(profile) as ready:
        trial = TrialInput(_TRIAL_SECONDS, load).sendable(opened.load_step(profile))
        for number in range(1, demand.trials + 1):
            output = ready.measurer.measure(trial)
            if output.lost_frames or output.unsent_frames:
                behind = max((direction.lateness_s or 0.0 for direction in output.directions), default=0.0)
                raise UnfitTesterError(
                    f"{testbed.topology.name} is not fit now: at {format_frame_rate(load)} per interface over a cable, "
                    f"its tester lost {output.lost_frames or 0:,} frames and could not send "
                    f"{output.unsent_frames or 0:,} (trial {number}, behind by up to {behind * 1e3:.1f} ms). "
                    f"Look for {'other work on its node' if output.unsent_frames else 'faults of the cable'}."
                )
