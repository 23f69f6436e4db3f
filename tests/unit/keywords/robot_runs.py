"""Runs Robot suites, and reads what came of them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import robot
from robot.api import ExecutionResult, ResultVisitor

ROOT = Path(__file__).parents[3]
SIMULATED = ROOT / "topologies" / "simulated.yaml"
NO_OPTIONS: Mapping[str, object] = MappingProxyType({})
ON_A_POLICED_BRIDGE = """
Suite Setup       Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
Suite Teardown    Tear Down Testbed
"""


class RobotRun(ResultVisitor):
    """A finished run.

    Attributes:
        directory: Its output directory.
        status: Its exit status.
        tests: Its tests by name, as Robot Framework reports them.
        messages: All messages in its log.
        logged: The messages that the log has within each test, one below the other.
        errors: Its errors and warnings that belong to no keyword.
    """

    def __init__(self, directory: Path, status: int) -> None:
        self.directory = directory
        self.status = status
        self.messages: list[str] = []
        self.logged: dict[str | None, str] = {}
        self._test: str | None = None
        result = ExecutionResult(str(directory / "output.xml"))
        self.tests = {test.name: test for test in result.suite.all_tests}
        self.errors = [message.message for message in result.errors]
        result.visit(self)

    def start_test(self, test):
        self._test = test.name

    def visit_message(self, message):
        self.messages.append(message.message)
        self.logged[self._test] = f"{self.logged.get(self._test, '')}\n{message.message}"


def write_suite(directory: Path, tests: str, settings: str = ON_A_POLICED_BRIDGE) -> Path:
    """Writes a suite with the performance keywords."""
    file = directory / "suite.robot"
    # The folder is a project, so the suite is "Suite".
    (directory / "robot.toml").touch()
    resource = "Resource          lossratio/resources/performance.resource"
    file.write_text(f"*** Settings ***\n{resource}\n{settings}\n*** Test Cases ***\n{tests}")
    return file


def called(folder: Path, *arguments: object) -> int:
    """Calls ``robot`` with arguments of its command line in a folder; returns its exit status."""
    with contextlib.chdir(folder):
        return robot.run_cli(["--console", "none", *map(str, arguments)], exit=False)


def run_suite(
    file: Path, name: str = "run", options: Mapping[str, object] = NO_OPTIONS, **variables: object
) -> RobotRun:
    """Runs a suite with options of Robot Framework.

    Unless the variables say otherwise, on the simulated testbed, and without latency and telemetry after searches. A
    variable that is None is left to the suite.
    """
    directory = file.parent / name
    given = {"TOPOLOGY": SIMULATED, "LATENCY": "off", "TELEMETRY": "off", **variables}
    status = robot.run(
        str(file),
        outputdir=str(directory),
        variable=[f"{variable}:{value}" for variable, value in given.items() if value is not None],
        pythonpath=[str(ROOT / "libraries")],
        stdout=io.StringIO(),
        stderr=io.StringIO(),
        **options,
    )
    return RobotRun(directory, status)
