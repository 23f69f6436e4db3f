# SPDX-License-Identifier: Apache-2.0
"""What both generators inside the kernel share: processors, programs on ports, and their facts."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, Iterable, Iterator, Sequence

from lossratio.bpf import BpfError, XdpMode, why_impossible

from ..core.configuration import Configuration
from ..core.generator import integrity_of
from ..core.own_generator import DirectionT, OwnGenerator
from ..core.pacing import SWITCH_SECONDS, free_processors, raise_priority
from ..core.protocol import AgentError, Message
from .attachment import check_may_attach
from .sender import claim_cpus

WAY_OUT = "Use 'kind: afpacket' for this TG, or 'kind: auto', which does so automatically."
"""What a user can do if there can be no programs."""
_AGENT_PRIORITY = 20
"""Priority (SCHED_FIFO) of the agent's own thread, which reads counters in time even if all processors are busy."""


class KernelGenerator(OwnGenerator[DirectionT]):
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
        self._has_card_stamps = False
        self._opened = ExitStack()
        self._modes: dict[str, XdpMode] = {}
        self._cpus: tuple[int, ...] = ()
        self._cards: Message = {}
        # Senders need Python between two pieces of their work.
        sys.setswitchinterval(SWITCH_SECONDS)
        raise_priority(_AGENT_PRIORITY)

    def facts(self) -> Message:
        """Ports with their modes, and how senders are scheduled."""
        # Record: the generator as it stands in a result.
        return {
            "generator": "xdp",
            "can": list(self._can),
            "catch_up": self._catch_up,
            "cpus": list(self._cpus),
            "cpu_share": self._cpu_share,
            "receives": dict(self._modes),
            **self._cards,
            "card_stamps": self._has_card_stamps,
            "integrity": integrity_of(self._configuration, **self._unseen()),
            "ports": self._ports.facts(),
        }

    def _unseen(self) -> dict[str, Any]:
        """More facts about what is examined: see `integrity_of`."""
        return {}

    def close(self) -> None:
        """See `Generator.close`."""
        self._opened.close()

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Closes everything if it cannot be opened.

        Raises:
            AgentError: If the kernel refuses a program.
        """
        try:
            yield
        except BpfError as error:
            self.close()
            raise AgentError("bpf", f"{error} {WAY_OUT}") from error
        except BaseException:
            # Even an interrupt must not leave programs attached and threads alive.
            self.close()
            raise

    def _claim(
        self, senders: int, cpus: Sequence[int] | None, device_cpus: Sequence[int], for_each: int | None = None
    ) -> None:
        """Chooses the processors of the senders: see `claim_cpus`."""
        claims = claim_cpus(senders, cpus, free_processors(device_cpus), for_each)
        self._cpus = tuple(claims)
        for claimed in claims.values():
            self._opened.callback(claimed.close)
