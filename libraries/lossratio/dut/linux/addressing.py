"""The DUT's end of a link: addresses, neighbours, routes, and a VXLAN tunnel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from lossratio.dut.changes import Changes
from lossratio.nodes import DutNode

IpAddress = IPv4Address | IPv6Address

_PROTOCOL = "198"
"""Number of the routing protocol that marks the routes; no protocol uses it."""

_COUNT = """
{ ip -4 route show table main proto "$1"; ip -6 route show table main proto "$1"; } |
sed -n 's/.* dev \\([^ ]*\\).*/\\1/p' | sort | uniq -c
"""


def add_host_routes(changes: Changes, addresses: Iterable[IpAddress], via: IpAddress, interface: str) -> None:
    """Adds a route to each of these hosts, in one batch. A protocol number marks the routes.

    Args:
        changes: Makes changes that can be undone.
        addresses: The hosts.
        via: The neighbour that leads to them.
        interface: The neighbour's interface.

    Raises:
        DutError: If a route cannot be added.
    """
    family = f"-{via.version}"
    # A batch that fails half-way has added some routes.
    changes.clean_up("ip", family, "route", "flush", "table", "main", "proto", _PROTOCOL, "dev", interface)
    lines = (f"route add {host} via {via} dev {interface} proto {_PROTOCOL}\n" for host in addresses)
    changes.run("ip", family, "-batch", "-", stdin="".join(lines))


def count_host_routes(node: DutNode) -> Mapping[str, int]:
    """The number of such routes, by interface."""
    lines = node.run("sh", "-c", _COUNT, "count", _PROTOCOL).splitlines()
    return {interface: int(count) for count, interface in (line.split() for line in lines)}


@dataclass(frozen=True)
class RouterSide:
    """One side of a router: its interface, and the network behind the neighbour on that link.

    Attributes:
        interface: Name of the interface.
        network: The network. Its last addresses are the router's and its neighbour's.
    """

    interface: str
    network: IPv4Network | IPv6Network

    @property
    def address(self) -> IPv4Address | IPv6Address:
        """The router's own address on this side."""
        return self.network[-2]

    @property
    def neighbour(self) -> IPv4Address | IPv6Address:
        """The address of the neighbour at the other end of the link."""
        return self.network[-3]

    def hosts(self, count: int) -> list[IPv4Address | IPv6Address]:
        """The first hosts behind the neighbour: test traffic goes to them."""
        return [self.network[number] for number in range(1, count + 1)]

    def last_hosts(self, count: int) -> list[IPv4Address | IPv6Address]:
        """The last hosts behind the neighbour: test traffic is least likely to go to them."""
        last = int(self.neighbour) - 1
        return [type(self.neighbour)(last - number) for number in range(count)]

    def configure(self, changes: Changes, neighbour_mac: str, host_routes: int = 0) -> None:
        """Adds the address, the neighbour, and the route to the network or to a number of its hosts."""
        on_link = f"{self.address}/{self.network.max_prefixlen - 2}"
        # Without duplicate address detection the address can be used at once. IPv4 has no such detection.
        nodad = ("nodad",) if self.network.version == 6 else ()
        self.add(changes, "address", on_link, "dev", self.interface, *nodad)
        self.add_neighbour(changes, self.interface, self.neighbour, neighbour_mac)
        if host_routes:
            add_host_routes(changes, self.hosts(host_routes), self.neighbour, self.interface)
        else:
            self.add(changes, "route", str(self.network), "via", str(self.neighbour), "dev", self.interface)

    def add_neighbour(
        self, changes: Changes, interface: str, address: IPv4Address | IPv6Address, mac_address: str
    ) -> None:
        """Adds a permanent entry for a neighbour that leads to this side's network."""
        self.add(changes, "neighbour", str(address), "lladdr", mac_address, "dev", interface, "nud", "permanent")

    def add(self, changes: Changes, what: str, *arguments: str) -> None:
        """Runs ``ip WHAT add ARGUMENTS`` for this side's version of IP."""
        ip = ("ip", f"-{self.network.version}", what)
        changes.run(*ip, "add", *arguments, undo=(*ip, "delete", *arguments))


WEST_VNI, EAST_VNI = 24, 25
"""VXLAN network identifiers of the tunnels. Linux distinguishes tunnels of one port by nothing else."""

PORT = 4789
"""UDP port of VXLAN (RFC 7348)."""


@dataclass(frozen=True)
class Tunnel:
    """The DUT's end of a tunnel to the neighbour on one link.

    The neighbour sends from the first address of its own network to the second address of the opposite network. So all
    four ends of both tunnels have different addresses, and test traffic needs no further networks.

    Attributes:
        interface: The interface that carries the tunnel.
        name: Name of the tunnel's interface.
        near: Network of the neighbour's side.
        far: Network of the opposite side.
        vni: VXLAN network identifier.
    """

    interface: str
    name: str
    near: IPv4Network
    far: IPv4Network
    vni: int

    @property
    def local(self) -> IPv4Address:
        """The DUT's address."""
        return self.far[2]

    @property
    def remote(self) -> IPv4Address:
        """The neighbour's address."""
        return self.near[1]

    def configure(self, changes: Changes, neighbour_mac: str) -> None:
        """Makes the tunnel's interface, and the route to the neighbour."""
        device = ("dev", self.interface)
        for what, arguments in (
            ("address", (f"{self.local}/32", *device)),
            ("neighbour", (str(self.remote), "lladdr", neighbour_mac, *device, "nud", "permanent")),
            ("route", (f"{self.remote}/32", *device)),
        ):
            command = ("ip", "-4", what)
            changes.run(*command, "add", *arguments, undo=(*command, "delete", *arguments))
        kind = ("type", "vxlan", "id", str(self.vni), "dstport", str(PORT), "nolearning", *device)
        ends = ("local", str(self.local), "remote", str(self.remote))
        changes.run(
            *("ip", "link", "add", "name", self.name, *kind, *ends),
            undo=("ip", "link", "delete", "dev", self.name),
        )
        changes.run("ip", "link", "set", "dev", self.name, "up")
