# SPDX-License-Identifier: Apache-2.0
"""What leaves in a direction: the counters of its senders and of its port, or what another node says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Sequence

from ..core.configuration import Direction
from ..core.early_verdict import SentSoFar
from ..core.links import Link
from ..core.plan import Plan
from ..core.ports import Ports
from ..core.protocol import AgentError
from .cards import handed_over, refused_frames, transmitted
from .frames import FramePlan, Share
from .plan import segments
from .send_program import ScheduledProgram, Segment, SentSegment
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

    def check_refused(self, port: str, given: int) -> None:
        """Makes sure that the port did not refuse missing frames without counting them.

        Raises:
            AgentError: If it did.
        """
        if self.uncounted > 0:
            raise AgentError(
                "counters",
                f"The driver of {port} has not counted {self.uncounted} of {given} frames because several senders "
                "share a queue of its link: it is not known whether frames were lost or refused. Give both ends of "
                f"the link a queue for each CPU (ethtool -L {port} rx 2 tx 2, and its other end), or use "
                "'cpus_per_direction: 1'.",
            )

    def by_stream(self, streams: int) -> list[int]:
        """How many frames of each of this many streams were sent."""
        steps = len(self.parts) // streams
        sent = [0] * streams
        for number, part in enumerate(self.parts):
            sent[number // steps] += part.sent
        return sent


class SendingEnd:
    """The streams of a direction, which leave through a port of this node. The senders may be made later.

    Attributes:
        name: The direction.
        sharing: The ends, including itself, that leave through the same port.
        trial: The latest traffic.
        port: The port's name.
    """

    def __init__(
        self, direction: Direction, plan: FramePlan, streams: Sequence[Share], ports: Ports, senders: Senders
    ) -> None:
        self.sharing: Sequence[SendingEnd] = [self]
        self.trial = Plan(((1.0, None),))
        self.name, self.port = direction.name, direction.transmit
        self.streams = streams
        self._direction, self._plan = direction, plan
        self._ports, self._senders = ports, senders
        self._transmitted: tuple[str, int] | None = None
        self._handed_over: int | None = None

    def begin(self, trial: Plan) -> None:
        """Notes the port's counters before new traffic."""
        self.trial = trial
        self._transmitted = transmitted(self._ports.before[self.port])
        self._handed_over = self._handed_over_by(self._ports.before)

    def rate(self, load: float) -> float:
        """Frames per second of each stream, of a load."""
        return load * self._direction.counted_share / len(self.streams)

    def sent_as(self, stream: Share) -> tuple[FramePlan, int, Share]:
        """What its sender sends for a stream: see `SendProgram`."""
        return self._plan, self._ports.before[self.port].index, stream

    def segments(self, stream: Share, tags: tuple[int, int], catch_up: float) -> list[Segment]:
        """The schedule of a stream; `tags` are the first ones of the ramp and of frames that count."""
        ramp_tag, tag = (first + stream.number for first in tags)
        return segments(self.trial, self._direction, stream.share, (ramp_tag, tag), catch_up)

    def so_far(self, now: Mapping[str, Link]) -> SentSoFar:
        """See `own_generator.SendingEnd.so_far`."""
        parts = self.parts()
        # Frames that leave while the counters are read may come back and hide loss, but they never look lost.
        sent = sum(part.sent for part in parts)
        unsent = sum(part.unsent for part in parts)
        # A sender that loses its processor keeps the frames of a batch, which already count as sent.
        kept = sum(self._sender_of(stream).batch for stream in self.streams)
        return SentSoFar(sent, unsent, kept + self._refused(now, is_over=False))

    def departures(self, start: int, after: Mapping[str, Link]) -> Departures:
        """What left; `after` are all interfaces, and `start` is when the traffic began."""
        now = self._handed_over_by(after)
        uncounted = 0
        if now is not None and self._handed_over is not None:
            uncounted = max(0, self._given() - (now - self._handed_over))
        return Departures(tuple(self.parts()), self._refused(after, is_over=True), uncounted, start)

    def _given(self) -> int:
        """Frames that the port was given since the traffic began, with those of its ramp."""
        segments = range(len(self.trial.ramp_steps) + len(self.trial.steps))
        return sum(part.sent for one in self.sharing for part in one.parts(segments))

    def _refused(self, now: Mapping[str, Link], *, is_over: bool) -> int:
        """Frames that the port did not take: a veth counts these, and a card only counts sent frames."""
        before = self._ports.before[self.port]
        return refused_frames(before, now[self.port], self._transmitted, self._given(), is_over=is_over)

    def _handed_over_by(self, links: Mapping[str, Link]) -> int | None:
        """The number of frames that a veth reports as given to it, if several senders use it; otherwise None."""
        senders = {stream.sender for one in self.sharing for stream in one.streams}
        if len(senders) < 2:
            return None
        return handed_over(links[self.port])

    def parts(self, segments: Sequence[int] = ()) -> list[SentSegment]:
        """What was sent so far in each segment and stream; without the ramp, unless requested."""
        ramp = len(self.trial.ramp_steps)
        return [
            self.program_of(stream).sent(stream.place, segment)
            for stream in self.streams
            for segment in segments or range(ramp, ramp + len(self.trial.steps))
        ]

    def program_of(self, stream: Share) -> ScheduledProgram:
        """The program that sends one of its streams."""
        return self._sender_of(stream).program

    def by_stream(self) -> list[int]:
        """How many frames of each stream were sent so far."""
        return Departures(tuple(self.parts()), 0, 0, 0).by_stream(len(self.streams))

    def _sender_of(self, stream: Share) -> Sender:
        return self._senders[stream.sender or 0]
