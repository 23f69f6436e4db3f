"""The `lossratio` command: its commands by group, each imported when it is used, and how errors end it."""

import ast
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from types import FrameType

import click

from lossratio.errors import LossRatioError
from lossratio.exit_status import MEANINGS, ExitStatus, status_of_error
from lossratio.shipped import did_you_mean
from lossratio.version import __version__

COMMANDS = {
    "Measure": {"demo": "run:demo", "run": "run:run", "self-test": "run:self_test"},
    "Read results": {
        "report": "report:report",
        "compare": "report:compare",
        "trend": "trend:trend",
        "ack": "trend:ack",
        "site": "trend:site",
        "replay": "replay:replay",
        "repair": "report:repair",
        "csit": "report:csit",
    },
    "Testbeds": {
        "doctor": "doctor:doctor",
        "init": "init:init",
        "check": "testbed:check",
        "import": "testbed:import_command",
        "testbed": "testbed:testbed",
        "reserve": "testbed:reserve",
        "release": "testbed:release",
        "status": "testbed:status",
    },
    "Nights and builds": {
        "plan": "night:plan",
        "csit-coverage": "night:csit_coverage_command",
        "matrix": "night:matrix",
        "send": "night:send",
        "fetch": "night:fetch",
        "ab": "builds:ab",
        "bisect": "builds:bisect",
    },
    "Serve": {"otg-serve": "otg:otg_serve"},
    "Study": {"study": "study:study"},
}
"""Module and attribute of each command, by group and name."""

_PLACES = {name: place for group in COMMANDS.values() for name, place in group.items()}


def first_line(place: str) -> str:
    """The first line of a command's help, from its source: to print the help imports no command."""
    module, _, attribute = place.partition(":")
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == attribute)
    return (ast.get_docstring(next(found)) or "").partition("\n")[0]


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PLACES:
            return None
        module, _, attribute = _PLACES[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"lossratio.commands.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _PLACES and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, first_line(place)) for name, place in group.items()])
        with formatter.section("Exit statuses"):
            formatter.write_dl([(str(int(status)), meaning) for status, meaning in MEANINGS.items()])


@click.group(cls=_Commands)
@click.version_option(__version__, prog_name="lossratio")
def commands() -> None:
    """Benchmark the data plane throughput of software networking."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        place = os.readlink("/proc/self/cwd")
        raise click.ClickException(f"The working directory is gone: {place}. Change to another one.") from error


class _Stop(KeyboardInterrupt):
    """Ctrl-C, or SIGTERM, which ends processes of schedulers and containers.

    If a KeyboardInterrupt itself reached code that `exec` had compiled, Python would end by SIGINT, and with no status.
    """


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stop


def main() -> None:
    """Runs a command; an error is one message and the exit status that it means, never a traceback."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    for number in heard:
        signal.signal(number, _stop)
    try:
        commands(standalone_mode=False)
    except click.exceptions.Abort as abort:
        if isinstance(abort.__context__, EOFError):  # otherwise a KeyboardInterrupt
            click.echo(
                "\nError: The input ended before this question was answered: give a line for each one.", err=True
            )
            sys.exit(ExitStatus.BAD_INPUT)
        click.echo("Stopped.", err=True)
        sys.exit(ExitStatus.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitStatus.BAD_INPUT)
    except LossRatioError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(status_of_error(error))
    except OSError as error:
        if error.filename is None and status_of_error(error) is not ExitStatus.INFRASTRUCTURE:
            raise
        click.echo(f"Error: {': '.join(filter(None, (error.filename, error.strerror)))}.", err=True)
        sys.exit(status_of_error(error))
    finally:
        try:
            print(end="", flush=True)
        except OSError:
            # Nobody reads the output any more. Python would try once more, and end with a status of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        for number, handler in heard.items():
            signal.signal(number, handler)
