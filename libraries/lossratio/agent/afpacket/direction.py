# SPDX-License-Identifier: Apache-2.0
"""One direction of the traffic: the end that sends it, and the end that counts, examines and notes what comes back."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Callable, Mapping, Sequence

from ..core.arrays import HAS_NUMPY
from ..core.configuration import Direction
from ..core.early_verdict import SentSoFar
from ..core.frames_spec import FramesSpec
from ..core.links import Link
from ..core.losses import LossTables
from ..core.own_generator import OwnDirection
from ..core.pacing import BATCH, Transmission
from ..core.plan import Control, Exchange, Plan
from ..core.ports import Ports
from ..core.protocol import AgentError, Message, read_record, unsupported
from ..core.returns import Counter, Returns
from .arrivals import ArrivalLog, Reception, course
from .bare import BareFrames
from .connections import Conversation
from .examination import AT_ONCE, Examiner
from .filters import TRAFFIC_AT_ONCE, let_foreign_through
from .frames import FrameCycle, build_frames
from .latency import Probe, Stamps, latency_frames, stamps_of
from .receive import FrameCounter, StackFilter, StreamsCounter, TagCounters, check_countable
from .sender import Sender, SenderReport, SendOrder
from .transmit import SenderSetup

MOST_EARLIER = TRAFFIC_AT_ONCE - 1
"""How many earlier runs of traffic are remembered, so that their late frames are counted."""
BROADCAST = b"\xff" * 6
"""The MAC address of all stations."""
FAR = 0x80000000
"""How far the tags of frames that do not count are from the tags of frames that do."""


@dataclass(frozen=True)
class Sent:
    """What left in one direction, as the agent that counts arriving frames must know it."""

    frames: int
    """Frames that left, without the latency frames."""
    first: int
    """Number of the first frame, which has sequence number 0, in the order of all frames."""
    elapsed: float
    """Seconds in which they left."""


class SendingEnd:
    """The end of a direction that its frames leave from.

    Attributes:
        source: Its interface.
        setup: How its sender sends.
        sender: The sender of the frames that count.
        broadcaster: The sender of broadcast frames; None: there are none.
    """

    def __init__(
        self, direction: Direction, source: Link, setup: SenderSetup, broadcasts: FrameCycle | BareFrames | None
    ) -> None:
        self.source = source
        self.setup = setup
        self._direction = direction
        self.sender = Sender(setup)
        self.broadcaster = None if broadcasts is None else Sender(replace(setup, frames=broadcasts))

    @property
    def senders(self) -> tuple[Sender, ...]:
        """The sender of the frames that count, and the sender of broadcast frames if there are any."""
        if self.broadcaster is None:
            return (self.sender,)
        return (self.sender, self.broadcaster)

    def sent(self, reports: Mapping[Sender, SenderReport]) -> Sent:
        """What left, by the sender's report."""
        report = reports[self.sender]
        transmission = report.transmission
        return Sent(frames=transmission.sent - report.probes, first=report.first, elapsed=transmission.elapsed)

    def so_far(self, rate: float) -> SentSoFar:
        """What has left of running traffic with this many frames per second."""
        progress = self.sender.progress
        # Frames that leave while the counters are read may come back and hide loss, but they never look lost.
        sent = progress.sent
        usual = int(BATCH * rate) + 2
        return SentSoFar(sent, progress.unsent, max(0, progress.longest_burst - usual))

    def counters(
        self, reports: Mapping[Sender, SenderReport], before: Mapping[str, Link], after: Mapping[str, Link]
    ) -> Message:
        """What left; `before` and `after` are all interfaces.

        Unsent frames include broadcast frames that could not be sent, because the load is lower without them.

        Raises:
            AgentError: If the kernel's counters do not say what was dropped.
        """
        source = self._direction.transmit
        report = reports[self.sender]
        sent = report.transmission
        broadcasts = 0
        if self.broadcaster is not None:
            others = reports[self.broadcaster].transmission
            broadcasts = max(0, others.intended - others.sent)

        if report.dropped_beyond > after[source].transmit_drops - before[source].transmit_drops:
            raise AgentError(
                "counters",
                f"{source} refused {report.dropped_beyond} frames without reporting them as "
                "dropped, so it is not known how many were sent. Another program may be using "
                "this interface. Stop it, and measure again.",
            )

        return {
            "intended_frames": sent.intended + broadcasts,
            "sent_frames": sent.sent,
            "unsent_frames": max(0, sent.intended - sent.sent) + broadcasts,
            "elapsed_s": sent.elapsed,
            "lateness_s": sent.worst_lateness,
        }

    def close(self) -> None:
        """Stops its traffic at once."""
        for sender in self.senders:
            sender.close()


class ReceivingEnd:
    """The end of a direction that its frames come back to: counters for the frames of this trial and of earlier ones.

    Attributes:
        sink: Its interface.
        returns: Counts them.
    """

    def __init__(self, direction: Direction, sink: Link, frames: FrameCycle | BareFrames, *, examines: bool) -> None:
        self.sink = sink
        self._direction = direction
        self._frames = direction.arriving
        self._order = self._frames.order
        streams = 1 if self._order is None else len(self._order.names)
        self._counters = TagCounters(sink, direction.arriving_tag, streams)
        self._counter: StreamsCounter
        self._arrived_by_stream: list[int] = []

        self.returns = Returns(self._begin_counter, MOST_EARLIER)
        self._foreign = FrameCounter(sink)
        self._stack = StackFilter(sink, direction.arriving_tag)
        self._examiner: Examiner | None = None
        if examines and isinstance(frames, FrameCycle):
            self._examiner = Examiner(direction, frames, sink)
        self._arrivals: ArrivalLog | None = None
        self._is_examined = True
        self._is_endless = False

    @cached_property
    def _loss_tables(self) -> LossTables:
        return LossTables(self._direction.frames)

    def watch(self, order: SendOrder, tags: Mapping[int, Sequence[int]]) -> None:
        """Begins to count frames with an order's tag."""
        self.stop_noting()
        self.returns.watch(order.tag)
        self._stack.watch(order.tag)
        let_foreign_through(self._foreign.socket, self._direction.arriving_tag, tags)
        self._foreign.begin()
        plan = order.plan
        self._is_examined = plan.exchange is None
        self._is_endless = plan.is_endless
        if self._examiner is not None and self._is_examined:
            self._examiner.watch(order.tag, plan.load, plan.duration)
        if plan.notes_places:
            place = self._direction.arriving_tag
            loads = [load for load, _ in plan.steps]
            self._arrivals = ArrivalLog(self.sink, self._frames, place, order.tag, (min(loads), max(loads)))

    def note_arrivals(self, first: int, least: int) -> None:
        """Examines this many arrived frames, once `first` is known, and makes room if losses are located.

        Frames of endless traffic are examined at its end; until then, some of them are kept.
        """
        if self._examiner is not None and self._is_endless:
            self._examiner.make_room()
        elif self._examiner is not None and first >= 0 and self._is_examined:
            self._examiner.look(first, least)
        if self._arrivals is not None:
            self._arrivals.note()

    def count(self) -> int:
        """How many frames have come back so far; frames that come from now on are late."""
        # This comes first, so that no more frames are examined than are counted.
        if self._examiner is not None:
            self._examiner.end()
        counted = self.returns.count()
        self._arrived_by_stream = self._counter.by_stream
        return counted

    def counters(self, sent: Sent, received: int, dropped: int) -> Message:
        """What came back of this many frames, and how many of these the interface dropped.

        Raises:
            AgentError: If this many frames cannot be counted.
        """
        check_countable(self._direction.name, sent.frames)
        examination = None
        if self._examiner is not None and self._is_examined:
            examination = self._examiner.examine(sent.first, sent.frames)

        by_stream = []
        if self._order is not None:
            by_stream = self._order.counted(self._order.count(sent.first, sent.frames), self._arrived_by_stream)
        return {
            "received_frames": received,
            "generator_drop_frames": dropped,
            **self.returns.counted(sent.frames, received, self._foreign.read()),
            "examination": examination,
            "losses": None if dropped or received >= sent.frames else self._losses(sent),
            "by_stream": by_stream,
        }

    def _begin_counter(self, tag: int) -> Counter:
        self._counter = self._counters.counter_of(tag)
        return self._counter.read

    def reception(self) -> Reception | None:
        """When frames arrived; None: this was not noted."""
        if self._arrivals is None:
            return None
        return self._arrivals.reception()

    def _losses(self, sent: Sent) -> Message | None:
        """Where lost frames are, if frames were examined: see `lossratio.trials.Losses`."""
        if self._examiner is None or not self._is_examined:
            return None
        fates = self._examiner.fates(sent.frames)
        if fates is None:
            return None
        return self._loss_tables.of(fates, sent.first, sent.elapsed)

    def stop_noting(self) -> None:
        """Stops noting when frames arrive."""
        if self._arrivals is not None:
            self._arrivals.close()
        self._arrivals = None

    def close(self) -> None:
        """Ends its counters."""
        self._counters.close()
        self._foreign.close()
        self._stack.close()
        if self._examiner is not None:
            self._examiner.close()
        self.stop_noting()


class ActiveDirection(OwnDirection):
    """A direction, with its ends that are on this node: at least one.

    Its sender begins on the first of the processors.
    """

    def __init__(
        self, direction: Direction, ports: Ports, cpus: tuple[int, ...], catch_up: float, *, examines: bool
    ) -> None:
        super().__init__(direction, ports)
        frames, links = direction.frames, ports.before
        own_mac, destination = self._macs
        built = _build(frames, own_mac, destination)
        self._rate = 0.0
        self._sent_elsewhere: Sent
        self._stamps_elsewhere: Stamps | None = None
        self._conversation: Conversation | None = None
        self._probe: Probe | None = None
        self._late_probes = 0
        self.receiving: ReceivingEnd | None = None
        self.sending: SendingEnd | None = None

        with ExitStack() as undo:
            undo.callback(self.close)
            if direction.receives_here:
                expected = built
                if direction.arriving_frames is not None:
                    expected = _build(direction.arriving_frames, own_mac, destination)
                self.receiving = ReceivingEnd(direction, links[direction.receive], expected, examines=examines)
                self._returns = self.receiving.returns
            if direction.sends_here:
                source = links[direction.transmit]
                setup = SenderSetup(source.name, built, frames.tag_place, source.kind == "veth", cpus, catch_up)
                broadcasts = _build(frames, own_mac, BROADCAST) if direction.broadcast_share else None
                self.sending = SendingEnd(direction, source, setup, broadcasts)
            undo.pop_all()

    @property
    def senders(self) -> tuple[Sender, ...]:
        """Its senders on this node."""
        return () if self.sending is None else self.sending.senders

    def watch(self, wanted: SendOrder, tags: Mapping[int, Sequence[int]]) -> None:
        """Begins to count the frames of an order (see `orders`). All directions do that before any of them sends."""
        plan = wanted.plan
        self._rate = plan.load
        conversation = self._conversation
        if conversation is not None:
            conversation.end()
        if not wanted.probes:
            self._end_probe()
        if plan.notes_places:
            self.both_ends("Locating losses in time")
        if self.receiving is not None:
            self.receiving.watch(wanted, tags)
        if conversation is not None and plan.exchange is not None:
            conversation.begin(wanted.tag, plan.connections, plan.exchange)

    def both_ends(self, purpose: str) -> tuple[SendingEnd, ReceivingEnd]:
        """Both ends, for a purpose that needs them on one node.

        Raises:
            AgentError: If one of them is elsewhere.
        """
        if self.sending is None or self.receiving is None:
            raise unsupported(
                f"{purpose} needs both ends of a path on one node, but this TG has its ends on two nodes. Give both "
                "ports to the TG's first node, or measure something else."
            )
        return self.sending, self.receiving

    def conversation(
        self,
        open_first: Callable[[Plan, Exchange, Control], tuple[Message, int]],
        transmit: Callable[[Sender, SendOrder, Control], Transmission],
        next_tag: Callable[[], int],
    ) -> Conversation:
        """The connections of this direction; see `Conversation`.

        Raises:
            AgentError: If its frames come back with other headers than they were sent with, or one end is elsewhere.
        """
        if self._direction.arriving_frames is not None:
            raise unsupported(
                "Connections can only be opened through devices that do not change tags, labels, "
                "tunnels or marks. Use a traffic profile whose frames come back with the same "
                "headers."
            )
        if self._conversation is None:
            sending, receiving = self.both_ends("Opening connections")
            ports = (sending.source, receiving.sink)
            self._conversation = Conversation(
                ports, self._direction.frames, sending.setup, open_first, transmit, next_tag
            )
        return self._conversation

    def sender_of(self, plan: Plan) -> Sender | None:
        """The sender for a plan, if it is here; TCP connections are opened by a different one."""
        conversation = self._conversation
        if plan.exchange is not None and conversation is not None and conversation.opener is not None:
            return conversation.opener
        return None if self.sending is None else self.sending.sender

    def part_of(self, wanted: SendOrder, probe: Probe | None) -> SendOrder:
        """This direction's part of an order: `wanted` has the whole load, with this direction's tags."""
        own = self._part_of(wanted, self.load)
        if probe is None:
            return own
        return replace(own, probe_tag=probe.tag, probes=probe.frames)

    def orders(self, wanted: SendOrder, own: SendOrder) -> dict[Sender, SendOrder]:
        """The orders to its senders here: see `part_of`."""
        orders: dict[Sender, SendOrder] = {}
        sender = self.sender_of(wanted.plan)
        if sender is not None:
            orders[sender] = own
        if self.sending is not None and self.sending.broadcaster is not None:
            far, ramp_far = wanted.tag ^ FAR, wanted.ramp_tag ^ FAR
            share = self._direction.load_share * self._direction.broadcast_share
            part = self._part_of(wanted, lambda load: load * share)
            orders[self.sending.broadcaster] = replace(part, tag=far, ramp_tag=ramp_far)
        return orders

    def note_arrivals(self, least: int = AT_ONCE) -> None:
        """Examines arrived frames, if there are enough, and makes room if losses are located in time."""
        if self.receiving is not None:
            first = -1 if self.sending is None else self.sending.sender.progress.first
            self.receiving.note_arrivals(first, least)
        if self._conversation is not None:
            self._conversation.note()

    def open_probe(self, load: float, duration: float, tag: int) -> Probe:
        """Prepares latency frames, a part of this direction's traffic; their tags count up from the first one."""
        self._end_probe()
        source = None if self.sending is None else (self.sending.source, self.sending.setup.tag_place)
        sink = None if self.receiving is None else (self.receiving.sink, self._direction.arriving_tag)
        frames = latency_frames(self.load(load), duration)
        self._probe = Probe(self.name, source, sink, tag=tag, frames=frames, order=self._direction.frames.order)
        return self._probe

    def sent(self, reports: Mapping[Sender, SenderReport]) -> Sent:
        """What left, by the senders' reports, or as another node has said."""
        return self._sent_elsewhere if self.sending is None else self.sending.sent(reports)

    def departures(self, reports: Mapping[Sender, SenderReport]) -> tuple[str, Message]:
        """Its name, and what left this node, with the times of latency frames, for the other end: see `take_in`."""
        left = None if self._probe is None else self._probe.left()
        stamps = None if left is None else left.as_message()
        return self.name, {"sent": asdict(self.sent(reports)), "stamps": stamps}

    def take_in(self, departures: Message) -> None:
        """See `OwnDirection.take_in`."""
        self._sent_elsewhere = read_record(Sent, departures["sent"])
        self._stamps_elsewhere = None if departures["stamps"] is None else stamps_of(departures["stamps"])

    def latency(self) -> Message:
        """The latency of the frames of `open_probe` that came back to this node.

        Raises:
            AgentError: If there are none.
        """
        if self._probe is None:
            raise AgentError("latency", f"No frames of {self.name} measure latency.")
        return self._probe.latency(self._stamps_elsewhere)

    def count(self) -> int:
        """How many frames have come back to this node so far; frames that come from now on are late."""
        return 0 if self.receiving is None else self.receiving.count()

    def sent_so_far(self, now: Mapping[str, Link]) -> SentSoFar:
        """See `OwnDirection.sent_so_far`."""
        return SentSoFar(0, 0, 0) if self.sending is None else self.sending.so_far(self._rate)

    def late(self) -> int:
        """See `OwnDirection.late`; with latency frames and answers over connections."""
        late_probes = self._probe.late() if self._probe is not None else 0
        late_answers = self._conversation.late() if self._conversation is not None else 0
        return super().late() + late_probes + late_answers

    def counters(self, reports: Mapping[Sender, SenderReport], received: int, after: Mapping[str, Link]) -> Message:
        """The counters of its ends here, as in `Answer.directions`; `after` are all interfaces.

        Raises:
            AgentError: If the kernel's counters do not say what was dropped, or could not count this many frames.
        """
        counters: Message = {"name": self.name, "load_ratio": self.load(1.0)}
        reception = None
        if self.sending is not None:
            counters.update(self.sending.counters(reports, self._ports.before, after))
        if self.receiving is not None:
            counters.update(self.receiving.counters(self.sent(reports), received, self._dropped(after)))
            counters["late_frames"] += self._late_probes
            reception = self.receiving.reception()
            self.receiving.stop_noting()

        report = None if self.sending is None else reports[self.sending.sender]
        if report is None or report.batches is None:
            return counters
        return {**counters, "course": course(report.batches, report.steps, reception)}

    def close(self) -> None:
        """Stops its traffic at once."""
        for end in (self.sending, self.receiving, self._conversation):
            if end is not None:
                end.close()
        self._end_probe()

    def _part_of(self, wanted: SendOrder, load_of: Callable[[float], float]) -> SendOrder:
        steps = tuple((load_of(load), duration) for load, duration in wanted.plan.steps)
        return replace(wanted, plan=replace(wanted.plan, steps=steps))

    def _end_probe(self) -> None:
        """Looks for late latency frames of the latest traffic for the last time."""
        self._late_probes = 0
        if self._probe is not None:
            self._late_probes = self._probe.late()
            self._probe.close()
        self._probe = None


def _build(spec: FramesSpec, source_mac: bytes, destination_mac: bytes) -> FrameCycle | BareFrames:
    kind = build_frames if HAS_NUMPY else BareFrames
    return kind(spec, source_mac, destination_mac)
