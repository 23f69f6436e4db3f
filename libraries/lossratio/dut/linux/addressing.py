"""The DUT's end of a link: addresses, neighbours, routes, and a VXLAN tunnel."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from typing import Annotated, Literal

from pydantic import BeforeValidator

from lossratio.dut.changes import Changes
from lossratio.errors import DutError
from lossratio.nodes import DutNode
from lossratio.topology import EAST, WEST, Address

IpVersion = Annotated[
    Literal[4, 6], BeforeValidator(lambda value: {"4": 4, "6": 6}.get(value, value))
]
"""An IP version, also as text."""
MOST_HOSTS = 65_000
"""Hosts of each side's network that routes may lead to."""
_UNUSED = 0x02FF00 << 24
"""The first of the MAC addresses that no test traffic has."""
_PROTOCOL = "198"
"""Number of the routing protocol that marks the routes; no protocol uses it."""

_COUNT = """
{ ip -4 route show table main proto "$1"; ip -6 route show table main proto "$1"; } |
sed -n 's/.* dev \\([^ ]*\\).*/\\1/p' | sort | uniq -c
"""


def add(changes: Changes, version: int, what: str, *arguments: str) -> None:
    """Runs ``ip WHAT add ARGUMENTS`` for a version of IP."""
    ip = ("ip", f"-{version}", what)
    changes.run(*ip, "add", *arguments, undo=(*ip, "delete", *arguments))


def add_host_routes(
    changes: Changes, addresses: Iterable[Address], via: Address, interface: str
) -> None:
    """Adds a route to each of these hosts, in one batch. A protocol number marks these routes."""
    family = f"-{via.version}"
    # A batch that fails half-way has added some routes.
    changes.clean_up(
        "ip", family, "route", "flush", "table", "main", "proto", _PROTOCOL, "dev", interface
    )
    lines = (
        f"route add {host} via {via} dev {interface} proto {_PROTOCOL}\n" for host in addresses
    )
    changes.run("ip", family, "-batch", "-", stdin="".join(lines))


def count_host_routes(node: DutNode) -> Mapping[str, int]:
    """The number of these routes, by interface."""
    lines = node.run("sh", "-c", _COUNT, "count", _PROTOCOL).splitlines()
    counts = {}
    for line in lines:
        count, interface = line.split()
        counts[interface] = int(count)
    return counts


@dataclass(frozen=True)
class RouterSide:
    """One side of a router: its interface, and the network behind the neighbour on that link."""

    interface: str
    """Name of the interface."""
    network: IPv4Network | IPv6Network
    """The network. Its last addresses are the router's and its neighbour's."""

    @property
    def address(self) -> Address:
        """The router's own address on this side."""
        return self.network[-2]

    @property
    def neighbour(self) -> Address:
        """The address of the neighbour at the other end of the link."""
        return self.network[-3]

    def hosts(self, count: int) -> list[Address]:
        """The first hosts behind the neighbour: test traffic goes to them."""
        return [self.network[number] for number in range(1, count + 1)]

    def last_hosts(self, count: int) -> list[Address]:
        """The last hosts behind the neighbour: test traffic is least likely to go to them."""
        last = int(self.neighbour) - 1
        return [type(self.neighbour)(last - number) for number in range(count)]

    def configure(self, changes: Changes, neighbour_mac: str, host_routes: int = 0) -> None:
        """Adds the address, the neighbour, and the route to the network or to a number of its hosts."""
        on_link = f"{self.address}/{self.network.max_prefixlen - 2}"
        # Without duplicate address detection, the address can be used at once. IPv4 has no such detection.
        nodad = ("nodad",) if self.network.version == 6 else ()
        self.add(changes, "address", on_link, "dev", self.interface, *nodad)
        self.add_neighbour(changes, self.interface, self.neighbour, neighbour_mac)

        if host_routes:
            add_host_routes(changes, self.hosts(host_routes), self.neighbour, self.interface)
        else:
            self.add(
                changes,
                "route",
                str(self.network),
                "via",
                str(self.neighbour),
                "dev",
                self.interface,
            )

    def add_neighbour(
        self, changes: Changes, interface: str, address: Address, mac_address: str
    ) -> None:
        """Adds a permanent entry for the neighbour that leads to this side's network."""
        self.add(
            changes,
            "neighbour",
            str(address),
            "lladdr",
            mac_address,
            "dev",
            interface,
            "nud",
            "permanent",
        )

    def add(self, changes: Changes, what: str, *arguments: str) -> None:
        """Runs ``ip WHAT add ARGUMENTS`` for this side's version of IP."""
        add(changes, self.network.version, what, *arguments)


def router_sides(west: str, east: str, ip_version: int = 4) -> tuple[RouterSide, RouterSide]:
    """Both sides of a router with these interfaces, between the networks of test traffic."""
    networks = ((side.ipv4 if ip_version == 4 else side.ipv6) for side in (WEST, EAST))
    ours, theirs = (
        RouterSide(name, network) for name, network in zip((west, east), networks, strict=True)
    )
    return ours, theirs


def halves(count: int) -> tuple[int, int]:
    """The shares of both sides, west and east, of a number of entries."""
    return count - count // 2, count // 2


def check_hosts(where: str, entries: int, routes: int | None) -> None:
    """Checks that further routes lead to hosts that have no route yet.

    Args:
        where: Name of the node, for the error.
        entries: Number of routes to add, both sides together.
        routes: Number of existing routes, both sides together; None: there are none.

    Raises:
        DutError: If a side has too few hosts.
    """
    if (routes or 0) // 2 + halves(entries)[0] > MOST_HOSTS:
        raise DutError(f"{where}: a side has room for {MOST_HOSTS} hosts. Add fewer routes.")


def unused_macs(count: int) -> list[str]:
    """MAC addresses that no test traffic has."""
    return [number.to_bytes(6, "big").hex(":") for number in range(_UNUSED, _UNUSED + count)]


WEST_VNI, EAST_VNI = 24, 25
"""VXLAN network identifiers of the tunnels. Linux has no other means to distinguish tunnels with the same port."""
PORT = 4789
"""UDP port of VXLAN (RFC 7348)."""


@dataclass(frozen=True)
class Tunnel:
    """The DUT's end of a tunnel to the neighbour on one link.

    The neighbour sends from the first address of its own network to the second address of the opposite network. So all
    four ends of both tunnels have different addresses, and test traffic needs no further networks.
    """

    interface: str
    """The interface that carries the tunnel."""
    name: str
    """Name of the tunnel's interface."""
    near: IPv4Network
    """Network of the neighbour's side."""
    far: IPv4Network
    """Network of the opposite side."""
    vni: int
    """VXLAN network identifier."""

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
            add(changes, 4, what, *arguments)
        kind = ("type", "vxlan", "id", str(self.vni), "dstport", str(PORT), "nolearning", *device)
        ends = ("local", str(self.local), "remote", str(self.remote))
        changes.add_link(self.name, *kind, *ends)
        changes.set_link(self.name, "up")
