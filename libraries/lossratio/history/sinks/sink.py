"""The base of sinks, which send alerts."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from lossratio.wrong_values import Like

VariableName = Annotated[
    str, Like(r"^[A-Za-z_][A-Za-z0-9_]*$", "the name of an environment variable, such as TOKEN")
]
"""The name of an environment variable."""


class NotSentError(Exception):
    """An alert could not be sent. The text of the error has no secrets."""


@dataclass(frozen=True)
class Message:
    """An alert as it is sent."""

    subject: str
    """The subject, in one line."""
    text: str
    """What changed, where, and how certain that is."""
    data: dict[str, Any]
    """The same as JSON data, with subject and text as ``text``."""
    input: Literal["text", "json"] = "text"
    """The input of a program: the text, or the data."""

    @property
    def as_input(self) -> bytes:
        """The text for a program's standard input."""
        given = json.dumps(self.data) if self.input == "json" else self.text
        return f"{given}\n".encode()


class Sink(ABC):
    """A way to send alerts: a pydantic model of its settings in the file of alerts."""

    def variables(self) -> Iterable[str]:
        """Names of the environment variables that it needs."""
        return ()

    @abstractmethod
    def send(self, message: Message, timeout: float) -> None:
        """Sends a message in at most `timeout` seconds.

        Raises:
            NotSentError: If it could not be sent.
        """
