"""A run from the topology to the exit status: check, reserve, run Robot Framework, release, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lossratio.errors import LossRatioError, NodeError
from lossratio.exit_status import ExitStatus, FailureKind, status_of_kinds
from lossratio.runs.assignment import assignments_of
from lossratio.runs.failures import FailureRecord
from lossratio.runs.own_lease import kept
from lossratio.runs.record import make_record
from lossratio.runs.request import RunRequest, default_directory
from lossratio.runs.robot_run import run_robot
from lossratio.runs.verdicts import TestVerdict, exit_status, failure_kind
from lossratio.runs.watchdog import Watchdog
from lossratio.testbed import Candidate, candidate, inspect_nodes, reserved
from lossratio.topology import TestbedKind


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run.

    Attributes:
        status: Its exit status.
        directory: The directory of its output; None: it never began.
        verdicts: The verdict of each test that was begun, also in earlier attempts.
        error: Why it never began; None if it did.
        troubles: Messages about files that a disk did not take.
    """

    status: ExitStatus
    directory: Path | None = None
    verdicts: tuple[TestVerdict, ...] = ()
    error: str | None = None
    troubles: tuple[str, ...] = ()


def outcome_of(perform: Callable[[], RunOutcome]) -> RunOutcome:
    """The outcome of a run. An error before the first test is in the outcome, with its exit status."""
    try:
        return perform()
    except LossRatioError as error:
        return RunOutcome(status_of_kinds({failure_kind(error, FailureKind.BAD_INPUT)}), error=str(error))


def check_nodes(chosen: Candidate) -> dict[str, str | None]:
    """Checks that the nodes of a reserved lab can be used.

    Without a reservation, the log-in on a DUT could cost frames in somebody else's trial.

    Returns:
        The kernel of each node; none on local and simulated testbeds.

    Raises:
        NodeError: If a node cannot be reached, or lacks something.
    """
    if chosen.topology.testbed is not TestbedKind.LAB:
        return {}
    reports = inspect_nodes(chosen.topology)
    problems = [problem for report in reports for problem in report.problems]
    if problems:
        raise NodeError("\n".join([f"{chosen.file}: the testbed is not usable.", *problems]))
    return {report.name: None if report.facts is None else report.facts.kernel for report in reports}


def run(request: RunRequest) -> RunOutcome:
    """Runs suites on a testbed. An error before the first test is in the outcome, with its exit status."""
    return outcome_of(lambda: _run(request))


def _run(request: RunRequest) -> RunOutcome:
    assignments = assignments_of(request)
    # Wrong options are found before the wait for a testbed.
    commands = {assignment.file: request.robot_command(assignment.suites) for assignment in assignments}
    purpose = request.purpose or assignments[0].name
    candidates = [candidate(assignment.file, assignment.topology, purpose=purpose) for assignment in assignments]
    with reserved(candidates, request.wait) as chosen:
        kernels = check_nodes(chosen)
        command = commands[chosen.file]
        assignment = next(assignment for assignment in assignments if assignment.file == chosen.file)
        assignment.check()
        directory = Path(command.options.get("outputdir") or default_directory(chosen.topology.name))
        make_record(request, assignment, kernels).write(directory)
        FailureRecord(directory).clear()
        with kept(directory, chosen.token):
            outcome = run_robot(
                command,
                variables={"TOPOLOGY": chosen.file, **assignment.variables},
                output_directory=str(directory),
                listeners=[Watchdog(request.limits)],
                modifiers=[assignment.modifier],
            )
    status = exit_status(outcome.return_code, outcome.verdicts, outcome.troubles)
    return RunOutcome(status, directory, outcome.verdicts, troubles=outcome.troubles)
