"""Many routes, each to one host: added in one batch, told apart from all others by a protocol number, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

from lossratio.dut.changes import Changes
from lossratio.nodes import DutNode

IpAddress = IPv4Address | IPv6Address

_PROTOCOL = "198"
"""Number of the routing protocol that the routes are marked with; none that is in use."""

_COUNT = """
{ ip -4 route show table main proto "$1"; ip -6 route show table main proto "$1"; } |
sed -n 's/.* dev \\([^ ]*\\).*/\\1/p' | sort | uniq -c
"""


def add_host_routes(changes: Changes, addresses: Iterable[IpAddress], via: IpAddress, interface: str) -> None:
    """Adds a route to each of these addresses.

    Args:
        changes: Makes changes that can be undone.
        addresses: The hosts.
        via: The neighbour that they are behind.
        interface: The interface that it is on.

    Raises:
        DutError: If one cannot be added.
    """
    family = f"-{via.version}"
    # A batch that fails half-way has added some.
    changes.clean_up("ip", family, "route", "flush", "table", "main", "proto", _PROTOCOL, "dev", interface)
    lines = (f"route add {host} via {via} dev {interface} proto {_PROTOCOL}\n" for host in addresses)
    changes.run("ip", family, "-batch", "-", stdin="".join(lines))


def count_host_routes(node: DutNode) -> Mapping[str, int]:
    """How many such routes there are, by interface."""
    lines = node.run("sh", "-c", _COUNT, "count", _PROTOCOL).splitlines()
    return {interface: int(count) for count, interface in (line.split() for line in lines)}
