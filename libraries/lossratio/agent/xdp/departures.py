# SPDX-License-Identifier: Apache-2.0
"""What leaves in a direction: the counters of its senders and of its port, or what another node says of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Mapping, Sequence

from ..core.configuration import Direction
from ..core.early_verdict import SentSoFar
from ..core.links import Link
from ..core.plan import Plan
from ..core.ports import Ports
from ..core.protocol import AgentError, Message, read_record
from .cards import handed_over, refused_frames, transmitted
from .frames import Share
from .send_program import SentSegment
from .sender import Sender, Senders


@dataclass(frozen=True)
class Departures:
    """What left in a direction, as the agent that counts arriving frames must know it."""

    parts: tuple[SentSegment, ...]
    """What was sent of each segment of each stream, without the ramp."""
    refused: int
    """Frames that the port did not take."""
    uncounted: int
    """Frames of which it is not known whether the port took them."""
    start: int
    """When the traffic began, in nanoseconds of that node's monotonic clock."""


class SendingEnd:
    """The streams of a direction, which leave through a port of this node or of another one.

    Attributes:
        sharing: The ends, including itself, that leave through the same port.
        trial: The latest traffic.
        port: The port's name.
    """

    def __init__(self, direction: Direction, streams: Sequence[Share], ports: Ports, senders: Senders) -> None:
        self.sharing: Sequence[SendingEnd] = [self]
        self.trial = Plan(((1.0, None),))
        self.port = direction.transmit
        self._name, self._is_here = direction.name, direction.sends_here
        self._streams = streams
        self._ports, self._senders = ports, senders
        self._elsewhere: Departures | None = None
        self._transmitted: tuple[str, int] | None = None
        self._handed_over: int | None = None

    def begin(self, trial: Plan) -> None:
        """Notes the port's counters before new traffic, if it is on this node."""
        self.trial = trial
        self._elsewhere = None
        if self._is_here:
            self._transmitted = transmitted(self._ports.before[self.port])
            self._handed_over = self._handed_over_by(self._ports.before)

    def so_far(self, now: Mapping[str, Link]) -> SentSoFar:
        """What has left this node of running traffic; `now` are all interfaces."""
        parts = self.parts()
        # Frames that leave while the counters are read may come back and hide loss, but they never look lost.
        sent = sum(part.sent for part in parts)
        unsent = sum(part.unsent for part in parts)
        # A sender that loses its processor keeps the frames of a batch, which already count as sent.
        kept = sum(self.sender_of(stream).batch for stream in self._streams)
        return SentSoFar(sent, unsent, kept + self.refused(now, is_over=False))

    def departures(self, start: int, after: Mapping[str, Link]) -> Message:
        """What left this node, for the agent at the other end; `after` are all interfaces: see `take_in`."""
        return asdict(Departures(tuple(self.parts()), self.refused(after), self.uncounted(after), start))

    def take_in(self, departures: Message) -> None:
        """Notes what left from another node: its `departures`."""
        self._elsewhere = read_record(Departures, departures, {"parts": SentSegment})

    def began(self, start: int) -> int:
        """When the traffic began, in nanoseconds of its node's clock; `start` is when this node began."""
        return start if self._elsewhere is None else self._elsewhere.start

    def _given(self) -> int:
        """Frames that the port was given since the traffic began, with those of its ramp."""
        segments = range(len(self.trial.ramp_steps) + len(self.trial.steps))
        return sum(part.sent for one in self.sharing for part in one.parts(segments))

    def refused(self, now: Mapping[str, Link], *, is_over: bool = True) -> int:
        """Frames that the port did not take: a veth counts these, and a card only counts sent frames."""
        if self._elsewhere is not None:
            return self._elsewhere.refused
        before = self._ports.before[self.port]
        return refused_frames(before, now[self.port], self._transmitted, self._given(), is_over=is_over)

    def uncounted(self, after: Mapping[str, Link]) -> int:
        """Frames that the port may have refused without counting them."""
        if self._elsewhere is not None:
            return self._elsewhere.uncounted
        now = self._handed_over_by(after)
        if now is None or self._handed_over is None:
            return 0
        return max(0, self._given() - (now - self._handed_over))

    def check_refused(self, missed: int, given: int) -> None:
        """Makes sure that the port did not refuse the missing frames without counting them.

        Raises:
            AgentError: If it did.
        """
        if missed > 0:
            raise AgentError(
                "counters",
                f"The driver of {self.port} has not counted {missed} of {given} frames because several senders "
                "share a queue of its link: it is not known whether frames were lost or refused. Give both ends of "
                f"the link a queue for each CPU (ethtool -L {self.port} rx 2 tx 2, and its other end), or use "
                "'cpus_per_direction: 1'.",
            )

    def _handed_over_by(self, links: Mapping[str, Link]) -> int | None:
        """The number of frames that a veth reports as given to it, if several senders use it; otherwise None."""
        senders = {stream.sender for one in self.sharing for stream in one._streams}
        if len(senders) < 2:
            return None
        return handed_over(links[self.port])

    def parts(self, segments: Sequence[int] = ()) -> list[SentSegment]:
        """What was sent so far in each segment and stream; without the ramp, unless requested."""
        if self._elsewhere is not None:
            return list(self._elsewhere.parts)
        ramp = len(self.trial.ramp_steps)
        return [
            self.sender_of(stream).program.sent(stream.place, segment)
            for stream in self._streams
            for segment in segments or range(ramp, ramp + len(self.trial.steps))
        ]

    def sender_of(self, stream: Share) -> Sender:
        """The sender of one of its streams.

        Raises:
            AgentError: If it is on another node.
        """
        if stream.sender is None:
            raise AgentError(
                "out_of_step", f"Another node sends direction {self._name}. Configure the generator again."
            )
        return self._senders[stream.sender]

    def by_stream(self) -> list[int]:
        """How many frames of each stream were sent so far."""
        sent = [0] * len(self._streams)
        segments = len(self.trial.steps)
        for number, part in enumerate(self.parts()):
            sent[number // segments] += part.sent
        return sent
