"""A run from the topology to the exit status: check, reserve, run Robot Framework, release; and resuming a run.

The request and the conditions of a run are kept beside its output. Resuming keeps finished tests, and combines all
attempts into one run. If the earlier process was killed, the resumed run takes over its lease at once, and need not
wait until the lease ends.
"""

import fcntl
import hashlib
import io
import json
import os
import tempfile
import xml.parsers.expat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import wraps
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal, ParamSpec

from pydantic import ValidationError
from robot.api import ExecutionResult, ResultWriter, SuiteVisitor
from robot.errors import DataError, RobotError
from robot.libraries.BuiltIn import BuiltIn
from robot.result import Result, TestSuite

from lossratio.errors import JobError, LossRatioError, NodeError, storing
from lossratio.exit_status import ExitStatus, FailureKind, status_of_kinds
from lossratio.input_file import MOST_RECORDED_BYTES, read_input_file
from lossratio.records import Record
from lossratio.report import RECORD
from lossratio.results import (
    damages_in,
    identity_of,
    may_have_result,
    result_stems,
    results_lost,
    results_set_aside,
    suite_identity_of,
    write_whole,
)
from lossratio.runs.job import Assignment, assignments_of
from lossratio.runs.robot_run import NO_LIMITS, Limits, RunRequest, check_selection, run_robot
from lossratio.runs.verdicts import (
    FailureRecord,
    TestVerdict,
    exit_status,
    failure_kind,
    verdict_of,
)
from lossratio.testbed import Candidate, candidate, inspect_nodes, reserved
from lossratio.version import __version__
from lossratio.wrong_values import in_words

_RESULTS = Path("results")
_MAKE_ROOM = "Nothing that was measured is lost. Free some space, and repeat the command."
_SOURCES = (".robot", ".resource", ".yaml", ".yml", ".py")


class ResumeError(LossRatioError):
    """A run cannot be resumed."""


class RunRecord(Record):
    """The file ``run.json`` in the directory of a run."""

    format: Literal["lossratio-run/1"] = "lossratio-run/1"
    version: str
    """Version of lossratio."""
    topology_file: str
    """The topology file, as an absolute path."""
    topology: dict[str, Any]
    """The content of the topology file."""
    suites: tuple[str, ...]
    """Files and directories of the suites, as absolute paths; none if there is a job."""
    job: str | None
    """The job file, as an absolute path."""
    sources: dict[str, str]
    """SHA-256 of each file of the suites, and of the job file."""
    include: tuple[str, ...]
    """Tag patterns that select tests."""
    robot_options: tuple[str, ...]
    """More options for Robot Framework."""
    kernels: dict[str, str | None]
    """The kernel of each node of a lab."""
    forced: tuple[str, ...] = ()
    """The differences when the run was resumed by force."""

    def request(self) -> RunRequest:
        """The request of the run, for the testbed that it was given."""
        return RunRequest(
            (Path(self.topology_file),),
            tuple(Path(suite) for suite in self.suites),
            self.include,
            self.robot_options,
            job=None if self.job is None else Path(self.job),
        )

    def write(self, directory: Path) -> None:
        """Writes the record into the directory of a run."""
        with storing(f"write {directory / RECORD}", _MAKE_ROOM):
            write_whole(directory / RECORD, self.model_dump_json(indent=1).encode() + b"\n")

    def differences(self, now: "RunRecord") -> tuple[str, ...]:
        """The conditions that have changed since, in words. A resumed run repeats the command line of this record."""
        names = ("version", "topology", "sources", "kernels")
        return tuple(
            chain(*(_differences(name, getattr(self, name), getattr(now, name)) for name in names))
        )


def make_record(
    request: RunRequest, assignment: Assignment, kernels: dict[str, str | None]
) -> RunRecord:
    """The record of a run that begins now."""
    inputs = (*assignment.suites, *(() if request.job is None else (request.job,)))
    files = (file for path in inputs for file in _files(path))
    sources = {str(file.resolve()): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    # Record: what must be the same in a later attempt.
    return RunRecord(
        version=__version__,
        topology_file=str(assignment.file.resolve()),
        topology=assignment.topology.model_dump(mode="json"),
        suites=tuple(str(suite.resolve()) for suite in request.suites),
        job=None if request.job is None else str(request.job.resolve()),
        sources=sources,
        include=request.include,
        robot_options=request.robot_options,
        kernels=kernels,
    )


def read_record(directory: Path) -> RunRecord:
    """Reads the record of a run.

    Raises:
        ResumeError: If there is no record, or it is damaged.
    """
    file = directory / RECORD
    try:
        return RunRecord.model_validate_json(
            read_input_file(file, ResumeError, MOST_RECORDED_BYTES)
        )
    except ResumeError as error:
        raise ResumeError(
            f"{error} Only runs that 'lossratio run' began can be resumed."
        ) from error
    except ValidationError as error:
        raise ResumeError(
            f"{file} is not the record of a run: {in_words(error.errors()[0])}."
        ) from error


def _files(suite: Path) -> Iterator[Path]:
    if suite.is_file():
        yield suite
    elif suite.is_dir():
        yield from (file for file in sorted(suite.rglob("*")) if file.suffix in _SOURCES)


def _differences(name: str, before: Any, now: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys()):
            yield from _differences(f"{name}.{key}", before.get(key), now.get(key))
    elif before != now:
        yield f"{name} was {before!r}, now {now!r}"


_P = ParamSpec("_P")

_LEASE_FILE = ".lease.json"
"""The token of a run's lease, in the run's directory while the run's process lives. Hidden files are not sent to an
archive, because a token is a secret."""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run."""

    status: ExitStatus
    """Its exit status."""
    directory: Path | None = None
    """The directory of its output; None: it never began."""
    verdicts: tuple[TestVerdict, ...] = ()
    """The verdict of each test that was begun, including in earlier attempts."""
    error: str | None = None
    """Why it never began; None if it did."""
    troubles: tuple[str, ...] = ()
    """Messages about files that could not be written."""


def _in_outcome(perform: Callable[_P, RunOutcome]) -> Callable[_P, RunOutcome]:
    """Puts an error before the first test into the outcome, with its exit status."""

    @wraps(perform)
    def performed(*args: _P.args, **settings: _P.kwargs) -> RunOutcome:
        try:
            return perform(*args, **settings)
        except LossRatioError as error:
            return RunOutcome(
                status_of_kinds({failure_kind(error, FailureKind.BAD_INPUT)}), error=str(error)
            )
        except KeyboardInterrupt:
            stopped = (
                "The run was stopped while no test was running. Nothing that was measured is lost: "
                "repeat the command."
            )
            return RunOutcome(ExitStatus.INTERRUPTED, error=stopped)

    return performed


def _check_nodes(chosen: Candidate) -> dict[str, str | None]:
    """Checks that the nodes of a reserved lab can be used, and returns the kernel of each.

    Without a reservation, logging in on a DUT could cost frames in somebody else's trial.
    """
    if chosen.topology.testbed != "lab":
        return {}
    reports = inspect_nodes(chosen.topology)
    problems = [problem for report in reports for problem in report.problems]
    if problems:
        raise NodeError("\n".join([f"{chosen.file}: the testbed is not usable.", *problems]))
    return {
        report.name: None if report.facts is None else report.facts.kernel for report in reports
    }


@_in_outcome
def run(request: RunRequest) -> RunOutcome:
    """Runs suites on a testbed. An error before the first test is in the outcome, with its exit status.

    Raises:
        OSError: If the run cannot write to its directory.
    """
    assignments = assignments_of(request)
    # Wrong options are found before waiting for a testbed.
    commands = {
        assignment.file: request.robot_command(assignment.suites) for assignment in assignments
    }
    chosen_tests = {
        assignment.file: [assignment.modifier, *_only(request.tests)] for assignment in assignments
    }
    for assignment in assignments:
        file = assignment.file
        check_selection(
            *commands[file],
            chosen_tests[file],
            topology=assignment.topology,
            variables={"TOPOLOGY": file, **assignment.variables},
        )
    given = next(iter(commands.values()))[0].get("outputdir")
    check_directory(Path(given or _RESULTS), "--output")
    purpose = request.purpose or assignments[0].name
    candidates = [
        candidate(assignment.file, assignment.topology, purpose=purpose)
        for assignment in assignments
    ]

    with reserved(candidates, request.wait) as chosen:
        kernels = _check_nodes(chosen)
        options, suites = commands[chosen.file]
        assignment = next(
            assignment for assignment in assignments if assignment.file == chosen.file
        )
        assignment.check()
        new = request.name or f"{chosen.topology.name}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
        directory = Path(given) if given else _new_directory(new)

        with _kept_for_this_run(directory, chosen.token):
            make_record(request, assignment, kernels).write(directory)
            FailureRecord(directory).clear()
            return_code, verdicts, troubles = run_robot(
                options,
                suites,
                variables={"TOPOLOGY": chosen.file, **assignment.variables},
                directory=directory,
                limits=request.limits,
                modifiers=chosen_tests[assignment.file],
            )

    return RunOutcome(
        exit_status(return_code, verdicts, troubles), directory, verdicts, troubles=troubles
    )


@_in_outcome
def resume(
    directory: Path, *, force: bool = False, wait: float = 0.0, limits: Limits = NO_LIMITS
) -> RunOutcome:
    """Resumes the run in a directory. For the rest see `run`.

    Args:
        directory: Where the run is.
        force: Whether it is resumed although its conditions have changed.
        wait: The most seconds to wait for the testbed, if others use it.
        limits: The time that its parts may take.
    """
    record = read_record(directory)
    repair = f"Save the valid part, and then resume the run: lossratio archive repair {directory}"
    _refuse(directory, "files of it are damaged", damages_in(directory), repair)
    original = record.request()
    (assignment,) = assignments_of(original)
    options, suites = original.robot_command(assignment.suites)
    # Differences that the files show are refused before any machine is touched.
    _check_conditions(
        directory,
        record.differences(make_record(original, assignment, record.kernels)),
        force=force,
    )
    wanted = candidate(assignment.file, assignment.topology, purpose=assignment.name)

    with reserved([wanted.succeeding(_lease_left_behind(directory))], wait) as chosen:
        now = make_record(original, assignment, _check_nodes(chosen))
        differences = record.differences(now)
        _check_conditions(directory, differences, force=force)
        if force:
            forced = "; ".join(differences) or "it was not compared with the earlier results"
        else:
            forced = ""

        ours = {"TOPOLOGY": chosen.file, "RESUME": directory, "RESUME_FORCED": forced}
        # Log and report are written later, for all attempts. If all tests are finished, there is nothing else to do.
        alone = {
            "output": "output.xml",
            "log": "NONE",
            "report": "NONE",
            "xunit": "NONE",
            "runemptysuite": True,
        }

        with _kept_for_this_run(directory, chosen.token):
            now.model_copy(update={"forced": (*record.forced, *differences)}).write(directory)
            _keep_newest(directory)
            finished = frozenset(_finished(directory))
            return_code, _, troubles = run_robot(
                {**options, **alone},
                suites,
                variables={**ours, **assignment.variables},
                directory=directory,
                limits=limits,
                modifiers=[
                    assignment.modifier,
                    OnlySome(lambda test: identity_of(test) not in finished),
                ],
                listeners=[OnlyRest(finished)],
            )

    result = merged([*_outputs(directory), directory / _OUTPUT])
    _write_result(result, directory, options)
    verdicts = verdicts_of(result, FailureRecord(directory))
    return RunOutcome(
        exit_status(return_code, verdicts, troubles), directory, verdicts, troubles=troubles
    )


def _only(names: Sequence[str]) -> list[SuiteVisitor]:
    """What leaves all tests out but those that may have one of some results; none: nothing does."""
    if not names:
        return []
    return [OnlySome(lambda test: any(may_have_result(test, name) for name in names))]


def _finished(directory: Path) -> Iterator[str]:
    outputs = _outputs(directory)
    set_aside = results_set_aside(directory)
    lost = results_lost(directory)
    for verdict in verdicts_of(merged(outputs), FailureRecord(directory)) if outputs else ():
        # A failed test may have no result; a passed test has the results of its journals.
        gone = set_aside | lost if verdict.status == "PASS" else set_aside
        if verdict.is_final and gone.isdisjoint(result_stems(verdict.name)):
            yield verdict.name


def _check_conditions(directory: Path, differences: Sequence[str], *, force: bool) -> None:
    way_out = "Undo these changes, begin a new run, or resume it with --force; then the report names the changes."
    _refuse(directory, "its conditions have changed", () if force else differences, way_out)


def _refuse(directory: Path, why: str, reasons: Iterable[object], way_out: str) -> None:
    listed = "".join(f"\n  {reason}" for reason in reasons)
    if listed:
        raise ResumeError(f"The run in {directory} is not resumed: {why}.{listed}\n{way_out}")


def check_directory(directory: Path, option: str) -> None:
    """Checks that a run can write to a directory, and leaves nothing behind.

    Raises:
        OSError: If it cannot; the message shows the option.
    """
    try:
        there = next(place for place in (directory, *directory.parents) if place.exists())
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        why = f"{error.strerror}. Choose another directory: {option} DIR"
        raise OSError(error.errno, why, str(directory)) from error


def _new_directory(name: str) -> Path:
    """Makes a directory in ``results`` that no other run has, with a number after its name if the name is taken."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    while True:
        directory = _RESULTS / next(names)
        with storing(f"make {directory}", _MAKE_ROOM), suppress(FileExistsError):
            directory.mkdir(parents=True)
            return directory


@contextmanager
def _kept_for_this_run(directory: Path, token: str | None) -> Iterator[None]:
    """Makes a directory if necessary, keeps other runs out of it during the block, and stores the token of a lease.

    A lock on a file shows that this process lives. The kernel drops the lock when this process dies. Forked processes
    do not have the lock.
    """
    file = directory / _LEASE_FILE
    with storing(f"write to {directory}", _MAKE_ROOM):
        directory.mkdir(parents=True, exist_ok=True)
        try:
            with suppress(FileNotFoundError), open(file, "r+b") as of_killed_run:
                fcntl.lockf(of_killed_run, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.fstat(of_killed_run.fileno()).st_nlink:
                    raise BlockingIOError("another run was faster")
                file.unlink()
            fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, FileExistsError) as error:
            way_out = "Wait until it ends, or choose another directory: --output DIR"
            raise JobError(f"Another run is writing to {directory}. {way_out}") from error

    try:
        with storing(f"write to {directory}", _MAKE_ROOM):
            os.write(fd, json.dumps({"token": token, "boot": _boot()}).encode())
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(fd)
        # A run that could not write anything leaves nothing behind.
        with suppress(OSError):
            directory.rmdir()


def _lease_left_behind(directory: Path) -> str | None:
    """The token of a run's lease if the run's process, on this machine, has ended; None: there is no such token."""
    with (
        suppress(OSError, ValueError, KeyError, TypeError),
        open(directory / _LEASE_FILE, "r+b") as file,
    ):
        status = os.fstat(file.fileno())
        # No other user can have written the file, or read the token.
        if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            # Fails while the run's process lives.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = json.load(file)
            # A lock of another machine may be invisible here.
            return kept["token"] if kept["boot"] == _boot() else None
    return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


_OUTPUT = "output.xml"
"""While an attempt runs, this is its own output; afterwards, it is that of all attempts."""
_ATTEMPTS = "attempts"
"""Folder below the directory of a run with the outputs of earlier attempts."""


def _outputs(directory: Path) -> tuple[Path, ...]:
    """The outputs of earlier attempts, oldest first."""
    return tuple(sorted((directory / _ATTEMPTS).glob("*.xml")))


def _keep_newest(directory: Path) -> None:
    """Keeps the output of the newest attempt, as far as it is complete, before another attempt begins."""
    whole = salvage(directory / _OUTPUT)
    if whole is not None:
        folder = directory / _ATTEMPTS
        with storing(f"write to {folder}", _MAKE_ROOM):
            folder.mkdir(exist_ok=True)
            write_whole(folder / f"{len(_outputs(directory)) + 1:03}.xml", whole)


class OnlySome(SuiteVisitor):  # type: ignore[misc]
    """Leaves tests out. Robot Framework calls it before a run."""

    def __init__(self, is_chosen: Callable[[Any], bool]) -> None:
        self._is_chosen = is_chosen

    def start_suite(self, suite: Any) -> None:
        """Leaves out tests of a suite."""
        suite.tests = [test for test in suite.tests if self._is_chosen(test)]

    def end_suite(self, suite: Any) -> None:
        """Leaves out suites without tests."""
        suite.suites = [child for child in suite.suites if child.has_tests]

    def visit_test(self, test: Any) -> None:
        """Changes nothing, because tests stay as they are."""


class OnlyRest:
    """Leaves out finished tests when their suite begins; a Robot Framework listener.

    From then on, variables in the names of tests and in the ``Id`` of a suite have their values.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, finished: Iterable[str]) -> None:
        self._finished = frozenset(finished)

    def start_suite(self, data: Any, result: Any) -> None:
        """Leaves out finished tests of a suite."""
        suite = suite_identity_of(result)
        data.tests = [
            test for test in data.tests if f"{suite}.{_resolved(test.name)}" not in self._finished
        ]


def _resolved(name: str) -> str:
    try:
        return str(BuiltIn().replace_variables(name))
    except RobotError:
        # The set-up of the suite gives the variable its value; otherwise, the name stays as it is.
        return name


def merged(outputs: Sequence[Path]) -> Result:
    """The combined result of several attempts, oldest first: each test with its last outcome."""
    first, *rest = (_read(output) for output in outputs)
    for later in rest:
        _merge(first.suite, later.suite)
        first.errors.messages.extend(later.errors.messages)
    return first


def verdicts_of(result: Result, record: FailureRecord) -> tuple[TestVerdict, ...]:
    """The verdict of each test, with what the run's record knows about it."""
    kinds = record.read()
    misfits = record.misfits()
    verdicts = []
    for test in result.suite.all_tests:
        identity = identity_of(test)
        failure = kinds.get(identity, FailureKind.NO_VERDICT) if test.failed else None
        verdicts.append(verdict_of(test, failure, is_misfit=identity in misfits))

    return tuple(verdicts)


def _write_result(result: Result, directory: Path, options: Mapping[str, Any]) -> None:
    """Writes output, log and report, as for a single run. A file only appears when it is complete."""
    whole = directory / "merged.xml"
    files = {"log": "log.html", "report": "report.html", "xunit": "NONE"}
    chosen = {name: options.get(name, default) for name, default in files.items()}
    way_out = f"Free some space, and continue with: lossratio run --resume {directory}"
    try:
        with storing(f"write output.xml, log.html and report.html in {directory}", way_out):
            result.save(whole)
            whole.replace(directory / _OUTPUT)
            writer = ResultWriter(str(directory / _OUTPUT))
            writer.write_results(outputdir=str(directory), stdout=io.StringIO(), **chosen)
    finally:
        whole.unlink(missing_ok=True)


def _read(output: Path) -> Result:
    try:
        return ExecutionResult(str(output))
    except DataError as error:
        raise ResumeError(f"{output} cannot be read: {error.message}") from error


def _merge(ours: TestSuite, later: TestSuite) -> None:
    """Takes over the tests that a later attempt of the same suite ran."""
    ours.message = later.message
    if later.has_setup:
        ours.setup = later.setup
    if later.has_teardown:
        ours.teardown = later.teardown
    if ours.end_time and later.end_time:
        ours.elapsed_time = ours.elapsed_time + later.elapsed_time
        ours.end_time = later.end_time

    tests = {test.name: number for number, test in enumerate(ours.tests)}
    for test in later.tests:
        if test.name in tests:
            ours.tests[tests[test.name]] = test
        else:
            ours.tests.append(test)

    by_name = {suite.name: suite for suite in ours.suites}
    for suite in list(later.suites):
        if suite.name in by_name:
            _merge(by_name[suite.name], suite)
        else:
            ours.suites.append(suite)


def salvage(path: Path) -> bytes | None:
    """The part of an output that Robot Framework can read, if the output was cut off; None: there is nothing to keep.

    It goes up to the last finished test (or set-up), with its suites closed as failed.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    opened: list[str] = []
    # The position of the end of the last complete element, in bytes, and the number of suites around it.
    kept: list[tuple[int, int]] = []
    parser = xml.parsers.expat.ParserCreate()

    def end(name: str) -> None:
        opened.pop()
        if name in ("test", "suite", "kw") and opened and opened[-1] == "suite":
            # The parser is at the start of the end tag, which Robot Framework writes without any space.
            kept[:] = [(parser.CurrentByteIndex + len(f"</{name}>"), opened.count("suite"))]

    parser.StartElementHandler = lambda name, attributes: opened.append(name)
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except xml.parsers.expat.ExpatError:
        closing = b'<status status="FAIL">The run was cut off.</status>\n</suite>\n'
        return next(
            (
                data[:position] + b"\n" + closing * suites + b"</robot>\n"
                for position, suites in kept
            ),
            None,
        )
    return data
