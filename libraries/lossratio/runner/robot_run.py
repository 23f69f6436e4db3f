"""Runs Robot Framework in this process, and tells what became of each test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robot.errors import DataError, Information
from robot.run import RobotFramework

from lossratio.errors import LossRatioError
from lossratio.runner.verdicts import TestVerdict


class RobotOptionsError(LossRatioError):
    """The options for Robot Framework are wrong."""


@dataclass(frozen=True)
class RobotCommand:
    """What Robot Framework is asked for.

    Attributes:
        options: Its options by long name without dashes, as `robot.run` takes them.
        suites: Files and directories.
    """

    options: Mapping[str, Any]
    suites: tuple[str, ...]


@dataclass(frozen=True)
class RobotOutcome:
    """What came of it.

    Attributes:
        return_code: Robot Framework's.
        verdicts: What became of each test that was begun, in order.
    """

    return_code: int
    verdicts: tuple[TestVerdict, ...]


def parse_command(arguments: Sequence[str]) -> RobotCommand:
    """Reads a command line of ``robot``, argument files included.

    Raises:
        RobotOptionsError: If it is wrong, or asks for help only.
    """
    try:
        options, suites = RobotFramework().parse_arguments(arguments)
    except Information as error:
        raise RobotOptionsError("--help and --version do not run anything; ask robot itself for them.") from error
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
    """Runs suites; Ctrl-C is left to Robot Framework, which ends in order the first time.

    Args:
        command: What was asked for.
        variables: Variables of our own; those that were asked for go before them.
        output_directory: Where the output goes.
        listeners: More listeners.
        modifiers: More modifiers of suites before they run.
    """
    collector = _Collector()
    options = dict(command.options)
    ours = [f"{name}:{value}" for name, value in variables.items()]
    options["variable"] = [*ours, *_listed(options.get("variable"))]
    options["outputdir"] = output_directory
    options["listener"] = [*_listed(options.get("listener")), *listeners, collector]
    options["prerunmodifier"] = [*_listed(options.get("prerunmodifier")), *modifiers]
    return_code = RobotFramework().execute(*command.suites, **options)
    return RobotOutcome(return_code, collector.verdicts)


class _Collector:
    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        self._verdicts: dict[str, TestVerdict] = {}

    @property
    def verdicts(self) -> tuple[TestVerdict, ...]:
        return tuple(self._verdicts.values())

    def end_test(self, data: Any, result: Any) -> None:
        self._verdicts[result.id] = TestVerdict(result.full_name, result.status, result.message)

    def end_suite(self, data: Any, result: Any) -> None:
        # A tear-down that fails turns tests into failures which have passed before.
        for test in result.all_tests:
            self.end_test(None, test)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
