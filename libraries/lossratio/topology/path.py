"""The way of the test traffic through a testbed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import Field, JsonValue, model_validator

from lossratio.errors import TopologyError
from lossratio.records import FileModel
from lossratio.topology.addressing import Addresses, Gateways, Networks, check_port_addresses
from lossratio.topology.hooks import Hooks
from lossratio.topology.quantities import BitRate, DriverName, InterfaceName, Label, MacAddress, PciAddress
from lossratio.topology.vpp import VppStart


class Interface(FileModel):
    """A node's interface that test traffic goes through."""

    link: Label | None = None
    """Name of the link it is on; the interface with the same link is the other end. Without one it is not used."""
    name: InterfaceName | None = None
    """Name of the Linux interface."""
    mac_address: MacAddress | None = None
    """MAC address; where missing, the node is asked for it."""
    pci_address: PciAddress | None = None
    """PCI address, for devices and generators that take the interface from the kernel."""
    model: Label | None = None
    """NIC model, e.g. ``Intel-E810CQ``."""
    driver: DriverName | None = None
    """Driver that the device or generator expects."""
    speed: BitRate | None = None
    """Speed of the link, bits per second in each direction."""
    address: Addresses = ()
    """On the TG: the port's own IP addresses with their prefix lengths, e.g. ``10.1.0.2/30``: one of each version. The
    generator answers ARP and neighbour discovery for them, and for the addresses that traffic is sent from."""
    gateway: Gateways = ()
    """On the TG: next hops, one of each version. Their MAC addresses are asked for before each measurement."""
    network: Networks = ()
    """On the TG, with ``addresses: lab``: networks that are routed to this port, one of each version."""
    lldp: bool = False
    """On the TG: whether the generator sends LLDP there (IEEE 802.1AB), for devices that ask for a neighbour."""
    other: dict[str, JsonValue] = Field(default_factory=dict)
    """Further facts about it, which every result states."""

    @model_validator(mode="after")
    def _can_ask(self) -> Interface:
        check_port_addresses(self.address, self.gateway, self.network)
        return self


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
    """A DUT on the path of the test traffic."""

    node_name: str
    """The DUT."""
    west: Port
    """Its port that faces the TG's first port."""
    east: Port
    """Its port that faces the TG's second port."""
    uio_driver: str | None = None
    """Driver that cards are bound to for a program that takes them from the kernel; None: not said."""
    link: int | None = None
    """Number of its path among several parallel ones, from 1; None: it is the only one."""
    hooks: Hooks = field(default_factory=Hooks)
    """Its hooks."""
    vpp: VppStart = field(default_factory=VppStart)
    """How VPP is started on it."""

    @property
    def label(self) -> str:
        """Its name in reports: its node, and the number of its path where there are several."""
        return self.node_name if self.link is None else f"{self.node_name} (link {self.link})"


@dataclass(frozen=True)
class TrafficPath:
    """The way of the test traffic: from the TG's west port through every DUT to its east port, and back.

    Where the path ends at a reflector, that has the east port, and frames return to the west port.
    """

    tg_name: str
    """The TG."""
    west: Port
    """The TG's first port."""
    east: Port
    """The TG's second port, or the reflector's port."""
    hops: tuple[Hop, ...]
    """The DUTs, in order from west to east."""

    @property
    def is_reflected(self) -> bool:
        """Whether it ends at a reflector."""
        return self.east.node_name != self.tg_name

    @property
    def tg_ports(self) -> tuple[Port, ...]:
        """The TG's ports."""
        return (self.west,) if self.is_reflected else (self.west, self.east)

    @property
    def ports(self) -> tuple[Port, ...]:
        """All ports on the way, from west to east."""
        return (self.west, *(port for hop in self.hops for port in (hop.west, hop.east)), self.east)


def find_paths(
    links: Mapping[str, Sequence[Port]], names: Sequence[str], nic: str | None, count: int
) -> tuple[TrafficPath, ...]:
    """Finds parallel ways from the TG through the DUTs to their end; per hop the first unused common link.

    The names are the TG, the DUTs from west to east, and the end, which may be the TG again.
    """
    free = {name: (ends[0], ends[1]) for name, ends in links.items() if len(ends) == 2}
    paths: list[TrafficPath] = []
    while len(paths) < count:
        ends = _take_links(free, names, nic)
        if isinstance(ends, _Gap):
            few = f"{count} parallel links are asked for, and there are {len(paths)}: " if count > 1 else ""
            raise TopologyError(few + _why_not(links, ends, nic))
        paths.append(_joined(names, ends))
    return tuple(paths)


@dataclass(frozen=True)
class _Gap:
    """Two neighbours that have no unused link in common."""

    here: str
    there: str


def _take_links(
    free: dict[str, tuple[Port, Port]], names: Sequence[str], nic: str | None
) -> list[tuple[Port, Port]] | _Gap:
    """Takes the links of one way out of those that are free; each with its ends in the order of the way."""

    def is_usable(port: Port) -> bool:
        is_of_nic = nic is None or (port.interface.model or "").casefold() == nic.casefold()
        return is_of_nic or port.node_name not in names[1:-1]

    ends: list[tuple[Port, Port]] = []
    for here, there in itertools.pairwise(names):
        link = _first_link(free, here, there, is_usable)
        if link is None:
            return _Gap(here, there)
        del free[str(link[0].interface.link)]
        ends.append(link)
    return ends


def _joined(names: Sequence[str], ends: Sequence[tuple[Port, Port]]) -> TrafficPath:
    hops = tuple(
        Hop(name, arriving[1], leaving[0])
        for name, (arriving, leaving) in zip(names[1:-1], itertools.pairwise(ends), strict=True)
    )
    return TrafficPath(names[0], ends[0][0], ends[-1][1], hops)


def _first_link(
    free: Mapping[str, tuple[Port, Port]], here: str, there: str, usable: Callable[[Port], bool]
) -> tuple[Port, Port] | None:
    for first, second in free.values():
        for one, other in ((first, second), (second, first)):
            if (one.node_name, other.node_name) == (here, there) and usable(one) and usable(other):
                return one, other
    return None


def _why_not(links: Mapping[str, Sequence[Port]], gap: _Gap, nic: str | None) -> str:
    text = f"no unused link between {gap.here} and {gap.there}"
    if nic is not None:
        models = {
            port.interface.model for ends in links.values() for port in ends if port.node_name in (gap.here, gap.there)
        }
        known = ", ".join(sorted(model for model in models if model)) or "none"
        text += f" on a NIC of model {nic!r} (models on them: {known})"
    return (
        f"{text}. The traffic goes from the TG through every DUT and back (or to the reflector), "
        f"so each two neighbours need a link of their own."
    )
