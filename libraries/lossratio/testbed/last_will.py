"""Has a DUT put back to how it was although the controller that has set it up died: by whoever comes next."""

from __future__ import annotations

import base64
import logging
import os
import shlex
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lossratio.errors import NodeError
from lossratio.nodes import NodeProcess, NodeSession

_LOG = logging.getLogger(__name__)
_MARK = "LOSSRATIO_WILL"
_OWNER = "LOSSRATIO_WILL_OF"
_START_SECONDS = 10.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Keeps the commands, the newest first. As long as its input is open, its controller is alive, and it obeys nobody else.
# Afterwards it has a child whose environment says so, and a signal makes it run them. It waits for that child with
# `wait`, as a shell sees to a signal at once only then. The child ignores all signals that it does.
# A controller that has begun to put the DUT back asks for them to be run at its own end; but not once somebody else has
# set up a DUT on this node meanwhile.
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
trap 'kill -KILL $!; eval "$undo"; exit 0' USR1
while :; do MARK=open sleep 60 & wait $!; done
""".replace("MARK", _MARK).replace("OWNER", _OWNER)

# A child that has outlived its keeper has somebody else's process for a parent, who knows nothing of wills.
_EXECUTE = """
found=
for environment in $(grep -slz '^MARK=open$' /proc/[0-9]*/environ); do
    parent=$(sed -n 's/^PPid:[[:space:]]*//p' "${environment%environ}status" 2>/dev/null)
    grep -sqz '^MARK=kept$' "/proc/$parent/environ" && found="$found $parent"
done
[ -n "$found" ] || exit 0
kill -USR1 $found
tries=0
while [ "$tries" -lt 100 ] && kill -0 $found 2>/dev/null; do
    sleep 0.1
    tries=$((tries + 1))
done
echo executed
""".replace("MARK", _MARK)

# It may have ended, and its id be another process's.
_KILL = """grep -sqz '^MARK=kept$' "/proc/$1/environ" && kill -KILL "$1" """.replace("MARK", _MARK)


@dataclass
class LastWill:
    """What undoes the changes to a DUT, kept by a process on its node; a `lossratio.nodes.node.Will`.

    Attributes:
        session: The log-in on the node.
    """

    session: NodeSession
    _lines: list[str] = field(default_factory=list)
    _process: NodeProcess | None = None
    _pid: str = ""
    _is_at_end: bool = False

    def add(self, command: Sequence[str], stdin: str | None) -> None:
        """Adds a command that is to be run before all earlier ones."""
        line = shlex.join(command)
        if "\n" in line:
            # The keeper reads lines.
            line = f'eval "$({_written(line)})"'
        if stdin is not None:
            line = f"{_written(stdin)} | {line}"
        self._lines.append(line)
        self._tell(f"+{line}")

    def drop_last(self) -> None:
        """Takes the command out that was added last; with the last one, it ends."""
        self._lines.pop()
        if self._lines:
            self._tell("-")
        else:
            self._end()

    def keep(self) -> None:
        """Makes sure that it is kept, after the connection may have been lost."""
        if not self._lines:
            return
        try:
            if self._process is None:
                raise NodeError("It was lost.")
            self._process.write_line(":")
        except NodeError:
            # The old one would be executed by whoever comes next.
            self.session.run("sh", "-c", _KILL, "kill", self._pid, check=False)
            self._start()

    def execute_at_end(self) -> None:
        """Has it executed as soon as this process, or its connection, ends, unless all of it is taken out before."""
        self._is_at_end = True
        if self._process is not None:
            # Without a connection, the next set-up sees to it.
            with suppress(NodeError):
                self._process.write_line("!")

    def _tell(self, line: str) -> None:
        try:
            if self._process is None:
                self._start()
            else:
                self._process.write_line(line)
        except NodeError as error:
            # The change that follows finds out what is wrong with the node.
            self._process = None
            _LOG.info("Nobody would put %s back if this process died: %s", self.session.name, error)

    def _start(self) -> None:
        variables = (f"PATH={_PATH}", "LC_ALL=C", f"{_MARK}=kept", f"{_OWNER}={socket.gethostname()}:{os.getpid()}")
        self._process = self.session.start("env", *variables, "sh", "-c", _KEEP)
        self._pid = self._process.read_line(_START_SECONDS)
        for line in self._lines:
            self._process.write_line(f"+{line}")
        if self._is_at_end:
            self._process.write_line("!")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(NodeError):
            process.write_line(".")
        process.close()


def _written(text: str) -> str:
    """A command that writes a text, in one line."""
    return f"echo {base64.b64encode(text.encode()).decode()} | base64 -d"


def execute_last_wills(session: NodeSession) -> None:
    """Puts a DUT back to how it was before controllers set it up that are gone now.

    Those that are alive are left alone: their wills are not open yet.

    Raises:
        NodeError: If the connection is lost.
    """
    done = session.run("sh", "-c", _EXECUTE)
    if done.stdout.strip():
        _LOG.warning("%s was put back to how it was: whoever had set it up is gone.", session.name)
