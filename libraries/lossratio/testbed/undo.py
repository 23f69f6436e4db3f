"""Protects the undo of changes to a DUT: from Ctrl-C, and from the death of the controller that made the changes.

Ctrl-C and SIGTERM wait until the end of work that must not be left half-done. After the death of a controller, the next
one starts the undo. The node's shell runs the commands, because a DUT needs no Python.
"""

import base64
import logging
import os
import shlex
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from lossratio.errors import NodeError
from lossratio.nodes import SEARCH_PATH, NodeProcess, NodeSession, Will

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def put_off_interruption() -> Iterator[None]:
    """Delays the first Ctrl-C or SIGTERM in the block until the block has ended. The second one acts at once.

    A user who presses Ctrl-C twice does not want to wait for the measurement, but wants the machines restored. A user
    who presses it once more has seen that the machines do not answer. Signals reach only the main thread: in another
    thread, the block needs no protection.
    """
    waiting: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if waiting:
            waiting.clear()
            heard.close()
            signal.raise_signal(number)
        else:
            waiting.append(number)

    try:
        with ExitStack() as heard:
            heard.enter_context(_handled_by(hear))
            yield
    finally:
        if waiting:
            signal.raise_signal(waiting.pop())


def ignored_interruption() -> AbstractContextManager[None]:
    """Ignores Ctrl-C and SIGTERM in the block, which must be too short for a user to notice."""
    return _handled_by(signal.SIG_IGN)


@contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None] | signal.Handlers,
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # A handler that Python does not know cannot be restored.
    before = {
        number: known
        for number in _INTERRUPTIONS
        if (known := signal.getsignal(number)) is not None
    }
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)


_LOG = logging.getLogger(__name__)
_MARK = "LOSSRATIO_WILL"
_OWNER = "LOSSRATIO_WILL_OF"
_START_SECONDS = 10.0
_UNDO_SECONDS = 60
"""Seconds that a node may take to undo the changes of controllers that have ended, which includes stopping programs and
giving back cards."""

# The keeper holds the commands, the newest first. While its input is open, its controller is alive, and no other
# controller may have the commands run. When the input has ended, the keeper starts a child, whose environment shows
# that the commands may be run; a signal makes the keeper run them. It waits for the child with `wait`, because a shell
# handles a signal at once only during `wait`. The child ignores the same signals as the keeper. A controller that has
# begun to undo its changes asks the keeper to run the commands when the controller ends. The keeper does not run them
# if another controller has set up a DUT on this node since.
_KEEP = r"""
trap '' USR1 HUP TERM
echo $$
undo=
at_end=
while IFS= read -r line; do
    case $line in
        +*) undo="${line#+}
$undo" ;;
        -) undo="${undo#*
}" ;;
        !) at_end=yes ;;
        .) exit 0 ;;
    esac
done
exec > /dev/null 2>&1
is_ours_alone() {
    for environment in $(grep -slz '^MARK=kept$' /proc/[0-9]*/environ); do
        # Another node of a local testbed may show its processes here.
        [ "${environment%environ}ns/net" -ef /proc/self/ns/net ] || continue
        grep -sqz "^OWNER=$OWNER\$" "$environment" && continue
        # The environment of a process that has ended meanwhile is empty, or is not there.
        grep -sqz '^MARK=kept$' "$environment" && return 1
    done
    return 0
}
if [ -n "$at_end" ] && is_ours_alone; then
    MARK=open sleep 60 &
    mark=$!
    eval "$undo"
    kill -KILL "$mark"
    exit 0
fi
undo_now() {
    trap '' USR1
    kill -KILL "$!"
    # Whoever asks meanwhile has to wait, too.
    MARK=open sleep 600 &
    mark=$!
    eval "$undo"
    kill -KILL "$mark"
    exit 0
}
trap undo_now USR1
while :; do MARK=open sleep 60 & wait $!; done
""".replace("MARK", _MARK).replace("OWNER", _OWNER)

# The parent of a child that has outlived its keeper is another process, which must get no signal.
_EXECUTE = """
found=
for environment in $(grep -slz '^MARK=open$' /proc/[0-9]*/environ); do
    parent=$(sed -n 's/^PPid:[[:space:]]*//p' "${environment%environ}status" 2>/dev/null)
    grep -sqz '^MARK=kept$' "/proc/$parent/environ" && found="$found $parent"
done
[ -n "$found" ] || exit 0
kill -USR1 $found
read -r began _ < /proc/uptime
while :; do
    left=
    for keeper in $found; do
        # A process that has ended, and that nobody waits for, has no environment.
        kill -0 "$keeper" 2>/dev/null && grep -sqz '^MARK=kept$' "/proc/$keeper/environ" && left=$keeper
    done
    [ -n "$left" ] || break
    read -r now _ < /proc/uptime
    [ "$((${now%.*} - ${began%.*}))" -lt "$1" ] || { echo late; exit 0; }
    sleep 0.1
done
echo executed
""".replace("MARK", _MARK)

# The keeper may have ended, and another process may have got its id.
_KILL = """grep -sqz '^MARK=kept$' "/proc/$1/environ" && kill -KILL "$1" """.replace("MARK", _MARK)


@dataclass
class LastWill(Will):
    """The commands that undo the changes to a DUT, kept by a process on its node."""

    session: NodeSession
    """The log-in on the node."""
    _lines: list[str] = field(default_factory=list)
    _process: NodeProcess | None = None
    _pid: str = ""
    _is_at_end: bool = False

    def add(self, command: Sequence[str], stdin: str | None) -> None:
        """Adds a command, which will run before all earlier ones."""
        line = shlex.join(command)
        if "\n" in line:
            # A line feed would end the command, because the keeper reads lines.
            line = f'eval "$({_written(line)})"'
        if stdin is not None:
            line = f"{_written(stdin)} | {line}"
        self._lines.append(line)
        self._send(f"+{line}")

    def drop_last(self) -> None:
        """Removes the command that was added last. Without commands, the process on the node ends."""
        self._lines.pop()
        if self._lines:
            self._send("-")
        else:
            self._end()

    def keep(self) -> None:
        """Makes sure that the keeper still has the commands, after the connection may have been lost.

        Raises:
            NodeError: If the node cannot be reached.
        """
        if self._lines and not self._is_connected():
            # The next controller would run the commands of the old keeper.
            self.session.run("sh", "-c", _KILL, "kill", self._pid, check=False)
            self._start()

    def execute_at_end(self) -> None:
        """Has the commands run when this process or its connection ends, unless all of them are removed before."""
        self._is_at_end = True
        if self._process is not None:
            # Without a connection, the next set-up starts the commands.
            with suppress(NodeError):
                self._process.write_line("!")

    def _is_connected(self) -> bool:
        """Whether the keeper still reads, as far as this end knows."""
        if self._process is None:
            return False
        try:
            # The keeper ignores this line.
            self._process.write_line(":")
        except NodeError:
            return False
        return True

    def _send(self, line: str) -> None:
        try:
            if self._process is None:
                self._start()
            else:
                self._process.write_line(line)
        except NodeError as error:
            # The change that follows raises the node's error.
            self._process = None
            _LOG.info("%s will keep its set-up if this process dies: %s", self.session.name, error)

    def _start(self) -> None:
        variables = (
            f"PATH={SEARCH_PATH}",
            "LC_ALL=C",
            f"{_MARK}=kept",
            f"{_OWNER}={socket.gethostname()}:{os.getpid()}",
        )
        self._process = self.session.start("env", *variables, "sh", "-c", _KEEP)
        self._pid = self._process.read_line(_START_SECONDS)
        for line in self._lines:
            self._process.write_line(f"+{line}")
        if self._is_at_end:
            self._process.write_line("!")

    def _end(self) -> None:
        process = self._process
        self._process = None
        if process is None:
            return
        with suppress(NodeError):
            process.write_line(".")
        process.close()


def _written(text: str) -> str:
    """A command, in one line, that writes a text."""
    return f"echo {base64.b64encode(text.encode()).decode()} | base64 -d"


def execute_last_wills(session: NodeSession) -> None:
    """Undoes changes to a DUT whose controllers have ended. Changes of living controllers stay.

    Raises:
        NodeError: If the undo does not end, because a set-up at the same time would be partly undone.
    """
    command = ("sh", "-c", _EXECUTE, "execute", str(_UNDO_SECONDS))
    done = session.run(*command, timeout=2.0 * _UNDO_SECONDS).stdout.strip()
    if done == "late":
        raise NodeError(
            f"Node {session.name}: the set-up of an earlier run is still being undone after {_UNDO_SECONDS} s. Start "
            "this run again later. If that does not help, look there for a command that hangs (ps -ef)."
        )
    if done:
        _LOG.warning(
            "%s was set up by a controller that has since ended, and is now as it was before.",
            session.name,
        )
