"""A run from the topology to the exit status: check, reserve, run Robot Framework, release, report."""

from __future__ import annotations

from pathlib import Path

from lossratio.runs.assignment import assignments_of
from lossratio.runs.failures import FailureRecord
from lossratio.runs.nodes import check_nodes
from lossratio.runs.outcome import RunOutcome, outcome_of
from lossratio.runs.own_lease import kept
from lossratio.runs.record import make_record
from lossratio.runs.request import RunRequest, default_directory
from lossratio.runs.robot_run import run_robot
from lossratio.runs.verdicts import exit_status
from lossratio.runs.watchdog import Watchdog
from lossratio.testbed import candidate, reserved


def run(request: RunRequest) -> RunOutcome:
    """Runs suites on a testbed; an error before the first test is told in the outcome, with the status it means."""
    return outcome_of(lambda: _run(request))


def _run(request: RunRequest) -> RunOutcome:
    assignments = assignments_of(request)
    # Wrong options are told before anybody waits for a testbed.
    commands = {each.file: request.robot_command(each.suites) for each in assignments}
    purpose = request.purpose or assignments[0].name
    candidates = [candidate(each.file, each.topology, purpose=purpose) for each in assignments]
    with reserved(candidates, request.wait) as chosen:
        kernels = check_nodes(chosen)
        command = commands[chosen.file]
        assignment = next(each for each in assignments if each.file == chosen.file)
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
