"""Where the agents at both ends of a path meet in each trial: the controller carries what one says to the other.

They meet twice: when both are ready to receive, and when both have sent everything. So no frame arrives before
somebody counts it, and nobody stops counting before the last frame has left.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Callable, Mapping

from .protocol import AgentError, Message, read_record

_LONGEST_SLEEP = 1.0


@dataclass(frozen=True)
class Sent:
    """What left in one direction, as the agent that counts arriving frames must know it."""

    frames: int
    """Frames that left, without those that measure latency."""
    first: int
    """Number of the first one, with sequence number 0, in the order of all frames."""
    elapsed: float
    """Seconds in which they left."""


class Alone:
    """The only agent: it has both ends of all directions, and waits for nobody."""

    def ready(self, tag: int) -> None:
        """Waits until the other agent counts frames with this tag, too."""

    def sent(self, own: Mapping[str, Sent]) -> dict[str, Sent]:
        """Waits until the other agent has sent everything; returns what it sent, by direction."""
        return {}


class Meeting(Alone):
    """One of two agents. `exchange` tells the other one something, and waits for what that says at the same point."""

    def __init__(self, exchange: Callable[[Message], Message]) -> None:
        self._exchange = exchange

    def ready(self, tag: int) -> None:
        """See `Alone.ready`; then it waits for the instant at which both begin.

        Raises:
            AgentError: If the other one is out of step, or cannot go on.
        """
        answer = self._exchange({"ready": tag, "now": time.monotonic()})
        theirs = answer["said"].get("ready")
        if theirs != tag:
            raise AgentError(
                "out_of_step",
                f"This end is at tag {tag}, but the other end at {theirs}. Configure the generator again.",
            )
        left = float(answer["at"]) - time.monotonic()
        time.sleep(min(_LONGEST_SLEEP, max(0.0, left)))

    def sent(self, own: Mapping[str, Sent]) -> dict[str, Sent]:
        """See `Alone.sent`.

        Raises:
            AgentError: If the other one is out of step, or cannot go on.
        """
        answer = self._exchange({"sent": {name: asdict(one) for name, one in own.items()}})
        theirs = answer["said"].get("sent")
        if not isinstance(theirs, dict):
            raise AgentError("out_of_step", "This end has sent everything, and the other one is elsewhere.")
        return {name: read_record(Sent, one) for name, one in theirs.items()}
