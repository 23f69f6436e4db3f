"""The tests for each testbed of a run: those of a job, or of the suites that the run names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from robot.api import SuiteVisitor

from lossratio.dut import CABLE
from lossratio.errors import JobError, TrafficError
from lossratio.keywords import SuiteExpander
from lossratio.runs.job import Job, Testbed, TesterDemand, load_job
from lossratio.runs.job_tests import JobSelection, job_tests
from lossratio.runs.robot_run import RunRequest
from lossratio.shipped import TOPOLOGIES
from lossratio.testbed import open_testbed
from lossratio.topology import Topology, load_topology
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput, TrialOutput
from lossratio.units import format_frame_rate, parse_frame_rate

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
                raise _unfit(testbed, load, number, output)


def _unfit(testbed: Testbed, load: float, number: int, output: TrialOutput) -> UnfitTesterError:
    """The error about a trial in which frames were lost or not sent."""
    behind = max((direction.lateness_s or 0.0 for direction in output.directions), default=0.0)
    lost = f"{output.lost_frames or 0:,}"
    unsent = f"{output.unsent_frames or 0:,}"
    if output.unsent_frames:
        cause = "other work on its machine"
    else:
        cause = "faults of the cable"

    return UnfitTesterError(
        f"The traffic generator of testbed {testbed.topology.name} is too slow: at {format_frame_rate(load)} per "
        f"interface over a cable, it could not send {unsent} frames and lost {lost} (trial {number}, late by up to "
        f"{behind * 1e3:.1f} ms). Look for {cause}."
    )


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
        raise JobError(
            f"{job.path}: the job has nothing to measure on {testbed.topology.name}. Choose another --topology, or "
            "give the job tests for it."
        )

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
