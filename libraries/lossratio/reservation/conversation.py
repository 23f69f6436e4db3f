"""Speaks with the keeper, which runs on the TG node for as long as a lease is waited for or held."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from lossratio.errors import NodeError, ReservationError
from lossratio.ssh import NodeProcess, NodeSession

# The program comes over the wire, so that neither a full disk nor an old copy on the node gets in its way. What comes
# after it is its input: no byte of that may be read here.
_START = (
    "import json, os; line = b''\n"
    "while line[-1:] != b'\\n': line += os.read(0, 1) or os._exit(1)\n"
    "exec(json.loads(line))"
)

ANSWER_SECONDS = 30.0
"""Seconds that an answer may take."""


class Conversation:
    """A keeper that has been asked for something."""

    def __init__(self, session: NodeSession, python: str, request: Mapping[str, Any]) -> None:
        """Starts the keeper.

        Raises:
            NodeError: If the connection is lost.
        """
        source = files("lossratio").joinpath("reservation/keeper.py").read_text(encoding="utf-8")
        self._node_name = session.name
        self._process: NodeProcess = session.start(python, "-I", "-S", "-c", _START)
        self._process.write_line(json.dumps(source))
        self.tell(request)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Sends a line.

        Raises:
            NodeError: If the connection is lost, or the keeper has ended.
        """
        self._process.write_line(json.dumps(message))

    def answer(self, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """Waits for an answer, however often the keeper says that it is still waiting for its turn.

        Args:
            seconds: How long it may say nothing at all.

        Raises:
            NodeError: If it said nothing for so long, or can say nothing any more.
            ReservationError: If the keeper cannot use its file.
        """
        event = self._listen(seconds)
        while event["event"] == "waiting":
            event = self._listen(seconds)
        if event["event"] == "error":
            raise ReservationError(f"Node {self._node_name}: no reservation: {event['message']}.")
        return event

    def close(self) -> None:
        """Ends the keeper; the lease stays until it ends by itself or is released."""
        self._process.close()

    def _listen(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._process.read_line(seconds)
        except NodeError as error:
            raise NodeError(f"Node {self._node_name}: nobody answers for its reservation. {error}") from error
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise NodeError(
                f"Node {self._node_name}: its reservation answers with {line[:200]!r}. Does a log-in script write that?"
            ) from error
        return event
