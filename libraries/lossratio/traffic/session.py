"""The part of a log-in on the TG node that the traffic agent and TRex's server need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class CommandOutput(Protocol):
    """The output of a command on a node."""

    @property
    def stdout(self) -> str:
        """Its standard output."""


class Process(Protocol):
    """A process on a node that reads and writes lines; `lossratio.nodes.NodeProcess` is one."""

    def write_line(self, text: str, /) -> None:
        """Sends a line."""

    def read_line(self, /, timeout: float, meanwhile: Callable[[], object]) -> str:
        """Waits for a line; raises NodeError if none comes in time.

        Args:
            timeout: Seconds to wait at most.
            meanwhile: Called about once a second while there is no line.
        """

    def stderr_tail(self) -> str:
        """The end of its standard error."""

    def close(self) -> int | None:
        """Closes the standard input, waits for the end, and returns the exit status; None if there is no end."""


class Session(Protocol):
    """A log-in on a node; `lossratio.nodes.NodeSession` is one."""

    @property
    def name(self) -> str:
        """The node's name."""

    def run(self, *command: str) -> CommandOutput:
        """Runs a command; raises NodeError if it fails."""

    def put(self, data: bytes, remote_path: str, /) -> None:
        """Writes a file, completely or not at all."""

    def start(self, *command: str) -> Process:
        """Starts a long-lived process."""
