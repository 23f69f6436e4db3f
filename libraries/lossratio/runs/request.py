"""Requests: a run of suites, and a run to resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from lossratio.runs.robot_run import RobotCommand, parse_command
from lossratio.runs.watchdog import NO_LIMITS, Limits


@dataclass(frozen=True)
class RunRequest:
    """A run of suites on one testbed.

    Attributes:
        topologies: Topology files of equal testbeds; the first one that is free is taken.
        suites: Files and directories with suites; none: those of the job.
        include: Tag patterns that select tests; none: all tests.
        robot_options: More options for Robot Framework, as on its command line.
        wait: Seconds to wait for a testbed at most.
        purpose: The reason, which other users of the testbed see.
        job: The job file with the tests for the testbed; None: there is no job.
        limits: How long tests, suites and the run may take.
    """

    topologies: tuple[Path, ...]
    suites: tuple[Path, ...]
    include: tuple[str, ...] = ()
    robot_options: tuple[str, ...] = ()
    wait: float = 0.0
    purpose: str = ""
    job: Path | None = None
    limits: Limits = NO_LIMITS

    def robot_command(self, suites: Sequence[Path]) -> RobotCommand:
        """The command line for Robot Framework.

        Args:
            suites: Files and directories with suites.

        Raises:
            RobotOptionsError: If the options are wrong.
        """
        included = [argument for pattern in self.include for argument in ("--include", pattern)]
        return parse_command([*included, *self.robot_options, *(str(suite) for suite in suites)])


@dataclass(frozen=True)
class ResumeRequest:
    """A run to resume.

    Attributes:
        directory: Its directory.
        force: Whether it is resumed although its conditions have changed.
        wait: Seconds to wait for the testbed at most.
        limits: How long tests, suites and the run may take.
    """

    directory: Path
    force: bool = False
    wait: float = 0.0
    limits: Limits = NO_LIMITS


def default_directory(testbed: str) -> Path:
    """A new directory for the output of a run.

    Args:
        testbed: Name of the testbed.
    """
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return Path("results") / f"{testbed}-{now}"
