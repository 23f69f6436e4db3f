"""A TRex server on the TG: started if none runs, adopted if the same server runs already, and stopped by its pid."""

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.errors import NodeError, TrafficError
from lossratio.nodes import LIVES, BackgroundProgram, NodeSession, before_ordinary
from lossratio.topology import TrexGenerator

PROGRAM = "_t-rex-64"
"""The server's program. Its wrapper script ``t-rex-64`` is not used: it kills programs by name, and rebinds NICs."""
STATES = "/run/lossratio"
"""Directory of servers' files on a node; a reboot removes it."""
_POLL_SECONDS = 0.25
_STOP_SECONDS = 12.0
"""Seconds to wait after each signal; two such waits must be shorter than the time limit of a command on the node."""
_STATUS_SECONDS = 1.0
_LOG_LINES = 4
_SIGNALLED, _LAST_SIGNAL = 128, 64
_SIGN_OF_FAULT = re.compile(
    "error|fail|could not|cannot|unavailable|not enough|invalid|no such|unable", re.IGNORECASE
)

# The script prints "no directory", "no program", "no hugepages", or nothing.
_EXAMINE = """
[ -d "$1" ] || { echo "no directory"; exit 0; }
[ -f "$1/$2" ] || { echo "no program"; exit 0; }
[ "$3" = software ] || grep -q "^HugePages_Total: *[1-9]" /proc/meminfo || echo "no hugepages"
"""

# The script prints "ready" or "starting", the server's id, and the description that it was started with; or "taken" if
# another program has the server's port.
_LOOK = f"""{LIVES}
if lives; then
    if grep -qi " [0-9A-F]*:$2 [0-9A-F]*:0000 0A " /proc/net/tcp; then echo "ready $pid"; else echo "starting $pid"; fi
    cat "$1started-with"
elif grep -qi " [0-9A-F]*:$2 [0-9A-F]*:0000 0A " /proc/net/tcp; then
    echo taken
fi
"""

_PRIORITY = 10
"""Its priority if it sleeps between frames: it must get a CPU at once when it wakes up."""

_RUN = """
LD_LIBRARY_PATH=.:./so/$(uname -m)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$@"
"""


@dataclass(frozen=True)
class ServerPlan:
    """The requested server."""

    directory: str
    """The installation on the node."""
    configuration: str
    """Contents of the configuration file."""
    arguments: tuple[str, ...]
    """The program's arguments; they name the configuration file by its `configuration_path`."""
    state: str
    """The server's own directory on the node."""
    settings: TrexGenerator
    """The generator's settings in the topology file."""
    sleeps: bool
    """Whether the server sleeps between its frames, so that realtime priority does no harm to other programs."""

    @property
    def described(self) -> str:
        """Everything that distinguishes the server from other servers."""
        return f"{self.directory}\n{shlex.join(self.arguments)}\n{self.configuration}"


def configuration_path(state: str) -> str:
    """Path of the configuration file in a server's directory."""
    return f"{state}/config.yaml"


def installation_problem(session: NodeSession, directory: str, *, software: bool) -> str | None:
    """Why a server cannot start on a node, and the remedy; None if there is no known reason.

    In software mode it needs no hugepages.
    """
    mode = "software" if software else "hardware"
    problem = session.run("sh", "-c", _EXAMINE, "examine", directory, PROGRAM, mode).stdout.strip()
    ways_out = {
        "no directory": f"there is no TRex: no directory {directory!r}. Unpack TRex there, or correct the generator's "
        "'directory' in the topology file (or TREX_HOME).",
        "no program": f"{directory!r} has no TRex: there is no {PROGRAM} in it. Set the generator's 'directory' in "
        "the topology file (or TREX_HOME) to the directory with the server's program.",
        "no hugepages": "TRex needs hugepages for its cards, but there are none. Reserve some (sysctl -w "
        "vm.nr_hugepages=1024), or set 'software: true' for the generator.",
    }
    return ways_out.get(problem)


class TrexServer:
    """A server on a node; at the end, it is left running, unless this object started it (`is_ours`)."""

    def __init__(self, session: NodeSession, plan: ServerPlan) -> None:
        self.is_ours = False
        self._session = session
        self._plan = plan
        self._settings = plan.settings
        command = ("sh", "-c", _RUN, "run", f"./{PROGRAM}", *plan.arguments)
        if plan.sleeps:
            command = before_ordinary(_PRIORITY, command)
        self.program = BackgroundProgram(f"{plan.state}/", plan.directory, command)

    def ensure(self) -> None:
        """Makes sure that the server runs: starts it, unless it already runs.

        Raises:
            TrafficError: If another server has its place or its TCP port, TRex is not installed, or it does not start.
        """
        server = self._look()
        if server.pid is not None and server.started_with.strip() == self._plan.described.strip():
            self._wait_until_ready()
            return
        if server.pid is not None:
            raise TrafficError(
                f"{self._where}: a TRex server with another configuration runs there (process {server.pid}). Stop "
                f"it (kill -INT {server.pid}), or give this one another 'prefix', 'rpc_port' and 'publisher_port'."
            )
        if server.is_taken:
            raise TrafficError(
                f"{self._where}: TCP port {self._settings.rpc_port} is in use by a program that lossratio did not "
                "start, possibly another TRex server. Stop it, or give the generator another 'rpc_port' and "
                "'publisher_port'."
            )

        problem = installation_problem(
            self._session, self._plan.directory, software=self._settings.software
        )
        if problem is not None:
            raise TrafficError(f"{self._where}: {problem}")
        self._start()

    def stop(self) -> None:
        """Stops the server if it is ours: with SIGINT, and with SIGKILL if SIGINT does not end it.

        Raises:
            TrafficError: If it does not end.
        """
        if not self.is_ours:
            return
        try:
            self._session.run(*self.program.stop("INT", _STOP_SECONDS))
        except NodeError:
            # If the node was lost, the question to it raises the same error.
            if self.is_running():
                raise TrafficError(
                    f"{self._where}: the TRex server does not end. Kill the process whose id is in "
                    f"{self._plan.state}/pid."
                ) from None
        self.is_ours = False

    def is_running(self) -> bool:
        """Whether the server still runs."""
        return self._look().pid is not None

    def log(self) -> str:
        """The server's output so far."""
        return self._session.run(
            "sh", "-c", 'cat "$1" 2>/dev/null || true', "log", self.program.log
        ).stdout

    def last_words(self) -> str:
        """The log's lines that best show the fault, how the server ended if it has, and the path of the whole log."""
        lines = [" ".join(line.split()) for line in self.log().splitlines() if line.strip()]
        faults = [line for line in lines if _SIGN_OF_FAULT.search(line)]
        words = " | ".join(faults[:_LOG_LINES] or lines[-_LOG_LINES:]) or "nothing at all"
        deadline = time.monotonic() + _STATUS_SECONDS

        while (
            (status := self._status()) is None
            and self._look().pid is None
            and time.monotonic() < deadline
        ):
            # The server's shell writes the status just after the server's end.
            time.sleep(_POLL_SECONDS)

        if status is None:
            ending = "no exit status" if self._look().pid is None else "it still runs"
        else:
            signal = status - _SIGNALLED
            if 0 < signal <= _LAST_SIGNAL:
                ending = f"ended by signal {signal}"
            else:
                ending = f"exit status {status}"

        return f"{words} ({ending}; log: {self.program.log})"

    @property
    def _where(self) -> str:
        return f"Node {self._session.name}"

    def _start(self) -> None:
        self._session.run("mkdir", "-p", "-m", "700", self._plan.state)
        self._session.put(self._plan.configuration.encode(), configuration_path(self._plan.state))
        self._session.put(self._plan.described.encode(), f"{self._plan.state}/started-with")
        self.is_ours = True
        # The server ends with the reservation, like all processes that are started this way.
        shell = self._session.start(*self.program.start)
        # -1 is a lost connection; the next command on the node reports it.
        if (status := shell.close() or 0) > 0:
            words = " ".join(shell.stderr_tail().split()) or "nothing at all"
            raise TrafficError(
                f"{self._where}: TRex cannot be started (exit status {status}); the shell says: {words}"
            )

        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self._settings.start_timeout
        has_begun = False
        while time.monotonic() < deadline:
            server = self._look()
            if server.is_ready:
                return
            if has_begun and server.pid is None:
                raise TrafficError(
                    f"{self._where}: TRex does not start with this configuration; it says: {self.last_words()}"
                )

            has_begun = has_begun or server.pid is not None or self._status() is not None
            time.sleep(_POLL_SECONDS)

        words = self.last_words()
        self.stop()
        seconds = self._settings.start_timeout
        raise TrafficError(
            f"{self._where}: TRex was not ready within {seconds:g} s; it says: {words}"
        )

    def _status(self) -> int | None:
        """The server's exit status, as a shell reports it; None while it runs, or if its shell was also killed."""
        status = self._session.run(
            "sh", "-c", 'cat "$1" 2>/dev/null || true', "status", self.program.status
        ).stdout
        if status.strip().isdecimal():
            return int(status)
        return None

    def _look(self) -> "_Server":
        port = f"{self._settings.rpc_port:04X}"
        lines = self._session.run(
            "sh", "-c", _LOOK, "look", self.program.files, port
        ).stdout.splitlines()
        first: Sequence[str] = lines[0].split() if lines else ()
        if len(first) == 2:
            return _Server(int(first[1]), first[0] == "ready", "\n".join(lines[1:]))
        return _Server(is_taken=bool(first))


@dataclass(frozen=True)
class _Server:
    pid: int | None = None
    is_ready: bool = False
    started_with: str = ""
    is_taken: bool = False
