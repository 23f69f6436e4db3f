"""The `lossratio` command: its commands by section, each imported when it is used, and what happens after an error.

Another package adds a command with an entry point of the group ``lossratio.command``. The entry point has the name of
the command, and its object is a `click.Command`, for example a function with the decorator
`lossratio.commands.parameters.command`.
"""

import ast
import os
import re
import signal
import stat
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import FrameType

import click

from lossratio.errors import FREE_SPACE, LossRatioError
from lossratio.files import distribution_of, not_installed, plugin_group, shown_name, way_to_read
from lossratio.values import (
    MEANINGS,
    REMOVED,
    ExitStatus,
    did_you_mean,
    nearest,
    printable,
    status_of_error,
)
from lossratio.version import __version__

FRONT = {
    "demo": "demo:demo",
    "init": "init:init",
    "check": "testbed:check",
    "list": "listing:list_command",
    "run": "run:run",
    "between": "between:between",
    "report": "report:report",
    "compare": "report:compare",
    "trend": "trend:trend",
}
"""Module and attribute of each command that a user meets first, by name."""


@dataclass(frozen=True)
class Subject:
    """A subject, whose commands have two words, such as ``lossratio lab doctor``."""

    what: str
    """What its commands do, in one line."""
    commands: Mapping[str, str]
    """Module and attribute of each command by its second word."""


# Table: the second words of each first word.
SUBJECTS = {
    "lab": Subject(
        "Set up, share and test your testbeds.",
        {
            "doctor": "doctor:doctor",
            "import": "testbed:import_command",
            "up": "testbed:up",
            "down": "testbed:down",
            "status": "testbed:status",
            "reserve": "testbed:reserve",
            "release": "testbed:release",
            "self-test": "demo:self_test",
        },
    ),
    "archive": Subject(
        "Keep results, and repair or replay their journals.",
        {
            "send": "night:send",
            "fetch": "night:fetch",
            "ack": "trend:ack",
            "replay": "replay:replay",
            "repair": "report:repair",
        },
    ),
    "builds": Subject(
        "Compare builds of the SUT, and find the one that changed the throughput.",
        {"ab": "builds:ab", "bisect": "builds:bisect"},
    ),
    "csit": Subject("Exchange results with FD.io CSIT.", {"export": "report:csit"}),
}
"""The other commands, by first and second word."""

ELSEWHERE = {"study": "study", "csit-coverage": "study", "otg-serve": "otg"}
"""The commands of the project's other packages by name: the package's name after `lossratio-`."""


def _own_commands() -> dict[str, dict[str, str]]:
    """Lossratio's own commands by section and full name, with module and attribute."""
    found = {"Commands": dict(FRONT)}
    for first, subject in SUBJECTS.items():
        full = {f"{first} {second}": place for second, place in subject.commands.items()}
        found[f"lossratio {first}"] = full
    return found


_OWN = _own_commands()
_PLUGINS = plugin_group(
    "lossratio.command",
    what="command",
    error=LossRatioError,
    base="click.Command",
    room="lossratio.commands",
    own=dict(chain.from_iterable(section.items() for section in _OWN.values())),
)


# Table: other tools' words for a command, by command.
_OTHER_WORDS = {
    "run": (
        "bench",
        "benchmark",
        "measure",
        "start",
        "test",
        "tests",
        "ndr",
        "pdr",
        "mrr",
        "robot",
        "soak",
    ),
    "report": ("result", "results", "show", "html", "export"),
    "compare": ("diff",),
    "trend": ("plot", "history", "graph"),
    "init": ("setup", "install", "new", "create", "configure"),
    "list": ("ls",),
    "list suites": ("suites", "suite", "list-suites"),
    "list topologies": ("topologies", "topology", "testbeds", "list-topologies"),
    "list profiles": ("profiles", "profile", "list-profiles"),
    "list devices": ("devices", "device", "duts", "list-devices"),
    "check": ("validate", "verify", "lint"),
    "csit-coverage": ("coverage",),
    "--help": ("help",),
    "--version": ("version",),
}


def sections() -> dict[str, tuple[EntryPoint, ...]]:
    """The commands by section: the first ones, those of each subject, and those that other packages add."""
    own = {entry.name: entry for entry in _PLUGINS.own}
    found = {title: tuple(own[name] for name in section) for title, section in _OWN.items()}
    for entry in _PLUGINS.added():
        title = f"Added by {distribution_of(entry)}"
        found[title] = (*found.get(title, ()), entry)
    return found


def first_line(entry: EntryPoint) -> str:
    """The first line of a command's help, from its source, so that printing the help imports no command.

    A command that is not a function of its module has no such line. Raises any error that the import of a command's
    package raises.
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
    """All commands, each imported when it is used."""

    first = ""
    """What stands before their names: the word of a subject, and a blank."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        added = [entry.name for entry in _PLUGINS.added()]
        return [*FRONT, *SUBJECTS, *added]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in SUBJECTS and not self.first:
            return _Subject(cmd_name)
        full = self.first + cmd_name
        if full not in _PLUGINS.names():
            return None
        return _PLUGINS.load_object(full, click.Command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args[0] in ELSEWHERE and args[0] not in names:
            ctx.fail(not_installed("command", args[0], ELSEWHERE[args[0]]))
        _check_name(ctx, args[0], names)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in sections().items():
            if not title.startswith("lossratio "):
                with formatter.section(title):
                    formatter.write_dl([(entry.name, _line_of(entry)) for entry in section])
        with formatter.section("More commands, e.g. lossratio lab doctor"):
            formatter.write_dl([(name, subject.what) for name, subject in SUBJECTS.items()])
        with formatter.section("Exit statuses"):
            formatter.write_dl(
                [(str(int(status)), meaning) for status, meaning in MEANINGS.items()]
            )


class _Subject(_Commands):
    """The commands of a subject."""

    def __init__(self, word: str) -> None:
        super().__init__(word, help=SUBJECTS[word].what)
        self.first = f"{word} "

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBJECTS[str(self.name)].commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        entries = sections()[f"lossratio {self.name}"]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(entry.name.partition(" ")[2], _line_of(entry)) for entry in entries]
            )


def _check_name(ctx: click.Context, name: str, names: Sequence[str]) -> None:
    if name not in names and not name.startswith("-"):
        known = f" The commands are {', '.join(names)}."
        meant = did_you_mean(name, names) or _meant_elsewhere(name) or known
        ctx.fail(f"No such command {name!r}.{meant}")


def _meant_elsewhere(name: str) -> str:
    """Asks whether a similar command is meant: one of another subject, or one that other tools call by this name."""
    for command, words in _OTHER_WORDS.items():
        if name in words:
            return f" Did you mean 'lossratio {command}'?"

    full = {full.rpartition(" ")[2]: full for section in _OWN.values() for full in section}
    meant = nearest(name, full)
    if meant is None:
        return ""
    return f" Did you mean 'lossratio {full[meant]}'?"


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lossratio")
def commands() -> None:
    """Benchmark the data plane throughput of software networking.

    Begin with `lossratio demo`, which needs no lab. `lossratio init` writes the files for your own lab, and `lossratio
    COMMAND --help` explains a command.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        place = os.readlink("/proc/self/cwd")
        raise click.ClickException(
            f"The working directory no longer exists: {place}. Change to another one."
        ) from error


_TOO_MANY = "Got unexpected extra argument"
_NUMBER = re.compile(r"-\.?[0-9]")


class _Stop(KeyboardInterrupt):
    """Ctrl-C, or SIGTERM, which ends processes of schedulers and containers.

    If a plain KeyboardInterrupt reached code that `exec` had compiled, SIGINT would end Python without an exit status.
    """


def _has_arguments(one: click.Command) -> bool:
    return any(isinstance(parameter, click.Argument) for parameter in one.params)


def _missing(error: click.MissingParameter) -> str:
    """Names what a command line lacks."""
    what = error.param
    if isinstance(what, click.Argument) and isinstance(what.type, click.Choice):
        *others, last = map(str, what.type.choices)
        return f"An argument is missing: {', '.join(others)} or {last}."
    return error.format_message()


def _in_plain_words(error: click.ClickException) -> click.ClickException:
    """The same error, in the words of an engineer.

    For an unknown option, it suggests only the nearest option, unlike Click.
    """
    if error.message.startswith(_TOO_MANY):
        words = error.message.partition("(")[2].rpartition(")")[0]
        context = getattr(error, "ctx", None)
        way_out = "Put a value with spaces in quotes, as in '10 kfps'."
        if context is not None and not _has_arguments(context.command):
            way_out = "This command takes only options."
        return click.UsageError(f"There are too many arguments: {words}. {way_out}", context)

    if isinstance(error, click.MissingParameter):
        return click.UsageError(_missing(error), error.ctx)

    if not isinstance(error, click.NoSuchOption):
        return error
    if _NUMBER.match(error.option_name):
        said = f"{error.option_name} was taken for an option. If it is a file, write ./{error.option_name}."
        return click.UsageError(said, error.ctx)
    if error.option_name in REMOVED:
        said = f"There is no {error.option_name} any more. Instead, {REMOVED[error.option_name]}."
        return click.UsageError(said, error.ctx)
    meant = nearest(error.option_name, error.possibilities or ())
    near = None if meant is None else [meant]
    return click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx)


def _replace_closed_streams() -> None:
    """Replaces closed streams: a command that asks finds the end of the input, and nobody reads what it writes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Open until the process ends.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _show(text: str) -> None:
    """Shows a text on the standard error, if anybody reads it."""
    with suppress(OSError):
        click.echo(printable(text), err=True)


def _show_error(text: str) -> None:
    _show(f"Error: {text}")


def _is_of_output(error: OSError) -> bool:
    """Whether a text for the user could not be written."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code is click.echo.__code__ for frame, _ in frames)


def _place_of_output() -> str:
    """The file that the standard output is, in parentheses after a blank; empty: it is no file, or not known."""
    with suppress(OSError, ValueError):
        place = os.readlink(f"/proc/self/fd/{sys.stdout.fileno()}")
        # A pipe or a socket has no name that anybody knows.
        return f" ({shown_name(place)})" if place.startswith("/") else ""
    return ""


def _words_of_system(error: OSError) -> str:
    """An error of the system with the file and the way out, which our own code may already have put into it."""
    if error.filename is None and _is_of_output(error):
        return (
            f"The standard output{_place_of_output()} cannot be written: {error.strerror}. {FREE_SPACE} there, or "
            "write the output to another place, and repeat the command."
        )
    if error.filename is None:
        return f"{error.strerror}. {FREE_SPACE}, and repeat the command."
    way = ""
    if error.strerror == os.strerror(error.errno or 0):
        way = way_to_read(error.filename, error)
    return f"{shown_name(error.filename)}: {error.strerror}.{way}"


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stop


def _hang_up(number: int, frame: FrameType | None) -> None:
    """Stops the command in order: its terminal is gone, so nothing can be written there.

    The stop itself is a SIGTERM, because Robot Framework handles this signal during a run.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(nothing, stream)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Runs `lossratio`; see `run_command`."""
    run_command(commands)


def run_command(command: click.Command) -> None:
    """Runs a command; an error is one message and the exit status that it means, never a traceback."""
    ours = {signal.SIGINT: _stop, signal.SIGTERM: _stop, signal.SIGHUP: _hang_up}
    handlers = {number: signal.getsignal(number) for number in ours}
    heard = {
        number: handler
        for number, handler in handlers.items()
        if handler not in (signal.SIG_IGN, None)
    }
    for number in heard:
        signal.signal(number, ours[number])
    _replace_closed_streams()

    try:
        command(standalone_mode=False)
    except click.exceptions.Abort as abort:
        if isinstance(abort.__context__, EOFError):  # otherwise a KeyboardInterrupt
            _show(
                "\nError: The input ended before this question was answered. Answer each question on a line of its own."
            )
            sys.exit(ExitStatus.BAD_INPUT)
        _show("Stopped.")
        sys.exit(ExitStatus.INTERRUPTED)
    except click.ClickException as error:
        with suppress(OSError):
            _in_plain_words(error).show()
        sys.exit(ExitStatus.BAD_INPUT)
    except LossRatioError as error:
        _show_error(str(error))
        sys.exit(status_of_error(error))
    except OSError as error:
        if error.filename is None and status_of_error(error) is not ExitStatus.INFRASTRUCTURE:
            raise
        _show_error(_words_of_system(error))
        sys.exit(status_of_error(error))
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                # Nobody reads it any more. Python would try to write again, and end with its own status.
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        for number, handler in heard.items():
            signal.signal(number, handler)
