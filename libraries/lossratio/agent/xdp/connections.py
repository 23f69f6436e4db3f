# SPDX-License-Identifier: Apache-2.0
"""Connections inside the kernel: programs open them, answer over them, and check whom the answers belong to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Sequence

from lossratio.bpf import Attachment, BpfError

from ..core.configuration import Configuration
from ..core.links import Link
from ..core.pacing import CATCH_UP, LONGEST_STALL, NANOSECONDS, frames_within, grace_after, pause
from ..core.passes import LATE_LOOK, LATE_SECONDS, ExchangeCounts, check_openable, connect, passes_of, why_not_in_kernel
from ..core.plan import CONNECTIONS, FRAMES, Answer, Control, Exchange, Plan
from ..core.protocol import AgentError, Message, unsupported
from ..core.returns import Returns
from .attachment import attach, check_can_send
from .cards import batch_at, described, refused_frames, transmitted
from .connection_programs import MOST_EARLIER, MOST_PASSES, ArriveProgram, ConnectProgram, ExchangeMemory
from .frames import FramePlan
from .kernel_generator import KernelGenerator
from .send_program import Segment, SentSegment
from .sender import CPU_SHARE, Sender, Senders

_LEAST_ROOM = 1 << 17
"""Connections for which there is memory from the beginning: 2 MB."""


@dataclass
class _Counts(ExchangeCounts):
    """What the ends have seen of an exchange, and what left."""

    is_patient: bool = False
    """Whether every frame must leave, however late."""
    opened: int = 0
    """Frames that left in the first pass."""
    unsent: int = 0
    """Frames that did not leave."""
    refused: int = 0
    """How many of them a port had no room for."""
    lateness: float = 0.0
    """The largest time by which a frame left late, in seconds."""


class _End(ArriveProgram):
    """A port with the programs of one end: the Initiator sends forward, and examines what comes back.

    Attributes:
        port: Its interface.
        sender: The sender of its frames.
    """

    def __init__(
        self, port: Link, memory: ExchangeMemory, plan: FramePlan, cpu: int, share: float, *, is_forward: bool
    ) -> None:
        super().__init__(memory, plan, is_forward=not is_forward)
        self.port = port.name
        self.sender = Sender(ConnectProgram(memory, plan, port.index, is_forward=is_forward), cpu, share)

    def close(self) -> None:
        """Ends its sender, and frees the programs."""
        self.sender.close()
        super().close()


class ConnectingGenerator(KernelGenerator):
    """Opens UDP connections over IPv4 in its only direction; the options are those of `XdpGenerator`.

    One processor is enough for both ends, because they alternate in sending.
    """

    _can = (FRAMES, CONNECTIONS)

    def __init__(
        self,
        configuration: Configuration,
        catch_up: float = CATCH_UP,
        cpus: Sequence[int] | None = None,
        cpu_share: float = CPU_SHARE,
        device_cpus: Sequence[int] = (),
        cpus_per_direction: int | None = None,
    ) -> None:
        reason = why_not_in_kernel(configuration)
        if reason is not None:
            raise unsupported(f"{reason[0].upper()}{reason[1:]}.")

        (self._direction,) = configuration.directions
        self._names = self._direction.local_ports
        super().__init__(configuration, self._names, catch_up, cpu_share)
        self._attachments: dict[str, Attachment] = {}
        self._ends: list[_End] = []
        self.counts = _Counts()
        self._passes = 0
        with self._opening():
            self._claim(1, None if cpus is None else cpus[:1], device_cpus)
            source, sink = (self._ports.before[name] for name in self._names)
            self._frames = FramePlan(self._direction.frames, *self._direction.macs(source.mac, sink.mac))
            self._memory = ExchangeMemory(self._tags.next(), _LEAST_ROOM)
            self._opened.callback(self._memory.close)
            # A counter of frames with a tag is the function with this tag.
            self._returns = Returns(partial(partial, self._memory.late_of), MOST_EARLIER)
            self._make_ends()
            for port in (source, sink):
                check_can_send(port)
            self._cards = described([source, sink])

    def _perform(self, plan: Plan, control: Control) -> Answer:
        """See `Generator.run`; without an exchange, frames open connections, and nobody answers."""
        exchange = plan.exchange
        if exchange is None:
            self.counts = _Counts()
            return Answer([self._open(plan.load, frames_within(plan.duration, plan.load), control)])

        check_openable(self._configuration, exchange)
        if len(passes_of(exchange, is_tcp=False)) > MOST_PASSES:
            raise unsupported(f"At most {MOST_PASSES} frames can go over each connection. Use fewer data_frames.")
        counters = connect(self._direction, self, plan, exchange, control)
        if exchange.answers == "opened":
            counters["refused_frames"] = self.counts.refused
            counters["generator_drop_frames"] = self.counts.overlooked
            counters["lateness_s"] = self.counts.lateness
        return Answer([counters])

    def open(self, plan: Plan, exchange: Exchange, control: Control) -> Message:
        """See `Ends.open`."""
        self.counts = _Counts(is_patient=exchange.is_complete)
        return self._open(plan.load, plan.connections, control)

    def send_pass(self, number: int, load: float, control: Control) -> int:
        """See `Ends.send_pass`. The ends take turns."""
        before = self.counts.unsent
        self._pass(load, self.counts.alive, control, is_forward=number % 2 == 0)
        return self.counts.unsent - before

    def send_again(self, load: float, exchange: Exchange, control: Control) -> int:
        """See `Ends.send_again`."""
        count = self.counts.alive
        self.counts = _Counts(alive=count, opened=self.counts.opened, is_patient=exchange.is_complete)
        self._pass(load, count, control, is_forward=False, is_unasked=exchange.answers == "unasked")
        return count - self.counts.unsent

    def are_late(self, control: Control) -> bool:
        """See `Ends.are_late`."""
        end = time.monotonic() + LATE_SECONDS
        while not self._memory.shared.late and time.monotonic() < end:
            pause(LATE_LOOK, control.check)
        return bool(self._memory.shared.late)

    def _late(self) -> dict[str, list[int]]:
        """See `Answer.late`: connections of which a frame came late."""
        return {self._direction.name: [self._returns.late(), *self._returns.late_of_earlier()[0]]}

    def close(self) -> None:
        """See `Generator.close`."""
        for end in self._ends:
            end.close()
        self._ends = []
        super().close()

    def _make_ends(self) -> None:
        """Loads the programs of both ends for the present memory, replacing others."""
        for end in self._ends:
            end.close()
        self._ends = []
        for name in self._names:
            link = self._ports.before[name]
            is_forward = name == self._direction.transmit
            end = _End(link, self._memory, self._frames, self._cpus[0], self._cpu_share, is_forward=is_forward)
            self._ends.append(end)
            if name in self._attachments:
                self._attachments[name].replace(end.program)
            else:
                self._attachments[name], self._modes[name] = attach(end.program, link)
                self._opened.callback(self._attachments[name].close)

    def _open(self, load: float, count: int, control: Control) -> Message:
        """Opens connections; the counters are those of their first frames."""
        if count > self._memory.room:
            self._make_room(count)
        counts = self.counts
        tag = self._tags.next()
        self._memory.begin(tag, count, self._passes)
        self._passes = 0
        self._returns.watch(tag)
        self._returns.count()

        sent = self._pass(load, count, control, is_forward=True, tag=tag)
        if self._memory.shared.other_macs:
            raise unsupported(
                f"Connections came to {self._direction.receive} from several MAC addresses, but programs inside "
                "the kernel send all answers to one. Use 'kind: afpacket'."
            )

        # Record: the counters of the first frames.
        return {
            "name": self._direction.name,
            "intended_frames": count,
            "sent_frames": count - counts.unsent,
            "received_frames": counts.alive,
            "unsent_frames": counts.unsent,
            "refused_frames": counts.refused,
            "generator_drop_frames": counts.overlooked,
            **self._returns.counted(counts.opened, counts.alive, int(self._memory.shared.foreign)),
            "load_ratio": self._direction.load_share,
            "elapsed_s": max((count - 0.5) / load, sent.last),
            "lateness_s": counts.lateness,
            "examination": None,
        }

    def _pass(
        self,
        load: float,
        count: int,
        control: Control,
        *,
        is_forward: bool,
        is_unasked: bool = False,
        tag: int | None = None,
    ) -> SentSegment:
        """Sends a frame over each connection whose frames have all arrived; counts these frames and their fates."""
        if tag is None:
            tag = self._tags.next()
        counts = self.counts
        sending = self._ends[not is_forward]
        self._ports.mark()
        before = self._ports.before
        transmitted_before = transmitted(before[sending.port])
        self._memory.begin_pass(tag, is_forward=is_forward, is_unasked=is_unasked)
        self._passes += 1

        duration = (count - 0.5) / load
        last_call = duration + grace_after(duration, self._catch_up)
        if counts.is_patient:
            last_call = 2.0 * duration + LONGEST_STALL
        segment = Segment(
            interval=NANOSECONDS / load,
            frames=count,
            begin=0.0,
            last_call=last_call * NANOSECONDS,
            catch_up=self._catch_up * NANOSECONDS,
            tag=tag,
            is_patient=counts.is_patient,
        )
        self._plan = Plan(((load, count / load),))
        self._senders = Senders([sending.sender])
        sending.sender.wake(batch_at(load, self._cards["transmit_rings"].values()))
        grace = max(0.0, last_call - self._plan.duration)
        self._flow(partial(self._schedule, [[[segment]]], grace), control)
        self._settle(control)

        self._memory.end_pass()
        shared = self._memory.shared
        after = self._ports.after()
        sent = sending.sender.program.sent(0, 0)
        refused = refused_frames(before[sending.port], after[sending.port], transmitted_before, sent.sent)
        counts.unsent += count - sent.sent + refused
        counts.refused += refused
        counts.overlooked += sum(after[name].receive_drops - before[name].receive_drops for name in self._names)
        counts.copies += int(shared.copies)
        counts.strangers += int(shared.strangers)
        counts.lateness = max(counts.lateness, sent.lateness)
        counts.rejections = int(shared.rejections)
        counts.alive = int(shared.arrived)
        if self._passes == 1:
            counts.opened = sent.sent - refused
        self._returns.end(counts.opened, counts.alive)
        return sent

    def _make_room(self, count: int) -> None:
        """Gets memory for this many connections."""
        try:
            self._memory.grow(1 << (count - 1).bit_length())
            self._make_ends()
        except BpfError as error:
            raise AgentError(
                "memory", f"This node does not have enough memory for {count:,} connections. Use fewer. {error}"
            ) from error
