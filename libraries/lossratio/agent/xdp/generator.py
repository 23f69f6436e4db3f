# SPDX-License-Identifier: Apache-2.0
"""The generator inside the kernel: XDP programs send, and XDP programs on the receiving ports count and compare."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any, Sequence

from lossratio.bpf import possible_cpus

from ..core.configuration import Configuration
from ..core.early_verdict import Lookout
from ..core.own_generator import FlowGenerator
from ..core.pacing import CATCH_UP
from ..core.plan import ABILITIES, CONNECTIONS, PLACES, Answer, Plan
from ..core.protocol import Message, unsupported
from .attachment import attach, check_can_send
from .cards import batch_at, described
from .direction import ActiveDirection
from .frames import Share
from .kernel_generator import KernelGenerator
from .plan import check_schedule
from .receive_program import ReceiveProgram, ReceiveWay, Reception
from .send_program import SendProgram
from .sender import CPU_SHARE, Sender, share_out


class XdpGenerator(KernelGenerator, FlowGenerator[ActiveDirection]):
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
        with self._opening():
            self._open(cpus, device_cpus, cpus_per_direction)
            used = dict.fromkeys(one.transmit for one in directions if one.sends_here)
            self._cards = described([self._ports.before[name] for name in used])

    def _unseen(self) -> dict[str, Any]:
        has_vlan = any(direction.frames.tag_place.behind_vlan for direction in self._configuration.directions)
        # The kernel or a card removes the tag before a program sees the frame; the DUT might also have removed it.
        return {"not_checked": ["whether frames came back without their VLAN's tag"] if has_vlan else []}

    def _observed(self, plan: Plan, counters: list[Message]) -> Answer:
        # Every frame measures its latency.
        here = [(counted, way) for counted, way in zip(counters, self._directions) if way.receives_here]
        if plan.locates:
            courses = {way.name: way.course(self._start, counted) for counted, way in here}
            ways = [(each, courses.get(each["name"])) for each in counters]
            return Answer([each if course is None else {**each, "course": course} for each, course in ways])
        return Answer(counters, [way.latency(counted) for counted, way in here] if plan.latency else None)

    def _renew(self) -> None:
        super()._renew()
        for direction in self._directions:
            direction.note()

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
            examines = self._configuration.examines
            self._directions.append(ActiveDirection(direction, own, self._ports, self._senders, examines=examines))
        ends = [active.sending for active in self._directions]
        for end in ends:
            end.sharing = [other for other in ends if other.port == end.port]

        self._open_receivers(streams)
        for name in {direction.transmit for direction in directions if direction.sends_here}:
            # This comes late because a veth only sends once its other end has a program, maybe one of these.
            check_can_send(self._ports.before[name])
        self._open_senders(streams)

    def _open_receivers(self, streams: Sequence[Share]) -> None:
        """Makes the memory in which the programs on the receiving ports count, and attaches these programs."""
        latencies = [direction.latencies for direction in self._directions]
        processors = os.cpu_count() or 1
        with suppress(OSError):
            processors = possible_cpus()
        elsewhere = [stream.number for stream in streams if stream.sender is None]
        self._reception = Reception(len(streams), processors, elsewhere, sum(latencies))
        self._opened.callback(self._reception.close)

        ways_to: dict[str, list[ReceiveWay]] = {}
        for number, direction in enumerate(self._directions):
            way = direction.way(self._reception, sum(latencies[:number]))
            if way is not None:
                ways_to.setdefault(direction.receive, []).append(way)
        for name, ways in ways_to.items():
            program = ReceiveProgram(self._reception, ways)
            self._opened.callback(program.close)
            attachment, self._modes[name] = attach(program.program, self._ports.before[name])
            self._opened.callback(attachment.close)

    def _open_senders(self, streams: Sequence[Share]) -> None:
        """Starts a sender on each processor, with its share of the directions."""
        self._streams = []
        for number, cpu in enumerate(self._cpus):
            own = [stream for stream in streams if stream.sender == number]
            self._streams.append(own)
            sent = [self._directions[stream.direction].sent_as(stream) for stream in own]
            self._senders.append(Sender(SendProgram(sent, self._reception.times), cpu, self._cpu_share))

    def _begin(self, plan: Plan) -> None:
        # Arriving frames leave no times, so courses have no outages and silences.
        if plan.notes_places:
            if self._configuration.has_other_end:
                raise unsupported(
                    "The generator xdp can only tell when frames are lost if both ends of a path "
                    "are on one node, but this TG has its ends on two. Give both ports to the TG's "
                    "first node."
                )
            check_schedule(plan, self._configuration.directions, len(self._directions[0].streams))

        self._ports.mark()
        ramp_tag, tag = self._tags.next(), self._tags.next()
        for direction in self._directions:
            direction.begin(plan, tag)
        self._plan = plan
        self._reception.watch(tag)
        self._meeting.ready(tag)
        schedules = []

        for sender, streams in zip(self._senders, self._streams):
            own = [(self._directions[stream.direction], stream) for stream in streams]
            schedules.append([direction.segments(one, (ramp_tag, tag), self._catch_up) for direction, one in own])
            rate = sum(direction.load(plan.load) / len(direction.streams) for direction, _ in own)
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
        for direction in self._directions:
            direction.count()
        after = self._ports.after()
        if self._configuration.has_other_end:
            own = {way.name: way.sending.departures(self._start, after) for way in self._directions if way.sends_here}
            self._exchange("counted", own)
        return [direction.counters(ended_after, after) for direction in self._directions]
