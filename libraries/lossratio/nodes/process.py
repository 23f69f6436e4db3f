"""A long-lived process on a node that reads and writes lines, and its channel."""

import math
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeAlias

from lossratio.errors import NodeError
from lossratio.nodes.limits import within
from lossratio.nodes.namespaces import Channel

if TYPE_CHECKING:
    import paramiko

CHUNK = 1 << 16
"""Bytes that are requested from a channel at once."""
_STDERR_TAIL = 8192
"""Bytes of standard error that are kept."""
_BY_SIGNAL = 128
"""Shells add the number of the signal that has ended a command."""
_LONGEST_LINE = 1 << 24
"""Bytes."""
_WRITE_TIMEOUT = 30.0
"""Seconds that a process may take to read a line."""
_MEANWHILE = 1.0
"""Seconds between calls of what is done while a process is waited for."""
AnyChannel: TypeAlias = "paramiko.Channel | Channel"
"""A channel of a connection, or of a namespace of this machine."""


def broken() -> "tuple[type[EOFError], type[paramiko.SSHException]]":
    """Exceptions, besides OSError, of a connection that breaks while a channel sends. Reading also sends.

    paramiko is imported only when something has gone wrong, here, and when a node is reached over SSH. Its import takes
    a tenth of the time of importing the keywords, and namespaces of this machine do not need paramiko.
    """
    import paramiko

    return (EOFError, paramiko.SSHException)


@contextmanager
def _quietly() -> Iterator[None]:
    """Leaves the block without an error if the connection breaks."""
    try:
        yield
    except OSError:
        return
    except broken():
        return


class StreamReader(threading.Thread):
    """Reads a stream to its end in the background, and keeps all of it or the last ``limit`` bytes."""

    def __init__(self, receive: Callable[[int], bytes], limit: int | None = None) -> None:
        super().__init__(daemon=True)
        self._receive = receive
        self._limit = limit
        self._kept = bytearray()

    def run(self) -> None:
        """Reads until the end of the stream."""
        while True:
            try:
                chunk = self._receive(CHUNK)
            except TimeoutError:
                # The channel's timeout belongs to the reader of the other stream.
                continue
            except broken():
                return
            if not chunk:
                return
            self._kept += chunk
            if self._limit is not None:
                del self._kept[: -self._limit]

    def data(self) -> bytes:
        """The bytes read and kept so far."""
        return bytes(self._kept)


def feed(channel: AnyChannel, data: bytes) -> None:
    """Sends the whole standard input of a command and closes it."""
    # The command or the connection may end meanwhile. The caller waits for the exit status, and sees which of them
    # ended.
    with _quietly():
        channel.sendall(data)
        channel.shutdown_write()


def close(channel: AnyChannel) -> None:
    """Closes a channel, even if its connection breaks at that moment."""
    # paramiko marks the channel as closed before it sends the end to the node, and sending may fail.
    with _quietly():
        channel.close()


def connection_lost(node_name: str, command: tuple[str, ...]) -> str:
    """The error of a command whose connection was lost while it ran."""
    return f"Node {node_name}: the connection was lost while {shown(command)} ran."


def is_lost(channel: AnyChannel) -> bool:
    """Whether a closed channel ended because its connection was lost, and not because the node closed it."""
    return not channel.eof_received or not channel.get_transport().is_active()


def shown(command: tuple[str, ...]) -> str:
    """A command for errors: in one line, quoted, with only the first line of a script, and shortened."""
    lines = [
        argument.strip().splitlines() if "\n" in argument else [argument] for argument in command
    ]
    text = shlex.join(line[0] if len(line) == 1 else f"{line[0]}..." for line in lines if line)
    return f"`{text if len(text) <= 200 else text[:197] + '...'}`"


def ending(exit_status: int) -> str:
    """The end of a command in words."""
    if exit_status < 0:
        return "was ended by a signal"
    return f"ended with exit status {exit_status}"


def was_killed(exit_status: int | None) -> bool:
    """Whether a signal has ended a command, or the program that its shell ran; or its connection was lost."""
    return exit_status is not None and (exit_status < 0 or exit_status > _BY_SIGNAL)


def quoted_tail(stderr: str) -> str:
    """The end of an error message: the last lines of standard error, or a full stop."""
    lines = stderr.strip().splitlines()[-5:]
    if lines:
        return f": {' | '.join(lines).rstrip('.')}."
    return "."


class NodeProcess(AbstractContextManager["NodeProcess"]):
    """A long-lived process on a node that reads and writes lines over one channel; get it from `NodeSession.start`.

    All methods raise `NodeError` if the connection is lost, or if the process has ended or does not read or write in
    time. The error has its exit status, and the last lines of its standard error.
    """

    def __init__(self, node_name: str, command: tuple[str, ...], channel: AnyChannel) -> None:
        self.node_name = node_name
        self.command = command
        self._channel = channel
        self._buffer = bytearray()
        # Standard error is read all the time, because a process stops when its standard error is full.
        self._stderr = StreamReader(channel.recv_stderr, limit=_STDERR_TAIL)
        self._stderr.start()

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def exit_status(self) -> int | None:
        """The exit status; -1 after a signal or a lost connection, None while the process runs."""
        if self._channel.exit_status_ready():
            return self._channel.recv_exit_status()
        return None

    def stderr_tail(self) -> str:
        """The last few kilobytes of the process's standard error."""
        return self._stderr.data().decode(errors="replace")

    def write_line(self, text: str) -> None:
        """Sends one line.

        Raises:
            NodeError: If the process has ended or does not read its input, or the connection is lost.
            ValueError: If the text has a line feed.
        """
        if "\n" in text:
            raise ValueError("a line must not contain a line feed")
        if self._channel.exit_status_ready():
            raise NodeError(self._obituary())

        self._channel.settimeout(_WRITE_TIMEOUT)
        try:
            self._channel.sendall(text.encode() + b"\n")
        except TimeoutError as cause:
            raise NodeError(
                f"Node {self.node_name}: {shown(self.command)} did not read its input within {_WRITE_TIMEOUT:g} s. "
                "Look at the load of the node and at the network to it."
            ) from cause
        except (OSError, *broken()) as cause:
            raise NodeError(self._obituary()) from cause
        finally:
            self._channel.settimeout(None)

    def read_line(
        self, timeout: float | None, meanwhile: Callable[[], object] | None = None
    ) -> str:
        """Waits for one line, and returns it without its line feed.

        While one thread waits without a limit, another thread may write lines. While it waits with a limit, no other
        thread may write, because the channel has one limit for both.

        Args:
            timeout: The maximum number of seconds to wait; None: no limit.
            meanwhile: Called about once a second, if there is a limit; None: nothing is called.

        Raises:
            NodeError: If the process has ended, the connection is lost, or there is no whole line in time.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        end = self._buffer.find(b"\n")
        while end < 0:
            searched = len(self._buffer)
            if searched > _LONGEST_LINE:
                raise NodeError(
                    f"Node {self.node_name}: {shown(self.command)} wrote {searched} bytes without a line break."
                )

            chunk = self._receive(deadline, meanwhile)
            if chunk is None:
                raise NodeError(
                    f"Node {self.node_name}: {shown(self.command)} gave no answer within {timeout:g} s"
                    f"{quoted_tail(self.stderr_tail())}"
                )
            if not chunk:
                raise NodeError(self._obituary())

            self._buffer += chunk
            end = self._buffer.find(b"\n", searched)

        line = self._buffer[:end].decode(errors="replace")
        del self._buffer[: end + 1]
        return line

    def close(self, timeout: float = 5.0) -> int | None:
        """Closes its standard input, waits for its end, closes the channel; returns the exit status (None: no end).

        Args:
            timeout: Seconds that its end may take.
        """
        if not self._channel.closed:
            with within(timeout, lambda: close(self._channel)) as expired:
                feed(self._channel, b"")
                self._read_to_the_end()
                self._channel.status_event.wait()
            close(self._channel)
            if expired.is_set():
                return None
        return self._channel.exit_status

    def _read_to_the_end(self) -> None:
        try:
            while self._channel.recv(CHUNK):
                pass
        except broken():
            return

    def _receive(self, deadline: float, meanwhile: Callable[[], object] | None) -> bytes | None:
        """The next part of the output; empty: the output has ended; None: no output until the deadline."""
        while True:
            try:
                if deadline < math.inf:
                    left = max(deadline - time.monotonic(), 0.0)
                    self._channel.settimeout(left if meanwhile is None else min(left, _MEANWHILE))
                return self._channel.recv(CHUNK)
            except TimeoutError:
                # Without a deadline, this is the time-out of another thread, which writes.
                if time.monotonic() >= deadline:
                    return None
                if meanwhile is not None:
                    meanwhile()
            except broken() as cause:
                raise NodeError(self._obituary()) from cause
            finally:
                if deadline < math.inf:
                    self._channel.settimeout(None)

    def _obituary(self) -> str:
        # The end of the output may come before the exit status and the last part of standard error.
        self._channel.status_event.wait(1.0)
        self._stderr.join(1.0)
        if is_lost(self._channel):
            return connection_lost(self.node_name, self.command)

        if self.exit_status is None:
            end = "closed its output"
        else:
            end = ending(self.exit_status)

        return (
            f"Node {self.node_name}: {shown(self.command)} {end}{quoted_tail(self.stderr_tail())}"
        )
