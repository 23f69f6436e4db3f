"""A run from the topology to the exit status: check, reserve, run Robot Framework, release; and resuming a run.

The request and the conditions of a run are kept beside its output. Resuming keeps finished tests, and combines all
attempts into one run.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from robot.api import SuiteVisitor
from robot.errors import RobotError
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import LossRatioError, NewerFileError, NodeError, storing
from lossratio.files import check_directory, shell_word
from lossratio.report import begin_failures
from lossratio.results import identity_of, suite_identity_of, unreadable_in
from lossratio.runs.assignments import Assignment, assignments_of
from lossratio.runs.attempts import (
    OUTPUT,
    finished_in,
    keep_newest,
    merged,
    outputs_of_attempts,
    verdicts_of,
    write_result,
)
from lossratio.runs.directory import RESULTS, kept_for_this_run, new_directory
from lossratio.runs.record import ResumeError, make_record, read_record
from lossratio.runs.robot_run import CheckModels, RunRequest, check_identities, run_robot, selected
from lossratio.runs.verdicts import TestVerdict, exit_status, failure_kind
from lossratio.testbed import Candidate, candidate, inspect_nodes, reserved
from lossratio.values import FAILURES, ExitStatus, FailureKind, status_of_kinds

_P = ParamSpec("_P")

_ONLY_OUTPUT = {
    "output": OUTPUT,
    "log": "NONE",
    "report": "NONE",
    "xunit": "NONE",
    "runemptysuite": True,
}
"""The options of a later attempt: log and report are written later, for all attempts. If all tests are finished, there
is nothing else to do."""


class AllBut(SuiteVisitor):  # type: ignore[misc]
    """Leaves out finished tests. Robot Framework calls it before a run."""

    def __init__(self, finished: Container[str]) -> None:
        self._finished = finished

    def start_suite(self, suite: Any) -> None:
        """Leaves out finished tests of a suite."""
        suite.tests = [test for test in suite.tests if identity_of(test) not in self._finished]

    def end_suite(self, suite: Any) -> None:
        """Leaves out suites without tests."""
        suite.suites = [child for child in suite.suites if child.has_tests]


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
    """A name with the values of its variables."""
    try:
        return str(BuiltIn().replace_variables(name))
    except RobotError:
        # The set-up of the suite gives the variable its value; otherwise, the name stays as it is.
        return name


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
    is_dry: bool = False
    """Whether it was a dry run, which measures nothing."""
    was_finished: bool = False
    """Whether all its tests had finished before it was resumed, so that no test ran."""


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
    problems = [
        f"{report.name}: {problem.removeprefix(f'Node {report.name}: ')}"
        for report in reports
        for problem in report.problems
    ]
    if problems:
        raise NodeError("\n".join([f"{chosen.file}: the testbed is not usable.", *problems]))

    kernels: dict[str, str | None] = {}
    for report in reports:
        kernels[report.name] = None
        if report.facts is not None:
            kernels[report.name] = report.facts.kernel
    return kernels


@dataclass(frozen=True)
class _Prepared:
    """What a run does if it gets the testbed of an assignment."""

    assignment: Assignment
    options: Mapping[str, Any]
    suites: Sequence[str]

    @property
    def variables(self) -> dict[str, object]:
        """The variables that its suites have."""
        return {"TOPOLOGY": self.assignment.file, **self.assignment.variables}


def _prepared(request: RunRequest, assignment: Assignment) -> _Prepared:
    options, suites = request.robot_command(assignment.suites)
    return _Prepared(assignment, options, suites)


@_in_outcome
def run(request: RunRequest) -> RunOutcome:
    """Runs suites on a testbed. An error before the first test is in the outcome, with its exit status.

    Raises:
        OSError: If the run cannot write to its directory.
    """
    # Wrong options are found before waiting for a testbed.
    ways = [_prepared(request, assignment) for assignment in assignments_of(request)]
    given = ways[0].options.get("outputdir")
    # Robot Framework makes the directory when it reads the options, and its error would not be one of ours.
    check_directory(Path(given or RESULTS), "--output")
    for way in ways:
        modifiers = [way.assignment.modifier]
        tests = selected(way.options, way.suites, modifiers, way.variables)
        check_identities(tests)
        tests.visit(CheckModels(way.assignment.topology))

    purpose = request.purpose or ways[0].assignment.name
    candidates = [
        candidate(way.assignment.file, way.assignment.topology, purpose=purpose) for way in ways
    ]
    with reserved(candidates, request.wait) as chosen:
        kernels = _check_nodes(chosen)
        way = next(way for way in ways if way.assignment.file == chosen.file)
        if given:
            directory = Path(given)
        else:
            now = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
            directory = new_directory(request.name or f"{chosen.topology.name}-{now}")

        with kept_for_this_run(directory):
            make_record(request, way.assignment, kernels).write(directory)
            with storing(f"replace {directory / FAILURES} of an earlier run"):
                begin_failures(directory)
            return_code, verdicts, troubles = run_robot(
                way.options,
                way.suites,
                variables=way.variables,
                directory=directory,
                test_timeout=request.test_timeout,
                modifiers=[way.assignment.modifier],
            )

    return RunOutcome(
        exit_status(return_code, verdicts, troubles),
        directory,
        verdicts,
        troubles=troubles,
        is_dry=_is_dry(way.options),
    )


def _is_dry(options: Mapping[str, Any]) -> bool:
    """Whether Robot Framework only checks the suites, by options from the command line, a file or the environment."""
    return bool(options.get("dryrun"))


def _refuse_dry(directory: Path, options: Mapping[str, Any]) -> None:
    """Refuses to resume a dry run, which would pass again without measuring."""
    if _is_dry(options):
        raise ResumeError(
            f"The run in {directory} is not resumed: it was a dry run, which measures nothing. To measure, start a new "
            "run without --dryrun."
        )


@_in_outcome
def resume(
    directory: Path, *, force: bool = False, wait: float = 0.0, test_timeout: float | None = None
) -> RunOutcome:
    """Resumes the run in a directory. For everything else, see `run`.

    Args:
        directory: Where the run is.
        force: Whether it is resumed although its conditions have changed.
        wait: Maximum time to wait for the testbed, in seconds, if others use it.
        test_timeout: Seconds for each test; None: there is no limit.
    """
    record = read_record(directory)
    repair = (
        "Save the valid part, and then resume the run: lossratio archive repair "
        f"{shell_word(directory)}"
    )
    unreadable = unreadable_in(directory)
    newer = [error for error in unreadable if isinstance(error, NewerFileError)]
    _refuse(
        directory,
        "a newer version of lossratio wrote some of its files",
        newer,
        "Otherwise, start a new run.",
    )
    _refuse(directory, "some of its files are damaged", unreadable, repair)

    original = record.request()
    (assignment,) = assignments_of(original)
    options, suites = original.robot_command(assignment.suites)
    _refuse_dry(directory, options)
    # Differences that the files show are refused before any machine is touched.
    as_files_are = make_record(original, assignment, record.kernels)
    _check_conditions(directory, record.differences(as_files_are), force=force)

    wanted = candidate(assignment.file, assignment.topology, purpose=assignment.name)
    with reserved([wanted], wait) as chosen:
        now = make_record(original, assignment, _check_nodes(chosen))
        differences = record.differences(now)
        _check_conditions(directory, differences, force=force)
        forced = ""
        if force:
            forced = "; ".join(differences) or "it was not compared with the earlier results"

        with kept_for_this_run(directory):
            now.model_copy(update={"forced": (*record.forced, *differences)}).write(directory)
            keep_newest(directory)
            finished = frozenset(finished_in(directory))
            ours = {"TOPOLOGY": chosen.file, "RESUME": directory, "RESUME_FORCED": forced}
            variables = {**ours, **assignment.variables}
            modifiers = [assignment.modifier, AllBut(finished)]
            options_now = {**options, **_ONLY_OUTPUT}
            if not selected(options_now, suites, modifiers, variables).has_tests:
                # Robot Framework would show suites that are skipped because they are empty.
                options_now["console"] = "none"
            return_code, begun, troubles = run_robot(
                options_now,
                suites,
                variables=variables,
                directory=directory,
                test_timeout=test_timeout,
                modifiers=modifiers,
                listeners=[OnlyRest(finished)],
            )

    result = merged([*outputs_of_attempts(directory), directory / OUTPUT])
    write_result(result, directory, options)
    verdicts = verdicts_of(result, directory)
    return RunOutcome(
        exit_status(return_code, verdicts, troubles),
        directory,
        verdicts,
        troubles=troubles,
        was_finished=bool(verdicts) and not begun and return_code == 0,
    )


def _check_conditions(directory: Path, differences: Sequence[str], *, force: bool) -> None:
    """Refuses to resume a run whose conditions have changed, unless it is forced."""
    if not force:
        way_out = "Undo these changes, start a new run, or resume it with --force; then the report names the changes."
        _refuse(directory, "its conditions have changed", differences, way_out)


def _refuse(directory: Path, why: str, reasons: Iterable[object], way_out: str) -> None:
    """Refuses to resume a run if there are reasons."""
    listed = "".join(f"\n  {reason}" for reason in reasons)
    if listed:
        raise ResumeError(f"The run in {directory} is not resumed: {why}.{listed}\n{way_out}")
