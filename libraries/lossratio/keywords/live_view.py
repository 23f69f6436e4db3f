"""The console while Robot Framework runs a test that measures.

`lossratio run` has a console of its own: the progress of each measurement, and what was found, in sentences. Robot
Framework's console shows the same progress with its option ``--console verbose``, and otherwise nothing.
"""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from robot.api import logger
from robot.errors import ExecutionFailed
from robot.libraries.BuiltIn import BuiltIn
from robot.output import LOGGER
from robot.utils import is_truthy
from robot.utils.argumentparser import ArgFileParser

from lossratio.measurements import InWords, live_on

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

Show = Callable[[InWords], None]
"""Shows the progress of a measurement after a trial."""

_SPARING = ("Dotted", "Quiet", "None")
"""The beginnings of the names of Robot Framework consoles that show nothing within tests."""


def is_verbose() -> bool:
    """Whether the console shows what happens within tests, as that of `lossratio run` and ``--console verbose`` do."""
    if has_own_console():
        return True
    # Robot Framework has no public name for this, and the class names and wrappers differ between versions.
    console = getattr(LOGGER, "_console", None)
    console = getattr(console, "listener", console)
    return not type(console).__name__.startswith(_SPARING)


def has_own_console() -> bool:
    """Whether `lossratio run` shows results, and not Robot Framework's console."""
    return bool(is_truthy(BuiltIn().get_variable_value("${LOSSRATIO_CONSOLE}")))


def wants_provenance() -> bool:
    """Whether the console also shows how results were measured: ``lossratio run --verbose`` sets the variable."""
    return bool(is_truthy(BuiltIn().get_variable_value("${LOSSRATIO_VERBOSE}")))


def say(text: str) -> None:
    """Shows text on a console that shows what happens within tests. A measurement continues without its console."""
    if is_verbose():
        with suppress(OSError):
            logger.console(text)


@contextmanager
def live_view(testbed: "Testbed") -> Iterator[Show]:
    """Shows the progress of a measurement on the console until the block ends; after Ctrl-C, shows how to resume it."""
    try:
        if not is_verbose():
            yield lambda progress: None
        else:
            verbose = wants_provenance()
            with live_on(sys.__stdout__, say, testbed.watch_trials, verbose=verbose) as show:
                yield show

    except ExecutionFailed as error:
        # Robot Framework's form of Ctrl-C within a keyword.
        directory = BuiltIn().get_variable_value("${OUTPUT DIR}")
        command = resuming_command(sys.argv, Path(directory)) if error.exit else None
        if command is not None:
            say(f"\nTo continue: {command}")
        raise


def resuming_command(arguments: list[str], directory: Path) -> str | None:
    """The command that resumes a run of plain ``robot``; None: another program started the run."""
    program = Path(arguments[0])
    words = ["robot"]
    if program.name == "__main__.py" and program.parent.name == "robot":
        words = ["python", "-m", "robot"]
    elif program.name != "robot":
        return None
    # If a variable has several values, Robot Framework uses the last one.
    others = _without_variable(arguments[1:], "RESUME")
    expanded = ArgFileParser(["--argumentfile", "-A"]).process([*others])
    if _without_variable(expanded, "RESUME") != expanded:
        # The value comes from an argument file.
        others = _without_variable(expanded, "RESUME")
    return shlex.join([*words, "--variable", f"RESUME:{directory}", *others])


def _without_variable(arguments: list[str], name: str) -> list[str]:
    """Arguments of ``robot``, except the arguments that set a variable."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        option, _, assignment = word.partition("=")
        taken = [word]
        if word == "-v" or word.lower() == "--variable":
            assignment = next(words, "")
            taken.append(assignment)
        elif word.startswith("-v"):
            assignment = word[2:]
        elif option.lower() != "--variable":
            assignment = ""

        # Names of variables ignore case, blanks and underscores.
        variable = assignment.partition(":")[0].replace("_", "").replace(" ", "").upper()
        if variable != name:
            kept += taken

    return kept
