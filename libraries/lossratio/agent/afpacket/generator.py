# SPDX-License-Identifier: Apache-2.0
"""The embedded generator: plain Linux packet sockets, one sending process per direction."""

from __future__ import annotations

import errno
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from multiprocessing.connection import wait
from typing import Any, Mapping, Sequence

from ..core.arrays import HAS_NUMPY, WITHOUT_NUMPY
from ..core.configuration import Configuration
from ..core.early_verdict import LOOK_SECONDS, Lookout
from ..core.frames_spec import DIRECTIONS
from ..core.generator import Tags, integrity_of
from ..core.own_generator import FlowGenerator
from ..core.pacing import CATCH_UP, COUNTING, Transmission, free_processors, raise_priority
from ..core.passes import check_openable, connect
from ..core.plan import ABILITIES, CONNECTIONS, LATENCY, PLACES, SCHEDULES, Answer, Control, Exchange, Plan
from ..core.protocol import AgentError, Message, read_record, unsupported
from .connections import Conversation
from .direction import FAR, MOST_EARLIER, ReceivingEnd, SendingEnd, Sent, frames_of, part_of
from .examination import AT_ONCE, MOST_EXAMINED
from .latency import MOST_FRAMES, NUMBERS, Stamps, latency_frames, stamps_of
from .sender import SENDING, Sender, SenderReport, SendOrder

_TAG_MASK = 0xFFFFFFFF
_OF_NUMPY = (CONNECTIONS, LATENCY, SCHEDULES, PLACES)
"""What needs numpy."""


class AfPacketGenerator(FlowGenerator[SendingEnd, ReceivingEnd]):
    """Sends from transmit rings, and counts with filters on packet sockets.

    Its options are `lossratio.topology.AfPacketGenerator`'s.
    """

    def __init__(
        self, configuration: Configuration, catch_up: float = CATCH_UP, device_cpus: Sequence[int] = ()
    ) -> None:
        super().__init__(configuration)
        self._catch_up = catch_up
        self._earlier_tags: list[int] = []
        self._probe_tags: list[int] = []
        self._probe_tag = Tags(configuration.first_tag).last & ~NUMBERS
        self._pending: dict[Any, Sender] = {}
        self._reports: dict[Sender, SenderReport] = {}
        self._sent: dict[str, Sent] = {}
        self._left_elsewhere: dict[str, Stamps] = {}
        self._firsts_elsewhere: dict[str, int] = {}
        # At most one: the connections that are opened.
        self._conversations: list[Conversation] = []

        with ExitStack() as undo:
            undo.callback(self.close)
            try:
                self._open(free_processors(device_cpus))
            except OSError as error:
                raise _socket_error(error) from error
            undo.pop_all()
        raise_priority(COUNTING)

    def _open(self, cpus: tuple[int, ...]) -> None:
        """Makes the ends of all directions that are on this node."""
        for number, direction in enumerate(self._configuration.directions):
            macs = self._ports.macs(direction)
            frames = frames_of(direction.frames, macs)
            if direction.receives_here:
                arriving = direction.arriving_frames
                expected = frames if arriving is None else frames_of(arriving, macs)
                self._receiving.append(
                    ReceivingEnd(direction, self._ports, expected, examines=self._configuration.examines)
                )
            if direction.sends_here:
                # It begins on the first of its own processors.
                own = (*cpus[number % len(cpus) :], *cpus[: number % len(cpus)])
                self._sending.append(SendingEnd(direction, self._ports, frames, own, self._catch_up))

    def facts(self) -> Message:
        """Interfaces with their MAC addresses and kinds, and how senders are scheduled and handle stalls."""
        can = [ability for ability in ABILITIES if HAS_NUMPY or ability not in _OF_NUMPY]
        facts: Message = {
            "generator": "afpacket",
            "can": can,
            "realtime": all(end.is_realtime for end in self._sending),
            "catch_up": self._catch_up,
            "integrity": integrity_of(self._configuration, examined_per_trial_about=MOST_EXAMINED),
            "ports": self._ports.facts(),
        }
        if not HAS_NUMPY:
            unchecked = ["everything, because this node's Python has no numpy"]
            facts["integrity"] = {"in_trials": False, "checked": [], "not_checked": unchecked}
            facts["way_out"] = WITHOUT_NUMPY
        return facts

    def _ended_after(self, plan: Plan, lookout: Lookout | None) -> float | None:
        self._sent = {end.name: end.sent(self._reports) for end in self._sending}
        if self._configuration.has_other_end:
            own = {}
            for end in self._sending:
                stamps = None if end.stamps is None else end.stamps.read().as_message()
                own[end.name] = {"sent": asdict(self._sent[end.name]), "stamps": stamps}
            self._left_elsewhere = {}
            for name, left in self._meeting.tell("sent", own).items():
                self._sent[name] = read_record(Sent, left["sent"])
                if left["stamps"] is not None:
                    self._left_elsewhere[name] = stamps_of(left["stamps"])
            self._stopped = time.monotonic()

        elapsed = max(sent.elapsed for sent in self._sent.values())
        # All due frames may have been sent before the senders noticed the end.
        ended = lookout is not None and plan.ends and plan.above is not None and elapsed < plan.duration
        return elapsed if ended else None

    def _observed(self, plan: Plan, counters: list[Message]) -> Answer:
        if not plan.latency:
            return Answer(counters)
        left = {end.name: end.stamps.read() for end in self._sending if end.stamps is not None}
        left.update(self._left_elsewhere)
        latency = {end.name: end.latency(left[end.name]) for end in self._receiving}
        counters = [_with_latency_frames(counted, latency.get(counted["name"])) for counted in counters]
        return Answer(counters, list(latency.values()))

    def _perform(self, plan: Plan, control: Control) -> Answer:
        if plan.exchange is not None:
            return Answer([self._connect(plan, plan.exchange, control)])
        return super()._perform(plan, control)

    def _connect(self, plan: Plan, exchange: Exchange, control: Control) -> Message:
        """Opens connections in the only direction, and answers over each connection that arrives."""
        check_openable(self._configuration, exchange)
        (direction,) = self._configuration.directions
        self._need_both_ends("Opening connections")
        try:
            if not self._conversations:
                sending = self._sending[0]
                ports = (sending.source, self._receiving[0].sink)
                do = (self._open_first, self._transmit, self._tags.next)
                self._conversations.append(Conversation(ports, direction.frames, sending.setup, *do))
                sending.opener = self._conversations[0].opener
            return connect(direction, self._conversations[0], plan, exchange, control)
        except (OSError, MemoryError) as error:
            raise _socket_error(error) from error

    def _open_first(self, plan: Plan, exchange: Exchange, control: Control) -> tuple[Message, int]:
        """Sends the frames that open connections; returns their counters, and the number of the first frame."""
        self._send(replace(plan, steps=((plan.load, (plan.connections - 0.5) / plan.load),)), control)
        (counters,) = self._counters(None)
        return counters, self._sent[counters["name"]].first

    def _transmit(self, sender: Sender, order: SendOrder, control: Control) -> Transmission:
        self._flow(partial(self._start, {sender: order}), control)
        self._settle(control)
        return self._reports[sender].transmission

    def close(self) -> None:
        """See `Generator.close`."""
        ends: list[SendingEnd | ReceivingEnd | Conversation] = [*self._sending, *self._receiving, *self._conversations]
        for end in ends:
            end.close()
        self._sending = []
        self._receiving = []
        self._conversations = []

    def _late(self) -> dict[str, list[int]]:
        late = super()._late()
        for conversation in self._conversations:
            late[self._configuration.directions[0].name][0] += conversation.late()
        return late

    def _begin(self, plan: Plan) -> None:
        if plan.notes_places:
            self._need_both_ends("Locating losses in time")
        self._links_may_change = plan.is_endless and plan.locates
        self._firsts_elsewhere = {}
        self._ports.mark()
        tag_before = self._tags.last
        ramp_tag, tag = self._tags.next(), self._tags.next()
        is_patient = plan.exchange is not None and plan.exchange.is_complete
        own: dict[str, SendOrder] = {}
        for number, direction in enumerate(self._configuration.directions):
            part = part_of(plan, direction.counted_share)
            own[direction.name] = SendOrder(part, tag + number, ramp_tag + number, is_patient)
            if plan.latency:
                # The load's tags, which count up one by one, are far away from all of these.
                self._probe_tag = (self._probe_tag + MOST_FRAMES) & _TAG_MASK
                probe_tag = (tag ^ FAR) & FAR | self._probe_tag & ~FAR
                self._probe_tags = [*self._probe_tags, probe_tag][-2 * len(self._configuration.directions) :]
                probes = latency_frames(part.load, part.duration)
                own[direction.name] = replace(own[direction.name], probe_tag=probe_tag, probes=probes)

        # Otherwise, the first sender that starts could keep this process from starting the others.
        raise_priority(SENDING + 1)
        try:
            # Broadcast frames have the same tags except for the highest bit.
            family = ~(DIRECTIONS | FAR) & _TAG_MASK
            tags = {family: [tag, ramp_tag, tag_before, *self._earlier_tags], ~NUMBERS & _TAG_MASK: self._probe_tags}
            self._earlier_tags = [tag, ramp_tag, *self._earlier_tags][: 2 * MOST_EARLIER]
            for conversation in self._conversations:
                conversation.end()
            for receiving in self._receiving:
                receiving.watch(own[receiving.name], tags)
            for conversation in self._conversations:
                if plan.exchange is not None:
                    conversation.begin(tag, plan.connections, plan.exchange)
            orders: dict[Sender, SendOrder] = {}
            for sending in self._sending:
                orders.update(sending.orders(own[sending.name], plan))
            self._meeting.ready(tag)
            self._start(orders)
        except OSError as error:
            raise _socket_error(error) from error
        finally:
            raise_priority(COUNTING)
        if plan.is_endless and self._configuration.has_other_end:
            self._tell_firsts()

    def _tell_firsts(self) -> None:
        """Tells the other end which frames are the first: it cannot keep all frames that it compares until the end."""
        while min((end.first() for end in self._sending), default=0) < 0 and not self._wait(LOOK_SECONDS):
            self._renew()
        told = self._meeting.tell("begun", {end.name: {"first": end.first()} for end in self._sending})
        self._firsts_elsewhere = {name: int(begun["first"]) for name, begun in told.items()}

    def _start(self, orders: Mapping[Sender, SendOrder]) -> None:
        """Gives orders to senders."""
        self._reports = {}
        self._stopped = time.monotonic()
        for sender, order in orders.items():
            sender.start(order)
            self._pending[sender.connection] = sender

    def _wait(self, seconds: float) -> bool:
        for connection in wait(list(self._pending), seconds):
            sender = self._pending.pop(connection)
            self._reports[sender] = sender.report()
            self._stopped = time.monotonic()
        return not self._pending

    def _renew(self) -> None:
        for sender in self._pending.values():
            sender.renew()
        self._note_arrivals()

    def _stop(self) -> None:
        for sender in self._pending.values():
            sender.stop()

    def _rest(self) -> None:
        # Senders are still running only after an error.
        for sender in self._pending.values():
            sender.drain()
        self._pending = {}

    def _settle(self, control: Control) -> None:
        # Frames in flight need this time anyway, so it costs nothing.
        self._note_arrivals(least=1)
        super()._settle(control)

    def _note_arrivals(self, least: int = AT_ONCE) -> None:
        """Examines arrived frames, if there are enough, and makes room if losses are located in time."""
        firsts = {**self._firsts_elsewhere, **{end.name: end.first() for end in self._sending}}
        for end in self._receiving:
            end.note_arrivals(firsts.get(end.name, -1), least)
        for conversation in self._conversations:
            conversation.note()

    def _counters(self, ended_after: float | None) -> list[Message]:
        received = [end.count() for end in self._receiving]
        after = self._ports.after(may_go_down=self._links_may_change)
        counters: dict[str, Message] = {
            one.name: {"name": one.name, "load_ratio": one.counted_share} for one in self._configuration.directions
        }
        arrivals = {end.name: end.arrivals for end in self._receiving}
        for sending in self._sending:
            counters[sending.name].update(sending.counters(self._reports, after))
        for receiving, count in zip(self._receiving, received):
            counters[receiving.name].update(receiving.counters(self._sent[receiving.name], count, after))
        for sending in self._sending:
            counters[sending.name].update(sending.course(self._reports, arrivals.get(sending.name)))
        return list(counters.values())


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
    return unsupported(
        f"The kernel of this node refused the packet sockets of the generator afpacket: {error}. "
        "See the kernel's log there (dmesg)."
    )
