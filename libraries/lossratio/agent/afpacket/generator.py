# SPDX-License-Identifier: Apache-2.0
"""The embedded generator: plain Linux packet sockets, one sending process per direction."""

from __future__ import annotations

import errno
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from multiprocessing.connection import wait
from typing import Any, Mapping, Sequence

from ..core.arrays import HAS_NUMPY, WITHOUT_NUMPY
from ..core.configuration import Configuration
from ..core.early_verdict import Lookout
from ..core.frames_spec import DIRECTIONS
from ..core.generator import Tags, integrity_of
from ..core.own_generator import FlowGenerator
from ..core.pacing import CATCH_UP, COUNTING, Transmission, free_processors, raise_priority
from ..core.passes import check_openable, connect
from ..core.plan import ABILITIES, CONNECTIONS, LATENCY, PLACES, SCHEDULES, Answer, Control, Exchange, Plan
from ..core.protocol import AgentError, Message, unsupported
from .direction import FAR, MOST_EARLIER, ActiveDirection
from .examination import MOST_EXAMINED
from .latency import MOST_FRAMES, NUMBERS, Probe
from .sender import SENDING, Sender, SenderReport, SendOrder

_TAG_MASK = 0xFFFFFFFF
_OF_NUMPY = (CONNECTIONS, LATENCY, SCHEDULES, PLACES)
"""What needs numpy."""


class AfPacketGenerator(FlowGenerator[ActiveDirection]):
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
        cpus = free_processors(device_cpus)

        with ExitStack() as undo:
            undo.callback(self.close)
            try:
                for number, direction in enumerate(configuration.directions):
                    # It begins on the first of its own processors.
                    own = (*cpus[number % len(cpus) :], *cpus[: number % len(cpus)])
                    self._directions.append(
                        ActiveDirection(direction, self._ports, own, catch_up, examines=configuration.examines)
                    )
            except OSError as error:
                raise _socket_error(error) from error
            undo.pop_all()

        raise_priority(COUNTING)

    def facts(self) -> Message:
        """Interfaces with their MAC addresses and kinds, and how senders are scheduled and handle stalls."""
        can = [ability for ability in ABILITIES if HAS_NUMPY or ability not in _OF_NUMPY]
        facts: Message = {
            "generator": "afpacket",
            "can": can,
            "realtime": all(sender.is_realtime for way in self._directions for sender in way.senders),
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
        if self._configuration.has_other_end:
            self._exchange("sent", dict(way.departures(self._reports) for way in self._directions if way.sends_here))
            self._stopped = time.monotonic()
        elapsed = max(direction.sent(self._reports).elapsed for direction in self._directions)
        # All due frames may have been sent before the senders noticed the end.
        ended = lookout is not None and plan.ends and plan.above is not None and elapsed < plan.duration
        return elapsed if ended else None

    def _observed(self, plan: Plan, counters: list[Message]) -> Answer:
        if not plan.latency:
            return Answer(counters)
        latency = {way.name: way.latency() for way in self._directions if way.receives_here}
        counters = [_with_latency_frames(counted, latency.get(counted["name"])) for counted in counters]
        return Answer(counters, list(latency.values()))

    def _perform(self, plan: Plan, control: Control) -> Answer:
        if plan.exchange is not None:
            return Answer([self._connect(plan, plan.exchange, control)])
        return super()._perform(plan, control)

    def _connect(self, plan: Plan, exchange: Exchange, control: Control) -> Message:
        """Opens connections in the only direction, and answers over each connection that arrives."""
        check_openable(self._configuration, exchange)
        (direction,) = self._directions
        try:
            ends = direction.conversation(self._open_first, self._transmit, self._tags.next)
            return connect(self._configuration.directions[0], ends, plan, exchange, control)
        except (OSError, MemoryError) as error:
            raise _socket_error(error) from error

    def _open_first(self, plan: Plan, exchange: Exchange, control: Control) -> tuple[Message, int]:
        """Sends the frames that open connections; returns their counters, and the number of the first frame."""
        (direction,) = self._directions
        plan = replace(plan, steps=((plan.load, (plan.connections - 0.5) / plan.load),))
        self._flow(partial(self._give, plan, is_patient=exchange.is_complete), control)
        self._settle(control)
        own_sender = direction.both_ends("Opening connections")[0].sender
        report = self._reports[direction.sender_of(plan) or own_sender]
        self._reports[own_sender] = report
        (counters,) = self._counters(None)
        return counters, report.first

    def _transmit(self, sender: Sender, order: SendOrder, control: Control) -> Transmission:
        self._flow(partial(self._start, {sender: order}), control)
        self._settle(control)
        return self._reports[sender].transmission

    def close(self) -> None:
        """See `Generator.close`."""
        for direction in self._directions:
            direction.close()
        self._directions = []

    def _begin(self, plan: Plan) -> None:
        probes = self._open_probes(plan) if plan.latency else []
        self._give(plan, probes)
        self._links_may_change = plan.is_endless and plan.locates

    def _give(self, plan: Plan, probes: Sequence[Probe] = (), *, is_patient: bool = False) -> None:
        """Starts all directions; see `SendOrder`."""
        self._links_may_change = False
        self._ports.mark()
        tag_before = self._tags.last
        ramp_tag, tag = self._tags.next(), self._tags.next()
        orders: dict[Sender, SendOrder] = {}

        parts = []
        for number, direction in enumerate(self._directions):
            tagged = SendOrder(plan, tag + number, ramp_tag + number, is_patient)
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
            self._start(orders)
        except OSError as error:
            raise _socket_error(error) from error
        finally:
            raise_priority(COUNTING)

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
        for direction in self._directions:
            direction.note_arrivals()

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
        for direction in self._directions:
            direction.note_arrivals(least=1)
        super()._settle(control)

    def _counters(self, ended_after: float | None) -> list[Message]:
        received = [direction.count() for direction in self._directions]
        after = self._ports.after(may_go_down=self._links_may_change)
        return [direction.counters(self._reports, count, after) for direction, count in zip(self._directions, received)]

    def _open_probes(self, plan: Plan) -> list[Probe]:
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
        "Look into the kernel's log there (dmesg)."
    )
