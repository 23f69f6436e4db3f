"""A run from the topology to the exit status: check, reserve, run Robot Framework, release; and a run that is resumed.

To resume a run keeps its finished tests, and makes one run of all attempts. If the earlier process was killed, it takes
its lease over at once, and need not wait until the lease ends.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import wraps
from pathlib import Path
from typing import TypeVar

from lossratio.errors import LossRatioError, NodeError, storing
from lossratio.exit_status import ExitStatus, FailureKind, status_of_kinds
from lossratio.results import damages_in, result_stems, results_lost, results_set_aside
from lossratio.runs.assignment import Assignment, assignments_of
from lossratio.runs.attempts import Attempts, OnlyRest, merged, verdicts_of, write_result
from lossratio.runs.record import ResumeError, make_record, read_record
from lossratio.runs.robot_run import NO_LIMITS, Limits, RobotCommand, RobotOutcome, RunRequest, Watchdog, run_robot
from lossratio.runs.verdicts import FailureRecord, TestVerdict, exit_status, failure_kind
from lossratio.testbed import Candidate, candidate, inspect_nodes, reserved


@dataclass(frozen=True)
class ResumeRequest:
    """A run to resume."""

    directory: Path
    """Its directory."""
    force: bool = False
    """Whether it is resumed although its conditions have changed."""
    wait: float = 0.0
    """Seconds to wait for the testbed at most."""
    limits: Limits = NO_LIMITS
    """How long tests, suites and the run may take."""


RequestT = TypeVar("RequestT", RunRequest, ResumeRequest)

_LEASE_FILE = ".lease.json"
"""The token of a run's lease, in the run's directory while the run's process lives. Hidden files are not sent to an
archive: a token is a secret."""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run."""

    status: ExitStatus
    """Its exit status."""
    directory: Path | None = None
    """The directory of its output; None: it never began."""
    verdicts: tuple[TestVerdict, ...] = ()
    """The verdict of each test that was begun, also in earlier attempts."""
    error: str | None = None
    """Why it never began; None if it did."""
    troubles: tuple[str, ...] = ()
    """Messages about files that a disk did not take."""


def _in_outcome(perform: Callable[[RequestT], RunOutcome]) -> Callable[[RequestT], RunOutcome]:
    """Puts an error before the first test into the outcome, with its exit status."""

    @wraps(perform)
    def performed(request: RequestT) -> RunOutcome:
        try:
            return perform(request)
        except LossRatioError as error:
            return RunOutcome(status_of_kinds({failure_kind(error, FailureKind.BAD_INPUT)}), error=str(error))

    return performed


def _check_nodes(chosen: Candidate) -> dict[str, str | None]:
    """Checks that the nodes of a reserved lab can be used, and returns the kernel of each.

    Without a reservation, the log-in on a DUT could cost frames in somebody else's trial.
    """
    if chosen.topology.testbed != "lab":
        return {}
    reports = inspect_nodes(chosen.topology)
    problems = [problem for report in reports for problem in report.problems]
    if problems:
        raise NodeError("\n".join([f"{chosen.file}: the testbed is not usable.", *problems]))
    return {report.name: None if report.facts is None else report.facts.kernel for report in reports}


@_in_outcome
def run(request: RunRequest) -> RunOutcome:
    """Runs suites on a testbed. An error before the first test is in the outcome, with its exit status."""
    assignments = assignments_of(request)
    # Wrong options are found before the wait for a testbed.
    commands = {assignment.file: request.robot_command(assignment.suites) for assignment in assignments}
    purpose = request.purpose or assignments[0].name
    candidates = [candidate(assignment.file, assignment.topology, purpose=purpose) for assignment in assignments]
    with reserved(candidates, request.wait) as chosen:
        kernels = _check_nodes(chosen)
        command = commands[chosen.file]
        assignment = next(assignment for assignment in assignments if assignment.file == chosen.file)
        assignment.check()
        new = f"{chosen.topology.name}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
        directory = Path(command.options.get("outputdir") or Path("results") / new)
        make_record(request, assignment, kernels).write(directory)
        FailureRecord(directory).clear()
        with _lease_kept(directory, chosen.token):
            outcome = run_robot(
                command,
                variables={"TOPOLOGY": chosen.file, **assignment.variables},
                output_directory=str(directory),
                listeners=[Watchdog(request.limits)],
                modifiers=[assignment.modifier],
            )
    status = exit_status(outcome.return_code, outcome.verdicts, outcome.troubles)
    return RunOutcome(status, directory, outcome.verdicts, troubles=outcome.troubles)


@_in_outcome
def resume(request: ResumeRequest) -> RunOutcome:
    """Resumes a run. An error before the first test is in the outcome, with its exit status."""
    directory = request.directory
    record = read_record(directory)
    repair = f"Save the good part, and then resume the run: lossratio repair {directory}"
    _refuse(directory, "files of it are damaged", damages_in(directory), repair)
    original = record.request()
    (assignment,) = assignments_of(original)
    command = original.robot_command(assignment.suites)
    # Differences that the files show are refused before any machine is touched.
    _check_conditions(request, record.differences(make_record(original, assignment, record.kernels)))
    wanted = candidate(assignment.file, assignment.topology, purpose=assignment.name)
    with reserved([wanted.succeeding(_lease_left_behind(directory))], request.wait) as chosen:
        now = make_record(original, assignment, _check_nodes(chosen))
        differences = record.differences(now)
        _check_conditions(request, differences)
        now.model_copy(update={"forced": (*record.forced, *differences)}).write(directory)
        with _lease_kept(directory, chosen.token):
            outcome = _run_rest(command, assignment, chosen, request, differences)
    result = merged([*Attempts(directory).outputs, directory / "output.xml"])
    write_result(result, directory, command.options)
    verdicts = verdicts_of(result, FailureRecord(directory).read())
    status = exit_status(outcome.return_code, verdicts, outcome.troubles)
    return RunOutcome(status, directory, verdicts, troubles=outcome.troubles)


def _run_rest(
    command: RobotCommand, assignment: Assignment, chosen: Candidate, request: ResumeRequest, differences: Sequence[str]
) -> RobotOutcome:
    attempts = Attempts(request.directory)
    attempts.keep_newest()
    set_aside, lost = results_set_aside(request.directory), results_lost(request.directory)
    finished = [
        verdict.name
        for verdict in attempts.verdicts()
        if verdict.is_final
        # A test that failed may have no result; a test that passed has the results of its journals.
        and (set_aside | lost if verdict.status == "PASS" else set_aside).isdisjoint(result_stems(verdict.name))
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


def _check_conditions(request: ResumeRequest, differences: Sequence[str]) -> None:
    way_out = "Undo these changes, begin a new run, or resume it with --force; then the report names the changes."
    _refuse(request.directory, "its conditions have changed", () if request.force else differences, way_out)


def _refuse(directory: Path, why: str, reasons: Iterable[object], way_out: str) -> None:
    listed = "".join(f"\n  {reason}" for reason in reasons)
    if listed:
        raise ResumeError(f"The run in {directory} is not resumed: {why}.{listed}\n{way_out}")


@contextmanager
def _lease_kept(directory: Path, token: str | None) -> Iterator[None]:
    """Keeps the token during the block; a lock on its file shows that this process lives.

    The kernel drops the lock when this process dies. Processes that it has forked do not have the lock.
    """
    if token is None:
        yield
        return
    file = directory / _LEASE_FILE
    with storing(f"write to {directory}"):
        file.unlink(missing_ok=True)
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, json.dumps({"token": token, "boot": _boot()}).encode())
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(fd)


def _lease_left_behind(directory: Path) -> str | None:
    """The token of a run's lease if the run's process, on this machine, has ended; None: there is no such token."""
    with suppress(OSError, ValueError, KeyError, TypeError), open(directory / _LEASE_FILE, "r+b") as file:
        status = os.fstat(file.fileno())
        # No other user can have written the file, or read the token.
        if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            # Fails while the run's process lives.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = json.load(file)
            # A lock of another machine may be invisible here.
            return str(kept["token"]) if kept["boot"] == _boot() else None
    return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
