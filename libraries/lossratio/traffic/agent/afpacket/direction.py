"""One direction of the traffic: its sender, its counters, and the frames that are looked at or noted."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Mapping, Sequence

from ..core.configuration import Direction
from ..core.early_verdict import Lookout, SoFar
from ..core.links import Link
from ..core.losses import LossTables
from ..core.pacing import BATCH
from ..core.protocol import AgentError, Message, unsupported
from ..core.returns import Returns
from .arrivals import ArrivalLog, course
from .connections import Conversation
from .examination import AT_ONCE, Examiner
from .frames import build_frames
from .latency import Probe, latency_frames
from .receive import TRAFFIC_AT_ONCE, FrameCounter, StackFilter, TagCounters, check_countable
from .sender import Sender, SenderReport, SendOrder
from .transmit import SenderSetup

MOST_EARLIER = TRAFFIC_AT_ONCE - 1
"""Earlier traffic whose late frames are counted."""
BROADCAST = b"\xff" * 6
"""The MAC address of all stations."""
FAR = 0x80000000
"""How far tags of frames that do not count are from the tags of those that do."""


class ActiveDirection:
    """A direction with its sender, and with counters for the frames of this trial and of earlier ones.

    Its sender begins on the first of the processors.
    """

    def __init__(
        self, direction: Direction, links: Mapping[str, Link], cpus: tuple[int, ...], catch_up: float, *, examines: bool
    ) -> None:
        frames = direction.frames
        source, sink = links[direction.transmit], links[direction.receive]
        own_mac, destination = direction.macs(source.mac, sink.mac)
        cycle = build_frames(frames, own_mac, destination)
        self.name = direction.name
        self._direction = direction
        self._counters = TagCounters(sink, direction.arriving_tag)
        self._returns = Returns(self._counters.counter_of, MOST_EARLIER)
        self._foreign = FrameCounter(sink, direction.arriving_tag)
        self._stack = StackFilter(sink, direction.arriving_tag)
        self._examiner: Examiner | None = None
        if examines:
            expected = cycle
            if direction.arriving_frames is not None:
                expected = build_frames(direction.arriving_frames, own_mac, destination)
            self._examiner = Examiner(direction, expected, sink)
        self._source, self._sink = source, sink
        self._arrivals: ArrivalLog | None = None
        self._conversation: Conversation | None = None
        self._probe: Probe | None = None
        self._late_probes = 0
        self._is_examined = True
        self._loss_tables = LossTables(frames)
        self._setup = SenderSetup(source.name, cycle, frames.tag_place, source.kind == "veth", cpus, catch_up)
        self.sender = Sender(self._setup)
        self.broadcaster: Sender | None = None

        if direction.broadcast_share:
            self.broadcaster = Sender(replace(self._setup, cycle=build_frames(frames, own_mac, BROADCAST)))

    @property
    def senders(self) -> tuple[Sender, ...]:
        """The sender of the frames that count, and the sender of broadcast frames if there are any."""
        if self.broadcaster is None:
            return (self.sender,)
        return (self.sender, self.broadcaster)

    def load(self, load: float) -> float:
        """Its share of a trial's load, without broadcast frames, in frames per second."""
        return load * self._direction.load_share * (1.0 - self._direction.broadcast_share)

    def watch(self, order: SendOrder, tags: Mapping[int, Sequence[int]]) -> None:
        """Begins to count frames with an order's tag. All directions do that before any of them sends."""
        self._stop_noting()
        if not order.probes:
            self._end_probe()
        self._returns.watch(order.tag)
        self._stack.watch(order.tag)
        self._foreign.watch_foreign(tags)
        self._is_examined = order.exchange is None
        if self._examiner is not None and self._is_examined:
            self._examiner.watch(order.tag, order.load, order.duration)
        if order.locates:
            place = self._direction.arriving_tag
            loads = [load for load, _ in order.steps] or [order.load]
            self._arrivals = ArrivalLog(self._sink, place, order.tag, (min(loads), max(loads)))
        if order.exchange is not None:
            self.conversation().begin(order.tag, order.connections, order.exchange)

    def conversation(self) -> Conversation:
        """The connections of this direction.

        Raises:
            AgentError: If its frames come back with other headers than they were sent with.
        """
        if self._direction.arriving_frames is not None:
            raise unsupported(
                "Connections are opened through devices that leave tags, labels, tunnels and marks as they are. Take a "
                "traffic profile whose frames come back with the headers that they were sent with."
            )
        if self._conversation is None:
            self._conversation = Conversation(self._source, self._sink, self._direction.frames, self._setup)
        return self._conversation

    def sender_of(self, order: SendOrder) -> Sender:
        """The sender for an order: another one opens connections of TCP."""
        opener = self.conversation().opener if order.exchange is not None else None
        if opener is None:
            return self.sender
        return opener

    def orders(self, wanted: SendOrder, probe: Probe | None) -> dict[Sender, SendOrder]:
        """The orders to its senders: `wanted` is that to one that has the whole load, with this direction's tags."""

        def part(load_of: Callable[[float], float]) -> SendOrder:
            steps = tuple((load_of(load), duration) for load, duration in wanted.steps)
            return replace(wanted, load=load_of(wanted.load), steps=steps)

        own = part(self.load)
        if probe is not None:
            own = replace(own, probe_tag=probe.tag, probes=probe.frames)
        orders = {self.sender_of(wanted): own}
        if self.broadcaster is not None:
            far, ramp_far = wanted.tag ^ FAR, wanted.ramp_tag ^ FAR
            share = self._direction.load_share * self._direction.broadcast_share
            orders[self.broadcaster] = replace(part(lambda load: load * share), tag=far, ramp_tag=ramp_far)
        return orders

    def note_arrivals(self, least: int = AT_ONCE) -> None:
        """Examines frames that have arrived, if there are so many, and makes room where losses are located in time."""
        first = self.sender.progress.first
        if self._examiner is not None and first >= 0 and self._is_examined:
            self._examiner.look(first, least)
        if self._arrivals is not None:
            self._arrivals.note()
        if self._conversation is not None:
            self._conversation.note()

    def renew(self) -> None:
        """Renews traffic without an end, and keeps room for the frames that come back."""
        for sender in self.senders:
            sender.renew()
        if self._examiner is not None:
            self._examiner.make_room()
        if self._arrivals is not None:
            self._arrivals.note()

    def open_probe(self, load: float, duration: float, tag: int) -> Probe:
        """Gets latency frames ready, a part of this direction's traffic; their tags count up from the first one."""
        self._end_probe()
        ends = ((self._source, self._setup.tag_place), (self._sink, self._direction.arriving_tag))
        self._probe = Probe(self.name, ends, tag=tag, frames=latency_frames(self.load(load), duration))
        return self._probe

    def so_far(self, lookout: Lookout, before: Mapping[str, Link], now: Mapping[str, Link]) -> SoFar:
        """The counters of a running trial that is watched; `before` and `now` are all interfaces."""
        sink = self._direction.receive
        progress = self.sender.progress
        rate = lookout.rates[self.name]
        # Frames that leave while the counters are read may come back, and hide loss; never the other way round.
        sent = progress.sent
        unsent = progress.unsent
        usual = int(BATCH * rate) + 2
        received = self._returns.arrived()
        kept = max(0, progress.longest_burst - usual)
        dropped = now[sink].receive_drops - before[sink].receive_drops

        return SoFar(
            whole=lookout.whole[self.name],
            sent=sent,
            unsent=unsent,
            received=received,
            in_flight=lookout.watch.in_flight * rate,
            of_generator=kept + dropped,
        )

    def count(self) -> int:
        """How many frames came back until now."""
        return self._returns.count()

    def end_examination(self) -> None:
        """Leaves all frames alone that come from now on, as they are late."""
        if self._examiner is not None:
            self._examiner.end()

    def late(self) -> int:
        """Frames that came back since they were counted; none of a trial that failed before that."""
        late_probes = self._probe.late() if self._probe is not None else 0
        late_answers = self._conversation.late() if self._conversation is not None else 0
        return self._returns.late() + late_probes + late_answers

    def late_of_earlier(self) -> list[int]:
        """Late frames of the traffic before, of that before that..., since `counters` or this."""
        return self._returns.late_of_earlier()[0]

    def counters(
        self,
        reports: Mapping[Sender, SenderReport],
        received: int,
        before: Mapping[str, Link],
        after: Mapping[str, Link],
    ) -> Message:
        """The counters of the direction, as `Generator.trial` returns them; `before` and `after` are all interfaces.

        Broadcast frames that could not be sent are among the unsent ones: without them the load is lower.

        Raises:
            AgentError: If the kernel's counters do not say what was dropped, or could not count so many frames.
        """
        source, sink = self._direction.transmit, self._direction.receive
        report = reports[self.sender]
        sent = report.transmission
        broadcasts = 0
        if self.broadcaster is not None:
            others = reports[self.broadcaster].transmission
            broadcasts = max(0, others.intended - others.sent)

        load_frames = sent.sent - report.probes
        check_countable(self.name, load_frames)
        if report.dropped_beyond > after[source].transmit_drops - before[source].transmit_drops:
            raise AgentError(
                "counters",
                f"{source} refused {report.dropped_beyond} frames and does not say that they were dropped, "
                "so that it is not known how many were sent. Another program may use this interface.",
            )

        late, copies = self._returns.late_of_earlier()
        self._returns.end(load_frames, received)
        foreign = self._foreign.read() + copies
        examination = None
        if self._examiner is not None and self._is_examined:
            examination = self._examiner.examine(report.first, load_frames)

        dropped = after[sink].receive_drops - before[sink].receive_drops
        # Record: the counters as the library reads them.
        counters = {
            "name": self.name,
            "intended_frames": sent.intended + broadcasts,
            "sent_frames": sent.sent,
            "received_frames": received,
            "unsent_frames": max(0, sent.intended - sent.sent) + broadcasts,
            "generator_drop_frames": dropped,
            "late_frames": sum(late[:1]) + self._late_probes,
            "earlier_late_frames": late[1:],
            "foreign_frames": foreign,
            "elapsed_s": sent.elapsed,
            "lateness_s": sent.worst_lateness,
            "load_ratio": self.load(1.0),
            "examination": examination,
            "losses": None if dropped or received >= load_frames else self._losses(report, load_frames),
        }
        if report.batches is None:
            return counters

        reception = None if self._arrivals is None else self._arrivals.reception()
        self._stop_noting()
        return {**counters, "course": course(report.batches, report.steps, reception)}

    def _losses(self, report: SenderReport, sent: int) -> Message | None:
        """Where lost frames sit, if frames were examined: see `lossratio.trials.Losses`."""
        if self._examiner is None or not self._is_examined:
            return None
        fates = self._examiner.fates(sent)
        if fates is None:
            return None
        return self._loss_tables.of(fates, report.first, report.transmission.elapsed)

    def close(self) -> None:
        """Stops its traffic at once."""
        for sender in self.senders:
            sender.close()
        for each in (self._counters, self._foreign, self._stack, self._examiner):
            if each is not None:
                each.close()
        self._stop_noting()
        self._end_probe()
        if self._conversation is not None:
            self._conversation.close()

    def _end_probe(self) -> None:
        """Looks for late latency frames of the latest traffic, a last time."""
        self._late_probes = 0
        if self._probe is not None:
            self._late_probes = self._probe.late()
            self._probe.close()
        self._probe = None

    def _stop_noting(self) -> None:
        if self._arrivals is not None:
            self._arrivals.close()
        if self._conversation is not None:
            self._conversation.end()
        self._arrivals = None
