"""The kernel's network interfaces and routes, over netlink.

Netlink always reports the network namespace that the agent is in; /sys may be that of another one. And it costs no
process.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Dict, Iterator, Union

_RTM_NEWLINK, _RTM_GETLINK = 16, 18
_RTM_NEWADDR, _RTM_GETADDR = 20, 22
_RTM_NEWROUTE, _RTM_GETROUTE = 24, 26
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_IFF_UP, _IFF_LOWER_UP = 0x1, 0x10000
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINK, _IFLA_MASTER = 1, 3, 4, 5, 10
_IFLA_LINKINFO, _IFLA_STATS64, _IFLA_CARRIER_CHANGES, _IFLA_LINK_NETNSID = 18, 23, 35, 37
_IFLA_INFO_KIND = 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST, _RTA_OIF, _RTA_MULTIPATH = 1, 4, 9
_RTN_UNICAST = 1
_ADDRESS_BYTES = {int(socket.AF_INET): 4, int(socket.AF_INET6): 16}
_TX_DROPPED, _RX_FIFO_ERRORS, _RX_MISSED_ERRORS = 7, 14, 15

Attributes = Dict[int, bytes]
Network = Union[IPv4Network, IPv6Network]


@dataclass(frozen=True)
class Link:
    """A network interface.

    Attributes:
        index: The kernel's number of it.
        name: Its name.
        mac: Its hardware address (six bytes on Ethernet).
        mtu: Largest packet it carries, bytes without Ethernet header and FCS.
        kind: Kind of virtual interface, e.g. ``veth``; empty for a real one.
        is_up: Whether it is up, administratively and on the wire.
        master: Index of the bridge or bond it is a port of.
        lower: Index of the interface it sits upon (a VLAN's, a macvlan's); None also if that is in another namespace.
        carrier_changes: How often its carrier came or went.
        receive_drops: Frames that it dropped on arrival for lack of buffers.
        transmit_drops: Frames that were given to it, and did not get through.
    """

    index: int
    name: str
    mac: bytes
    mtu: int
    kind: str
    is_up: bool
    master: int | None
    lower: int | None
    carrier_changes: int
    receive_drops: int
    transmit_drops: int


@dataclass(frozen=True)
class Route:
    """A route.

    Attributes:
        network: Where it leads.
        links: Indices of the interfaces that packets to there may leave through.
    """

    network: Network
    links: tuple[int, ...]


def read_links() -> dict[str, Link]:
    """All network interfaces of the agent's network namespace, by name."""
    messages = _ask(_RTM_GETLINK, struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, 0, 0), _RTM_NEWLINK, dump=True)
    return {link.name: link for link in map(_link, messages)}


def read_routes() -> list[Route]:
    """The routes to other hosts, of IPv4 and IPv6, from every table."""
    routes: list[Route] = []
    for body in _ask(_RTM_GETROUTE, struct.pack("=8BI", *[0] * 9), _RTM_NEWROUTE, dump=True):
        if body[0] in _ADDRESS_BYTES and body[7] == _RTN_UNICAST:
            attributes = _attributes(body[12:])
            address = attributes.get(_RTA_DST, bytes(_ADDRESS_BYTES[body[0]]))
            routes.append(Route(ip_network((address, body[1])), tuple(_route_links(attributes))))
    return routes


def route_links(address: str) -> set[int]:
    """Indices of the interfaces through which packets to an address would leave; empty if there is no route."""
    family, packed = _pack_address(address)
    request = struct.pack("=8BI", family, len(packed) * 8, *[0] * 7)
    request += struct.pack("=HH", 4 + len(packed), _RTA_DST) + packed
    try:
        messages = list(_ask(_RTM_GETROUTE, request, _RTM_NEWROUTE, dump=False))
    except OSError:
        return set()
    return {index for body in messages for index in _route_links(_attributes(body[12:]))}


def address_links(address: str) -> set[int]:
    """Indices of the interfaces that have an address."""
    _, packed = _pack_address(address)
    indices: set[int] = set()
    for body in _ask(_RTM_GETADDR, struct.pack("=4BI", *[0] * 5), _RTM_NEWADDR, dump=True):
        attributes = _attributes(body[8:])
        if packed in (attributes.get(_IFA_LOCAL), attributes.get(_IFA_ADDRESS)):
            indices.add(struct.unpack_from("=I", body, 4)[0])
    return indices


def _pack_address(address: str) -> tuple[int, bytes]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address)


def _link(body: bytes) -> Link:
    _, _, index, flags, _ = struct.unpack_from("=BxHiII", body)
    attributes = _attributes(body[16:])
    kind = _attributes(attributes.get(_IFLA_LINKINFO, b"")).get(_IFLA_INFO_KIND, b"").rstrip(b"\0").decode()
    # A veth's IFLA_LINK is its other end, not something that it sits upon.
    stacked = kind != "veth" and _IFLA_LINK_NETNSID not in attributes
    lower = _number(attributes, _IFLA_LINK) if stacked else None
    stats = struct.unpack_from("=16Q", attributes[_IFLA_STATS64])
    return Link(
        index=index,
        name=attributes[_IFLA_IFNAME].rstrip(b"\0").decode(),
        mac=attributes.get(_IFLA_ADDRESS, b""),
        mtu=_number(attributes, _IFLA_MTU) or 0,
        kind=kind,
        is_up=bool(flags & _IFF_UP and flags & _IFF_LOWER_UP),
        master=_number(attributes, _IFLA_MASTER),
        lower=None if lower == index else lower,
        carrier_changes=_number(attributes, _IFLA_CARRIER_CHANGES) or 0,
        receive_drops=stats[_RX_FIFO_ERRORS] + stats[_RX_MISSED_ERRORS],
        transmit_drops=stats[_TX_DROPPED],
    )


def _number(attributes: Attributes, kind: int) -> int | None:
    value = attributes.get(kind)
    return struct.unpack("=I", value)[0] if value else None


def _route_links(attributes: Attributes) -> Iterator[int]:
    if _RTA_OIF in attributes:
        yield struct.unpack("=I", attributes[_RTA_OIF])[0]
    hops = attributes.get(_RTA_MULTIPATH, b"")
    while len(hops) >= 8:
        length, index = struct.unpack_from("=HxxI", hops)
        yield index
        hops = hops[max(8, (length + 3) & ~3) :]


def _attributes(data: bytes) -> Attributes:
    attributes: Attributes = {}
    place = 0
    while place + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, place)
        attributes[kind & 0x3FFF] = data[place + 4 : place + length]
        place += max(4, (length + 3) & ~3)
    return attributes


def _ask(request_type: int, payload: bytes, reply_type: int, *, dump: bool) -> list[bytes]:
    flags = _NLM_F_REQUEST | (_NLM_F_DUMP if dump else 0)
    header = struct.pack("=IHHII", 16 + len(payload), request_type, flags, 1, 0)
    bodies: list[bytes] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(header + payload)
        while True:
            for kind, body in _messages(netlink.recv(1 << 20)):
                if kind == _NLMSG_DONE:
                    return bodies
                if kind == _NLMSG_ERROR:
                    code = -struct.unpack_from("=i", body)[0]
                    raise OSError(code, os.strerror(code))
                if kind == reply_type:
                    bodies.append(body)
            if not dump:
                return bodies


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, place)
        yield kind, data[place + 16 : place + length]
        place += max(16, (length + 3) & ~3)
