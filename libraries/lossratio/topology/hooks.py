"""Hooks for a device that lossratio does not set up: how to reset, read, change and describe it."""

import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from lossratio.topology.quantities import ONE_OR_SEVERAL, Duration
from lossratio.values import FileModel

Side = Literal["west", "east"]


def _words(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(value)
    return value


def _checked_command(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError:
        raise ValueError(
            f"{command!r} has a quote that is not closed, or ends with a backslash. Write the command as a list of "
            "words"
        ) from None
    if not words:
        raise ValueError("the command is empty. Name a program, with its arguments if it has any")
    return command


def _checked_place(place: str) -> str:
    """A place in an answer: a JSON pointer, or a regular expression with one group."""
    if place.startswith("/"):
        return place
    try:
        groups = re.compile(place).groups
    except re.error as error:
        raise ValueError(f"{place!r} is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(
            f"{place!r} is neither a JSON pointer ('/rx/frames') nor a regular expression with one group ('received: "
            "(\\\\d+)')"
        )
    return place


Place = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_checked_place)]
"""Where a value is in the answer of a device."""
Command = Annotated[
    str | tuple[str, ...], BeforeValidator(_words), AfterValidator(_checked_command), ONE_OR_SEVERAL
]
"""A command: a line, whose words may be in quotes, or a list of words."""


class Hook(FileModel):
    """A command that acts on a device."""

    command: Command
    """The command with its arguments; no shell interprets it unless it is a shell itself (``sh -c '...'``)."""
    runs_on: Literal["node", "controller"] = "node"
    """node: the command runs on the node, by its log-in. controller: it runs on this machine."""
    timeout: Duration = 10.0
    """Time that it may take."""


class Question(Hook):
    """A hook with an answer."""

    @property
    def places(self) -> dict[str, dict[str, str]]:
        """All places, by field and name."""
        fields = type(self).model_fields.keys() - Question.model_fields.keys()
        return {
            name: dict(getattr(self, name)) for name in type(self).model_fields if name in fields
        }


class CountersHook(Question):
    """Reads how many frames the device has counted. Without places, its answer is JSON with these four fields."""

    received: dict[Side, Place] = Field(default_factory=dict)
    """Places of the received frames, by side."""
    transmitted: dict[Side, Place] = Field(default_factory=dict)
    """Places of the transmitted frames, by side."""
    dropped: dict[str, Place] = Field(default_factory=dict)
    """Places of the dropped frames, by the name of the place where the device drops them."""
    details: dict[str, Place] = Field(default_factory=dict)
    """Places of further counters, by name."""


class DescribeHook(Question):
    """Asks the device for its version and configuration."""

    values: dict[str, Place] = Field(default_factory=dict)
    """Places of values, by name; empty: the whole answer is the description. If there is a ``version``, a run is
    resumed only with the same one."""


class Hooks(FileModel):
    """The hooks of a device."""

    reset: Hook | None = None
    """Resets state that trials leave behind."""
    counters: CountersHook | None = None
    """Reads how many frames the device has counted."""
    reconfigure: Hook | None = None
    """Adds entries to its tables; ``{entries}`` in the command becomes their number."""
    describe: DescribeHook | None = None
    """Asks for its version and configuration."""
