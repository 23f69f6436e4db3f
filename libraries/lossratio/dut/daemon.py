"""Programs of a DUT on its node: started in their own session, watched, and stopped by their process id."""

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lossratio.dut.changes import Changes
from lossratio.errors import DutError
from lossratio.nodes import BackgroundProgram, DutNode, before_ordinary, reason, shown

READY_TIMEOUT = 120.0
"""Seconds that a program may take until it answers. It clears hugepages, and waits for the links of its cards. A
program that dies in this time is an error at once."""
_POLL = 0.1
_LOOKS = 5
_LAST_LINES = 8
_CRASH = "received signal"
"""VPP writes this when it crashes. A backtrace follows."""
_REASON_LINES = 2
"""Lines before the crash, which give the reason if VPP ended itself."""
_FRAMES = 10
"""Frames of a backtrace that an error shows. In the first three or four, a program that ends itself calls abort."""
_FRAME = re.compile(r"(#\d+) +0x[0-9a-f]+ (.+)")


@dataclass(frozen=True)
class Daemon:
    """A program, and the directory of all its files on the node."""

    node: DutNode
    """The node."""
    directory: str
    """The directory."""
    name: str
    """Name of the program, and the beginning of its files' names."""
    command: tuple[str, ...]
    """The program and its arguments."""
    priority: int | None = None
    """Its priority over all ordinary programs, if the kernel grants it; None: it is an ordinary program."""

    @property
    def program(self) -> BackgroundProgram:
        """The program on the node."""
        if self.priority is None:
            command = self.command
        else:
            command = before_ordinary(self.priority, self.command)

        return BackgroundProgram(f"{self.directory}/{self.name}.", self.directory, command)

    def start(
        self, changes: Changes, is_ready: Callable[[], bool], seconds: float = READY_TIMEOUT
    ) -> None:
        """Starts the program as a change, and waits until it answers.

        Args:
            changes: The changes to the node so far.
            is_ready: Whether it answers.
            seconds: The maximum number of seconds until it answers.

        Raises:
            DutError: If it cannot be started, dies, or does not answer in time; with its last
                output.
        """
        changes.run(*self.program.start, undo=self.program.stop())
        deadline = time.monotonic() + seconds
        while not is_ready():
            self.check_alive()
            if time.monotonic() > deadline:
                raise self.node.error(
                    f"{self.name} did not answer within {seconds:g} s. {self.last_output()}"
                )
            time.sleep(_POLL)

    def check_alive(self) -> None:
        """Checks that the program runs.

        Raises:
            DutError: If it has died; with its last output.
        """
        if not self.is_alive():
            raise self.node.error(
                f"{self.name} has died ({shown(self.command)}). {self.last_output()} Tear it down and set it up again."
            )

    @contextmanager
    def needed(self) -> Iterator[None]:
        """Runs a block that needs the program: if it has died, its death is the error, not what failed as a result.

        Raises:
            DutError: If something failed because the program has died; with its last output.
        """
        try:
            yield
        except DutError:
            # A program that crashes closes its sockets a little before it ends.
            for _ in range(_LOOKS):
                self.check_alive()
                time.sleep(_POLL)
            raise

    def is_alive(self) -> bool:
        """Whether the program runs."""
        return self.node.attempt(*self.program.is_alive).exit_status == 0

    def last_output(self) -> str:
        """A sentence with the last lines of its output, or with the beginning of its crash report."""
        tail = self.node.attempt("tail", "-n", "200", self.program.log)
        if tail.exit_status != 0:
            return f"Its output, {self.program.log}, cannot be read ({reason(tail)})."
        lines = [line.strip()[:300] for line in tail.stdout.splitlines() if line.strip()]
        crashes = [number for number, line in enumerate(lines) if _CRASH in line]
        if crashes:
            crash = " | ".join(_crash_report(lines, crashes[0]))
            return f"Its crash: {crash}."
        if lines:
            return f"Its last output: {quoted(lines)}."
        return "It wrote nothing."


def quoted(lines: Sequence[str]) -> str:
    """The last lines of what a program wrote, as an error quotes them."""
    return " | ".join(lines[-_LAST_LINES:])


def _crash_report(lines: list[str], crash: int) -> list[str]:
    """The lines of a crash that matter: the reason, the signal, and the functions of the first frames."""
    frames = [match for line in lines[crash:] if (match := _FRAME.match(line))]
    functions = [f"{frame[1]} {frame[2]}" for frame in frames[:_FRAMES]]
    before = lines[max(0, crash - _REASON_LINES) : crash]
    return [*before, lines[crash], *functions]


def make_directory(changes: Changes, kind: str) -> str:
    """Makes a directory on the node for the files of a DUT's programs, and returns its path.

    The path is short enough for the names of sockets, and unique.
    """
    # No other user can have made the directory before: its name is random, and mkdir refuses an existing directory.
    path = f"/tmp/lossratio-{kind}-{secrets.token_hex(6)}"  # noqa: S108
    changes.run("mkdir", "-m", "0700", path, undo=("rm", "-rf", "--", path))
    return path


def write_file(changes: Changes, path: str, text: str) -> None:
    """Writes a file into a directory that `make_directory` has made."""
    changes.run("tee", path, stdin=text)
