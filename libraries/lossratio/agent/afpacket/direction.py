# SPDX-License-Identifier: Apache-2.0
"""The ends of a direction: the one that sends, and the one that counts, examines and notes what comes back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Mapping, Sequence

from ..core import own_generator
from ..core.arrays import HAS_NUMPY
from ..core.configuration import Direction
from ..core.early_verdict import SentSoFar
from ..core.frames_spec import FramesSpec
from ..core.links import Link
from ..core.losses import LossTables
from ..core.pacing import BATCH
from ..core.plan import Plan
from ..core.ports import Ports
from ..core.protocol import AgentError, Message
from ..core.returns import Counter, Returns
from .arrivals import ArrivalLog, course
from .bare import BareFrames
from .examination import AT_ONCE, Examiner
from .filters import TRAFFIC_AT_ONCE, let_foreign_through
from .frames import FrameCycle, build_frames
from .latency import StampRing, Stamps, latency_of
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
    """The end of a direction that its frames leave from. Its sender begins on the first of the processors.

    Attributes:
        name: The direction.
        source: Its interface.
        setup: How its sender sends.
        sender: The sender of the frames that count.
        opener: The sender of the frames that open connections, if these need a different one.
        broadcaster: The sender of broadcast frames; None: there are none.
        stamps: When its latest latency frames left; None: there are none.
    """

    def __init__(
        self,
        direction: Direction,
        ports: Ports,
        frames: FrameCycle | BareFrames,
        cpus: tuple[int, ...],
        catch_up: float,
    ) -> None:
        self.name = direction.name
        self.source = ports.before[direction.transmit]
        is_virtual = self.source.kind == "veth"
        self.setup = SenderSetup(self.source.name, frames, direction.frames.tag_place, is_virtual, cpus, catch_up)
        self._direction, self._ports = direction, ports
        self._load = 0.0
        self.sender = self._active = Sender(self.setup)
        self.opener: Sender | None = None
        self.broadcaster: Sender | None = None
        self.stamps: StampRing | None = None
        if direction.broadcast_share:
            broadcasts = frames_of(direction.frames, (ports.macs(direction)[0], BROADCAST))
            self.broadcaster = Sender(replace(self.setup, frames=broadcasts))

    @property
    def is_realtime(self) -> bool:
        """Whether its senders have priority over all ordinary processes."""
        return self.sender.is_realtime and (self.broadcaster is None or self.broadcaster.is_realtime)

    def orders(self, own: SendOrder, plan: Plan) -> dict[Sender, SendOrder]:
        """The orders to its senders: its `own` part of a plan, and broadcast frames."""
        self._load = own.plan.load
        self._active = self.sender
        if plan.exchange is not None and self.opener is not None:
            self._active = self.opener
        self._forget_stamps()
        if own.probes:
            self.stamps = StampRing(self.source, self._direction.frames.tag_place, own, self._direction, outgoing=True)
        if self.broadcaster is None:
            return {self._active: own}

        share = self._direction.load_share * self._direction.broadcast_share
        others = replace(own, plan=part_of(plan, share), tag=own.tag ^ FAR, ramp_tag=own.ramp_tag ^ FAR, probes=())
        return {self._active: own, self.broadcaster: others}

    def first(self) -> int:
        """Number of the first frame of the latest traffic, as in `Sent`; -1: none was sent yet."""
        return self._active.progress.first

    def sent(self, reports: Mapping[Sender, SenderReport]) -> Sent:
        """What left, by the sender's report."""
        report = reports[self._active]
        transmission = report.transmission
        return Sent(frames=transmission.sent - report.probes, first=report.first, elapsed=transmission.elapsed)

    def so_far(self, now: Mapping[str, Link]) -> SentSoFar:
        """See `own_generator.SendingEnd.so_far`."""
        progress = self._active.progress
        # Frames that leave while the counters are read may come back and hide loss, but they never look lost.
        sent = progress.sent
        usual = int(BATCH * self._load) + 2
        return SentSoFar(sent, progress.unsent, max(0, progress.longest_burst - usual))

    def counters(self, reports: Mapping[Sender, SenderReport], after: Mapping[str, Link]) -> Message:
        """What left; `after` are all interfaces.

        Unsent frames include broadcast frames that could not be sent, because the load is lower without them.

        Raises:
            AgentError: If the kernel's counters do not say what was dropped.
        """
        source = self.source.name
        report = reports[self._active]
        sent = report.transmission
        broadcasts = 0
        if self.broadcaster is not None:
            others = reports[self.broadcaster].transmission
            broadcasts = max(0, others.intended - others.sent)

        if report.dropped_beyond > after[source].transmit_drops - self._ports.before[source].transmit_drops:
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

    def course(self, reports: Mapping[Sender, SenderReport], arrivals: ArrivalLog | None) -> Message:
        """Its counters' ``course``, if losses were to be located; without arrivals, frames are only counted.

        Raises:
            AgentError: If it is not known which frames arrived.
        """
        report = reports[self._active]
        if report.batches is None:
            return {}
        return {"course": course(report.batches, report.steps, None if arrivals is None else arrivals.reception())}

    def close(self) -> None:
        """Stops its traffic at once."""
        for sender in (self.sender, self.broadcaster):
            if sender is not None:
                sender.close()
        self._forget_stamps()

    def _forget_stamps(self) -> None:
        if self.stamps is not None:
            self.stamps.close()
        self.stamps = None


class ReceivingEnd(own_generator.ReceivingEnd):
    """The end of a direction that its frames come back to: counters for the frames of this trial and of earlier ones.

    Attributes:
        sink: Its interface.
        arrivals: When frames of the latest traffic arrived; None: this was not noted.
    """

    def __init__(self, direction: Direction, ports: Ports, frames: FrameCycle | BareFrames, *, examines: bool) -> None:
        super().__init__(direction, ports)
        self.sink = sink = ports.before[direction.receive]
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
        self.arrivals: ArrivalLog | None = None
        self._stamps: StampRing | None = None
        self._stamped = self._late_stamped = 0
        self._is_examined = True

    @cached_property
    def _loss_tables(self) -> LossTables:
        return LossTables(self._direction.frames)

    def watch(self, order: SendOrder, tags: Mapping[int, Sequence[int]]) -> None:
        """Begins to count frames with an order's tag. All ends do that before any frame leaves."""
        self._stop_noting()
        self.returns.watch(order.tag)
        self._stack.watch(order.tag)
        let_foreign_through(self._foreign.socket, self._direction.arriving_tag, tags)
        self._foreign.begin()

        plan = order.plan
        place = self._direction.arriving_tag
        self._is_examined = plan.exchange is None
        if self._examiner is not None and self._is_examined:
            self._examiner.watch(order.tag, plan.load, plan.duration)
        if plan.notes_places:
            loads = [load for load, _ in plan.steps]
            self.arrivals = ArrivalLog(self.sink, self._frames, place, order.tag, (min(loads), max(loads)))
        if order.probes:
            self._stamps = StampRing(self.sink, place, order, self._direction, outgoing=False)

    def note_arrivals(self, first: int, least: int = AT_ONCE) -> None:
        """Examines this many arrived frames, once `first` is known, and makes room if losses are located."""
        if self._examiner is not None and first >= 0 and self._is_examined:
            self._examiner.look(first, least)
        if self.arrivals is not None:
            self.arrivals.note()

    def count(self) -> int:
        """How many frames have come back so far; frames that come from now on are late."""
        # This comes first, so that no more frames are examined than are counted.
        if self._examiner is not None:
            self._examiner.end()
        counted = self.returns.count()
        self._arrived_by_stream = self._counter.by_stream
        return counted

    def counters(self, sent: Sent, received: int, after: Mapping[str, Link]) -> Message:
        """What came back of what left; `after` are all interfaces.

        Raises:
            AgentError: If this many frames cannot be counted.
        """
        check_countable(self.name, sent.frames)
        examination = None
        if self._examiner is not None and self._is_examined:
            examination = self._examiner.examine(sent.first, sent.frames)

        by_stream = []
        if self._order is not None:
            by_stream = self._order.counted(self._order.count(sent.first, sent.frames), self._arrived_by_stream)
        dropped = self.dropped(after)
        counters = {
            "received_frames": received,
            "generator_drop_frames": dropped,
            **self.returns.counted(sent.frames, received, self._foreign.read()),
            "examination": examination,
            "losses": None if dropped or received >= sent.frames else self._losses(sent),
            "by_stream": by_stream,
        }
        counters["late_frames"] += self._late_stamped
        return counters

    def latency(self, left: Stamps) -> Message:
        """The latency of the frames of the latest traffic that measure it, if these left as stated.

        Raises:
            AgentError: If there are none.
        """
        if self._stamps is None:
            raise AgentError("latency", f"No frames of {self.name} measure latency.")
        answer = latency_of(self._direction, left, self._stamps.read())
        self._stamped = answer["received_frames"]
        return answer

    def late(self) -> int:
        """See `own_generator.ReceivingEnd.late`; with latency frames."""
        return super().late() + self._newly_stamped()

    def _newly_stamped(self) -> int:
        """Latency frames that came back since the count."""
        if self._stamps is None:
            return 0
        before = self._stamped
        self._stamped = self._stamps.seen()
        return self._stamped - before

    def _begin_counter(self, tag: int) -> Counter:
        self._counter = self._counters.counter_of(tag)
        return self._counter.read

    def _losses(self, sent: Sent) -> Message | None:
        """Where lost frames are, if frames were examined: see `lossratio.trials.Losses`."""
        if self._examiner is None or not self._is_examined:
            return None
        fates = self._examiner.fates(sent.frames)
        if fates is None:
            return None
        return self._loss_tables.of(fates, sent.first, sent.elapsed)

    def _stop_noting(self) -> None:
        """Stops noting when frames arrive, and looks for late latency frames for the last time."""
        self._late_stamped = self._newly_stamped()
        self._stamped = 0
        for noted in (self.arrivals, self._stamps):
            if noted is not None:
                noted.close()
        self.arrivals = self._stamps = None

    def close(self) -> None:
        """Ends its counters."""
        self._counters.close()
        self._foreign.close()
        self._stack.close()
        if self._examiner is not None:
            self._examiner.close()
        self._stop_noting()


def part_of(plan: Plan, share: float) -> Plan:
    """A plan with a share of its loads."""
    return replace(plan, steps=tuple((share * load, duration) for load, duration in plan.steps))


def frames_of(spec: FramesSpec, macs: tuple[bytes, bytes]) -> FrameCycle | BareFrames:
    """Frames between MAC addresses, source and destination: one by one on a node without numpy."""
    kind = build_frames if HAS_NUMPY else BareFrames
    return kind(spec, *macs)
