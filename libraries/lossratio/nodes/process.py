"""A long-lived process on a node that reads and writes lines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress

import paramiko

from lossratio.errors import NodeError
from lossratio.nodes.connection import within
from lossratio.nodes.streams import (
    BROKEN,
    CHUNK,
    StreamReader,
    close,
    decode,
    ending,
    feed,
    is_lost,
    quoted_tail,
    shown,
)

_STDERR_TAIL = 8192
_LONGEST_LINE = 1 << 24
_WRITE_TIMEOUT = 30.0
_MEANWHILE = 1.0


class NodeProcess:
    """A long-lived process on a node that reads and writes lines over one channel; get it from `NodeSession.start`."""

    def __init__(self, node_name: str, command: tuple[str, ...], channel: paramiko.Channel) -> None:
        self.node_name = node_name
        self.command = command
        self._channel = channel
        self._buffer = bytearray()
        # Standard error is read all the time, because a process stops when its standard error is full.
        self._stderr = StreamReader(channel.recv_stderr, limit=_STDERR_TAIL)
        self._stderr.start()

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def exit_status(self) -> int | None:
        """The exit status; -1 after a signal or a lost connection, None while the process runs."""
        return self._channel.recv_exit_status() if self._channel.exit_status_ready() else None

    def stderr_tail(self) -> str:
        """The last few kilobytes of the process's standard error."""
        return decode(self._stderr.data())

    def write_line(self, text: str) -> None:
        """Sends one line.

        Raises:
            NodeError: If the process has ended, does not read its input, or the connection is lost.
        """
        if "\n" in text:
            raise ValueError("one line must not hold a line feed")
        if self._channel.exit_status_ready():
            raise NodeError(self._obituary())
        self._channel.settimeout(_WRITE_TIMEOUT)
        try:
            self._channel.sendall(text.encode() + b"\n")
        except TimeoutError as cause:
            raise NodeError(f"Node {self.node_name}: {shown(self.command)} does not read its input.") from cause
        except (OSError, *BROKEN) as cause:
            raise NodeError(self._obituary()) from cause
        finally:
            self._channel.settimeout(None)

    def read_line(self, timeout: float | None, meanwhile: Callable[[], object] | None = None) -> str:
        """Waits for one line, and returns it without its line feed.

        Args:
            timeout: Seconds to wait at most; None: no limit. While one thread waits without a limit, another thread may
                write lines. While it waits with a limit, no other thread may: the channel has one limit for both.
            meanwhile: Called about once a second while there is no line; never called without a timeout.

        Raises:
            NodeError: If no line came in time, or none can come any more: with the exit status and the last lines of
                standard error.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        end = self._buffer.find(b"\n")
        while end < 0:
            searched = len(self._buffer)
            if searched > _LONGEST_LINE:
                raise NodeError(f"Node {self.node_name}: {shown(self.command)} writes no lines, only {searched} bytes.")
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
        line = decode(bytes(self._buffer[:end]))
        del self._buffer[: end + 1]
        return line

    def close(self, timeout: float = 5.0) -> int | None:
        """Closes the process's standard input, waits for its end, then closes the channel.

        Args:
            timeout: Seconds to wait for its end.

        Returns:
            The exit status, or None if the process had not ended by then.
        """
        if not self._channel.closed:
            with within(timeout, lambda: close(self._channel)) as expired:
                feed(self._channel, b"")
                self._drain()
                self._channel.status_event.wait()
            close(self._channel)
            if expired.is_set():
                return None
        return self._channel.exit_status

    def _receive(self, deadline: float, meanwhile: Callable[[], object] | None) -> bytes | None:
        """The next part of the output; empty: the output has ended; None: no output until the deadline."""
        while True:
            try:
                if deadline < math.inf:
                    left = max(deadline - time.monotonic(), 0.0)
                    self._channel.settimeout(left if meanwhile is None else min(left, _MEANWHILE))
                return self._channel.recv(CHUNK)
            except TimeoutError:
                # Without a deadline, this was the limit of a thread that writes.
                if time.monotonic() >= deadline:
                    return None
                if meanwhile is not None:
                    meanwhile()
            except BROKEN as cause:
                raise NodeError(self._obituary()) from cause
            finally:
                if deadline < math.inf:
                    self._channel.settimeout(None)

    def _drain(self) -> None:
        with suppress(*BROKEN):
            while self._channel.recv(CHUNK):
                pass

    def _obituary(self) -> str:
        # The end of the output may come before the exit status and the last of standard error.
        self._channel.status_event.wait(1.0)
        self._stderr.join(1.0)
        if is_lost(self._channel):
            return f"Node {self.node_name}: the connection was lost while {shown(self.command)} ran."
        end = "closed its output" if self.exit_status is None else ending(self.exit_status)
        return f"Node {self.node_name}: {shown(self.command)} {end}{quoted_tail(self.stderr_tail())}"
