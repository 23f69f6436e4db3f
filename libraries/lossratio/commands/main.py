"""The `lossratio` command."""

from __future__ import annotations

import sys

import click

import lossratio
from lossratio.commands.group import CommandGroup
from lossratio.errors import LossRatioError, ReservationError

BAD_INPUT = 2
"""Exit status where what was asked for cannot be done."""

NOT_AVAILABLE = 75
"""Exit status where a testbed is somebody else's (sysexits: EX_TEMPFAIL)."""

_COMMANDS = {
    "ab": "lossratio.commands.builds:ab",
    "bisect": "lossratio.commands.builds:bisect",
    "check": "lossratio.commands.testbed:check",
    "compare": "lossratio.commands.report:compare",
    "csit": "lossratio.commands.report:csit",
    "fetch": "lossratio.commands.archive:fetch",
    "matrix": "lossratio.commands.plan:matrix",
    "plan": "lossratio.commands.plan:plan",
    "release": "lossratio.commands.reserve:release",
    "repair": "lossratio.commands.report:repair",
    "report": "lossratio.commands.report:report",
    "reserve": "lossratio.commands.reserve:reserve",
    "run": "lossratio.commands.run:run",
    "self-test": "lossratio.commands.self_test:self_test",
    "send": "lossratio.commands.archive:send",
    "soak": "lossratio.commands.replay:soak",
    "status": "lossratio.commands.reserve:status",
    "study": "lossratio.commands.study:study",
    "testbed": "lossratio.commands.testbed:testbed",
    "trend": "lossratio.commands.trend:trend",
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
