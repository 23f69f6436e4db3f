# SPDX-License-Identifier: Apache-2.0
"""The agent's protocol: one JSON object per line, a reply for each request.

A request is ``{"id": 1, "op": "run", "plan": {...}}``. Its reply is ``{"id": 1, "result": {...}}``, or
``{"id": 1, "error": {"kind": "interface_down", "message": "..."}}``. A plan without an end has begun when its reply
``{"id": 1, "result": {}}`` comes; it ends with ``{"id": 2, "op": "stop"}``, whose reply has the counters. If a plan
wants notes, lines such as ``{"id": 1, "note": {"sent": 5000, "received": 4990}}`` come before the reply. While traffic
flows, the controller sends an empty line every second as a sign of life.

If another node's agent has the other end of a path, both get the same request. At certain points, each agent sends a
line such as ``{"id": 1, "meet": {"ready": 77, "now": 12.5}}`` with what the other one must know. It then waits for
``{"op": "met", "said": {...}}`` with what the other one sent, and for ``"at"``: when both begin, by its own clock. A
``met`` without ``said`` ends the request: the other agent has failed.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterator, Mapping, TypeVar

PROTOCOL = 5
"""Version of the protocol; both sides refuse any other."""
SILENCE_SECONDS = 5.0
"""Seconds without a line after which the controller counts as gone while traffic flows."""
STALL_SECONDS = 1.0
"""If this many seconds pass between two checks, this machine itself has stood still, because it checks several times a
second."""
MOST_STALLED = 30.0
"""The maximum number of seconds of such stalls that excuse a silence; afterwards, traffic ends, however busy this
machine is."""
Message = Dict[str, Any]
Check = Callable[[], None]
"""Raises an exception if the controller is gone; called several times a second while traffic flows."""
_LINE_SECONDS = 0.1
RecordT = TypeVar("RecordT")
_NO_PARTS: Mapping[str, Any] = MappingProxyType({})
_PLAIN: Mapping[str, Any] = MappingProxyType(
    {"int": int, "float": (int, float), "str": str, "bool": bool, "Message": dict}
)


class AgentError(Exception):
    """A request cannot be fulfilled: `kind` is for programs, e.g. ``interface_down``, and `message` for people."""

    def __init__(self, kind: str, message: str) -> None:
        # All arguments, so that it can be pickled.
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


def unsupported(message: str) -> AgentError:
    """The error for a request that a generator cannot fulfil."""
    return AgentError("unsupported", message)


class ControllerGoneError(Exception):
    """The controller has closed its ends of the agent's streams, or was silent for too long; with the reason."""


def read_record(kind: type[RecordT], data: Any, parts: Mapping[str, type[Any]] = _NO_PARTS) -> RecordT:
    """Makes a dataclass from its JSON data, as `dataclasses.asdict` wrote it.

    Fields with a plain type, with one of the `parts`, or with tuples of these are checked, and a field that the class
    does not have is refused (``bad_request``). `parts` are the classes of the records in it, by the names of the fields
    that hold one, several or none of them.

    Raises:
        AgentError: If the data do not fit the class.
    """
    try:
        record = kind(**{name: _part(data[name], parts.get(name), parts) for name in data})
        types = {**_PLAIN, **{part.__name__: part for part in parts.values()}}
        for field in fields(record):  # type: ignore[arg-type]
            value = getattr(record, field.name)
            if not _fits(value, str(field.type), types):
                raise TypeError(f"{field.name} must not be {value!r}")
    except (AttributeError, TypeError, ValueError) as error:
        raise AgentError("bad_request", f"A {kind.__name__} cannot be read: {error}.") from error
    return record


def _fits(value: Any, kind: str, types: Mapping[str, Any]) -> bool:
    """Whether a value has a type; only some types, and tuples, are known."""
    if kind.endswith(" | None"):
        return value is None or _fits(value, kind[: -len(" | None")], types)
    if kind.startswith("tuple[") and kind.endswith("]"):
        inner = kind[6:-1]
        kinds = inner.split(", ")
        if inner.endswith(", ..."):
            kinds = [inner[:-5]] * len(value) if isinstance(value, tuple) else []
        if not isinstance(value, tuple) or len(value) != len(kinds):
            return False
        return all(_fits(item, inner_kind, types) for item, inner_kind in zip(value, kinds))
    wanted = types.get(kind, object)
    return isinstance(value, wanted) and (not isinstance(value, bool) or wanted in (bool, object))


def _part(value: Any, kind: type[Any] | None, parts: Mapping[str, type[Any]]) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_part(item, kind, parts) for item in value)
    if kind is None or value is None:
        return value
    return read_record(kind, value, parts)


class Channel:
    """The agent's end of the conversation, on the file descriptors of requests and replies."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._input = select.poll()
        self._input.register(read_fd, select.POLLIN | select.POLLRDHUP)
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._is_closed = False
        self._heard = self._looked = time.monotonic()
        self._stalled = 0.0

    def lines(self) -> Iterator[bytes]:
        """Incoming lines, one request each, until the controller's end is closed."""
        while self._lines or not self._is_closed:
            if self._lines:
                yield self._lines.popleft()
            else:
                self._receive(None)

    def has_line(self) -> bool:
        """Whether a line has come that was not read yet."""
        return bool(self._lines)

    def line(self) -> bytes:
        """Waits for the next line while a request is being fulfilled, and traffic may flow.

        Raises:
            ControllerGoneError: If the controller is gone, or was silent for too long.
        """
        while not self._lines:
            self._receive(_LINE_SECONDS)
            self.check()
        return self._lines.popleft()

    def reply(self, message: Message) -> None:
        """Sends one reply.

        Raises:
            ControllerGoneError: If nobody reads it.
        """
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._write_fd, data) :]
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ControllerGoneError("it reads no answers") from error

    def check(self) -> None:
        """Checks whether the controller is still there, without waiting.

        Time in which this machine stood still is no silence of the controller, up to `MOST_STALLED` seconds.

        Raises:
            ControllerGoneError: If it is gone, or was silent for too long.
        """
        self.check_open()
        now = time.monotonic()
        if now > self._looked + STALL_SECONDS:
            self._stalled += now - self._looked
        self._looked = now
        if now > self._heard + min(self._stalled, MOST_STALLED) + SILENCE_SECONDS:
            raise ControllerGoneError(f"it was silent for {SILENCE_SECONDS:g} s")

    def check_open(self) -> None:
        """Checks whether the controller is still there; it may be silent, because no traffic flows.

        Raises:
            ControllerGoneError: If it is gone.
        """
        while self._receive(0.0):
            pass
        if self._is_closed:
            raise ControllerGoneError("it closed the connection")

    def _receive(self, seconds: float | None) -> bool:
        """Reads data that arrive within this many seconds (None: at any time); returns whether there were any."""
        if self._is_closed or not self._input.poll(None if seconds is None else 1000 * seconds):
            return False
        data = os.read(self._read_fd, 1 << 16)
        self._is_closed = not data
        self._heard = self._looked = time.monotonic()
        self._stalled = 0.0
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(line for line in lines if line)
        return not self._is_closed


def decode(line: bytes) -> Message:
    """Reads a request.

    Raises:
        AgentError: If the line is not a request.
    """
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    if not isinstance(request, dict) or not isinstance(request.get("op"), str):
        raise AgentError("bad_request", f"This is not a request (a JSON object with 'id' and 'op'): {line[:200]!r}.")
    return request
