# SPDX-License-Identifier: Apache-2.0
"""One direction of the traffic: its streams, and the counters of what left and what came back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Iterator, Mapping, Sequence

from ..core.arrays import HAS_NUMPY
from ..core.configuration import Direction
from ..core.early_verdict import SentSoFar
from ..core.generator import counted_course
from ..core.links import Link
from ..core.own_generator import OwnDirection
from ..core.pacing import MICROSECOND_NS, NANOSECONDS
from ..core.plan import Plan
from ..core.ports import Ports
from ..core.protocol import AgentError, Message, unsupported
from ..core.returns import Returns
from . import latency_answers
from .cards import CardClock
from .departures import SendingEnd
from .frames import FramePlan, Share
from .plan import intended, schedule_course, segments
from .receive_program import MOST_TRAFFIC, ReceivedFrames, ReceiveWay, Reception, StreamCounter
from .send_program import Segment
from .sender import Senders

if TYPE_CHECKING:
    from .fates import FateLog

MOST_COUNTED_FLOWS = 1 << 16
"""The maximum number of flows for which lost frames are counted by flow: more flows would take longer to compare than
trials should. If senders share a direction, also the maximum number of frames after which flows and sizes repeat."""
_EXAMINED = ("duplicated", "reordered", "corrupted", "readdressed", "wrong_length", "wrong_mac")
_NO_TIMES = (
    "Another node has sent the frames, and the generator xdp keeps the times of sending there. Use 'kind: "
    "afpacket', or give both ports to the TG's first node."
)


class FlowCounts:
    """How many frames of each flow of a direction left, and how many came back.

    Attributes:
        counted: How many flows of its streams are counted: all, or none if there is only one flow or very many.
    """

    def __init__(self, plan: FramePlan, streams: Sequence[Share]) -> None:
        self._plan, self._streams = plan, streams
        self._order = plan.spec.order
        self._first = 0
        self._reception: Reception
        until_all_repeats = plan.flows if len(streams) == 1 else plan.period
        is_counted = plan.flows > 1 and until_all_repeats <= MOST_COUNTED_FLOWS
        self.counted = plan.flows * len(streams) if is_counted else 0
        if self._order is not None and not self.counted:
            raise unsupported(
                f"The streams of this traffic profile repeat only after {plan.period} frames, but the generator xdp "
                f"can count at most {MOST_COUNTED_FLOWS} of them. Use fewer flows in each stream, or 'kind: "
                "afpacket'."
            )

    def begin(self, reception: Reception, first: int) -> None:
        """Finds the counts in a reception, from a place on."""
        self._reception, self._first = reception, first

    def with_loss(self, sent: Sequence[int]) -> int | None:
        """How many flows did not come back completely, of this many frames of each share; None: it is not known."""
        if not self.counted:
            return None
        return sum(1 for came, left in zip(*self._arrived_and_sent(sent)) if came < left)

    def by_stream(self, sent: Sequence[int]) -> list[Message]:
        """How many frames of each of the profile's streams left and came back: see `lossratio.trials.StreamFrames`."""
        if self._order is None:
            return []
        sums = [[0, 0] for _ in self._order.names]
        for stream, came, went in zip(self._order.streams, *self._arrived_and_sent(sent)):
            sums[stream][0] += went
            sums[stream][1] += came
        return [
            {"name": name, "sent_frames": went, "received_frames": came}
            for name, (went, came) in zip(self._order.names, sums)
        ]

    def _arrived_and_sent(self, sent: Sequence[int]) -> tuple[list[int], list[int]]:
        """How many frames of each flow came back, and how many of them left."""
        flows = self._plan.flows
        all_counts = self._reception.flows.memory.cast("I")
        arrived, left = [0] * flows, [0] * flows
        for place, stream in enumerate(self._streams):
            first = self._first + place * flows
            counts = all_counts[first : first + flows]
            wanted = self._plan.sent_by_flow(sent[place], stream.share)
            for flow, count in enumerate(counts):
                arrived[flow] += min(count, wanted[flow])
                left[flow] += wanted[flow]

        return arrived, left


class ActiveDirection(OwnDirection):
    """A direction that is sent in streams, by some of the senders. The senders may be made later.

    Attributes:
        sending: What leaves.
        flows: The counts of its flows.
        clock: The clock of the card that it comes back to, if that stamps its frames.
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
        self.flows = FlowCounts(self._plan, streams)
        self._order = direction.frames.order
        self.clock: CardClock | None = None
        self._reception: Reception
        self._latencies = range(0)
        self._received: ReceivedFrames
        self._logs: list[FateLog] = []

    @property
    def latencies(self) -> int:
        """How many of the profile's streams have separate latencies in it."""
        return 0 if self._order is None else len(self._order.names)

    def way(self, reception: Reception, first_flow: int, first_latencies: int) -> ReceiveWay | None:
        """How it comes back; None: to another node.

        Args:
            reception: Where it is counted.
            first_flow: The place there at which counts of its flows begin.
            first_latencies: The place there at which latencies of the profile's streams begin.
        """
        self._latencies = range(first_latencies, first_latencies + self.latencies)
        self._reception = reception
        counter_of = partial(StreamCounter, reception, self._numbers)
        self._returns = Returns(counter_of, MOST_TRAFFIC - 1)
        self.flows.begin(reception, first_flow)
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
            first_flow if self.flows.counted else None,
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
            "by_stream": self.flows.by_stream(self._left(sent + refused)),
            "examination": self._examination(strayed) if self._examines else None,
            **(self._of_every_frame(sent) if direction.frames.is_numbered else {}),
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
                "received_frames": sum(latencies.histogram),
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

    def _left(self, sent: int) -> list[int]:
        """How many of its frames left in each share; the shares of refused frames are not known."""
        return [sent] if len(self.streams) == 1 else self.sending.by_stream()

    def _examination(self, strayed: int) -> Message:
        """See `Answer`. Strayed frames belong to other streams at its port."""
        received = self._received
        is_numbered = self._direction.frames.is_numbered
        return {
            "examined": received.arrived - received.stale if is_numbered else 0,
            **{name: getattr(received, name) for name in _EXAMINED},
            "strayed": strayed,
        }

    def _of_every_frame(self, sent: int) -> Message:
        """Findings about time and order that each trial has: times in microseconds, and how far frames were behind."""
        received = self._received
        found: Message = {
            "displacement_frames": received.displacement,
            "extent_frames": received.extent,
            "late_offset_us": received.late_offset / MICROSECOND_NS,
            "flows_with_loss": self.flows.with_loss(self._left(sent)),
            **latency_answers.in_short(received),
        }
        if self.clock is None:
            return found

        self.clock.check()
        if received.unstamped:
            raise AgentError(
                "card_stamps",
                f"The card of {self._direction.receive} has not stamped {received.unstamped} of {received.arrived} "
                "frames, so latencies are not known. Leave out 'card_stamps'.",
            )
        return {**found, "clock_error_us": self.clock.error_us}
