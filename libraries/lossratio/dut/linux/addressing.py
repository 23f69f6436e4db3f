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

# Without duplicate address detection, the address can be used at once. IPv4 has no such detection.
_SIDE = """
% set name = side.interface
% set version = side.network.version
% set ip = "ip -%d" % version
% set length = side.network.max_prefixlen - 2
{{ added(ip ~ " address", "%s/%d dev %s" % (side.address, length, name) ~ (" nodad" if version == 6 else "")) }}
{{ added(ip ~ " neighbour", "%s lladdr %s dev %s nud permanent" % (side.neighbour, mac, name)) }}
% if has_route
    {{ added(ip ~ " route", "%s via %s dev %s" % (side.network, side.neighbour, name)) }}
% endif
"""
_TUNNEL = """
% set name = tunnel.interface
{{ added("ip -4 address", "%s/32 dev %s" % (tunnel.local, name)) }}
{{ added("ip -4 neighbour", "%s lladdr %s dev %s nud permanent" % (tunnel.remote, mac, name)) }}
{{ added("ip -4 route", "%s/32 dev %s" % (tunnel.remote, name)) }}
{{ made(tunnel.name, "type vxlan id %d dstport 4789 nolearning dev %s local %s remote %s"
        % (tunnel.vni, name, tunnel.local, tunnel.remote)) }}
ip link set dev {{ tunnel.name }} up
"""
_COUNT = """
{ ip -4 route show table main proto "$1"; ip -6 route show table main proto "$1"; } |
sed -n 's/.* dev \\([^ ]*\\).*/\\1/p' | sort | uniq -c
"""


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
        changes.apply(_SIDE, side=self, mac=neighbour_mac, has_route=not host_routes)
        if host_routes:
            add_host_routes(changes, self.hosts(host_routes), self.neighbour, self.interface)


def router_sides(west: str, east: str, ip_version: int = 4) -> tuple[RouterSide, RouterSide]:
    """Both sides of a router with these interfaces, between the networks of test traffic."""
    if ip_version == 4:
        return RouterSide(west, WEST.ipv4), RouterSide(east, EAST.ipv4)
    return RouterSide(west, WEST.ipv6), RouterSide(east, EAST.ipv6)


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
        changes.apply(_TUNNEL, tunnel=self, mac=neighbour_mac)
