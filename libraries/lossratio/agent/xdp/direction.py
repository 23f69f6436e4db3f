# SPDX-License-Identifier: Apache-2.0
"""The end of a direction that its streams come back to: what came back of what left."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from ..core import own_generator
from ..core.arrays import HAS_NUMPY
from ..core.configuration import Direction
from ..core.generator import counted_course
from ..core.links import Link
from ..core.pacing import MICROSECOND_NS, NANOSECONDS
from ..core.plan import Plan
from ..core.ports import Ports
from ..core.protocol import Message
from ..core.returns import Returns
from . import latency_answers
from .departures import Departures, SendingEnd
from .frames import FramePlan, Share
from .plan import intended, schedule_course
from .receive_program import MOST_TRAFFIC, ReceiveWay, Reception

if TYPE_CHECKING:
    from .fates import FateLog

_EXAMINED = ("duplicated", "reordered", "corrupted", "readdressed", "wrong_length", "wrong_mac")
_NO_TIMES = (
    "Another node sends these frames, and the generator xdp keeps their send times there. Use 'kind: "
    "afpacket', or give both ports to the TG's first node."
)


class ReceivingEnd(own_generator.ReceivingEnd):
    """The end of a direction that its streams come back to: counters for the frames of this trial and of earlier ones.

    The receiving programs are made later.

    Attributes:
        streams: The direction's streams.
    """

    def __init__(
        self, direction: Direction, plan: FramePlan, streams: Sequence[Share], ports: Ports, *, examines: bool
    ) -> None:
        super().__init__(direction, ports)
        self.streams = streams
        self._numbers = [stream.number for stream in streams]
        self._examines = examines
        self._plan = plan
        self._trial: Plan
        self._order = direction.frames.order
        self._reception: Reception
        self._latencies = range(0)
        self._received: Any
        self._logs: list[FateLog] = []

    @property
    def latencies(self) -> int:
        """How many of the profile's streams have separate latencies in it."""
        return 0 if self._order is None else len(self._order.names)

    def way(self, reception: Reception, first_latencies: int) -> ReceiveWay:
        """How it comes back.

        Args:
            reception: Where it is counted.
            first_latencies: The place there at which latencies of the profile's streams begin.
        """
        self._latencies = range(first_latencies, first_latencies + self.latencies)
        self._reception = reception
        # A counter of frames with a tag is the function with this tag.
        self.returns = Returns(partial(partial, reception.arrived_of, self._numbers), MOST_TRAFFIC - 1)
        is_elsewhere = not self._direction.sends_here
        # This generator only needs numpy for the places of losses.
        if HAS_NUMPY:
            from ..core.losses import LossTables
            from .fates import FateLog

            self._loss_tables = LossTables(self._direction.frames)
            rings = (partial(reception.ring, number) for number in self._numbers)
            self._logs = [FateLog(ring, is_elsewhere=is_elsewhere) for ring in rings]
        plan = FramePlan(self._direction.returned, self._plan.source_mac, self._plan.destination_mac)
        mac = self._ports.before[self._direction.receive].mac
        # Record: how it comes back.
        return ReceiveWay(
            plan,
            mac,
            self.streams[0],
            len(self.streams),
            is_elsewhere=is_elsewhere,
            streams_of_flows=() if self._order is None else self._order.streams,
            first_latencies=first_latencies,
        )

    def begin(self, trial: Plan, tag: int) -> None:
        """Notes all counters before new traffic with a tag."""
        self._trial = trial
        self.returns.watch(tag)
        for log in self._logs:
            log.begin()

    def count(self) -> None:
        """Counts what came back; `counters` reports it."""
        self.returns.count()
        self._received = self._reception.received(*self._numbers, latencies=self._latencies)

    def counters(self, left: Departures, ended_after: float | None, after: Mapping[str, Link]) -> Message:
        """The direction's counters.

        Args:
            left: What left.
            ended_after: Seconds after which its traffic was cut short; None: it was not.
            after: All interfaces.

        Raises:
            AgentError: If it is not known how many frames left.
        """
        direction = self._direction
        received = self._received
        parts = left.parts
        sent = sum(part.sent for part in parts)
        # Frames of the ramp may be among the refused frames, but no frame that arrived is.
        refused = min(max(0, sent - received.intact), left.refused)
        sent -= refused
        if sent > received.arrived:
            left.check_refused(direction.transmit, sent)
        strayed, foreign = self._reception.others(*self._numbers)
        due = sum(part.sent + part.unsent for part in parts)
        wanted = intended(self._trial, direction)
        dropped = self.dropped(after)
        flowed = ended_after or max(self._trial.duration, *(part.last for part in parts))
        losses = None
        if not refused and not dropped and sent > received.intact and direction.frames.is_numbered:
            losses = self._losses(left, sent - received.intact, flowed)

        # Record: the counters as the library reads them.
        return {
            "name": self.name,
            "intended_frames": due if wanted is None else wanted,
            "sent_frames": sent,
            "received_frames": received.arrived - received.stale,
            "unsent_frames": max(0, due - sent),
            "refused_frames": refused,
            "generator_drop_frames": dropped,
            **self.returns.counted(sent, received.arrived, foreign),
            "elapsed_s": flowed,
            "lateness_s": max(part.lateness for part in parts),
            "load_ratio": direction.load_share,
            "losses": losses,
            "by_stream": self._by_stream(left, sent + refused),
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
        if not self._direction.sends_here:
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

    def course(self, left: Departures, sending: SendingEnd | None, counters: Message) -> Message:
        """Where losses are in time; see `Answer`. A schedule needs both ends here."""
        counters = {**counters, "last": max(part.last for part in left.parts)}
        if sending is None or self._trial.is_burst:
            return counted_course(left.start / NANOSECONDS, counters)
        streams = [
            (self._reception.ring(stream.number), sending.program_of(stream), stream.place) for stream in self.streams
        ]
        return schedule_course(self._trial, counters, left.start, streams, self._received.intact)

    def note(self, sent: Sequence[int] | None) -> None:
        """Notes which frames were lost before later ones take their places; called several times a second.

        Args:
            sent: How many frames of each stream were sent; None: the sender is elsewhere.
        """
        if sent is None:
            # This is how far its frames are known here.
            sent = [self._reception.highest(number) for number in self._numbers]
        for log, count in zip(self._logs, sent):
            log.note(count)

    def _losses(self, left: Departures, lost: int, duration: float) -> Message | None:
        """Where lost frames are, if this node has numpy: see `lossratio.trials.Losses`."""
        if not self._logs:
            return None
        from .fates import fates_of

        fates = fates_of(self._logs, left.by_stream(len(self.streams)), lost)
        if fates is None:
            return None
        return self._loss_tables.of(fates, 0, duration)

    def _by_stream(self, left: Departures, sent: int) -> list[Message]:
        """How many frames of each of the profile's streams left, of this many, and came back."""
        if self._order is None:
            return []
        # The shares of refused frames are not known.
        of_shares = [sent] if len(self.streams) == 1 else left.by_stream(len(self.streams))
        counts = [self._order.count(one.share[0], count, one.share[1]) for one, count in zip(self.streams, of_shares)]
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
