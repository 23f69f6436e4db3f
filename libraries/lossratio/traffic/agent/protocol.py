"""The agent's protocol: one JSON object per line, a reply for each request.

A request is ``{"id": 1, "op": "trial", ...}``. Its reply is ``{"id": 1, "result": {...}}``, or
``{"id": 1, "error": {"kind": "interface_down", "message": "..."}}``.
"""

from __future__ import annotations

import json
import os
import select
from typing import Any, Dict, Iterator

PROTOCOL = 1
"""Version of the protocol; both sides refuse any other."""

Message = Dict[str, Any]


class AgentError(Exception):
    """A request cannot be fulfilled.

    Attributes:
        kind: What sort of error it is, for programs, e.g. ``interface_down``.
        message: What failed and what to do, for people.
    """

    def __init__(self, kind: str, message: str) -> None:
        # All of the arguments, so that it can be pickled.
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class ControllerGoneError(Exception):
    """Nobody reads or writes the other ends of the agent's streams any more."""


class Channel:
    """The agent's end of the conversation.

    Args:
        read_fd: File descriptor that requests come from.
        write_fd: File descriptor that replies go to.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._hang_up = select.poll()
        self._hang_up.register(read_fd, select.POLLRDHUP)

    def lines(self) -> Iterator[bytes]:
        """The lines that come in, one request each, until the controller's end is closed."""
        with os.fdopen(os.dup(self._read_fd), "rb") as lines:
            yield from lines

    def reply(self, message: Message) -> None:
        """Sends one reply.

        Raises:
            ControllerGoneError: If nobody would read it.
        """
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._write_fd, data) :]
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ControllerGoneError from error

    def check(self) -> None:
        """Looks whether the controller is still there, without waiting.

        Raises:
            ControllerGoneError: If it is not.
        """
        if self._hang_up.poll(0):
            raise ControllerGoneError


def decode(line: bytes) -> Message:
    """Reads a request.

    Raises:
        AgentError: Of kind ``bad_request``, if the line is none.
    """
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    if not isinstance(request, dict) or not isinstance(request.get("op"), str):
        raise AgentError("bad_request", f"Not a request (a JSON object with 'id' and 'op'): {line[:200]!r}.")
    return request
