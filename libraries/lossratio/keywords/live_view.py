"""The console while Robot Framework runs a test that measures.

`lossratio run` has a console of its own: the progress of each measurement, and what was found, in sentences. Robot
Framework's console shows the same progress with its option ``--console verbose``, and otherwise nothing.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from robot.api import logger
from robot.errors import ExecutionFailed
from robot.libraries.BuiltIn import BuiltIn
from robot.output import LOGGER
from robot.utils import is_truthy

from lossratio.files import shell_word
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
        # Robot Framework's form of Ctrl-C within a keyword. `lossratio run` has its own words for it.
        if error.exit and not has_own_console():
            resume = shell_word(f"RESUME:{BuiltIn().get_variable_value('${OUTPUT DIR}')}")
            say(
                f"\nTo continue, repeat the command with --variable {resume} right before the suites"
            )
        raise
