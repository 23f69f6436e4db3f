# SPDX-License-Identifier: Apache-2.0
"""What both generators inside the kernel share: processors, programs on ports, and their facts."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, contextmanager
from typing import ClassVar, Iterable, Iterator, Sequence

from lossratio.bpf import BpfError, XdpMode, why_impossible

from ..core.configuration import Configuration
from ..core.generator import integrity_of
from ..core.own_generator import OwnGenerator
from ..core.pacing import NANOSECONDS, SWITCH_SECONDS, free_processors, raise_priority
from ..core.plan import Plan
from ..core.protocol import AgentError, Message
from .attachment import check_may_attach
from .send_program import Segment
from .sender import WAKE_SECONDS, Senders, claim_cpus

WAY_OUT = "Use 'kind: afpacket' for this TG, or 'kind: auto', which does so automatically."
"""What a user can do if there can be no programs."""
PERMIT_SECONDS = 10.0
"""Seconds for which endless traffic continues without a sign of life from the agent, which may get no processor. Other
traffic has its end in the program. The senders are threads of the agent, so they end or stop with it."""
POLL_SECONDS = 0.0005
"""Seconds between two questions whether the senders have finished, once everything is due."""
_LATE_END_SECONDS = 5.0
"""Seconds after the end of its traffic within which a sender finishes."""
_AGENT_PRIORITY = 20
"""Priority (SCHED_FIFO) of the agent's own thread, which reads counters in time even if all processors are busy."""


class KernelGenerator(OwnGenerator):
    """A generator whose programs send, and examine what arrives on some ports (`receiving`)."""

    _can: ClassVar[Sequence[str]]

    def __init__(
        self, configuration: Configuration, receiving: Iterable[str], catch_up: float, cpu_share: float
    ) -> None:
        super().__init__(configuration)
        reason = why_impossible()
        if reason is not None:
            raise AgentError("bpf", f"The generator 'xdp' cannot run here: {reason}. {WAY_OUT}")
        for name in receiving:
            check_may_attach(self._ports.before[name])
        self._catch_up, self._cpu_share = catch_up, cpu_share
        self._opened = ExitStack()
        self._modes: dict[str, XdpMode] = {}
        self._cpus: tuple[int, ...] = ()
        self._cards: Message = {}
        self._senders = Senders()
        self._plan = Plan(((1.0, None),))
        # Of the kernel's clock: when the traffic begins, when everything is due, and when the last frame may leave.
        self._start = self._last_call = 0
        self._until = 0.0
        self._flowed: float | None = None
        """Seconds of traffic that was stopped before its end."""
        # Senders need Python between two pieces of their work.
        sys.setswitchinterval(SWITCH_SECONDS)
        raise_priority(_AGENT_PRIORITY)

    def facts(self) -> Message:
        """Ports with their modes, and how senders are scheduled."""
        has_vlan = any(direction.frames.tag_place.behind_vlan for direction in self._configuration.directions)
        # The kernel or a card removes the tag before a program sees the frame; the DUT might also have removed it.
        unseen = ["whether frames came back without their VLAN tag"] if has_vlan else []

        # Record: the generator as it stands in a result.
        return {
            "generator": "xdp",
            "can": list(self._can),
            "catch_up": self._catch_up,
            "cpus": list(self._cpus),
            "cpu_share": self._cpu_share,
            "receives": dict(self._modes),
            **self._cards,
            "integrity": integrity_of(self._configuration, not_checked=unseen),
            "ports": self._ports.facts(),
        }

    def close(self) -> None:
        """See `Generator.close`."""
        self._opened.close()

    def _schedule(self, schedules: Iterable[Sequence[Sequence[Segment]]], grace: float = 0.0) -> None:
        """Gives all senders, which were woken, their schedules for the plan; frames may leave late by `grace`."""
        for sender in self._senders:
            sender.wait_until_awake()
        self._flowed = None
        self._start = time.monotonic_ns() + round(WAKE_SECONDS * NANOSECONDS)
        self._until = self._start + (self._plan.ramp + self._plan.duration) * NANOSECONDS
        self._last_call = self._start
        if not self._plan.is_endless:
            self._last_call = round(self._until + grace * NANOSECONDS)
        for sender, schedule in zip(self._senders, schedules):
            sender.program.schedule(self._start, schedule)
        self._renew()

    def _wait(self, seconds: float) -> bool:
        left = (self._until - time.monotonic_ns()) / NANOSECONDS
        late = (time.monotonic_ns() - max(self._until, self._last_call)) / NANOSECONDS
        if late > _LATE_END_SECONDS:
            raise AgentError("sender_died", "A sender did not finish. Configure the generator again.")
        if seconds and self._flowed is None:
            time.sleep(min(seconds, max(POLL_SECONDS, left)))
        return self._flowed is not None or self._senders.have_finished()

    def _renew(self) -> None:
        until = max(time.monotonic_ns(), self._last_call) + round(PERMIT_SECONDS * NANOSECONDS)
        for sender in self._senders:
            sender.check()
            # Traffic that was stopped stays so.
            if self._flowed is None:
                sender.program.renew(until)

    def _stop(self) -> None:
        # When everything is due, the senders need only a moment to end by themselves.
        if self._flowed is not None or time.monotonic_ns() >= self._until:
            return
        self._senders.stop()
        if self._plan.is_endless or not self._senders.have_finished():
            flowed = (time.monotonic_ns() - self._start) / NANOSECONDS - self._plan.ramp
            self._flowed = min(flowed, self._plan.duration)

    def _rest(self) -> None:
        self._senders.rest()
        self._stopped = time.monotonic()

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Closes everything if it cannot be opened.

        Raises:
            AgentError: If the kernel refuses a program.
        """
        try:
            yield
        except BaseException as error:
            # Even an interrupt must not leave programs attached and threads alive.
            self.close()
            if isinstance(error, BpfError):
                raise AgentError("bpf", f"{error} {WAY_OUT}") from error
            raise

    def _claim(
        self, senders: int, cpus: Sequence[int] | None, device_cpus: Sequence[int], for_each: int | None = None
    ) -> None:
        """Chooses the processors of the senders: see `claim_cpus`."""
        claims = claim_cpus(senders, cpus, free_processors(device_cpus), for_each)
        self._cpus = tuple(claims)
        for claimed in claims.values():
            self._opened.callback(claimed.close)
