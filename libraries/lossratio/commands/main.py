"""The `lossratio` command: its commands by section, each imported when it is used, and how errors end it.

Another package adds a command by an entry point of the group ``lossratio.command``. The name of the entry point is the
command's, and its object is a `click.Command`, such as `lossratio.commands.parameters.command` makes of a function.
"""

import ast
import os
import signal
import sys
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import FrameType

import click

from lossratio.errors import LossRatioError
from lossratio.exit_status import MEANINGS, ExitStatus, status_of_error
from lossratio.plugins import distribution_of, plugin_group
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
}
"""Module and attribute of each command of lossratio itself, by section of the help and name."""

ELSEWHERE = {
    "study": "lossratio-study, which is not installed: in a checkout of lossratio, pip install ./study"
}
"""The commands of the project's other packages by name: the package, and how it is installed."""

_PLUGINS = plugin_group(
    "lossratio.command",
    what="command",
    error=LossRatioError,
    base="click.Command",
    room="lossratio.commands",
    own=dict(chain.from_iterable(section.items() for section in COMMANDS.values())),
)


def sections() -> dict[str, tuple[EntryPoint, ...]]:
    """The commands by section of the help: lossratio's own, and then a section for each package that adds some."""
    own = {entry.name: entry for entry in _PLUGINS.own}
    found = {title: tuple(own[name] for name in section) for title, section in COMMANDS.items()}
    for entry in _PLUGINS.added():
        title = f"Added by {distribution_of(entry)}"
        found[title] = (*found.get(title, ()), entry)
    return found


def first_line(entry: EntryPoint) -> str:
    """The first line of a command's help, from its source: to print the help imports no command.

    A command that is no function of its module has none. Raises whatever the import of a command's package raises.
    """
    module = find_spec(entry.module)
    if module is None or module.origin is None:
        raise ModuleNotFoundError(f"No module named {entry.module!r}")
    tree = ast.parse(Path(module.origin).read_text(encoding="utf-8"))
    functions = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry.attr
    ]
    if not functions:
        return ""
    return (ast.get_docstring(functions[0]) or "").partition("\n")[0]


def _line_of(entry: EntryPoint) -> str:
    try:
        return first_line(entry)
    except Exception as error:  # noqa: BLE001 (a package of somebody else, whose import may raise anything)
        return f"(cannot be read: {type(error).__name__}: {error})"


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [entry.name for section in sections().values() for entry in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PLUGINS.names():
            return None
        return _PLUGINS.load_object(cmd_name, click.Command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args[0] in ELSEWHERE and args[0] not in names:
            ctx.fail(f"The command {args[0]!r} is of {ELSEWHERE[args[0]]}.")
        if args[0] not in names and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], names)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in sections().items():
            with formatter.section(title):
                formatter.write_dl([(entry.name, _line_of(entry)) for entry in section])
        with formatter.section("Exit statuses"):
            formatter.write_dl(
                [(str(int(status)), meaning) for status, meaning in MEANINGS.items()]
            )


@click.group(cls=_Commands)
@click.version_option(__version__, prog_name="lossratio")
def commands() -> None:
    """Benchmark the data plane throughput of software networking."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        place = os.readlink("/proc/self/cwd")
        raise click.ClickException(
            f"The working directory is gone: {place}. Change to another one."
        ) from error


class _Stop(KeyboardInterrupt):
    """Ctrl-C, or SIGTERM, which ends processes of schedulers and containers.

    If a KeyboardInterrupt itself reached code that `exec` had compiled, Python would end by SIGINT, and with no status.
    """


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stop


def main() -> None:
    """Runs `lossratio`; see `run_command`."""
    run_command(commands)


def run_command(command: click.Command) -> None:
    """Runs a command; an error is one message and the exit status that it means, never a traceback."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard = {
        number: handler
        for number, handler in handlers.items()
        if handler not in (signal.SIG_IGN, None)
    }
    for number in heard:
        signal.signal(number, _stop)

    try:
        command(standalone_mode=False)
    except click.exceptions.Abort as abort:
        if isinstance(abort.__context__, EOFError):  # otherwise a KeyboardInterrupt
            click.echo(
                "\nError: The input ended before this question was answered: give a line for each one.",
                err=True,
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
