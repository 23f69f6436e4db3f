# SPDX-License-Identifier: Apache-2.0
"""The embedded generator: plain Linux packet sockets, one sending process per direction."""

from __future__ import annotations

import errno
import os
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from multiprocessing.connection import wait
from typing import Any, Mapping, Sequence

from ..core.arrays import HAS_NUMPY
from ..core.configuration import Configuration
from ..core.early_verdict import LOOK_SECONDS, Lookout, wait_for_held_frames
from ..core.frames_spec import DIRECTIONS
from ..core.generator import integrity_of
from ..core.links import Link
from ..core.meeting import Meeting, Sight
from ..core.own_generator import OwnGenerator
from ..core.pacing import CATCH_UP, COUNTING, free_processors, pause, raise_priority
from ..core.passes import answered_again, check_openable, established
from ..core.plan import ABILITIES, Answer, Exchange, Note, Plan
from ..core.protocol import AgentError, Check, Message, read_record, unsupported
from . import bare, examination
from .connections import Conversation
from .direction import FAR, MOST_EARLIER, ActiveDirection, Sent
from .latency import MOST_FRAMES, NUMBERS, Probe, Stamps, stamps_of
from .sender import SENDING, Sender, SenderReport, SendOrder

_NOTE_SECONDS = 0.05
_TAG_MASK = 0xFFFFFFFF


class AfPacketGenerator(OwnGenerator[ActiveDirection]):
    """Sends from transmit rings, and counts with filters on packet sockets.

    Its options are `lossratio.topology.AfPacketGenerator`'s.
    """

    def __init__(
        self, configuration: Configuration, catch_up: float = CATCH_UP, device_cpus: Sequence[int] = ()
    ) -> None:
        super().__init__(configuration)
        self._settle_time = configuration.settle_time
        self._catch_up = catch_up
        # The link to a port may go down when a device is reset.
        self._links_may_change = False
        self._earlier_tags: list[int] = []
        self._probe_tags: list[int] = []
        self._probe_tag = int.from_bytes(os.urandom(4), "big") & ~NUMBERS
        self._sent_elsewhere: dict[str, Sent] = {}
        self._stamps_elsewhere: dict[str, Stamps] = {}
        cpus = free_processors(device_cpus)

        with ExitStack() as undo:
            undo.callback(self.close)
            try:
                for number, direction in enumerate(configuration.directions):
                    # It begins on the first of its own processors.
                    own = (*cpus[number % len(cpus) :], *cpus[: number % len(cpus)])
                    self._directions.append(
                        ActiveDirection(direction, self._ports.before, own, catch_up, examines=configuration.examines)
                    )
            except OSError as error:
                raise _socket_error(error) from error
            undo.pop_all()

        raise_priority(COUNTING)

    def join(self, meeting: Meeting, first_tag: int) -> None:
        """See `MeetingGenerator.join`."""
        super().join(meeting, first_tag)
        self._probe_tag = first_tag & ~NUMBERS

    def facts(self) -> Message:
        """Interfaces with their MAC addresses and kinds, and how senders are scheduled and handle stalls."""
        most_examined = examination.MOST_EXAMINED if HAS_NUMPY else bare.MOST_EXAMINED
        return {
            "generator": "afpacket",
            "can": list(ABILITIES),
            "realtime": all(sender.is_realtime for sender in self._senders()),
            "catch_up": self._catch_up,
            "integrity": integrity_of(self._configuration, examined_per_trial_about=most_examined),
            "ports": self._ports.facts(),
        }

    def run(self, plan: Plan, check: Check, note: Note) -> Answer:
        """See `Generator.run`."""
        if plan.exchange is not None:
            return Answer(self._connect(plan.load, plan.connections, plan.exchange, check))

        probes = self._probes(plan) if plan.latency else []
        self._begin(_order(plan), probes)
        if plan.is_watched:
            return self._watch(plan, check, note)

        counters = self._counters(self._finish(self._senders(), check))
        if not plan.latency:
            return Answer(counters)
        latency = {
            probe.name: probe.latency(self._stamps_elsewhere.get(probe.name)) for probe in probes if probe.arrives
        }
        counters = [_with_latency_frames(counted, latency.get(counted["name"])) for counted in counters]
        return Answer(counters, list(latency.values()))

    def _watch(self, plan: Plan, check: Check, note: Note) -> Answer:
        """Watches the trial that has begun, and ends it when its verdict is certain."""
        lookout = Lookout(plan, {direction.name: direction.load(plan.load) for direction in self._directions}, note)
        reports = self._finish(self._senders(), check, lookout)
        elapsed = [one.elapsed for one in self._all_sent(reports).values()]
        if lookout.has_ended:
            wait_for_held_frames(self._arrived, plan.duration - min(elapsed), self._settle_time, check)
        counters = self._counters(reports)
        # All due frames may have been sent before the senders noticed the end.
        ended = plan.ends and plan.above is not None and max(elapsed) < plan.duration
        if ended:
            whole = lookout.whole
            counters = [{**counted, "intended_frames": whole[counted["name"]]} for counted in counters]
        return lookout.answer(counters, max(elapsed) if ended else None)

    def _connect(self, load: float, count: int, exchange: Exchange, check: Check) -> list[Message]:
        """Opens connections in the only direction, and answers over each connection that arrives."""
        check_openable(self._configuration, exchange)
        (direction,) = self._directions
        try:
            conversation = direction.conversation()
            if exchange.answers != "opened":
                return [self._answer_again(direction.name, conversation, load, exchange, check)]
            opening = SendOrder(
                load, (count - 0.5) / load, connections=count, exchange=exchange, is_patient=exchange.is_complete
            )
            sender = direction.sender_of(opening)
            own_sender = direction.both_ends("Opening connections")[0].sender
            self._begin(opening)
            report = self._finish([sender or own_sender], check)[sender or own_sender]
            counters = self._counters({own_sender: report})[0]
            unsent = 0
            unseen: int | None = None

            for sender, order in conversation.replies(report.first, load * exchange.answer_ratio, self._tags.next):
                if unseen is None:
                    unseen = conversation.overlooked
                sender.start(order)
                sent = self._finish([sender], check)[sender].transmission
                unsent += max(0, sent.intended - sent.sent)
        except (OSError, MemoryError) as error:
            raise _socket_error(error) from error

        counters["late_frames"] += conversation.late_before
        seen = {
            "duplicated_frames": conversation.copies,
            "misdelivered_frames": conversation.strangers,
            "rejection_frames": conversation.rejections,
        }
        overlooked = conversation.overlooked
        return [{**established(counters, conversation.left, unsent, overlooked, unseen or 0), **seen}]

    def _answer_again(
        self, name: str, conversation: Conversation, load: float, exchange: Exchange, check: Check
    ) -> Message:
        """Repeats the answers over the previous exchange's connections, and counts those that come back as received."""
        count = conversation.alive
        is_unasked = exchange.answers == "unasked"
        sent = 0
        began = time.monotonic()
        for sender, order in conversation.answers_again(load, self._tags.next, is_unasked=is_unasked):
            sender.start(order)
            sent = self._finish([sender], check)[sender].transmission.sent

        elapsed = time.monotonic() - began
        back = conversation.alive
        return answered_again(name, sent, count, back, conversation.overlooked, elapsed)

    def hold(self, plan: Plan) -> None:
        """See `Generator.hold`."""
        self._begin(_order(plan))
        self._links_may_change = plan.locates

    def renew(self) -> None:
        """See `Generator.renew`."""
        for direction in self._directions:
            direction.renew()

    def stop(self, late_wait: float, check: Check) -> Answer:
        """See `Generator.stop`."""
        for sender in self._senders():
            sender.stop()
        return self._with_late(self._counters(self._finish(self._senders(), check)), late_wait, check)

    def close(self) -> None:
        """See `Generator.close`."""
        for direction in self._directions:
            direction.close()
        self._directions = []

    def _begin(self, wanted: SendOrder, probes: Sequence[Probe] = ()) -> None:
        """Starts all directions; `wanted` is the order for a direction that has the whole load, with any tags."""
        self._links_may_change = False
        self._ports.mark()
        started: list[Sender] = []
        tag_before = self._tags.last
        ramp_tag, tag = self._tags.next(), self._tags.next()
        orders: dict[Sender, SendOrder] = {}

        parts = []
        for number, direction in enumerate(self._directions):
            tagged = replace(wanted, tag=tag + number, ramp_tag=ramp_tag + number)
            part = direction.part_of(tagged, probes[number] if probes else None)
            parts.append((direction, part))
            orders.update(direction.orders(tagged, part))

        # Otherwise, the first sender that starts could keep this process from starting the others.
        raise_priority(SENDING + 1)
        try:
            # Broadcast frames have the same tags except for the highest bit.
            family = ~(DIRECTIONS | FAR) & _TAG_MASK
            tags = {family: [tag, ramp_tag, tag_before, *self._earlier_tags]}
            self._earlier_tags = [tag, ramp_tag, *self._earlier_tags][: 2 * MOST_EARLIER]
            self._probe_tags = [*self._probe_tags, *(probe.tag for probe in probes)][-2 * len(self._directions) :]
            tags[~NUMBERS & _TAG_MASK] = self._probe_tags
            for direction, part in parts:
                direction.watch(part, tags)
            self._meeting.ready(tag)

            for sender, order in orders.items():
                sender.start(order)
                started.append(sender)
        except AgentError:
            for sender in started:
                sender.drain()
            raise
        except OSError as error:
            raise _socket_error(error) from error
        finally:
            raise_priority(COUNTING)

    def _finish(
        self, senders: Sequence[Sender], check: Check, lookout: Lookout | None = None
    ) -> dict[Sender, SenderReport]:
        """Waits until all senders have ended, or the lookout ends them, and then for frames in flight."""
        pending: dict[Any, Sender] = {sender.connection: sender for sender in senders}
        reports: dict[Sender, SenderReport] = {}
        ended = time.monotonic()
        is_over = not pending and lookout is None

        try:
            while not is_over:
                for connection in wait(list(pending), _NOTE_SECONDS if lookout is None else LOOK_SECONDS):
                    sender = pending.pop(connection)
                    reports[sender] = sender.report()
                    ended = time.monotonic()

                # This comes first because reading the links may wait for a lock of the kernel.
                for sender in pending.values():
                    sender.renew()
                links = self._ports.after(may_go_down=self._links_may_change)
                is_over = not pending
                if lookout is not None:
                    seen = self._meeting.look(self._sight(lookout, links, has_ended=is_over))
                    is_over = seen.has_ended
                    if lookout.sees(seen.sent, seen.received):
                        for sender in pending.values():
                            sender.stop()

                check()
                for direction in self._directions:
                    direction.note_arrivals()

            if self._meet(reports):
                ended = time.monotonic()
            # Frames in flight need this time anyway, so it costs nothing.
            for direction in self._directions:
                direction.note_arrivals(least=1)
            pause(max(0.0, ended + self._settle_time - time.monotonic()), check)
        finally:
            # Senders are still running only after an error.
            for sender in pending.values():
                sender.drain()

        return reports

    def _sight(self, lookout: Lookout, links: Mapping[str, Link], *, has_ended: bool) -> Sight:
        """What this node sees of a running trial."""
        sent = {
            way.name: way.sending.so_far(lookout.rates[way.name]) for way in self._directions if way.sending is not None
        }
        received = {
            way.name: way.receiving.so_far(self._ports.before, links)
            for way in self._directions
            if way.receiving is not None
        }
        return Sight(sent, received, has_ended)

    def _meet(self, reports: Mapping[Sender, SenderReport]) -> bool:
        """Tells the other end what this end has sent, and notes the answer; returns whether there is another end."""
        if not self._configuration.has_other_end:
            return False
        own = {name: {"sent": asdict(one), "stamps": None} for name, one in self._sent(reports).items()}
        for direction in self._directions:
            if direction.name in own:
                own[direction.name]["stamps"] = direction.stamps()
        theirs = self._meeting.tell("sent", own)
        self._sent_elsewhere = {name: read_record(Sent, one["sent"]) for name, one in theirs.items()}
        self._stamps_elsewhere = {name: stamps_of(one["stamps"]) for name, one in theirs.items() if one["stamps"]}
        return True

    def _arrived(self) -> int:
        return sum(direction.count() for direction in self._directions)

    def _counters(self, reports: Mapping[Sender, SenderReport]) -> list[Message]:
        # This comes first, so that no more frames are examined than are counted.
        for direction in self._directions:
            direction.end_examination()
        received = [direction.count() for direction in self._directions]
        links = self._ports.before, self._ports.after(may_go_down=self._links_may_change)
        sent = self._all_sent(reports)
        return [
            direction.counters(reports, sent[direction.name], count, *links)
            for direction, count in zip(self._directions, received)
        ]

    def _sent(self, reports: Mapping[Sender, SenderReport]) -> dict[str, Sent]:
        """What left from this node, by direction; nothing for a pass whose senders are not those of trials."""
        sent = {}
        for direction in self._directions:
            if direction.sending is not None and direction.sending.sender in reports:
                sent[direction.name] = direction.sending.sent(reports)
        return sent

    def _all_sent(self, reports: Mapping[Sender, SenderReport]) -> dict[str, Sent]:
        """The frames that left this node and the other one, by direction."""
        return {**self._sent(reports), **self._sent_elsewhere}

    def _senders(self) -> list[Sender]:
        return [sender for direction in self._directions for sender in direction.senders]

    def _probes(self, plan: Plan) -> list[Probe]:
        probes = []
        try:
            for direction in self._directions:
                # The load's tags, which count up one by one, are far away from all of these.
                self._probe_tag = (self._probe_tag + MOST_FRAMES) & _TAG_MASK
                tag = (self._tags.last ^ FAR) & FAR | self._probe_tag & ~FAR
                probes.append(direction.open_probe(plan.load, plan.duration, tag))
        except OSError as error:
            raise _socket_error(error) from error
        return probes


def _order(plan: Plan) -> SendOrder:
    """The order for a direction that has the whole load, without its tags."""
    steps = [(load, duration) for load, duration in plan.steps if duration is not None]
    # Record: what senders do.
    return SendOrder(
        plan.load,
        None if plan.is_endless else plan.duration,
        ramp=plan.ramp,
        steps=tuple(steps) if plan.locates else (),
        is_logged=plan.locates,
        is_complete=plan.is_burst,
        is_watched=plan.is_watched,
    )


def _with_latency_frames(counters: Message, latency: Message | None) -> Message:
    """A direction's counters, with latency frames among the received ones; None: these are counted elsewhere."""
    if latency is None:
        return counters
    duplicates, examination = latency["duplicate_frames"], counters["examination"]
    if examination is not None:
        examination = {**examination, "latency_copies": duplicates}
    received = counters["received_frames"] + latency["received_frames"] + duplicates
    return {**counters, "received_frames": received, "examination": examination}


def _socket_error(error: OSError | MemoryError) -> AgentError:
    if isinstance(error, PermissionError):
        return AgentError("permission", "Packet sockets need root (or CAP_NET_RAW); log in as root, or use sudo.")
    if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
        return AgentError(
            "memory", "This node does not have enough memory for so many connections or flows. Use fewer."
        )
    return unsupported(f"The kernel of this node refused the packet sockets: {error}.")
