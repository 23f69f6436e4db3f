"""Functions that sessions and processes share: they read and feed a channel, and name a command in an error."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from contextlib import suppress

import paramiko

CHUNK = 1 << 16
"""Bytes that are requested from a channel at once."""

BROKEN = (EOFError, paramiko.SSHException)
"""Exceptions of paramiko, besides OSError, if a connection breaks while a channel sends; reading sends, too."""


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
            except BROKEN:
                return
            if not chunk:
                return
            self._kept += chunk
            if self._limit is not None:
                del self._kept[: -self._limit]

    def data(self) -> bytes:
        """The bytes read and kept so far."""
        return bytes(self._kept)


def feed(channel: paramiko.Channel, data: bytes) -> None:
    """Sends the whole standard input of a command and closes it."""
    # The command or the connection may end meanwhile. The caller waits for the exit status, and sees which one it was.
    with suppress(OSError, *BROKEN):
        channel.sendall(data)
        channel.shutdown_write()


def close(channel: paramiko.Channel) -> None:
    """Closes a channel, also when its connection breaks at that moment."""
    # paramiko marks the channel as closed before it sends the end to the node, and sending may fail.
    with suppress(OSError, *BROKEN):
        channel.close()


def is_lost(channel: paramiko.Channel) -> bool:
    """Whether a closed channel ended because its connection was lost, and not because the node closed it."""
    return not channel.eof_received or not channel.get_transport().is_active()


def decode(data: bytes) -> str:
    """Decodes a node's output; bytes that are not UTF-8 are replaced."""
    return data.decode(errors="replace")


def shown(command: tuple[str, ...]) -> str:
    """A command for errors: in one line, quoted, with only the first line of a script, and shortened."""
    lines = [argument.strip().splitlines() if "\n" in argument else [argument] for argument in command]
    text = shlex.join(line[0] if len(line) == 1 else f"{line[0]}..." for line in lines if line)
    return f"`{text if len(text) <= 200 else text[:197] + '...'}`"


def ending(exit_status: int) -> str:
    """The end of a command in words."""
    return "was ended by a signal" if exit_status < 0 else f"ended with exit status {exit_status}"


def quoted_tail(stderr: str) -> str:
    """The end of an error message: the last lines of standard error, or a full stop."""
    lines = stderr.strip().splitlines()[-5:]
    return f": {' | '.join(lines).rstrip('.')}." if lines else "."
