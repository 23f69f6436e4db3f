"""The console while a measurement runs: a row for each trial, and below the rows a progress line.

Rows fit the terminal. Where standard output is not a terminal, there is a plain line for each trial. Unless the option
is ``--console verbose``, nothing is shown: the user asked for Robot Framework's own output only.
"""

import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from robot.api import logger
from robot.errors import ExecutionFailed
from robot.libraries.BuiltIn import BuiltIn
from robot.output import LOGGER
from robot.utils import is_truthy
from robot.utils.argumentparser import ArgFileParser

from lossratio.measurements import InWords, Progress, heading, status_line

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

Show = Callable[[InWords], None]
"""Shows the progress of a measurement after a trial."""

_TICK = 0.5
"""Seconds between two updates of the progress line while a trial runs. An update costs hardly any CPU time."""
_SPARING = ("Dotted", "Quiet", "None")
"""The beginnings of the names of Robot Framework consoles that show nothing within tests."""
_CLEAR = "\r\x1b[K"
"""Moves to the beginning of the line, and erases it."""


def is_verbose() -> bool:
    """Whether Robot Framework's console shows what happens within tests: its option ``--console verbose``."""
    # Robot Framework has no public name for this, and the class names and wrappers differ between versions.
    console = getattr(LOGGER, "_console", None)
    console = getattr(console, "listener", console)
    return not type(console).__name__.startswith(_SPARING)


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
    stdout = sys.__stdout__
    verbose = wants_provenance()
    try:
        if not is_verbose():
            yield lambda progress: None
        elif stdout is None or not stdout.isatty():
            yield lambda progress: say(_line_of(progress, verbose=verbose))
        else:
            with Terminal(stdout, verbose=verbose).moving() as terminal:
                testbed.watch_trials(terminal.see)
                try:
                    yield terminal.show
                finally:
                    testbed.watch_trials(None)

    except ExecutionFailed as error:
        # Robot Framework's form of Ctrl-C within a keyword.
        directory = BuiltIn().get_variable_value("${OUTPUT DIR}")
        command = resuming_command(sys.argv, Path(directory)) if error.exit else None
        if command is not None:
            say(f"\nTo continue: {command}")
        raise


def _line_of(progress: InWords, *, verbose: bool) -> str:
    if isinstance(progress, Progress):
        return progress.line(verbose=verbose)
    return progress.line()


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


class Terminal:
    """Rows of trials on a terminal, and below them the progress line."""

    def __init__(
        self,
        stream: TextIO,
        columns: Callable[[], int] = lambda: shutil.get_terminal_size().columns,
        clock: Callable[[], float] = time.monotonic,
        *,
        verbose: bool = False,
    ) -> None:
        self._stream = stream
        self._verbose = verbose
        self._columns = columns
        self._clock = clock
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._began = 0.0
        self._so_far: tuple[int, int] | None = None

    def see(self, sent: int, received: int) -> None:
        """Notes how many frames the running trial has sent and received."""
        with self._lock:
            self._so_far = (sent, received)

    def show(self, progress: InWords) -> None:
        """Shows a trial that has ended, and below it the next one."""
        width = self._columns() - 1
        with self._lock:
            if isinstance(progress, Progress):
                rows = [heading(width)] if self._progress is None else []
                rows.append(progress.row(width, verbose=self._verbose))
                self._progress, self._began, self._so_far = progress, self._clock(), None
            else:
                rows = [progress.line()]
            self._write("".join(f"{row[:width]}\n" for row in rows) + self._status(width))

    def tick(self) -> None:
        """Redraws the progress line."""
        with self._lock:
            if self._progress is not None:
                self._write(self._status(self._columns() - 1))

    def close(self) -> None:
        """Removes the progress line."""
        with self._lock:
            self._progress = None
            self._write("")

    def _write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(_CLEAR + text)
            self._stream.flush()

    def _status(self, width: int) -> str:
        if self._progress is None:
            return ""
        return status_line(self._progress, self._clock() - self._began, width, self._so_far)

    @contextmanager
    def moving(self) -> "Iterator[Terminal]":
        """Updates the line until the block ends, and then removes it."""
        ended = threading.Event()

        def move() -> None:
            while not ended.wait(_TICK):
                self.tick()

        thread = threading.Thread(target=move, name="live view", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()
            self.close()
