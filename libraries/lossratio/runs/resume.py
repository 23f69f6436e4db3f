"""Resumes a run that was interrupted: finished tests are kept, and all attempts become one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lossratio.results import damages_in, result_stems, results_lost, results_set_aside
from lossratio.runs.assignment import Assignment, assignments_of
from lossratio.runs.attempts import Attempts, OnlyRest, merged, verdicts_of, write_result
from lossratio.runs.failures import FailureRecord
from lossratio.runs.own_lease import kept, left_behind
from lossratio.runs.record import ResumeError, make_record, read_record
from lossratio.runs.request import ResumeRequest
from lossratio.runs.robot_run import RobotCommand, RobotOutcome, run_robot
from lossratio.runs.run import RunOutcome, check_nodes, outcome_of
from lossratio.runs.verdicts import exit_status
from lossratio.runs.watchdog import Watchdog
from lossratio.testbed import Candidate, candidate, reserved


def resume(request: ResumeRequest) -> RunOutcome:
    """Resumes a run. An error before the first test is in the outcome, with its exit status."""
    return outcome_of(lambda: _resume(request))


def _resume(request: ResumeRequest) -> RunOutcome:
    directory = request.directory
    record = read_record(directory)
    _refuse_damage(directory)
    original = record.request()
    (assignment,) = assignments_of(original)
    command = original.robot_command(assignment.suites)
    # Differences that the files show are refused before any machine is touched.
    _refuse(directory, record.differences(make_record(original, assignment, record.kernels)), request.force)
    wanted = candidate(assignment.file, assignment.topology, purpose=assignment.name).succeeding(left_behind(directory))
    with reserved([wanted], request.wait) as chosen:
        now = make_record(original, assignment, check_nodes(chosen))
        differences = record.differences(now)
        _refuse(directory, differences, request.force)
        now.model_copy(update={"forced": (*record.forced, *differences)}).write(directory)
        with kept(directory, chosen.token):
            outcome = _run_rest(command, assignment, chosen, request, differences)
    result = merged([*Attempts(directory).outputs, directory / "output.xml"])
    write_result(result, directory, command.options)
    verdicts = verdicts_of(result, FailureRecord(directory).read())
    status = exit_status(outcome.return_code, verdicts, outcome.troubles)
    return RunOutcome(status, directory, verdicts, troubles=outcome.troubles)


def _run_rest(
    command: RobotCommand,
    assignment: Assignment,
    chosen: Candidate,
    request: ResumeRequest,
    differences: Sequence[str],
) -> RobotOutcome:
    attempts = Attempts(request.directory)
    attempts.keep_newest()
    set_aside, lost = results_set_aside(request.directory), results_lost(request.directory)
    finished = [
        verdict.name
        for verdict in attempts.verdicts()
        if verdict.is_final
        # A test that failed may have no result; a test that passed has the results of its journals.
        and not _has_result_in(set_aside | lost if verdict.status == "PASS" else set_aside, verdict.name)
    ]
    # Log and report are written later, of all attempts. If all tests are finished, there is nothing else to do.
    options = {"output": "output.xml", "log": "NONE", "report": "NONE", "xunit": "NONE", "runemptysuite": True}
    forced = "; ".join(differences) or "it was not compared with the earlier results" if request.force else ""
    ours = {"TOPOLOGY": chosen.file, "RESUME": request.directory, "RESUME_FORCED": forced}
    return run_robot(
        RobotCommand({**command.options, **options}, command.suites),
        variables={**ours, **assignment.variables},
        output_directory=str(request.directory),
        listeners=[Watchdog(request.limits)],
        modifiers=[assignment.modifier, OnlyRest(finished)],
    )


def _has_result_in(stems: frozenset[str], test_name: str) -> bool:
    return bool(stems) and not stems.isdisjoint(result_stems(test_name))


def _refuse_damage(directory: Path) -> None:
    damages = damages_in(directory)
    if damages:
        listed = "\n".join(f"  {damage}" for damage in damages)
        raise ResumeError(
            f"The run in {directory} is not resumed: files of it are damaged.\n{listed}\n"
            f"Save the good part, and then resume the run: lossratio repair {directory}"
        )


def _refuse(directory: Path, differences: Sequence[str], force: bool) -> None:
    if differences and not force:
        listed = "\n".join(f"  {difference}" for difference in differences)
        raise ResumeError(
            f"The run in {directory} is not resumed: its conditions have changed.\n{listed}\n"
            f"Undo these changes, begin a new run, or resume it with --force; then the report names the changes."
        )
