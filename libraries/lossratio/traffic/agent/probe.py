"""The latency frames of one direction in one trial: who sends them, and when the kernel saw them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from .clock import ClockWatch
from .latencies import summarize
from .links import Link
from .protocol import Message
from .sender import Sender, SenderSetup, SendOrder
from .stamps import StampRing

_ROOM = 2
_SPARE = 64


class Probe:
    """Measures the latency of one direction once.

    Args:
        name: The direction.
        setup: The sender of the direction's load.
        source: Interface that the frames leave from.
        sink: Interface that they come back to.
        tag: Tag of the first latency frame.
        rate: Latency frames per second.
        duration: Seconds for which there will be some.

    Attributes:
        name: The direction.
        rate: Latency frames per second.
        sender: The process that sends them.

    Raises:
        OSError: If the kernel does not give the sockets.
    """

    def __init__(
        self, name: str, setup: SenderSetup, source: Link, sink: Link, tag: int, *, rate: float, duration: float
    ) -> None:
        self.name = name
        self.rate = rate
        self._tag = tag
        self._duration = duration
        self._clock = ClockWatch()
        frames = int(rate * duration) + _SPARE
        with ExitStack() as opened:
            self.sender = Sender(replace(setup, probes=True))
            opened.callback(self.sender.close)
            self._left = StampRing(source.name, source.index, setup.tag_place, tag, frames, outgoing=True)
            opened.callback(self._left.close)
            self._arrived = StampRing(sink.name, sink.index, setup.tag_place, tag, _ROOM * frames, outgoing=False)
            opened.callback(self._arrived.close)
            self._opened = opened.pop_all()

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def start(self) -> None:
        """Begins to send.

        Raises:
            AgentError: If the sender died.
        """
        self.sender.start(SendOrder(self.rate, self._duration, self._tag))

    def latency(self) -> Message:
        """The latency that was measured; see `lossratio.traffic.agent.generator.Generator.latency`."""
        return summarize(self.name, self._left.read(), self._arrived.read(), clock_was_set=self._clock.was_set())
