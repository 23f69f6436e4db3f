"""A run from the topology to the exit status: check, reserve, run Robot Framework, release, report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lossratio.bench.inspection import inspect_nodes
from lossratio.errors import LossRatioError, NodeError
from lossratio.runner.assignment import assignments_of
from lossratio.runner.choice import Candidate, candidate, reserved
from lossratio.runner.exit_status import ExitStatus, exit_status, status_of_kinds
from lossratio.runner.request import RunRequest, default_directory
from lossratio.runner.robot_run import run_robot
from lossratio.runner.verdicts import TestVerdict, kind_of_error
from lossratio.ssh import Credentials
from lossratio.topology import TestbedKind


@dataclass(frozen=True)
class RunOutcome:
    """What came of a run.

    Attributes:
        status: Its exit status.
        directory: Where its output is; None: it never began.
        verdicts: What became of each test that was begun, in order.
        error: Why it never began; None if it did.
    """

    status: ExitStatus
    directory: Path | None = None
    verdicts: tuple[TestVerdict, ...] = ()
    error: str | None = None


def run(request: RunRequest) -> RunOutcome:
    """Runs suites on a testbed; an error before the first test is told in the outcome, with the status it means."""
    try:
        return _run(request)
    except LossRatioError as error:
        return RunOutcome(status_of_kinds({kind_of_error(error)}), error=str(error))


def _run(request: RunRequest) -> RunOutcome:
    assignments = assignments_of(request)
    # Wrong options are told before anybody waits for a testbed.
    commands = {each.file: request.robot_command(each.suites) for each in assignments}
    purpose = request.purpose or assignments[0].name
    candidates = [candidate(each.file, each.topology, purpose=purpose) for each in assignments]
    with reserved(candidates, request.credentials, request.wait) as chosen:
        # Only now: a log-in on a DUT during somebody else's trial costs frames.
        _check_nodes(chosen, request.credentials)
        command = commands[chosen.file]
        assignment = next(each for each in assignments if each.file == chosen.file)
        directory = Path(command.options.get("outputdir") or default_directory(chosen.topology.name))
        outcome = run_robot(
            command,
            variables={"TOPOLOGY": chosen.file, **assignment.variables},
            output_directory=str(directory),
            modifiers=[assignment.modifier],
        )
    return RunOutcome(exit_status(outcome.return_code, outcome.verdicts), directory, outcome.verdicts)


def _check_nodes(chosen: Candidate, credentials: Credentials) -> None:
    if chosen.topology.testbed is not TestbedKind.LAB:
        return
    problems = [problem for report in inspect_nodes(chosen.topology, credentials) for problem in report.problems]
    if problems:
        raise NodeError("\n".join([f"{chosen.file}: the testbed is not usable.", *problems]))
