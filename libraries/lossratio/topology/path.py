"""The way of the test traffic through a testbed."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, JsonValue, model_validator

from lossratio.errors import NotMeasuredHereError
from lossratio.topology.addressing import Address, Addresses, Gateways, Networks, Side
from lossratio.topology.hooks import Hooks
from lossratio.topology.quantities import (
    BitRate,
    DriverName,
    InterfaceName,
    Label,
    MacAddress,
    PciAddress,
)
from lossratio.topology.vpp import VppStart
from lossratio.values import RESOLVED, FileModel

_SHORTEST_PREFIX = {4: 8, 6: 16}


class Interface(FileModel):
    """A node's interface that test traffic goes through."""

    link: Label | None = None
    """Name of its link; the interface with the same link is the other end. Without a link, it is not used."""
    name: InterfaceName | None = None
    """Name of the Linux interface."""
    mac_address: MacAddress | None = None
    """MAC address. By default, the node reports it."""
    pci_address: PciAddress | None = None
    """PCI address, for devices and generators that take the interface from the kernel."""
    model: Label | None = None
    """NIC model, e.g. ``Intel-E810CQ``."""
    driver: DriverName | None = None
    """Driver that the device or generator expects."""
    speed: BitRate | None = None
    """Speed of the link, bits per second in each direction."""
    address: Addresses = ()
    """On the TG: the port's own IP addresses with their prefix lengths, e.g. ``10.1.0.2/30``, one of each IP version.
    The generator answers ARP and neighbour discovery for them, and for the addresses that traffic is sent from."""
    gateway: Gateways = ()
    """On the TG: next hops, one of each IP version. Their MAC addresses are resolved before each measurement."""
    network: Networks = ()
    """On the TG, with ``addresses: lab``: networks that are routed to this port, one of each IP version."""
    other: Annotated[dict[str, JsonValue], RESOLVED] = Field(default_factory=dict)
    """Further facts about it, which every result states."""

    def side(self, unused: Side) -> Side:
        """The networks behind the port with the lab's own addresses.

        Where a network is routed to the port, traffic has the network's addresses 1, 2 ... Otherwise the port is a
        host: traffic has the port's own address and the addresses after it. The networks of `unused` stand for IP
        versions that the port does not have, and that traffic must not have either.
        """
        known: dict[str, Any] = {
            "ipv4": unused.ipv4,
            "ipv6": unused.ipv6,
            "wide_ipv4": unused.wide_ipv4,
        }
        taken: list[Address] = list(self.gateway)
        for own in self.address:
            known[f"ipv{own.version}"] = own.network
            known[f"ipv{own.version}_offset"] = int(own.ip) - int(own.network.network_address) - 1
            if own.version == 4 and own.network.prefixlen < own.max_prefixlen - 1:
                taken.append(own.network.broadcast_address)
        for routed in self.network:
            known |= {f"ipv{routed.version}": routed, f"ipv{routed.version}_offset": 0}
        return Side(**known, taken=tuple(taken))

    @model_validator(mode="after")
    def _has_addresses_of_hosts(self) -> "Interface":
        for name, values in (
            ("address", self.address),
            ("gateway", self.gateway),
            ("network", self.network),
        ):
            versions = [value.version for value in values]
            if len(set(versions)) < len(versions):
                raise ValueError(f"{name}: give at most one address per IP version")

        for own in (*(interface.ip for interface in self.address), *self.gateway):
            if own.is_multicast or own.is_loopback or own.is_unspecified:
                raise ValueError(
                    f"{own} is multicast, loopback or unspecified: give the address of a host on the link"
                )

        own_networks = {interface.version: interface for interface in self.address}
        for hop in self.gateway:
            asker = own_networks.get(hop.version)
            if asker is None:
                raise ValueError(
                    f"to ask gateway {hop} for its MAC, the port needs an IPv{hop.version} 'address'; give it one"
                )
            if hop == asker.ip or (hop not in asker.network and not hop.is_link_local):
                raise ValueError(
                    f"gateway {hop} must be another address in {asker.network}, the network of {asker}"
                )

        for routed in self.network:
            if routed.prefixlen < _SHORTEST_PREFIX[routed.version]:
                raise ValueError(
                    f"network {routed} is as large as a default route, and test traffic never follows one. Use a "
                    f"network of the lab, /{_SHORTEST_PREFIX[routed.version]} or smaller"
                )
            if routed.is_multicast or routed.is_loopback or routed.is_link_local:
                raise ValueError(
                    f"network {routed} is multicast, loopback or link-local: use a network of the lab that is routed"
                )

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
    """The DUT's port that faces the TG's first port."""
    east: Port
    """The DUT's port that faces the TG's second port."""
    uio_driver: str | None = None
    """Driver that cards are bound to for a program that takes them from the kernel; None: not known."""
    link: int | None = None
    """Number of its path among several parallel ones, from 1; None: it is the only one."""
    hooks: Hooks = field(default_factory=Hooks)
    """Its hooks."""
    vpp: VppStart = field(default_factory=VppStart)
    """How VPP is started on it."""

    @property
    def label(self) -> str:
        """Its name in reports: its node, and the number of its path if there are several."""
        if self.link is None:
            return self.node_name
        return f"{self.node_name} (link {self.link})"

    @property
    def ports(self) -> tuple[Port, Port]:
        """Both ports, west and east."""
        return self.west, self.east

    def is_card(self, port: Port) -> bool:
        """Whether a program takes the card of one of its ports from the kernel."""
        interface = port.interface
        if interface.driver is not None or interface.name is None:
            return True
        return self.uio_driver is not None and interface.pci_address is not None


@dataclass(frozen=True)
class TrafficPath:
    """The way of the test traffic: from the TG's west port through every DUT to its east port, and back.

    If the path ends at a reflector, the reflector has the east port, and frames return to the west port. If the TG has
    two nodes, the second one has the east port.
    """

    tg_name: str
    """The TG."""
    west: Port
    """The TG's first port."""
    east: Port
    """The TG's second port, or the reflector's port."""
    hops: tuple[Hop, ...]
    """The DUTs, in order from west to east."""
    is_reflected: bool = False
    """Whether it ends at a reflector."""

    @property
    def tg_names(self) -> tuple[str, ...]:
        """The node of the TG, or its two nodes."""
        return tuple(dict.fromkeys(port.node_name for port in self.tg_ports))

    @property
    def tg_ports(self) -> tuple[Port, ...]:
        """The TG's ports."""
        if self.is_reflected:
            return (self.west,)
        return (self.west, self.east)

    @property
    def ports(self) -> tuple[Port, ...]:
        """All ports on the way, from west to east."""
        return (self.west, *(port for hop in self.hops for port in hop.ports), self.east)


def find_paths(
    links: Mapping[str, Sequence[Port]], names: Sequence[str], nic: str | None, count: int
) -> tuple[TrafficPath, ...]:
    """Finds parallel ways from the TG through the DUTs to the end: at each hop, the first unused common link.

    The names are the TG, the DUTs from west to east, and the end, which may be the TG again.

    Raises:
        NotMeasuredHereError: If there are fewer ways than `count`.
    """
    free = {name: (ends[0], ends[1]) for name, ends in links.items() if len(ends) == 2}

    def is_usable(port: Port) -> bool:
        is_of_nic = nic is None or (port.interface.model or "").casefold() == nic.casefold()
        return is_of_nic or port.node_name not in names[1:-1]

    paths: list[TrafficPath] = []
    while len(paths) < count:
        ports: list[Port] = []
        for here, there in itertools.pairwise(names):
            link = _first_link(free, here, there, is_usable)
            if link is None:
                if count > 1:
                    few = f"{count} parallel links were requested, but there are {len(paths)}: "
                else:
                    few = ""

                raise NotMeasuredHereError(few + _why_not(links, here, there, nic))
            del free[str(link[0].interface.link)]
            ports += link
        hops = tuple(map(Hop, names[1:-1], ports[1::2], ports[2::2]))
        paths.append(TrafficPath(names[0], ports[0], ports[-1], hops))
    return tuple(paths)


def _first_link(
    free: Mapping[str, tuple[Port, Port]], here: str, there: str, usable: Callable[[Port], bool]
) -> tuple[Port, Port] | None:
    for first, second in free.values():
        for one, other in ((first, second), (second, first)):
            if (one.node_name, other.node_name) == (here, there) and usable(one) and usable(other):
                return one, other
    return None


def _why_not(links: Mapping[str, Sequence[Port]], here: str, there: str, nic: str | None) -> str:
    text = f"no unused link between {here} and {there}"
    if nic is not None:
        models = {
            port.interface.model
            for ends in links.values()
            for port in ends
            if port.node_name in (here, there)
        }
        known = ", ".join(sorted(model for model in models if model)) or "none"
        text += f" on a NIC of model {nic!r} (models on them: {known})"
    return (
        f"{text}. The traffic goes from the TG through every DUT and back (or to the reflector). Each pair of "
        "neighbours needs its own link."
    )
