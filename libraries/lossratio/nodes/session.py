"""A log-in on a node, or the way into a namespace: runs commands, writes and reads files, starts processes."""

import secrets
import shlex
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lossratio.errors import NodeError
from lossratio.nodes import process
from lossratio.nodes.credentials import NO_CREDENTIALS, Credentials
from lossratio.nodes.limits import within
from lossratio.nodes.namespaces import Client, open_here, open_namespace, open_pod
from lossratio.nodes.process import CHUNK, AnyChannel, NodeProcess, StreamReader, broken, shown
from lossratio.topology import Interface, Node

if TYPE_CHECKING:
    import paramiko

AnyClient: TypeAlias = "paramiko.SSHClient | Client"
"""A log-in on a node, or the way into a namespace of this machine."""
COMMAND_SECONDS = 30.0
"""Seconds that a command on a node may take, unless its caller gives it more."""
REPORT_SECONDS = 120.0
"""Seconds that a script may take that describes a node, because it starts dozens of programs."""
_OPEN_TIMEOUT = 30.0
_SLOWEST_TRANSFER = 1e5
"""Smallest rate at which a file must be written, bytes per second."""

# The size shows if the connection was lost half-way: `cat` ends then, too.
_PUT = """
umask 077 && cat > "$2" && [ "$(wc -c < "$2")" -eq "$4" ] && chmod "$3" "$2" && mv -fT -- "$2" "$1" && exit
rm -f -- "$2"; exit 1
"""


@dataclass(frozen=True)
class CommandResult:
    """The result of a command on a node."""

    command: tuple[str, ...]
    """The requested command, one string per argument."""
    exit_status: int
    """Its exit status; -1 if a signal ended it."""
    stdout: str
    """Its standard output, decoded as UTF-8."""
    stderr: str
    """Its standard error, decoded as UTF-8."""


class CommandRunner(Protocol):
    """Runs commands on a node; `NodeSession` is one."""

    @property
    def name(self) -> str:
        """The node's name in the topology."""

    def run(
        self,
        *command: str,
        timeout: float = COMMAND_SECONDS,
        check: bool = True,
        stdin: str | bytes | None = None,
        most: int | None = None,
    ) -> CommandResult:
        """Runs a command to its end; see `NodeSession.run`.

        Args:
            command: The program and its arguments, one string each.
            timeout: Seconds that it may take in all.
            check: Whether an exit status other than 0 is an error.
            stdin: What it reads from its standard input; None: nothing.
            most: Bytes that it may print; None: no limit.
        """


class NodeSession(AbstractContextManager["NodeSession"]):
    """A log-in on a node; open it with `NodeSession.connect`, best in a ``with`` statement.

    Commands are lists of arguments: they are quoted for the node's shell and never interpreted by it. Where the
    topology says ``sudo: true``, all of them run under ``sudo -n``.

    Attributes:
        name: The node's name in the topology.
        node: The node in the topology, with its address.
        prefix: Arguments that `start` puts before each command, e.g. ``env NAME=value``; empty unless it is set.
    """

    def __init__(self, name: str, node: Node, client: AnyClient, credentials: Credentials) -> None:
        self.name = name
        self.node = node
        self.prefix: tuple[str, ...] = ()
        self._client = client
        self._is_open = True
        self._credentials = credentials

    @classmethod
    def connect(
        cls, name: str, node: Node, credentials: Credentials = NO_CREDENTIALS
    ) -> "NodeSession":
        """Logs in on a node, or enters its namespace on this machine.

        Args:
            name: The node's name in the topology.
            node: The node in the topology, with its address.
            credentials: Secrets; those that are missing come from the environment.

        Raises:
            NodeError: If the node cannot be reached within its ``connect_timeout``, its host key is unknown or has
                changed, or it refuses the log-in.
        """
        session = cls(name, node, _opened(name, node, credentials), credentials)
        if node.host is not None:
            session._check_shell()
        return session

    @classmethod
    def here(cls, name: str) -> "NodeSession":
        """Programs of this machine, without any log-in."""
        return cls(
            name, Node(type="TG", interfaces={name: Interface()}), open_here(), NO_CREDENTIALS
        )

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<NodeSession {self.name} {self.node.place}>"

    def restore(self) -> None:
        """Logs in again if the connection was lost; a session that was closed stays closed.

        Raises:
            NodeError: If the log-in fails; see `connect`.
        """
        if not self._is_open:
            return
        try:
            # Only a request shows whether the connection is lost.
            process.close(self._open_channel(("restore",), self.node.connect_timeout))
        except NodeError:
            self._client.close()
            self._client = _opened(self.name, self.node, self._credentials)

    def close(self) -> None:
        """Closes the connection; the standard input of every process started over it closes with it."""
        self._is_open = False
        self._client.close()

    def run(
        self,
        *command: str,
        timeout: float = COMMAND_SECONDS,
        check: bool = True,
        stdin: str | bytes | None = None,
        most: int | None = None,
    ) -> CommandResult:
        """Runs a command to its end.

        Args:
            command: The program and its arguments, one string each.
            timeout: Seconds that it may take in all.
            check: Whether an exit status other than 0 is an error.
            stdin: What it reads from its standard input; None: nothing.
            most: Bytes that it may print; None: no limit.

        Raises:
            NodeError: If it cannot be started, fails, takes too long or prints too much, or the connection is lost.
        """
        given = stdin.encode() if isinstance(stdin, str) else stdin or b""
        exit_status, stdout, stderr = self._execute(command, timeout, given, most)
        result = CommandResult(command, exit_status, stdout.decode(errors="replace"), stderr)
        if check and result.exit_status != 0:
            tail = process.quoted_tail(result.stderr)
            raise NodeError(
                f"Node {self.name}: {shown(command)} {process.ending(result.exit_status)}{tail}"
            )
        return result

    def put(self, data: bytes, remote_path: str, mode: int = 0o644) -> None:
        """Writes a file on the node completely or not at all: under a temporary name beside it, then renamed.

        Raises:
            NodeError: If it cannot be written, or the connection is lost.
        """
        temporary = f"{remote_path}.{secrets.token_hex(4)}"
        command = ("sh", "-c", _PUT, "put", remote_path, temporary, f"{mode:o}", str(len(data)))
        exit_status, _, stderr = self._execute(
            command, _OPEN_TIMEOUT + len(data) / _SLOWEST_TRANSFER, data
        )
        if exit_status != 0:
            raise NodeError(
                f"Node {self.name}: cannot write {remote_path}{process.quoted_tail(stderr)}"
            )

    def get(self, remote_path: str) -> bytes:
        """Reads a file of the node.

        Raises:
            NodeError: If it cannot be read, or the connection is lost.
        """
        exit_status, stdout, stderr = self._execute(("cat", "--", remote_path), _OPEN_TIMEOUT)
        if exit_status != 0:
            raise NodeError(
                f"Node {self.name}: cannot read {remote_path}{process.quoted_tail(stderr)}"
            )
        return stdout

    def start(self, *command: str, plain: bool = False) -> NodeProcess:
        """Starts a long-lived process that reads and writes lines, with the session's prefix unless it is `plain`.

        Raises:
            NodeError: If it cannot be started, or the connection is lost.
        """
        channel = self._open_channel(command, _OPEN_TIMEOUT)
        with within(_OPEN_TIMEOUT, lambda: process.close(channel)):
            self._exec(channel, command if plain else (*self.prefix, *command))
        return NodeProcess(self.name, command, channel)

    def _check_shell(self) -> None:
        """Makes sure that the node runs two commands at once, and that its shell writes nothing of its own.

        Raises:
            NodeError: If it does not.
        """
        try:
            with self.start("cat", plain=True):
                said = self.run("true").stdout
            if said.strip():
                first = said.strip().splitlines()[0]
                raise NodeError(
                    f"Node {self.name}: its shell writes {first!r} before the output of every command. Make its "
                    "start-up files, such as ~/.bashrc, write only if the shell is interactive: [ -t 1 ] && echo ..."
                )
        except BaseException:
            self.close()
            raise

    def _execute(
        self, command: tuple[str, ...], timeout: float, stdin: bytes = b"", most: int | None = None
    ) -> tuple[int, bytes, str]:
        """The exit status of a command, its standard output and its standard error."""
        deadline = time.monotonic() + timeout
        channel = self._open_channel(command, timeout)
        stderr = StreamReader(channel.recv_stderr)
        exit_status = -1

        with within(deadline - time.monotonic(), lambda: process.close(channel)) as expired:
            try:
                self._exec(channel, command, reads_nothing=not stdin)
                stderr.start()
                if stdin:
                    threading.Thread(
                        target=process.feed, args=(channel, stdin), daemon=True
                    ).start()
                stdout = b"".join(_chunks(self.name, channel, command, most))
                stderr.join()
                exit_status = channel.recv_exit_status()
                lost = process.is_lost(channel)
            except NodeError:
                if not expired.is_set():
                    raise
            except broken() as cause:
                if not expired.is_set():
                    raise NodeError(process.connection_lost(self.name, command)) from cause
            finally:
                process.close(channel)

        if exit_status < 0 and expired.is_set():
            printed = process.quoted_tail(stderr.data().decode(errors="replace"))
            raise NodeError(
                f"Node {self.name}: {shown(command)} did not end within {timeout:g} s and was abandoned. It may "
                f"still be running there, or the node no longer answers{printed}"
            )
        if exit_status < 0 and lost:
            raise NodeError(process.connection_lost(self.name, command))
        return exit_status, stdout, stderr.data().decode(errors="replace")

    def _open_channel(self, command: tuple[str, ...], timeout: float) -> AnyChannel:
        transport = self._client.get_transport()
        if transport is None:
            why = "the connection is lost" if self._is_open else "the session is closed"
            raise NodeError(f"Node {self.name}: {why}; cannot run {shown(command)}.")
        try:
            return transport.open_session(timeout=timeout)
        except (OSError, *broken()) as cause:
            said = str(cause).rstrip(".")
            way_out = ""
            if not transport.is_active():
                why = "the connection is lost"
            elif said.startswith("Timeout"):
                why = f"its sshd did not answer within {timeout:g} s"
                way_out = " Look at its power, its load, and the network on the way to it."
            elif hasattr(cause, "code"):
                # paramiko.ChannelException, which is not imported for one name.
                why = "its sshd refuses a further session"
                way_out = " Raise MaxSessions in its sshd_config (10 is usual), and reload sshd."
            else:
                why = f"no channel: {said}"

            raise NodeError(
                f"Node {self.name}: {why}; cannot run {shown(command)}.{way_out}"
            ) from cause

    def _exec(
        self, channel: AnyChannel, command: tuple[str, ...], *, reads_nothing: bool = False
    ) -> None:
        # A namespace of this machine is entered with sudo already.
        line = shlex.join(
            ("sudo", "-n", "--", *command) if self.node.sudo and self.node.host else command
        )
        try:
            # Closing the input of a command that ends at the same moment may break the connection: paramiko may send
            # the end of the input after the end of the channel, which OpenSSH takes for a broken client.
            channel.exec_command(f"{line} </dev/null" if reads_nothing else line)
        except (OSError, *broken()) as cause:
            why = str(cause).rstrip(".") or "the connection was lost"
            raise NodeError(f"Node {self.name}: cannot start {shown(command)}: {why}.") from cause


def _opened(name: str, node: Node, credentials: Credentials) -> AnyClient:
    if node.is_here:
        return open_here()
    if node.pod is not None:
        return open_pod(name, node)
    if node.netns is not None or node.container is not None:
        return open_namespace(name, node)

    # Imported here, as paramiko is: testbeds of this machine do without it.
    from lossratio.nodes.connection import open_client

    return open_client(name, node, credentials.completed(name))


def _chunks(
    name: str, channel: AnyChannel, command: tuple[str, ...], most: int | None
) -> Iterator[bytes]:
    """What a command on a node prints; an error if it is more than so many bytes."""
    printed = 0
    for chunk in iter(lambda: channel.recv(CHUNK), b""):
        printed += len(chunk)
        if most is not None and printed > most:
            raise NodeError(f"Node {name}: {shown(command)} printed more than {most:,} bytes.")
        yield chunk
