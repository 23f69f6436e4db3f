# SPDX-License-Identifier: Apache-2.0
"""What the controller asks of the agent: the fields of each request, which both sides read. Sent by `asdict`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from .configuration import PARTS, Configuration, Speaker
from .neighbours import Question
from .plan import Exchange, Plan, check_positive
from .protocol import Message


@dataclass(frozen=True)
class Hello:
    """Asks what the node has."""

    protocol: int
    """The version of the protocol that the controller speaks."""


@dataclass(frozen=True)
class AgentFacts:
    """The answer to `Hello`: facts about the agent and its node."""

    protocol: int
    """Version of the protocol that it speaks."""
    python: str
    """Version of its Python."""
    numpy: str | None
    """Version of its numpy; None if it has none."""
    kernel: str
    """Name and version of the node's operating system kernel."""
    machine: str
    """Kind of processor, e.g. ``x86_64``."""
    cpu: str
    """The processor's model."""
    cpus: int
    """How many processors the agent may use."""
    interfaces: Mapping[str, str]
    """MAC addresses of the node's network interfaces, by name."""


@dataclass(frozen=True)
class Configure:
    """Makes a generator."""

    generator: str
    """Its kind."""
    configuration: Configuration
    """Its ports and directions."""
    options: Message = field(default_factory=dict)
    """Its own options."""
    program: Mapping[str, str] | None = None
    """The sources of its program, by the names of its modules; None: the agent already has it."""


@dataclass(frozen=True)
class Perform:
    """Performs a plan. If it has no end, there is an empty answer when it has begun; `Stop` has the other one."""

    plan: Plan
    """The plan."""


@dataclass(frozen=True)
class Stop:
    """Stops a plan that has no end."""


@dataclass(frozen=True)
class Clock:
    """Asks for the time of the node's clock."""


@dataclass(frozen=True)
class Through:
    """A generator that has taken its cards from the kernel."""

    generator: str
    """Its kind."""
    options: Message
    """Its own options."""


@dataclass(frozen=True)
class SingleFrames:
    """Sends single frames, and waits for some seconds."""

    seconds: float
    """How long it waits."""
    through: Through | None = None
    """The generator that has the ports; None: the kernel has them."""
    loads_default_route: bool = False
    """See `Configuration.loads_default_route`."""

    def __post_init__(self) -> None:
        check_positive("seconds", self.seconds)


@dataclass(frozen=True)
class Resolve(SingleFrames):
    """Asks next hops for their MAC addresses."""

    questions: tuple[Question, ...] = ()
    """What is asked."""


@dataclass(frozen=True)
class Probe(SingleFrames):
    """Notes what arrives on all ports until some seconds after the last frame."""

    ports: tuple[str, ...] = ()
    """The interfaces that send and receive."""
    sends: tuple[tuple[str, str], ...] = ()
    """Interfaces, and frames in hexadecimal without FCS."""
    networks: tuple[str, ...] = ()
    """The networks of the frames' addresses."""
    listen: tuple[str, ...] = ()
    """Other interfaces that may receive. Those that do not exist, are down or are in use are left out."""
    speakers: tuple[Speaker, ...] = ()
    """The ports that answer for addresses meanwhile."""
    meet: bool = False
    """Whether another agent probes at the same time."""


REQUESTS: Mapping[str, Any] = {
    "hello": Hello,
    "configure": Configure,
    "run": Perform,
    "stop": Stop,
    "clock": Clock,
    "resolve": Resolve,
    "probe": Probe,
}
"""The requests, by the names of their operations."""
PARTS_OF_REQUESTS: Mapping[str, Any] = {
    **PARTS,
    "configuration": Configuration,
    "plan": Plan,
    "exchange": Exchange,
    "through": Through,
    "questions": Question,
}
"""The records in requests, by the names of the fields that hold them."""
