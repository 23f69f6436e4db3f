"""A TRex server on the TG: started where none runs, adopted where one runs that is the same, and stopped by its pid."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.errors import NodeError, TrafficError
from lossratio.nodes import LIVES, BackgroundProgram
from lossratio.traffic.session import Session

PROGRAM = "_t-rex-64"
"""The server's program. The script ``t-rex-64`` around it kills other programs by name, and binds cards anew."""

STATES = "/run/lossratio"
"""Where servers' files are on a node, all gone after a reboot."""

_POLL_SECONDS = 0.25
_STOP_SECONDS = 12.0
"""Twice as long must be shorter than a command on the node may take."""
_STATUS_SECONDS = 1.0
_LOG_LINES = 4
_SIGNALLED, _LAST_SIGNAL = 128, 64
_TELLING = ("error", "fail", "could not", "cannot", "unavailable", "not enough", "invalid", "no such", "unable")

# What it prints: "no directory", "no program", "no hugepages", or nothing.
_EXAMINE = """
[ -d "$1" ] || { echo "no directory"; exit 0; }
[ -f "$1/$2" ] || { echo "no program"; exit 0; }
[ "$3" = software ] || grep -q "^HugePages_Total: *[1-9]" /proc/meminfo || echo "no hugepages"
"""

# What it prints: "ready" or "starting", its id, and what the server was started with; or "taken" if another program has
# its port.
_LOOK = f"""{LIVES}
if lives; then
    if grep -qi " [0-9A-F]*:$2 [0-9A-F]*:0000 0A " /proc/net/tcp; then echo "ready $pid"; else echo "starting $pid"; fi
    cat "$1started-with"
elif grep -qi " [0-9A-F]*:$2 [0-9A-F]*:0000 0A " /proc/net/tcp; then
    echo taken
fi
"""

# Where it sleeps between its frames, it must get a CPU at once when it wakes up.
_RUN = """
priority=$1; shift
if [ "$priority" = realtime ] && chrt -r 10 true 2>/dev/null; then set -- chrt -r 10 "$@"; fi
LD_LIBRARY_PATH=.:./so/$(uname -m)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$@"
"""


@dataclass(frozen=True)
class ServerPlan:
    """The server that is wanted.

    Attributes:
        directory: The installation on the node.
        configuration: Contents of the configuration file.
        arguments: The command line behind the program; it names the configuration file as `configuration_path` says.
        state: The server's own directory on the node, see `state_directory`.
        rpc_port: TCP port of its requests.
        software: Whether it needs no hugepages.
        sleeps: Whether it sleeps between its frames, so that realtime priority does no harm to others.
        start_timeout: Seconds that it may take to start.
    """

    directory: str
    configuration: str
    arguments: tuple[str, ...]
    state: str
    rpc_port: int
    software: bool
    sleeps: bool
    start_timeout: float

    @property
    def described(self) -> str:
        """Everything that distinguishes the server from others."""
        return f"{self.directory}\n{shlex.join(self.arguments)}\n{self.configuration}"


def state_directory(name: str) -> str:
    """Where a server's files are on the node; its name keeps it apart from others there."""
    return f"{STATES}/trex-{name}"


def configuration_path(state: str) -> str:
    """Path of the configuration file in a server's directory."""
    return f"{state}/config.yaml"


def log_path(state: str) -> str:
    """Path of the log in a server's directory."""
    return f"{state}/log"


def installation_problem(session: Session, directory: str, *, software: bool) -> str | None:
    """What keeps a server from being started on a node, and the way out; None if nothing is known of.

    Args:
        session: A log-in on the node.
        directory: Where the installation should be.
        software: Whether the server needs no hugepages.
    """
    mode = "software" if software else "hardware"
    problem = session.run("sh", "-c", _EXAMINE, "examine", directory, PROGRAM, mode).stdout.strip()
    ways_out = {
        "no directory": f"there is no TRex: no directory {directory!r}. Unpack TRex there, or correct the generator's "
        "'directory' in the topology file (or TREX_HOME).",
        "no program": f"{directory!r} holds no TRex: there is no {PROGRAM} in it. The generator's 'directory' in the "
        "topology file (or TREX_HOME) is the one with the server's program in it.",
        "no hugepages": "TRex needs hugepages for its cards, and there are none. Reserve some (sysctl -w "
        "vm.nr_hugepages=1024), or set 'software: true' for the generator.",
    }
    return ways_out.get(problem)


class TrexServer:
    """A server on a node.

    Args:
        session: The log-in on the node, as root.
        plan: The server that is wanted.

    Attributes:
        is_ours: Whether it was started here; any other is left running in the end.
    """

    def __init__(self, session: Session, plan: ServerPlan) -> None:
        self.is_ours = False
        self._session = session
        self._plan = plan
        self._state = plan.state
        command = ("sh", "-c", _RUN, "run", "realtime" if plan.sleeps else "normal", f"./{PROGRAM}", *plan.arguments)
        self._program = BackgroundProgram(f"{plan.state}/", plan.directory, command)

    def ensure(self) -> None:
        """Makes sure that it runs: starts it, unless it runs already.

        Raises:
            TrafficError: If it cannot be started, or another one is in its place.
            NodeError: If the node is lost.
        """
        server = self._look()
        if server.pid is not None and server.started_with.strip() == self._plan.described.strip():
            self._wait_until_ready()
            return
        if server.pid is not None:
            raise TrafficError(
                f"{self._where}: a TRex server with another configuration runs there (process {server.pid}). Stop it "
                f"(kill -INT {server.pid}), or give this one a 'prefix', 'rpc_port' and 'publisher_port' of its own."
            )
        if server.is_taken:
            raise TrafficError(
                f"{self._where}: TCP port {self._plan.rpc_port} is taken by a program that lossratio did not start, "
                "maybe somebody's TRex server. Stop it, or give the generator another 'rpc_port' and 'publisher_port'."
            )
        problem = installation_problem(self._session, self._plan.directory, software=self._plan.software)
        if problem is not None:
            raise TrafficError(f"{self._where}: {problem}")
        self._start()

    def stop(self) -> None:
        """Stops it if it is ours: with SIGINT, and with SIGKILL where that does not help.

        Raises:
            TrafficError: If it does not end.
            NodeError: If the node is lost.
        """
        if not self.is_ours:
            return
        try:
            self._session.run(*self._program.stop("INT", _STOP_SECONDS))
        except NodeError:
            # If the node was lost, looking there raises the same error.
            if self.is_running():
                raise TrafficError(
                    f"{self._where}: the TRex server does not end. Look at it there ({self._state}/pid)."
                ) from None
        self.is_ours = False

    def is_running(self) -> bool:
        """Whether it still runs."""
        return self._look().pid is not None

    def log(self) -> str:
        """What it has written so far."""
        return self._session.run("sh", "-c", 'cat "$1" 2>/dev/null || true', "log", log_path(self._state)).stdout

    def last_words(self) -> str:
        """The lines of its log that say best what went wrong, how it ended if it has, and where the whole log is."""
        lines = [" ".join(line.split()) for line in self.log().splitlines() if line.strip()]
        telling = [line for line in lines if any(word in line.lower() for word in _TELLING)]
        words = " | ".join(telling[:_LOG_LINES] or lines[-_LOG_LINES:]) or "nothing at all"
        return f"{words} ({self._ending()}; log: {log_path(self._state)})"

    @property
    def _where(self) -> str:
        return f"Node {self._session.name}"

    def _start(self) -> None:
        self._session.run("mkdir", "-p", "-m", "700", self._state)
        self._session.put(self._plan.configuration.encode(), configuration_path(self._state))
        self._session.put(self._plan.described.encode(), f"{self._state}/started-with")
        self.is_ours = True
        # It ends with the reservation, as all that is started this way.
        shell = self._session.start(*self._program.start)
        # -1 is a lost connection, which the next look at the node finds.
        if (status := shell.close() or 0) > 0:
            words = " ".join(shell.stderr_tail().split()) or "nothing at all"
            raise TrafficError(f"{self._where}: TRex cannot be started (exit status {status}); the shell says: {words}")
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self._plan.start_timeout
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
        raise TrafficError(f"{self._where}: TRex was not ready within {self._plan.start_timeout:g} s; it says: {words}")

    def _status(self) -> int | None:
        """Its exit status, as a shell has it; None as long as it runs, or if its shell was killed, too."""
        status = self._session.run("sh", "-c", 'cat "$1" 2>/dev/null || true', "status", self._program.status).stdout
        return int(status) if status.strip().isdecimal() else None

    def _ending(self) -> str:
        deadline = time.monotonic() + _STATUS_SECONDS
        while (status := self._status()) is None and self._look().pid is None and time.monotonic() < deadline:
            # Its shell takes note of it just after its end.
            time.sleep(_POLL_SECONDS)
        if status is None:
            return "no exit status" if self._look().pid is None else "it still runs"
        signal = status - _SIGNALLED
        return f"ended by signal {signal}" if 0 < signal <= _LAST_SIGNAL else f"exit status {status}"

    def _look(self) -> _Server:
        port = f"{self._plan.rpc_port:04X}"
        lines = self._session.run("sh", "-c", _LOOK, "look", self._program.files, port).stdout.splitlines()
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
