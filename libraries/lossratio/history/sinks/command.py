"""Alerts by commands on this machine."""

import shlex
from typing import Annotated

from pydantic import Field, RootModel, model_validator

from lossratio import callouts
from lossratio.history.sinks.sink import Message, NotSentError, Sink

_MOST_OUTPUT = 1_000_000


class Command(RootModel[Annotated[str | tuple[str, ...], Field(min_length=1)]], Sink):
    """A command on this machine, as a text or as a list; it reads the alert from its standard input."""

    @model_validator(mode="after")
    def _has_words(self) -> "Command":
        if not self.words:
            raise ValueError("the command is empty")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The command with its arguments."""
        if isinstance(self.root, str):
            return tuple(shlex.split(self.root))
        return self.root

    def send(self, message: Message, timeout: float) -> None:
        """Runs the command, which may take at most `timeout` seconds.

        Raises:
            NotSentError: If it cannot be run, fails, or takes too long.
        """
        name = self.words[0]
        try:
            done = callouts.run_program(
                self.words, stdin=message.as_input, timeout=timeout, most=_MOST_OUTPUT
            )
        except callouts.CallError as error:
            raise NotSentError(f"{name} {error}") from error
        if done.returncode != 0:
            printed = [output.decode(errors="replace") for output in (done.stdout, done.stderr)]
            said = callouts.shown(callouts.said_by(*printed))
            raise NotSentError(f"{name} ended with exit status {done.returncode}: {said}")
