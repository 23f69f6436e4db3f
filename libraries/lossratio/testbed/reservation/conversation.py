"""The conversation with the keeper, the program on the TG node that waits for a lease and keeps it; and the holder."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from lossratio.errors import NodeError, ReservationError
from lossratio.nodes import NodeProcess, NodeSession, pack_program
from lossratio.units import format_duration


@dataclass(frozen=True)
class Holder:
    """The holder of a lease.

    Attributes:
        owner: The owner, e.g. ``alice@ci3``.
        process: Process id of the controller on the owner's machine.
        purpose: Purpose of the lease.
        started: Start of the lease by the clock of the owner's machine, RFC 3339.
        held: Seconds since its start by the TG's clock; None: the TG has been rebooted since.
        left: Seconds until the lease expires unless it is renewed; 0: it has expired.
    """

    owner: str
    process: int
    purpose: str
    started: str
    held: float | None
    left: float

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Holder | None:
        """Reads the keeper's report."""
        return None if data is None else cls(**data)

    def __str__(self) -> str:
        purpose = f" for {self.purpose}" if self.purpose else ""
        held = ", before the TG was booted" if self.held is None else f", for {format_duration(self.held)}"
        return f"{self.owner} (process {self.process}){purpose}, since {self.started}{held}"


_PROGRAM, _FOLDER, _MAIN = "lossratio-keeper", "testbed/reservation/keeper", "main"

ANSWER_SECONDS = 30.0
"""Seconds that an answer may take."""


class Conversation:
    """A keeper on the TG node, and one request to it.

    Args:
        session: The log-in on the TG node.
        python: The Python there.
        request: The first request.

    Attributes:
        ended: The event in which the keeper reported that the lease is lost, with the reason; None: no such event.

    Raises:
        NodeError: If the connection is lost.
    """

    def __init__(self, session: NodeSession, python: str, request: Mapping[str, Any]) -> None:
        self._node_name = session.name
        self.ended: Mapping[str, Any] | None = None
        self._answers: SimpleQueue[Mapping[str, Any] | NodeError] = SimpleQueue()
        program = pack_program(_FOLDER, _PROGRAM, _MAIN)
        self._process: NodeProcess = program.start(partial(session.start, plain=True), python, "-I", "-S")
        threading.Thread(target=self._listen, daemon=True).start()
        self.tell(request)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Sends a line.

        Raises:
            NodeError: If the connection is lost, or the keeper has ended.
        """
        self._process.write_line(json.dumps(message))

    def answer(self, seconds: float = ANSWER_SECONDS) -> Mapping[str, Any]:
        """Waits for an answer. The keeper's reports that it still waits for its turn are no answers.

        Args:
            seconds: Seconds that the keeper may be silent.

        Raises:
            NodeError: If the keeper was silent for longer, or has ended.
            ReservationError: If the keeper cannot use its file.
        """
        event = self._next(seconds)
        while event["event"] == "waiting":
            event = self._next(seconds)
        if event["event"] == "error":
            raise ReservationError(f"Node {self._node_name}: no reservation: {event['message']}.")
        return event

    def close(self) -> None:
        """Ends the keeper; the lease stays until it expires or is released."""
        self._process.close()

    def _next(self, seconds: float) -> Mapping[str, Any]:
        try:
            answer = self._answers.get(timeout=seconds)
        except Empty:
            answer = NodeError(f"There was no answer within {seconds:g} s.")
        if isinstance(answer, NodeError):
            raise NodeError(f"Node {self._node_name}: nobody answers for its reservation. {answer}") from answer
        return answer

    def _listen(self) -> None:
        try:
            while True:
                event = self._read()
                if event["event"] == "ended":
                    self.ended = event
                else:
                    self._answers.put(event)
        except NodeError as error:
            self._answers.put(error)

    def _read(self) -> Mapping[str, Any]:
        line = self._process.read_line(None)
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise NodeError(f"Its output held {line[:200]!r}. Does a log-in script write that?")
        return event
