"""The tests of a run on each testbed that it may get: the named suites, or the tests of a job file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from robot.api import SuiteVisitor

from lossratio.dut import CABLE
from lossratio.errors import JobError, TrafficError
from lossratio.keywords import SuiteExpander
from lossratio.runs.job import Job, JobSelection, Testbed, TesterDemand, job_tests, load_job
from lossratio.runs.request import RunRequest
from lossratio.testbed import open_testbed
from lossratio.topology import Topology, load_topology
from lossratio.traffic import REPEATS, load_profile
from lossratio.trials import Measurer, TrialInput, TrialOutput
from lossratio.units import format_frame_rate, parse_frame_rate


@dataclass(frozen=True)
class Assignment:
    """The tests for one testbed.

    Attributes:
        name: Name of the job, or of the suites.
        file: The topology file.
        topology: The topology in it.
        suites: Files and directories with suites.
        modifier: Expands the suites, and chooses their tests.
        variables: Variables of Robot Framework.
        check: Checks that the reserved testbed is fit, and raises an error if it is not.
    """

    name: str
    file: Path
    topology: Topology
    suites: tuple[Path, ...]
    modifier: SuiteVisitor
    variables: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[], None] = lambda: None


def assignments_of(request: RunRequest) -> list[Assignment]:
    """The tests that a request has for each of its testbeds.

    Raises:
        JobError: If there is no test, or the job has none for a testbed.
        TopologyError: If a topology cannot be used.
    """
    if request.job is None:
        return [_of_suites(request, file) for file in request.topologies]
    if request.suites:
        raise JobError("The job has its own suites: name no others.")
    job = load_job(request.job)
    testbeds = [job.testbed(file) for file in request.topologies] or list(job.testbeds)
    if len(testbeds) > 1 and not request.topologies:
        names = ", ".join(testbed.topology.name for testbed in testbeds)
        raise JobError(f"{request.job}: the job is for {names}. Choose one of them: --topology FILE.")
    return [_of_job(job, testbed) for testbed in testbeds]


def _of_suites(request: RunRequest, file: Path) -> Assignment:
    name = " ".join(str(suite) for suite in request.suites)
    return Assignment(name, file, load_topology(file), request.suites, SuiteExpander(str(file)))


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


_TRIAL_SECONDS = 1.0


class UnfitTesterError(TrafficError):
    """The tester does not send and receive the load that the job demands."""


def check_tester(job: Job, testbed: Testbed, demand: TesterDemand) -> None:
    """Measures the tester over a cable.

    Raises:
        UnfitTesterError: If the tester loses frames at the demanded load.
        LossRatioError: If the tester cannot be measured.
    """
    load = parse_frame_rate(demand.load)
    profile = load_profile(demand.profile, frame_size=demand.frame_size)
    opened = open_testbed(job.cable_of(testbed, demand), dut=CABLE)
    try:
        with opened.ready_for(profile) as ready:
            for number in range(1, demand.trials + 1):
                output = _measured(ready.measurer, TrialInput(_TRIAL_SECONDS, load))
                if output.lost_frames or output.unsent_frames:
                    behind = max((direction.lateness or 0.0 for direction in output.directions), default=0.0)
                    raise UnfitTesterError(
                        f"{testbed.topology.name} is not fit tonight: at {format_frame_rate(load)} per interface over "
                        f"a cable, its tester lost {output.lost_frames or 0:,} frames and could not send "
                        f"{output.unsent_frames or 0:,} (trial {number}, behind by up to {behind * 1e3:.1f} ms). Look "
                        f"for other work on its node, and for faults of the cable."
                    )
    finally:
        opened.close()


def _measured(measurer: Measurer, trial: TrialInput) -> TrialOutput:
    """Measures again where frames were not sent: a machine that stood still once is no reason to lose a night."""
    for _ in range(REPEATS):
        output = measurer.measure(trial)
        if output.lost_frames or not output.unsent_frames:
            return output
    return measurer.measure(trial)
