# SPDX-License-Identifier: Apache-2.0
"""The generator inside the kernel: XDP programs send, and XDP programs on the receiving ports count and compare."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Sequence

from lossratio.bpf import possible_cpus

from ..core.configuration import Configuration
from ..core.early_verdict import Lookout
from ..core.own_generator import FlowGenerator
from ..core.pacing import CATCH_UP
from ..core.plan import ABILITIES, CONNECTIONS, PLACES, Answer, Plan
from ..core.protocol import Message, read_record
from .attachment import attach, check_can_send
from .cards import batch_at, described
from .departures import Departures, SendingEnd
from .direction import ReceivingEnd
from .frames import FramePlan, Share
from .kernel_generator import KernelGenerator
from .plan import check_schedule
from .receive_program import ReceiveProgram, ReceiveWay, Reception
from .send_program import SendProgram, SentSegment
from .sender import CPU_SHARE, Sender, share_out


class XdpGenerator(KernelGenerator, FlowGenerator[SendingEnd, ReceivingEnd]):
    """Sends live frames of XDP programs; its options are `lossratio.topology.XdpGenerator`'s.

    `batch` is how many runs of a sender's program pass before frames are handed over; None: it depends on the load.
    """

    _can = tuple(ability for ability in ABILITIES if ability not in (CONNECTIONS, PLACES))

    def __init__(
        self,
        configuration: Configuration,
        catch_up: float = CATCH_UP,
        cpus: Sequence[int] | None = None,
        cpu_share: float = CPU_SHARE,
        batch: int | None = None,
        device_cpus: Sequence[int] = (),
        cpus_per_direction: int | None = None,
    ) -> None:
        directions = configuration.directions
        super().__init__(configuration, (one.receive for one in directions if one.receives_here), catch_up, cpu_share)
        self._batch = batch
        self._streams: list[list[tuple[SendingEnd, Share]]] = []
        self._left: dict[str, Departures] = {}
        with self._opening():
            self._open(cpus, device_cpus, cpus_per_direction)
            used = dict.fromkeys(one.transmit for one in directions if one.sends_here)
            self._cards = described([self._ports.before[name] for name in used])

    def _observed(self, plan: Plan, counters: list[Message]) -> Answer:
        if plan.latency:
            # Every frame measures its latency.
            counted = {each["name"]: each for each in counters}
            return Answer(counters, [end.latency(counted[end.name]) for end in self._receiving])
        if not plan.locates:
            return Answer(counters)
        sending = {end.name: end for end in self._sending}
        receiving = {end.name: end for end in self._receiving}
        for each in counters:
            name = each["name"]
            if name in receiving:
                each["course"] = receiving[name].course(self._left[name], sending.get(name), each)
        return Answer(counters)

    def _renew(self) -> None:
        super()._renew()
        sent = {end.name: end.by_stream() for end in self._sending}
        for end in self._receiving:
            end.note(sent.get(end.name))

    def close(self) -> None:
        """See `Generator.close`."""
        self._senders.close()
        super().close()

    def _open(self, cpus: Sequence[int] | None, device_cpus: Sequence[int], for_each: int | None) -> None:
        directions = self._configuration.directions
        are_here = [direction.sends_here for direction in directions]
        self._claim(are_here.count(True), cpus, device_cpus, for_each)
        # The other end has the same options.
        elsewhere = len(set(cpus)) if cpus is not None else are_here.count(False) * (for_each or 1)
        streams = share_out(are_here, len(self._cpus), elsewhere)

        for number, direction in enumerate(directions):
            own = [stream for stream in streams if stream.direction == number]
            plan = FramePlan(direction.frames, *self._ports.macs(direction))
            if direction.sends_here:
                self._sending.append(SendingEnd(direction, plan, own, self._ports, self._senders))
            if direction.receives_here:
                examines = self._configuration.examines
                self._receiving.append(ReceivingEnd(direction, plan, own, self._ports, examines=examines))
        for end in self._sending:
            end.sharing = [other for other in self._sending if other.port == end.port]

        self._open_receivers(streams)
        for name in {end.port for end in self._sending}:
            # This comes late because a veth only sends once its other end has a program, maybe one of these.
            check_can_send(self._ports.before[name])
        self._open_senders()

    def _open_receivers(self, streams: Sequence[Share]) -> None:
        """Makes the memory in which the programs on the receiving ports count, and attaches these programs."""
        latencies = [end.latencies for end in self._receiving]
        processors = os.cpu_count() or 1
        with suppress(OSError):
            processors = possible_cpus()
        elsewhere = [stream.number for stream in streams if stream.sender is None]
        self._reception = Reception(len(streams), processors, elsewhere, sum(latencies))
        self._opened.callback(self._reception.close)

        ways_to: dict[str, list[ReceiveWay]] = {}
        for number, end in enumerate(self._receiving):
            way = end.way(self._reception, sum(latencies[:number]))
            ways_to.setdefault(end.port, []).append(way)
        for name, ways in ways_to.items():
            program = ReceiveProgram(self._reception, ways)
            self._opened.callback(program.close)
            attachment, self._modes[name] = attach(program.program, self._ports.before[name])
            self._opened.callback(attachment.close)

    def _open_senders(self) -> None:
        """Starts a sender on each processor, with its share of the directions."""
        for number, cpu in enumerate(self._cpus):
            own = [(end, stream) for end in self._sending for stream in end.streams if stream.sender == number]
            self._streams.append(own)
            sent = [end.sent_as(stream) for end, stream in own]
            self._senders.append(Sender(SendProgram(sent, self._reception.times), cpu, self._cpu_share))

    def _begin(self, plan: Plan) -> None:
        # Arriving frames leave no times, so courses have no outages and silences.
        if plan.notes_places:
            self._need_both_ends("Locating losses in time")
            check_schedule(plan, self._configuration.directions, len(self._sending[0].streams))

        self._ports.mark()
        ramp_tag, tag = self._tags.next(), self._tags.next()
        for sending in self._sending:
            sending.begin(plan)
        for receiving in self._receiving:
            receiving.begin(plan, tag)
        self._plan = plan
        self._reception.watch(tag)
        self._meeting.ready(tag)
        schedules = []

        for sender, streams in zip(self._senders, self._streams):
            schedules.append([end.segments(stream, (ramp_tag, tag), self._catch_up) for end, stream in streams])
            rate = sum(end.rate(plan.load) for end, _ in streams)
            sender.wake(self._batch or batch_at(rate, self._cards["transmit_rings"].values()))
        self._schedule(schedules)

    def _ended_after(self, plan: Plan, lookout: Lookout | None) -> float | None:
        ended_after = self._flowed
        others = self._meeting.tell("sent", {"ended_after": {"seconds": ended_after}})
        if others:
            self._stopped = time.monotonic()
            theirs = others["ended_after"]["seconds"]
            ended_after = None if ended_after is None or theirs is None else max(ended_after, theirs)
        return ended_after

    def _counters(self, ended_after: float | None) -> list[Message]:
        for end in self._receiving:
            end.count()
        after = self._ports.after()
        self._left = {end.name: end.departures(self._start, after) for end in self._sending}
        if self._configuration.has_other_end:
            theirs = self._meeting.tell("counted", {name: asdict(left) for name, left in self._left.items()})
            for name, left in theirs.items():
                self._left[name] = read_record(Departures, left, {"parts": SentSegment})

        counters: dict[str, Message] = {one.name: {"name": one.name} for one in self._configuration.directions}
        for end in self._receiving:
            counters[end.name] = end.counters(self._left[end.name], ended_after, after)
        return list(counters.values())
