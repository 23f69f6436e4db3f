# SPDX-License-Identifier: Apache-2.0
"""What the agent's own generators share: ports, directions, tags, the other end of a path, and late frames."""

from __future__ import annotations

from typing import Generic, Protocol, Sequence, TypeVar

from .configuration import Configuration
from .generator import Tags
from .meeting import Alone, Meeting
from .pacing import pause
from .plan import Answer
from .ports import Ports
from .protocol import Check, Message


class CountedDirection(Protocol):
    """A direction whose frames are counted here."""

    @property
    def name(self) -> str:
        """Its name."""

    def late(self) -> int:
        """Frames of the latest traffic that came back too late, and were not counted before."""

    def late_of_earlier(self) -> list[int]:
        """Such frames of earlier traffic."""


_DirectionT = TypeVar("_DirectionT", bound=CountedDirection)


class OwnGenerator(Generic[_DirectionT]):
    """A generator that sends and counts by itself, at one end of a path or at both."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._ports = Ports(configuration)
        self._directions: list[_DirectionT] = []
        self._meeting = Alone()
        self._tags = Tags()

    def join(self, meeting: Meeting, first_tag: int) -> None:
        """See `MeetingGenerator.join`."""
        self._meeting = meeting
        self._tags = Tags(first_tag)

    def late(self, wait: float, check: Check) -> dict[str, list[int]]:
        """See `Generator.late`."""
        pause(wait, check)
        return {direction.name: [direction.late(), *direction.late_of_earlier()] for direction in self._directions}

    def _with_late(self, counters: Sequence[Message], wait: float, check: Check) -> Answer:
        """The answer of traffic that was ended, with the frames that come back within some seconds from now on."""
        pause(wait, check)
        late = {direction.name: direction.late() for direction in self._directions}
        return Answer([{**direction, "late": late[direction["name"]]} for direction in counters])
