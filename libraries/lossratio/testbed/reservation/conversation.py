"""A conversation with the keeper: the program on the TG node that waits for a lease, keeps it, and knows its holder."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from lossratio.errors import NodeError, ReservationError
from lossratio.nodes import NodeProcess, NodeProgram, NodeSession, pack_program
from lossratio.units import format_duration

ANSWER_SECONDS = 30.0
"""Seconds that an answer may take."""
_NOT_STARTED = (126, 127)
"""Exit statuses of a shell for a program that it cannot start or find."""
_PROGRAM = "lossratio-keeper"


@dataclass(frozen=True)
class Holder:
    """The holder of a lease."""

    owner: str
    """The owner, e.g. ``alice@ci3``."""
    process: int
    """Process id of the controller on the owner's machine."""
    purpose: str
    """Purpose of the lease."""
    started: str
    """Start of the lease by the clock of the owner's machine, RFC 3339."""
    held: float | None
    """Seconds since its start by the TG's clock; None: the TG has been rebooted since."""
    left: float
    """Seconds until the lease expires unless it is renewed; 0: it has expired."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> "Holder | None":
        """Reads the keeper's report."""
        if data is None:
            return None
        return cls(**data)

    def __str__(self) -> str:
        purpose = f" for {self.purpose}" if self.purpose else ""
        if self.held is None:
            held = ", before the TG was booted"
        else:
            held = f", for {format_duration(self.held)}"

        return f"{self.owner} (process {self.process}){purpose}, since {self.started}{held}"


def pack_keeper() -> NodeProgram:
    """Packs the keeper of leases."""
    return pack_program("testbed/reservation/keeper", _PROGRAM, "main")


class Conversation:
    """A keeper on the TG node, and one request to it."""

    def __init__(self, session: NodeSession, python: str, request: Mapping[str, Any]) -> None:
        self._node_name = session.name
        self._python = python
        self.ended: Mapping[str, Any] | None = None
        """The event in which the keeper reported that the lease is lost, with the reason; None: no such event."""
        self._answers: SimpleQueue[Mapping[str, Any] | NodeError] = SimpleQueue()
        program = pack_keeper()
        self._process: NodeProcess = program.start(
            partial(session.start, plain=True), python, "-I", "-S"
        )
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self.send(request)
        except NodeError as error:
            raise self._explained(error) from error

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a line."""
        self._process.write_line(json.dumps(message))

    def answer(self, seconds: float = ANSWER_SECONDS) -> Mapping[str, Any]:
        """Waits this many seconds for an answer. The keeper's reports that it still waits for its turn do not count.

        Raises:
            ReservationError: If the keeper refuses.
            NodeError: If there is no answer in time.
        """
        while (event := self._next(seconds))["event"] == "waiting":
            pass
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
            raise self._explained(answer) from answer
        return answer

    def _explained(self, error: NodeError) -> NodeError:
        """The explanation for the keeper's end or silence: often there is no such Python."""
        words = self._process.stderr_tail().strip().splitlines()
        if self._process.exit_status in _NOT_STARTED or (
            words and words[-1].endswith("command not found")
        ):
            said = f" ({words[-1]})" if words else ""
            return NodeError(
                f"Node {self._node_name}: there is no Python {self._python!r} to keep the reservation{said}. Set the "
                "generator's 'python' in the topology file to the path of a Python of that node."
            )
        return NodeError(f"Node {self._node_name}: its reservation does not answer. {error}")

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
            raise NodeError(
                f"It answered {line[:200]!r}, which is no JSON. Perhaps a log-in script, such as .bashrc, wrote this."
            )
        return event
