"""Requests for runs of suites; runs Robot Framework in this process, and reports the verdict of each test."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import logger
from robot.errors import FRAMEWORK_ERROR, DataError, Information
from robot.run import RobotFramework

from lossratio.errors import LossRatioError, ReportError, StorageError
from lossratio.report import PAGE_VARIABLE, ReportFormat, write_reports
from lossratio.runs.verdicts import FailureRecord, TestVerdict, VerdictListener
from lossratio.runs.watchdog import NO_LIMITS, Limits


class RobotOptionsError(LossRatioError):
    """The options for Robot Framework are wrong."""


@dataclass(frozen=True)
class RobotCommand:
    """A command line of Robot Framework."""

    options: Mapping[str, Any]
    """Its options by long name without dashes, as `robot.run` takes them."""
    suites: tuple[str, ...]
    """Files and directories."""


@dataclass(frozen=True)
class RunRequest:
    """A run of suites on one testbed."""

    topologies: tuple[Path, ...]
    """Topology files of equal testbeds; the first one that is free is taken."""
    suites: tuple[Path, ...]
    """Files and directories with suites; none: those of the job."""
    include: tuple[str, ...] = ()
    """Tag patterns that select tests; none: all tests."""
    robot_options: tuple[str, ...] = ()
    """More options for Robot Framework, as on its command line."""
    wait: float = 0.0
    """Seconds to wait for a testbed at most."""
    purpose: str = ""
    """The reason, which other users of the testbed see."""
    job: Path | None = None
    """The job file with the tests for the testbed; None: there is no job."""
    limits: Limits = NO_LIMITS
    """How long tests, suites and the run may take."""

    def robot_command(self, suites: Sequence[Path]) -> RobotCommand:
        """The command line for Robot Framework.

        Raises:
            RobotOptionsError: If the options are wrong.
        """
        included = [argument for pattern in self.include for argument in ("--include", pattern)]
        return parse_command([*included, *self.robot_options, *(str(suite) for suite in suites)])


@dataclass(frozen=True)
class RobotOutcome:
    """The outcome of Robot Framework."""

    return_code: int
    """Robot Framework's return code."""
    verdicts: tuple[TestVerdict, ...]
    """The verdict of each test that was begun, in order."""
    troubles: tuple[str, ...] = ()
    """Messages about files that a disk did not take."""


def parse_command(arguments: Sequence[str]) -> RobotCommand:
    """Reads a command line of ``robot``, argument files included.

    Raises:
        RobotOptionsError: If the command line is wrong, or only asks for help.
    """
    try:
        options, suites = RobotFramework().parse_arguments(arguments)
    except Information as error:
        raise RobotOptionsError("--help and --version run nothing; ask robot itself for them.") from error
    except DataError as error:
        raise RobotOptionsError(f"The options for Robot Framework are wrong: {error.message}") from error
    given = {name: value for name, value in options.items() if value not in (None, [], "")}
    return RobotCommand(given, tuple(str(suite) for suite in suites))


def run_robot(
    command: RobotCommand,
    *,
    variables: Mapping[str, object],
    output_directory: str,
    listeners: Sequence[object] = (),
    modifiers: Sequence[object] = (),
) -> RobotOutcome:
    """Runs suites. Robot Framework handles Ctrl-C: the first one ends the run in order.

    Raises:
        StorageError: If the disk does not take Robot Framework's own output.
    """
    files, verdicts = _Files(), VerdictListener(FailureRecord(Path(output_directory)))
    options = dict(command.options)
    # The page is written below, when Robot Framework has ended.
    ours = [f"{name}:{value}" for name, value in {**variables, PAGE_VARIABLE: "lossratio run"}.items()]
    options["variable"] = [*ours, *_listed(options.get("variable"))]
    options["outputdir"] = output_directory
    options["listener"] = [*_listed(options.get("listener")), *listeners, files, verdicts]
    options["prerunmodifier"] = [*_listed(options.get("prerunmodifier")), *modifiers]
    robot = _Robot()
    try:
        return_code = robot.execute(*command.suites, **options)
    except (OSError, ValueError):
        # Robot Framework closes its output a second time, which fails as well.
        if robot.failure is None:
            raise
        return_code = FRAMEWORK_ERROR
    if robot.failure is not None:
        raise StorageError(
            f"Robot Framework cannot write {Path(output_directory) / files.unwritten}: {robot.failure.strerror}. "
            f"All trials are kept; make room, and continue with: lossratio run --resume {output_directory}"
        ) from robot.failure
    troubles = (*verdicts.troubles, *_write_page(Path(output_directory), is_shown=options.get("console") != "none"))
    return RobotOutcome(return_code, verdicts.verdicts, troubles)


def _write_page(directory: Path, *, is_shown: bool) -> Iterator[str]:
    """Writes the page of the run. Gives a message if the disk does not take it; damaged files go to standard error."""
    try:
        for path in write_reports(directory, [ReportFormat.HTML]):
            if is_shown:
                logger.console(f"lossratio: {path}")
    except StorageError as error:
        yield str(error)
    except ReportError as error:
        print(f"The run has no report. {error}", file=sys.stderr)


class _Robot(RobotFramework):  # type: ignore[misc]
    """Robot Framework without a traceback where a disk is full."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: OSError | None = None

    def main(self, datasources: Any, **options: Any) -> int:
        """Runs suites; Robot Framework calls it."""
        try:
            return int(super().main(datasources, **options))
        except OSError as error:
            self.failure = error
            return int(FRAMEWORK_ERROR)


class _Files:
    """Listens which files Robot Framework writes."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        self.unwritten = "output.xml"

    def output_file(self, path: Path) -> None:
        self.unwritten = "log.html"

    def log_file(self, path: Path) -> None:
        self.unwritten = "report.html"


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
