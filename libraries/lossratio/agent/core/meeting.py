# SPDX-License-Identifier: Apache-2.0
"""Where the agents at both ends of a path meet in each trial; the controller carries messages between them.

They meet twice: when both are ready to receive, and when both have sent everything. So no frame arrives before it is
counted, and counting does not stop before the last frame has left. In between, they meet to check a watched trial, or
to say which frames of traffic without an end are the first ones.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Callable, Mapping

from .early_verdict import ReceivedSoFar, SentSoFar
from .protocol import AgentError, Message, read_record

_LONGEST_SLEEP = 1.0


@dataclass(frozen=True)
class Sight:
    """What an agent sees of a running trial, or both agents together."""

    sent: Mapping[str, SentSoFar]
    """What has left, by direction."""
    received: Mapping[str, ReceivedSoFar]
    """What has come back, by direction."""
    has_ended: bool
    """Whether everything has left."""


class Alone:
    """The only agent: it has both ends of all directions, and waits for no other agent."""

    def ready(self, tag: int) -> None:
        """Waits until the other agent also counts frames with this tag."""

    def look(self, own: Sight) -> Sight:
        """Waits until the other agent has also looked; returns what both see.

        Frames that came back were counted after frames that left, so that no frame counts as missing before it has
        left.
        """
        return own

    def tell(self, point: str, own: Mapping[str, Message]) -> dict[str, Message]:
        """Waits until the other agent is at the same point, such as ``sent``; returns what it says, by direction."""
        return {}


class Meeting(Alone):
    """One of two agents. `exchange` sends a message to the other one, and waits for its message at the same point."""

    def __init__(self, exchange: Callable[[Message], Message]) -> None:
        self._exchange = exchange
        self._sent_before: Mapping[str, SentSoFar] = {}

    def ready(self, tag: int) -> None:
        """See `Alone.ready`; it then waits for the moment at which both begin.

        Raises:
            AgentError: If the other agent is out of step, or cannot go on.
        """
        self._sent_before = {}
        answer = self._exchange({"ready": tag, "now": time.monotonic()})
        theirs = answer["said"].get("ready")
        if theirs != tag:
            raise AgentError(
                "out_of_step",
                f"The ends of the path are out of step: one is at tag {tag}, and the other at {theirs}. "
                "Configure the generator again.",
            )
        left = float(answer["at"]) - time.monotonic()
        time.sleep(min(_LONGEST_SLEEP, max(0.0, left)))

    def look(self, own: Sight) -> Sight:
        """See `Alone.look`: both agents see the same, because they see what had left at their previous meeting.

        Raises:
            AgentError: If the other agent is out of step, or cannot go on.
        """
        theirs = self.tell("look", asdict(own))
        sent = {name: read_record(SentSoFar, one) for name, one in theirs["sent"].items()}
        received = {name: read_record(ReceivedSoFar, one) for name, one in theirs["received"].items()}
        both = Sight({**own.sent, **sent}, {**own.received, **received}, own.has_ended and bool(theirs["has_ended"]))
        before, self._sent_before = self._sent_before, both.sent
        return replace(both, sent=before)

    def tell(self, point: str, own: Mapping[str, Message]) -> dict[str, Message]:
        """See `Alone.tell`.

        Raises:
            AgentError: If the other agent is out of step, or cannot go on.
        """
        theirs = self._exchange({point: dict(own)})["said"].get(point)
        if not isinstance(theirs, dict):
            raise AgentError(
                "out_of_step",
                f"The ends of the path are out of step: one is at {point!r}. Configure the generator again.",
            )
        return theirs
