# SPDX-License-Identifier: Apache-2.0
"""One direction of the traffic: its streams, and the counters of what left and what came back."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Iterator, Mapping, Sequence

from ..core.arrays import HAS_NUMPY
from ..core.configuration import Direction
from ..core.early_verdict import ReceivedSoFar, SentSoFar
from ..core.generator import counted_course
from ..core.links import Link
from ..core.plan import Plan
from ..core.ports import Ports
from ..core.protocol import AgentError, Message, read_record, unsupported
from ..core.returns import Returns
from . import latency_answers
from .cards import CardClock, handed_over, refused_frames, transmitted
from .frames import FramePlan, Share
from .plan import intended, ramp_segments, schedule_course, segments
from .receive_program import MOST_TRAFFIC, ReceivedFrames, ReceiveWay, Reception, StreamCounter
from .send_program import Segment, SentSegment
from .sender import Sender, Senders

if TYPE_CHECKING:
    from .fates import FateLog

MOST_COUNTED_FLOWS = 1 << 16
"""The maximum number of flows for which lost frames are counted by flow: more flows would take longer to compare than
trials should. If senders share a direction, also the maximum number of frames after which flows and sizes repeat."""
_EXAMINED = ("duplicated", "reordered", "corrupted", "readdressed", "wrong_length", "wrong_mac")
_NANOSECONDS = 1e9
_MICROSECOND = 1000.0
_NO_TIMES = (
    "Another node has sent the frames, and the generator xdp keeps the times of sending there. Use 'kind: afpacket', "
    "or give the TG's first node both ports."
)


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


class ActiveDirection:
    """A direction that is sent in streams, by some of the senders. The senders may be made later.

    Attributes:
        sharing: The directions, including itself, that leave through the same port.
        counted_flows: How many flows of its streams are counted: all, or none if there is only one flow or very many.
        clock: The clock of the card that it comes back to, if that stamps its frames.
    """

    def __init__(
        self, direction: Direction, streams: Sequence[Share], ports: Ports, senders: Senders, *, examines: bool
    ) -> None:
        self.name = direction.name
        self.transmit = direction.transmit
        self.sends_here, self.receives_here = direction.sends_here, direction.receives_here
        self._elsewhere: Departures | None = None
        self.streams = streams
        self._numbers = [stream.number for stream in streams]
        self._direction, self._examines = direction, examines
        self._ports, self._senders = ports, senders
        self.sharing: Sequence[ActiveDirection] = [self]
        # For an end that is elsewhere, the direction states the MAC address.
        macs = {port: ports.before[port].mac for port in direction.local_ports}
        self._macs = direction.macs(macs.get(self.transmit, b""), macs.get(direction.receive, b""))
        self._plan = FramePlan(direction.frames, *self._macs)
        flows = self._plan.flows
        if len(streams) == 1:
            until_all_repeats = flows
        else:
            until_all_repeats = self._plan.period

        self.counted_flows = 0
        if flows > 1 and until_all_repeats <= MOST_COUNTED_FLOWS:
            self.counted_flows = flows * len(streams)

        self._order = direction.frames.order
        if self._order is not None and not self.counted_flows:
            raise unsupported(
                f"The streams of this traffic profile repeat after {self._plan.period} frames, and the generator xdp "
                f"counts {MOST_COUNTED_FLOWS} of them at most. Use fewer flows in each stream, or 'kind: afpacket'."
            )

        self.clock: CardClock | None = None
        self._reception: Reception
        self._returns: Returns
        self._first_flow: int | None = None
        self._latencies = range(0)
        self._trial = Plan(((1.0, None),))
        self._received: ReceivedFrames

        self._transmitted: tuple[str, int] | None = None
        self._handed_over: int | None = None
        self._logs: list[FateLog] = []
        # This generator only needs numpy for the places of losses.
        if HAS_NUMPY:
            from ..core.losses import LossTables
            from .fates import FateLog

            self._loss_tables = LossTables(direction.frames)
            if self.receives_here:
                is_elsewhere = not self.sends_here
                self._logs = [FateLog(partial(self._ring_of, stream), is_elsewhere=is_elsewhere) for stream in streams]

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
        self._first_flow = first_flow if self.counted_flows else None
        if not self.receives_here:
            return None
        plan = FramePlan(self._direction.returned, *self._macs)
        mac = self._ports.before[self._direction.receive].mac
        # Record: how it comes back.
        return ReceiveWay(
            plan,
            mac,
            self.streams[0],
            len(self.streams),
            self._first_flow,
            is_elsewhere=not self.sends_here,
            streams_of_flows=() if self._order is None else self._order.streams,
            first_latencies=first_latencies,
        )

    def sent_as(self, stream: Share) -> tuple[FramePlan, int, Share]:
        """What its sender sends for a stream: see `SendProgram`."""
        return self._plan, self._ports.before[self.transmit].index, stream

    @property
    def rate(self) -> float:
        """Frames per second of one of its streams, in the running traffic."""
        return self._trial.load * self._direction.load_share / len(self.streams)

    def segments(self, stream: Share, tags: tuple[int, int], catch_up: float) -> list[Segment]:
        """The schedule of a stream; `tags` are the first ones of the ramp and of frames that count."""
        ramp_tag, tag = (first + stream.number for first in tags)
        return segments(self._trial, self._direction, stream.share, (ramp_tag, tag), catch_up)

    def begin(self, trial: Plan, tag: int) -> None:
        """Notes all counters before new traffic with a tag."""
        if self.sends_here:
            self._transmitted = transmitted(self._ports.before[self.transmit])
            self._handed_over = self._handed_over_by(self._ports.before)
        if self.receives_here:
            self._returns.watch(tag)
        self._elsewhere = None
        self._trial = trial
        for log in self._logs:
            log.begin()

    def arrived(self) -> int:
        """How many of its frames have come back so far."""
        return self._reception.arrived(*self._numbers)

    def sent_so_far(self, now: Mapping[str, Link]) -> SentSoFar:
        """What has left this node of running traffic; `now` are all interfaces."""
        parts = self._parts_sent()
        # Frames that leave while the counters are read may come back and hide loss, but they never look lost.
        sent = sum(part.sent for part in parts)
        unsent = sum(part.unsent for part in parts)
        # A sender that loses its processor keeps the frames of a batch, which already count as sent.
        kept = sum(self._sender_of(stream).batch for stream in self.streams)
        return SentSoFar(sent, unsent, kept + self._refused(now, is_over=False))

    def received_so_far(self, now: Mapping[str, Link]) -> ReceivedSoFar:
        """What has come back to this node of running traffic; `now` are all interfaces."""
        sink = self._direction.receive
        dropped = now[sink].receive_drops - self._ports.before[sink].receive_drops
        return ReceivedSoFar(self.arrived(), dropped)

    def departures(self, start: int, after: Mapping[str, Link]) -> Message:
        """What left this node, for the agent at the other end; `after` are all interfaces: see `take_in`."""
        return asdict(Departures(tuple(self._parts_sent()), self._refused(after), self._uncounted(after), start))

    def take_in(self, departures: Message) -> None:
        """Notes what left from another node: its `departures`."""
        self._elsewhere = read_record(Departures, departures, {"parts": SentSegment})

    def count(self) -> None:
        """Counts what came back to this node; `counters` reports it."""
        if not self.receives_here:
            return
        self._returns.count()
        self._received = self._reception.received(*self._numbers, latencies=self._latencies)

    def counters(self, elapsed: float, after: Mapping[str, Link]) -> Message:
        """Its counters; `after` are all interfaces. Without `elapsed`, its traffic was not cut short.

        The node to which its frames come back has all counters.
        """
        direction = self._direction
        if not self.receives_here:
            return {"name": self.name}
        received = self._received
        trial = self._trial
        parts = self._parts_sent()
        sent = sum(part.sent for part in parts)
        # Frames of the ramp may be among the refused frames, but no frame that arrived is.
        refused = min(max(0, sent - received.intact), self._refused(after))
        sent -= refused
        if sent > received.arrived:
            self._check_refused(self._uncounted(after), sent)
        strayed, foreign = self._reception.others(*self._numbers)
        due = sum(part.sent + part.unsent for part in parts)
        wanted = intended(trial, direction)
        sink = self._ports.before[direction.receive]
        late, copies = self._returns.late_of_earlier()
        self._returns.end(sent, received.arrived)

        dropped = after[direction.receive].receive_drops - sink.receive_drops
        flowed = elapsed or max(trial.duration, *(part.last for part in parts))
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
            "late_frames": sum(late[:1]),
            "earlier_late_frames": late[1:],
            "foreign_frames": copies + foreign,
            "elapsed_s": flowed,
            "lateness_s": max(part.lateness for part in parts),
            "load_ratio": direction.load_share,
            "losses": losses,
            "by_stream": self._by_stream(sent, refused),
            "examination": self._examination(strayed) if self._examines else None,
            **(self._of_every_frame(sent) if direction.frames.is_numbered else {}),
        }

    def latency(self, counters: Message) -> Message:
        """The latency of the frames of these counters, as `Generator.latency` returns it."""
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
            return latency_answers.unknown(self.name, frames, "The frames have no room for sequence numbers.")
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
        counters = {**counters, "last": max(part.last for part in self._parts_sent())}
        if self._trial.is_burst:
            began = start if self._elsewhere is None else self._elsewhere.start
            return counted_course(began / _NANOSECONDS, counters)
        streams = [
            (self._reception.ring(stream.number), self._sender_of(stream).program, stream.place)
            for stream in self.streams
        ]
        return schedule_course(self._trial, counters, start, streams, self._received.intact)

    def has_counted_few(self, now: Mapping[str, Link]) -> bool:
        """Whether the port's driver has counted less than half of what it was given; `now` are all interfaces.

        Some of what it has counted may be the system's own, such as IPv6's search for routers.
        """
        before, left = self._transmitted, transmitted(now[self.transmit])
        return before is not None and left is not None and 2 * (left[1] - before[1]) < self.given()

    def given(self) -> int:
        """Frames that the port was given since the traffic began, with those of its ramp."""
        segments = range(ramp_segments(self._trial) + len(self._trial.steps))
        return sum(part.sent for one in self.sharing for part in one._parts_sent(segments))

    def late(self) -> int:
        """Late frames of the last traffic since the count."""
        return self._returns.late() if self.receives_here else 0

    def late_of_earlier(self) -> list[int]:
        """Late frames since the last call of this or `counters`, by traffic: the previous one, then earlier ones."""
        return self._returns.late_of_earlier()[0] if self.receives_here else []

    def _refused(self, now: Mapping[str, Link], *, is_over: bool = True) -> int:
        """Frames that the port did not take: a veth counts these, and a card only counts sent frames."""
        if self._elsewhere is not None:
            return self._elsewhere.refused
        before = self._ports.before[self.transmit]
        return refused_frames(before, now[self.transmit], self._transmitted, self.given(), is_over=is_over)

    def _uncounted(self, after: Mapping[str, Link]) -> int:
        """Frames that the port may have refused without counting them."""
        if self._elsewhere is not None:
            return self._elsewhere.uncounted
        now = self._handed_over_by(after)
        if now is None or self._handed_over is None:
            return 0
        return max(0, self.given() - (now - self._handed_over))

    def _check_refused(self, missed: int, given: int) -> None:
        """Makes sure that the port did not refuse the missing frames without counting them."""
        if missed > 0:
            raise AgentError(
                "counters",
                f"The driver of {self.transmit} has not counted {missed} of {given} frames because several senders "
                "share a queue of its link: it is not known whether frames were lost or refused. Give both ends of "
                f"the link a queue for each CPU (ethtool -L {self.transmit} rx 2 tx 2, and its other end), or use "
                "'cpus_per_direction: 1'.",
            )

    def _handed_over_by(self, links: Mapping[str, Link]) -> int | None:
        """The number of frames that a veth reports as given to it, if several senders use it; otherwise None."""
        senders = {stream.sender for one in self.sharing for stream in one.streams}
        if len(senders) < 2:
            return None
        return handed_over(links[self.transmit])

    def _parts_sent(self, segments: Sequence[int] = ()) -> list[SentSegment]:
        """What was sent so far in each segment and stream; without the ramp, unless requested."""
        if self._elsewhere is not None:
            return list(self._elsewhere.parts)
        ramp = ramp_segments(self._trial)
        return [
            self._sender_of(stream).program.sent(stream.place, segment)
            for stream in self.streams
            for segment in segments or range(ramp, ramp + len(self._trial.steps))
        ]

    def _ring_of(self, stream: Share) -> memoryview:
        return self._reception.ring(stream.number)

    def _sender_of(self, stream: Share) -> Sender:
        """The sender of one of its streams, on this node."""
        if stream.sender is None:
            raise AgentError("out_of_step", f"Another node sends {self.name}; configure it again.")
        return self._senders[stream.sender]

    def note(self) -> None:
        """Notes which frames were lost before later ones take their places; called several times a second."""
        if self.sends_here:
            sent = self._sent_by_stream()
        else:
            # The sender is elsewhere: this is how far its frames are known here.
            sent = [self._reception.highest(number) for number in self._numbers]
        for log, count in zip(self._logs, sent):
            log.note(count)

    def _sent_by_stream(self) -> list[int]:
        sent = [0] * len(self.streams)
        segments = len(self._trial.steps)
        for number, part in enumerate(self._parts_sent()):
            sent[number // segments] += part.sent
        return sent

    def _losses(self, lost: int, duration: float) -> Message | None:
        """Where lost frames are, if this node has numpy: see `lossratio.trials.Losses`."""
        if not self._logs:
            return None
        from .fates import fates_of

        fates = fates_of(self._logs, self._sent_by_stream(), lost)
        return None if fates is None else self._loss_tables.of(fates, 0, duration)

    def _flows_with_loss(self, sent: int) -> int | None:
        """How many flows of the streams' frames did not come back completely; None: they are not counted."""
        if self._first_flow is None:
            return None
        arrived, wanted = self._arrived_and_sent_by_flow(sent)
        return sum(1 for came, left in zip(arrived, wanted) if came < left)

    def _arrived_and_sent_by_flow(self, sent: int) -> tuple[list[int], list[int]]:
        """How many frames of each flow came back, and how many of them left."""
        flows = self._plan.flows
        all_counts = self._reception.flows.memory.cast("I")
        arrived, left = [0] * flows, [0] * flows
        by_stream = self._sent_by_stream()
        if len(self.streams) == 1:
            by_stream = [sent]

        for place, stream in enumerate(self.streams):
            first = (self._first_flow or 0) + place * flows
            counts = all_counts[first : first + flows]
            wanted = self._plan.sent_by_flow(by_stream[place], stream.share)
            for flow, count in enumerate(counts):
                arrived[flow] += min(count, wanted[flow])
                left[flow] += wanted[flow]

        return arrived, left

    def _by_stream(self, sent: int, refused: int) -> list[Message]:
        """How many frames of each of the profile's streams left and came back: see `lossratio.trials.StreamFrames`."""
        if self._order is None:
            return []

        # The streams of refused frames are not known, so all frames that were to leave count as sent.
        arrived, left = self._arrived_and_sent_by_flow(sent + refused)
        sums = [[0, 0] for _ in self._order.names]
        for stream, came, went in zip(self._order.streams, arrived, left):
            sums[stream][0] += went
            sums[stream][1] += came
        return [
            {"name": name, "sent_frames": went, "received_frames": came}
            for name, (went, came) in zip(self._order.names, sums)
        ]

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
            "late_offset_us": received.late_offset / _MICROSECOND,
            "flows_with_loss": self._flows_with_loss(sent),
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
