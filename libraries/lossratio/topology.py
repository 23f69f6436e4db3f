"""The topology file: nodes, how to reach them, their interfaces, and the links between them.

Field names are those of FD.io CSIT's topology files wherever both mean the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from lossratio.errors import TopologyError
from lossratio.units import parse_bit_rate, parse_duration, parse_frame_rate
from lossratio.yaml_file import Problem, load_yaml_file

_QUANTITY = {"anyOf": [{"type": "number"}, {"type": "string"}]}
BitRate = Annotated[float, BeforeValidator(parse_bit_rate), WithJsonSchema(_QUANTITY)]
FrameRate = Annotated[float, BeforeValidator(parse_frame_rate), WithJsonSchema(_QUANTITY)]
Duration = Annotated[float, BeforeValidator(parse_duration), WithJsonSchema(_QUANTITY)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class NodeType(str, Enum):
    """What a node is there for."""

    TG = "TG"
    DUT = "DUT"


class TestbedKind(str, Enum):
    """Where the nodes come from."""

    __test__ = False
    LAB = "lab"
    LOCAL = "local"
    SIMULATED = "simulated"


class Interface(_Model):
    """A node's interface that test traffic goes through."""

    link: str
    """Name of the link it is on; the interface with the same link on another node is the other end."""
    name: str | None = Field(default=None, min_length=1, max_length=15)
    """Name of the Linux interface."""
    mac_address: str | None = Field(default=None, pattern="^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")
    """MAC address; where missing, the node is asked for it."""
    pci_address: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
    """PCI address, for devices and generators that take the interface from the kernel."""
    model: str | None = None
    """NIC model, e.g. ``Intel-E810CQ``."""
    driver: str | None = None
    """Driver that the device or generator expects."""
    speed: BitRate | None = None
    """Speed of the link, bits per second in each direction."""


class AfPacketGenerator(_Model):
    """The embedded generator: plain Linux packet sockets."""

    kind: Literal["afpacket"]
    python: str = "python3"
    """Python 3.8 or later on the TG node, with numpy."""
    max_rate: FrameRate | None = None
    """The most frames per second that it is known to send per interface: the default max load of a search."""


class SimulatedGenerator(_Model):
    """A generator on a virtual clock, for simulated testbeds."""

    kind: Literal["simulated"]
    max_rate: FrameRate | None = None
    """The most frames per second it can send per interface; more are unsent."""
    overhead: Duration | None = None
    """Virtual seconds that a trial takes beyond its own duration."""
    seed: int = 1
    """Seed of all random numbers."""


Generator = Annotated[AfPacketGenerator | SimulatedGenerator, Field(discriminator="kind")]


class Node(_Model):
    """A machine (or namespace) of the testbed, and how to reach it by SSH."""

    type: NodeType
    """TG (traffic generator) or DUT (device under test)."""
    host: str | None = None
    """Host name or address of its sshd."""
    port: int = Field(default=22, ge=1, le=65535)
    """TCP port of its sshd."""
    username: str | None = None
    """User to log in as; where missing, the user who runs the suite."""
    key_file: Path | None = None
    """Private key to log in with; where missing, the SSH agent and the user's default keys are tried."""
    sudo: bool = False
    """Whether commands need ``sudo -n`` in front of them there."""
    host_key: str | None = None
    """The node's public host key, as a line ``ssh-ed25519 AAAA...``."""
    known_hosts: Path | None = None
    """File with the node's host key, where it is not in the user's known_hosts."""
    connect_timeout: Duration = 10.0
    """Seconds that a log-in may take."""
    generator: Generator | None = None
    """The traffic generator, on a TG."""
    sut: dict[str, Any] | None = None
    """The model of the SUT (``model: ...`` and its parameters), on a DUT of a simulated testbed."""
    interfaces: dict[str, Interface] = Field(min_length=1)
    """Interfaces by port name."""

    @model_validator(mode="before")
    @classmethod
    def _no_passwords(cls, data: Any) -> Any:
        for field in ("password", "passphrase"):
            if isinstance(data, dict) and field in data:
                raise ValueError(
                    f"has a {field}, which does not belong into a file; "
                    "use a key, or the environment variable LOSSRATIO_PASSWORD"
                )
        return data


@dataclass(frozen=True)
class Port:
    """An interface together with the node that it is on."""

    node_name: str
    name: str
    interface: Interface

    def __str__(self) -> str:
        return f"{self.node_name}.{self.name}"


@dataclass(frozen=True)
class Hop:
    """A DUT on the path of the test traffic.

    Attributes:
        node_name: The DUT.
        west: Its port that faces the TG's first port.
        east: Its port that faces the TG's second port.
    """

    node_name: str
    west: Port
    east: Port


@dataclass(frozen=True)
class TrafficPath:
    """The way of the test traffic: from the TG's west port through every DUT to its east port, and back.

    Attributes:
        tg_name: The TG.
        west: The TG's first port.
        east: The TG's second port.
        hops: The DUTs, in order from west to east.
    """

    tg_name: str
    west: Port
    east: Port
    hops: tuple[Hop, ...]


class Topology(_Model):
    """A testbed. Read it with `load_topology`."""

    format: Literal["lossratio-topology/1"]
    """Format of the file."""
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the testbed; it is in every result."""
    description: str = ""
    """What is special about it."""
    testbed: TestbedKind = TestbedKind.LAB
    """lab: the nodes are there. local: network namespaces are built. simulated: nothing real at all."""
    nodes: dict[str, Node] = Field(min_length=1)
    """Nodes by name, e.g. TG, DUT1."""

    @property
    def tg_name(self) -> str:
        """Name of the node that generates the traffic."""
        return next(name for name, node in self.nodes.items() if node.type is NodeType.TG)

    @property
    def dut_names(self) -> tuple[str, ...]:
        """Names of the DUTs, in the order of the file."""
        return tuple(name for name, node in self.nodes.items() if node.type is NodeType.DUT)

    def links(self) -> dict[str, tuple[Port, ...]]:
        """The ends of every link, by the link's name."""
        links: dict[str, tuple[Port, ...]] = {}
        for node_name, node in self.nodes.items():
            for name, interface in node.interfaces.items():
                links[interface.link] = (*links.get(interface.link, ()), Port(node_name, name, interface))
        return links

    def path(self) -> TrafficPath:
        """The way of the test traffic through all DUTs; per hop the first unused common link in the file's order.

        Raises:
            TopologyError: If two neighbours on the way have no unused link in common.
        """
        stops = (self.tg_name, *self.dut_names, self.tg_name)
        used: set[str] = set()
        ends: list[tuple[Port, Port]] = []
        for here, there in itertools.pairwise(stops):
            ends.append(self._first_link(here, there, used))
        hops = tuple(
            Hop(name, arriving[1], leaving[0])
            for name, (arriving, leaving) in zip(self.dut_names, itertools.pairwise(ends), strict=True)
        )
        return TrafficPath(self.tg_name, ends[0][0], ends[-1][1], hops)

    def _first_link(self, here: str, there: str, used: set[str]) -> tuple[Port, Port]:
        for link, (first, second) in ((name, ports) for name, ports in self.links().items() if name not in used):
            for one, other in ((first, second), (second, first)):
                if (one.node_name, other.node_name) == (here, there):
                    used.add(link)
                    return one, other
        raise TopologyError(
            f"Topology {self.name}: no unused link between {here} and {there}. "
            f"The traffic goes from the TG through every DUT and back, so each two neighbours need a link of their own."
        )


def load_topology(path: str | Path) -> Topology:
    """Reads and checks a topology file.

    Raises:
        TopologyError: If the file is missing, is not YAML, or does not describe a usable testbed; each problem with
            file, line and field.
    """
    return load_yaml_file(path, Topology, TopologyError, _problems)


def _problems(topology: Topology) -> Iterator[Problem]:
    found = [*_node_type_problems(topology), *_link_problems(topology)]
    for name, node in topology.nodes.items():
        found += _node_problems(topology.testbed, name, node)
        found += _interface_problems(topology.testbed, name, node)
    yield from found
    if not found:
        try:
            topology.path()
        except TopologyError as error:
            yield ("nodes",), str(error)


def _node_type_problems(topology: Topology) -> Iterator[Problem]:
    generators = [name for name, node in topology.nodes.items() if node.type is NodeType.TG]
    if len(generators) != 1:
        yield ("nodes",), f"there must be exactly one node of type TG, and there are {len(generators)}"


def _link_problems(topology: Topology) -> Iterator[Problem]:
    for link, ports in topology.links().items():
        if len(ports) != 2:
            ends = ", ".join(str(port) for port in ports)
            last = ports[-1]
            where = ("nodes", last.node_name, "interfaces", last.name, "link")
            yield where, f"link {link!r} must have two ends, and has {len(ports)}: {ends}"


def _node_problems(testbed: TestbedKind, name: str, node: Node) -> Iterator[Problem]:
    where = ("nodes", name)
    simulated = testbed is TestbedKind.SIMULATED
    if node.type is NodeType.TG and node.generator is None:
        yield where, "a TG without a generator; add e.g. 'generator: {kind: afpacket}'"
    if node.type is NodeType.DUT and node.generator is not None:
        yield (*where, "generator"), "only a TG has a generator"
    if node.generator is not None and simulated != isinstance(node.generator, SimulatedGenerator):
        yield (*where, "generator"), f"kind {node.generator.kind!r} does not go with 'testbed: {testbed.value}'"
    if node.sut is not None and not simulated:
        yield (*where, "sut"), "a model of the SUT only goes with 'testbed: simulated'"
    if node.host is None and testbed is TestbedKind.LAB:
        yield where, "no 'host' to reach the node at"


def _interface_problems(testbed: TestbedKind, name: str, node: Node) -> Iterator[Problem]:
    names: set[str] = set()
    for port, interface in node.interfaces.items():
        where = ("nodes", name, "interfaces", port)
        if interface.name in names:
            yield (*where, "name"), f"another interface of {name} has the name {interface.name!r} as well"
        if interface.name is not None:
            names.add(interface.name)
        elif testbed is TestbedKind.LOCAL:
            yield where, "an interface of a local testbed needs a 'name'"
        elif testbed is TestbedKind.LAB and interface.pci_address is None:
            yield where, "neither a 'name' nor a 'pci_address'"
