# SPDX-License-Identifier: Apache-2.0
"""One direction of the traffic: its streams, and the counters of what left and what came back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from ..core.arrays import HAS_NUMPY
from ..core.configuration import Direction
from ..core.early_verdict import SentSoFar
from ..core.generator import counted_course
from ..core.links import Link
from ..core.own_generator import OwnDirection
from ..core.pacing import MICROSECOND_NS, NANOSECONDS
from ..core.plan import Plan
from ..core.ports import Ports
from ..core.protocol import Message
from ..core.returns import Returns
from . import latency_answers
from .departures import SendingEnd
from .frames import FramePlan, Share
from .plan import intended, schedule_course, segments
from .receive_program import MOST_TRAFFIC, ReceiveWay, Reception
from .send_program import Segment
from .sender import Senders

if TYPE_CHECKING:
    from .fates import FateLog

_EXAMINED = ("duplicated", "reordered", "corrupted", "readdressed", "wrong_length", "wrong_mac")
_NO_TIMES = (
    "Another node has sent the frames, and the generator xdp keeps the times of sending there. Use 'kind: "
    "afpacket', or give both ports to the TG's first node."
)


class ActiveDirection(OwnDirection):
    """A direction that is sent in streams, by some of the senders. The senders may be made later.

    Attributes:
        sending: What leaves.
        receive: The interface that it comes back to.
    """

    def __init__(
        self, direction: Direction, streams: Sequence[Share], ports: Ports, senders: Senders, *, examines: bool
    ) -> None:
        super().__init__(direction, ports)
        self.streams, self.receive = streams, direction.receive
        self._numbers = [stream.number for stream in streams]
        self._examines = examines
        self._plan = FramePlan(direction.frames, *self._macs)
        self.sending = SendingEnd(direction, streams, ports, senders)
        self._order = direction.frames.order
        self._reception: Reception
        self._latencies = range(0)
        self._received: Any
        self._logs: list[FateLog] = []

    @property
    def latencies(self) -> int:
        """How many of the profile's streams have separate latencies in it."""
        return 0 if self._order is None else len(self._order.names)

    def way(self, reception: Reception, first_latencies: int) -> ReceiveWay | None:
        """How it comes back; None: to another node.

        Args:
            reception: Where it is counted.
            first_latencies: The place there at which latencies of the profile's streams begin.
        """
        self._latencies = range(first_latencies, first_latencies + self.latencies)
        self._reception = reception
        # A counter of frames with a tag is the function with this tag.
        counter_of = partial(partial, reception.arrived_of, self._numbers)
        self._returns = Returns(counter_of, MOST_TRAFFIC - 1)
        if not self.receives_here:
            return None
        # This generator only needs numpy for the places of losses.
        if HAS_NUMPY:
            from ..core.losses import LossTables
            from .fates import FateLog

            self._loss_tables = LossTables(self._direction.frames)
            rings = (partial(reception.ring, number) for number in self._numbers)
            self._logs = [FateLog(ring, is_elsewhere=not self.sends_here) for ring in rings]
        plan = FramePlan(self._direction.returned, *self._macs)
        mac = self._ports.before[self._direction.receive].mac
        # Record: how it comes back.
        return ReceiveWay(
            plan,
            mac,
            self.streams[0],
            len(self.streams),
            is_elsewhere=not self.sends_here,
            streams_of_flows=() if self._order is None else self._order.streams,
            first_latencies=first_latencies,
        )

    def sent_as(self, stream: Share) -> tuple[FramePlan, int, Share]:
        """What its sender sends for a stream: see `SendProgram`."""
        return self._plan, self._ports.before[self._direction.transmit].index, stream

    def segments(self, stream: Share, tags: tuple[int, int], catch_up: float) -> list[Segment]:
        """The schedule of a stream; `tags` are the first ones of the ramp and of frames that count."""
        ramp_tag, tag = (first + stream.number for first in tags)
        return segments(self.sending.trial, self._direction, stream.share, (ramp_tag, tag), catch_up)

    def begin(self, trial: Plan, tag: int) -> None:
        """Notes all counters before new traffic with a tag."""
        self.sending.begin(trial)
        if self.receives_here:
            self._returns.watch(tag)
        for log in self._logs:
            log.begin()

    def sent_so_far(self, now: Mapping[str, Link]) -> SentSoFar:
        """See `OwnDirection.sent_so_far`."""
        return self.sending.so_far(now)

    def take_in(self, departures: Message) -> None:
        """See `OwnDirection.take_in`."""
        self.sending.take_in(departures)

    def count(self) -> None:
        """Counts what came back to this node; `counters` reports it."""
        if not self.receives_here:
            return
        self._returns.count()
        self._received = self._reception.received(*self._numbers, latencies=self._latencies)

    def counters(self, ended_after: float | None, after: Mapping[str, Link]) -> Message:
        """Its counters; `after` are all interfaces, and its traffic may have been cut short after some seconds.

        The node to which its frames come back has all counters.
        """
        direction = self._direction
        if not self.receives_here:
            return {"name": self.name}
        received = self._received
        trial = self.sending.trial
        parts = self.sending.parts()
        sent = sum(part.sent for part in parts)
        # Frames of the ramp may be among the refused frames, but no frame that arrived is.
        refused = min(max(0, sent - received.intact), self.sending.refused(after))
        sent -= refused
        if sent > received.arrived:
            self.sending.check_refused(self.sending.uncounted(after), sent)
        strayed, foreign = self._reception.others(*self._numbers)
        due = sum(part.sent + part.unsent for part in parts)
        wanted = intended(trial, direction)
        dropped = self._dropped(after)
        flowed = ended_after or max(trial.duration, *(part.last for part in parts))
        losses = None
        if not refused and not dropped and sent > received.intact and direction.frames.is_numbered:
            losses = self._losses(sent - received.intact, flowed)

        # Record: the counters as the library reads them.
        return {
            "name": self.name,
            "intended_frames": due if wanted is None else wanted,
            "sent_frames": sent,
            "received_frames": received.arrived - received.stale,
            "unsent_frames": max(0, due - sent),
            "refused_frames": refused,
            "generator_drop_frames": dropped,
            **self._returns.counted(sent, received.arrived, foreign),
            "elapsed_s": flowed,
            "lateness_s": max(part.lateness for part in parts),
            "load_ratio": direction.load_share,
            "losses": losses,
            "by_stream": self._by_stream(sent + refused),
            "examination": self._examination(strayed) if self._examines else None,
            **(self._of_every_frame() if direction.frames.is_numbered else {}),
        }

    def latency(self, counters: Message) -> Message:
        """The latency of the frames of these counters, as in `Answer.latency`."""
        received = self._received
        frames = {
            "sent_frames": counters["sent_frames"],
            "received_frames": received.intact,
            "out_of_order_frames": received.reordered,
            "duplicate_frames": received.duplicated,
        }
        if not self.sends_here:
            return latency_answers.unknown(self.name, frames, _NO_TIMES)
        if not self._direction.frames.is_numbered:
            return latency_answers.unknown(
                self.name, frames, "The frames have no room for sequence numbers. Use larger frames."
            )
        answer = latency_answers.known(self.name, frames, received.latencies)
        if answer["error"] is not None:
            return answer
        by_stream = list(self._latency_by_stream(counters))
        return {**answer, "jitter_us": latency_answers.jitter_us(received), "by_stream": by_stream}

    def _latency_by_stream(self, counters: Message) -> Iterator[Message]:
        """The latency of each of the profile's streams. It is not known which streams refused frames belong to."""
        if counters["refused_frames"]:
            return
        for stream, latencies in zip(counters["by_stream"], self._received.by_stream):
            frames = {
                "stream": stream["name"],
                "sent_frames": stream["sent_frames"],
                "received_frames": stream["received_frames"],
                "out_of_order_frames": latencies.reordered,
                "duplicate_frames": latencies.duplicated,
            }
            yield latency_answers.known(self.name, frames, latencies)

    def course(self, start: int, counters: Message) -> Message:
        """Where losses are in time, after a start in nanoseconds; see `Answer`."""
        sending = self.sending
        counters = {**counters, "last": max(part.last for part in sending.parts())}
        if sending.trial.is_burst:
            return counted_course(sending.began(start) / NANOSECONDS, counters)
        streams = [
            (self._reception.ring(stream.number), sending.sender_of(stream).program, stream.place)
            for stream in self.streams
        ]
        return schedule_course(sending.trial, counters, start, streams, self._received.intact)

    def note(self) -> None:
        """Notes which frames were lost before later ones take their places; called several times a second."""
        if self.sends_here:
            sent = self.sending.by_stream()
        else:
            # The sender is elsewhere: this is how far its frames are known here.
            sent = [self._reception.highest(number) for number in self._numbers]
        for log, count in zip(self._logs, sent):
            log.note(count)

    def _losses(self, lost: int, duration: float) -> Message | None:
        """Where lost frames are, if this node has numpy: see `lossratio.trials.Losses`."""
        if not self._logs:
            return None
        from .fates import fates_of

        fates = fates_of(self._logs, self.sending.by_stream(), lost)
        if fates is None:
            return None
        return self._loss_tables.of(fates, 0, duration)

    def _by_stream(self, sent: int) -> list[Message]:
        """How many frames of each of the profile's streams left, of this many, and came back."""
        if self._order is None:
            return []
        # The shares of refused frames are not known.
        of_shares = [sent] if len(self.streams) == 1 else self.sending.by_stream()
        counts = [self._order.count(one.share[0], left, one.share[1]) for one, left in zip(self.streams, of_shares)]
        received = (sum(latencies.histogram) for latencies in self._received.by_stream)
        return self._order.counted(map(sum, zip(*counts)), received)

    def _examination(self, strayed: int) -> Message:
        """See `Answer`. Strayed frames belong to other streams at its port."""
        received = self._received
        is_numbered = self._direction.frames.is_numbered
        return {
            "examined": received.arrived - received.stale if is_numbered else 0,
            **{name: getattr(received, name) for name in _EXAMINED},
            "strayed": strayed,
        }

    def _of_every_frame(self) -> Message:
        """Findings about time and order that each trial has: times in microseconds, and how far frames were behind."""
        received = self._received
        return {
            "displacement_frames": received.displacement,
            "extent_frames": received.extent,
            "late_offset_us": received.late_offset / MICROSECOND_NS,
            **latency_answers.in_short(received),
        }
