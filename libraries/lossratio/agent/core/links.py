# SPDX-License-Identifier: Apache-2.0
"""The kernel's network interfaces and routes, over netlink.

Netlink always reports the network namespace that the agent is in; /sys may show another one. It also needs no process
to be started.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Iterator, Mapping

from lossratio.bpf import Network, ask_netlink, netlink_attributes

_RTM_GETLINK = 18
_RTM_GETADDR = 22
_RTM_GETROUTE = 26
_IFF_UP, _IFF_LOWER_UP = 0x1, 0x10000
# Table: the attributes of a link that are read (IFLA).
_OF_LINK: Mapping[str, int] = {
    "address": 1,
    "name": 3,
    "mtu": 4,
    "link": 5,
    "master": 10,
    "info": 18,
    "stats64": 23,
    "carrier changes": 35,
    "link's namespace": 37,
}
_IFLA_INFO_KIND = 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST = 1
_RTA_OIF = 4
_RTA_MULTIPATH = 9
_RTN_UNICAST = 1
_ADDRESS_BYTES = {int(socket.AF_INET): 4, int(socket.AF_INET6): 16}
_TX_PACKETS = 1
_TX_DROPPED = 7
_RX_FIFO_ERRORS = 14
_RX_MISSED_ERRORS = 15

_ask = partial(ask_netlink, socket.NETLINK_ROUTE, dump=True)


@dataclass(frozen=True)
class Link:
    """A network interface."""

    index: int
    """The kernel's number for it."""
    name: str
    """Its name."""
    mac: bytes
    """Its hardware address (six bytes on Ethernet)."""
    mtu: int
    """The largest packet that it carries, in bytes without Ethernet header and FCS."""
    kind: str
    """Kind of virtual interface, e.g. ``veth``; empty for a real one."""
    is_up: bool
    """Whether it is up, administratively and on the wire."""
    master: int | None
    """Index of the bridge or bond that it is a port of."""
    lower: int | None
    """Index of the interface that it is based on (as for a VLAN or macvlan); None also if that is in another
    namespace."""
    carrier_changes: int
    """How often its carrier appeared or disappeared."""
    receive_drops: int
    """Frames that it dropped on arrival for lack of buffers."""
    transmit_drops: int
    """Frames that were given to it but did not get through."""
    transmitted: int = 0
    """Frames that it sent, as its driver counts them."""


@dataclass(frozen=True)
class Route:
    """A route."""

    network: Network
    """The network that it leads to."""
    links: tuple[int, ...]
    """Indices of the interfaces that packets to there may leave through."""


def read_links() -> dict[str, Link]:
    """All network interfaces of the agent's network namespace, by name."""
    messages = _ask(_RTM_GETLINK, struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, 0, 0))
    return {link.name: link for link in map(_link, messages)}


def read_routes() -> list[Route]:
    """The routes to other hosts, of IPv4 and IPv6, from every table."""
    routes: list[Route] = []
    for body in _ask(_RTM_GETROUTE, struct.pack("=8BI", *[0] * 9)):
        if body[0] in _ADDRESS_BYTES and body[7] == _RTN_UNICAST:
            attributes = netlink_attributes(body[12:])
            address = attributes.get(_RTA_DST, bytes(_ADDRESS_BYTES[body[0]]))
            routes.append(Route(ip_network((address, body[1])), tuple(_route_links(attributes))))
    return routes


def route_links(address: str) -> set[int]:
    """Indices of the interfaces through which packets to an address would leave; empty if there is no route."""
    packed = ip_address(address).packed
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    request = struct.pack("=8BI", family, len(packed) * 8, *[0] * 7)
    request += struct.pack("=HH", 4 + len(packed), _RTA_DST) + packed
    try:
        messages = list(_ask(_RTM_GETROUTE, request, dump=False))
    except OSError:
        return set()
    return {index for body in messages for index in _route_links(netlink_attributes(body[12:]))}


def address_links(address: str) -> set[int]:
    """Indices of the interfaces that have an address."""
    packed = ip_address(address).packed
    indices: set[int] = set()
    for body in _ask(_RTM_GETADDR, struct.pack("=4BI", *[0] * 5)):
        attributes = netlink_attributes(body[8:])
        if packed in (attributes.get(_IFA_LOCAL), attributes.get(_IFA_ADDRESS)):
            indices.add(struct.unpack_from("=I", body, 4)[0])
    return indices


def _link(body: bytes) -> Link:
    _, _, index, flags, _ = struct.unpack_from("=BxHiII", body)
    numbered = netlink_attributes(body[16:])
    attributes = {name: numbered[number] for name, number in _OF_LINK.items() if number in numbered}
    kind = netlink_attributes(attributes.get("info", b"")).get(_IFLA_INFO_KIND, b"").rstrip(b"\0").decode()
    # A veth's link is its other end, not an interface that it is based on.
    stacked = kind != "veth" and "link's namespace" not in attributes
    lower = _number(attributes.get("link")) if stacked else None
    stats = struct.unpack_from("=16Q", attributes["stats64"])

    # Record: a link as the kernel shows it.
    return Link(
        index=index,
        name=attributes["name"].rstrip(b"\0").decode(),
        mac=attributes.get("address", b""),
        mtu=_number(attributes.get("mtu")) or 0,
        kind=kind,
        is_up=bool(flags & _IFF_UP and flags & _IFF_LOWER_UP),
        master=_number(attributes.get("master")),
        lower=None if lower == index else lower,
        carrier_changes=_number(attributes.get("carrier changes")) or 0,
        receive_drops=stats[_RX_FIFO_ERRORS] + stats[_RX_MISSED_ERRORS],
        transmit_drops=stats[_TX_DROPPED],
        transmitted=stats[_TX_PACKETS],
    )


def _number(value: bytes | None) -> int | None:
    if not value:
        return None
    (number,) = struct.unpack("=I", value)
    return int(number)


def _route_links(attributes: dict[int, bytes]) -> Iterator[int]:
    if _RTA_OIF in attributes:
        yield struct.unpack("=I", attributes[_RTA_OIF])[0]
    hops = attributes.get(_RTA_MULTIPATH, b"")
    while len(hops) >= 8:
        length, index = struct.unpack_from("=HxxI", hops)
        yield index
        hops = hops[max(8, (length + 3) & ~3) :]
