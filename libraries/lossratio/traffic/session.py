"""What the traffic agent and TRex's server need of a log-in on the TG node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class CommandOutput(Protocol):
    """What a command on a node gave back."""

    @property
    def stdout(self) -> str:
        """Its standard output."""


class Process(Protocol):
    """A process on a node that is spoken to in lines; `lossratio.nodes.NodeProcess` is one."""

    def write_line(self, text: str, /) -> None:
        """Sends a line."""

    def read_line(self, /, timeout: float, meanwhile: Callable[[], object]) -> str:
        """Waits for a line, for so many seconds at most; raises NodeError if none comes.

        Args:
            timeout: The seconds.
            meanwhile: Called about once a second while there is no line.
        """

    def stderr_tail(self) -> str:
        """The end of its standard error."""

    def close(self) -> int | None:
        """Closes its standard input, waits for its end, and returns its exit status; None if it does not end."""


class Session(Protocol):
    """A log-in on a node; `lossratio.nodes.NodeSession` is one."""

    @property
    def name(self) -> str:
        """The node's name."""

    def run(self, *command: str) -> CommandOutput:
        """Runs a command; raises NodeError if it fails."""

    def put(self, data: bytes, remote_path: str, /) -> None:
        """Writes a file, at once or not at all."""

    def start(self, *command: str) -> Process:
        """Starts a process that lives on."""
