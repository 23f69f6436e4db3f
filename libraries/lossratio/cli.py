"""The `lossratio` command."""

from __future__ import annotations

import sys

import click

import lossratio
from lossratio.command_group import CommandGroup
from lossratio.errors import LossRatioError, ReservationError

BAD_INPUT = 2
"""Exit status where what was asked for cannot be done."""

NOT_AVAILABLE = 75
"""Exit status where a testbed is somebody else's (sysexits: EX_TEMPFAIL)."""

_COMMANDS = {
    "ab": "lossratio.patches.commands:ab",
    "bisect": "lossratio.patches.commands:bisect",
    "check": "lossratio.testbed_commands:check",
    "compare": "lossratio.report.commands:compare",
    "csit": "lossratio.report.commands:csit",
    "fetch": "lossratio.archive.command:fetch",
    "matrix": "lossratio.nightly.commands:matrix",
    "plan": "lossratio.nightly.commands:plan",
    "release": "lossratio.runner.reserve_commands:release",
    "repair": "lossratio.report.commands:repair",
    "report": "lossratio.report.commands:report",
    "reserve": "lossratio.runner.reserve_commands:reserve",
    "run": "lossratio.runner.command:run",
    "self-test": "lossratio.bench.self_test_command:self_test",
    "send": "lossratio.archive.command:send",
    "soak": "lossratio.replay.command:soak",
    "status": "lossratio.runner.reserve_commands:status",
    "study": "lossratio.study.command:study",
    "testbed": "lossratio.testbed_commands:testbed",
    "trend": "lossratio.history.commands:trend",
}
"""The commands, which the rooms bring along."""


@click.group(cls=CommandGroup, places=_COMMANDS)
@click.version_option(lossratio.__version__, prog_name="lossratio")
def commands() -> None:
    """Benchmark the data plane throughput of software networking."""


def main() -> None:
    """Runs the command; an error is one message and exit status 2 (75: not available), never a traceback."""
    try:
        commands(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except LossRatioError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(NOT_AVAILABLE if isinstance(error, ReservationError) else BAD_INPUT)
    except OSError as error:
        if error.filename is None:
            raise
        click.echo(f"Error: {error.filename}: {error.strerror}.", err=True)
        sys.exit(BAD_INPUT)
