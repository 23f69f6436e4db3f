# SPDX-License-Identifier: Apache-2.0
"""The headers of frames, field by field: one table of names, bits, defaults, notations, and of what fields depend on.

Bytes, comparisons, classes of flows, filters, captures, and the notations of other generators are made from it, and
`headers_of` finds the headers of a frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Callable, Iterator, Mapping, NamedTuple

from .wire import MAC_BYTES, TCP_PROTOCOL, UDP_PROTOCOL, WORD_BYTES


@dataclass(frozen=True)
class Notation:
    """How people and models write a value."""

    read: Callable[[Any], int]
    """From what is written to the number. Raises ValueError if it stands for no number."""
    write: Callable[[int], Any]
    """From the number to what is written."""


NUMBER = Notation(int, int)
"""The notation of numbers."""
MAC = Notation(
    lambda text: int.from_bytes(bytes.fromhex(text.replace(":", "")), "big"),
    lambda number: number.to_bytes(MAC_BYTES, "big").hex(":"),
)
"""The notation of MAC addresses."""
_IPV4 = Notation(lambda text: int(IPv4Address(text)), lambda number: str(IPv4Address(number)))
_IPV6 = Notation(lambda text: int(IPv6Address(text)), lambda number: str(IPv6Address(number)))


class HeaderField(NamedTuple):
    """A field of a header."""

    name: str
    """Its name."""
    start: int
    """Its first bit."""
    bits: int
    """Its width in bits."""
    default: int = 0
    """Its value if none is given."""
    notation: Notation = NUMBER
    """How its values are written."""
    computed: str | None = None
    """What it is computed from: the ``next`` header, the ``length`` of the frame, or a part of it (``checksum``); None:
    it is given."""
    is_rewritten: bool = False
    """Whether every router writes it."""
    is_joint: bool = False
    """Whether it is another name for the bits of the fields after it."""

    @property
    def first(self) -> int:
        """Its first byte."""
        return self.start // 8

    @property
    def end(self) -> int:
        """The byte after its last one."""
        return -(-(self.start + self.bits) // 8)

    def value(self, data: bytes) -> int:
        """Its value in data."""
        number = int.from_bytes(data[self.first : self.end], "big")
        return number >> (8 * self.end - self.start - self.bits) & ((1 << self.bits) - 1)

    def shown(self, data: bytes) -> str:
        """Its value in data, as people write it."""
        return str(self.notation.write(self.value(data)))


@dataclass(frozen=True, eq=False)
class Header:
    """A header."""

    fields: tuple[HeaderField, ...]
    """Its fields, which fill it."""
    number: int = 0
    """Its identifier in the previous header: an EtherType, the number of a protocol above IP, or a port."""
    name: str = ""
    """Its name in front of its fields' names; empty: these say enough."""
    counts_from: int = 0
    """The byte from which its length is counted."""
    addresses: int = 0
    """First byte of the addresses that the next header's checksum covers; they end with this header. 0: it has none."""

    @cached_property
    def length(self) -> int:
        """Number of its bytes."""
        return self.fields[-1].end

    @cached_property
    def _named(self) -> dict[str, HeaderField]:
        return {field.name: field for field in self.fields}

    def field(self, name: str) -> HeaderField:
        """The field of a name."""
        return self._named[name]

    def packed(self, values: Mapping[str, int]) -> bytes:
        """Its bytes, with the values of some fields and the defaults of others."""
        bits = 0
        for field in self.fields:
            behind = 8 * self.length - field.start - field.bits
            bits |= values.get(field.name, field.default) << behind
        return bits.to_bytes(self.length, "big")

    def at(self, place: int, prefix: str = "") -> Iterator[HeaderField]:
        """Its fields in a frame, where it begins at a place, with its name and a prefix in front of theirs."""
        for field in self.fields:
            if not field.is_joint:
                name = f"{prefix} {self.name} {field.name}".split()
                yield field._replace(name=" ".join(name), start=8 * place + field.start)


_LAYOUT = re.compile(
    r"(?P<name>[^:]+):(?P<bits>\d+)(?P<joint>&)?(=(?P<default>\w+))?(!(?P<computed>\w+))?(?P<rewritten>~)?"
    r"(@(?P<notation>\w+))?(, |$)"
)
_NOTATIONS = {None: NUMBER, "mac": MAC, "ipv4": _IPV4, "ipv6": _IPV6}


def _fields(layout: str) -> tuple[HeaderField, ...]:
    """Fields: ``name:bits&=default!computed~@notation``, as `HeaderField` says."""
    fields = []
    start = 0
    for found in _LAYOUT.finditer(layout):
        # Record: the field.
        field = HeaderField(
            found["name"],
            start,
            int(found["bits"]),
            int(found["default"] or "0", 0),
            _NOTATIONS[found["notation"]],
            found["computed"],
            is_rewritten=found["rewritten"] is not None,
            is_joint=found["joint"] is not None,
        )
        fields.append(field)

        if not field.is_joint:
            start += field.bits
    return tuple(fields)


ETHERNET = Header(_fields("destination MAC address:48@mac, source MAC address:48@mac, ethertype:16=0xFFFF!next"))
"""IEEE 802.3."""
VLAN = Header(_fields("VLAN priority:3, VLAN drop eligibility:1, VLAN:12, ethertype:16=0xFFFF!next"), 0x8100)
"""IEEE 802.1Q, from behind its own EtherType on."""
MPLS = Header(_fields("label:20, traffic class:3, bottom of stack:1, time to live:8~"), 0x8847, "MPLS")
"""RFC 3032."""
IPV4 = Header(
    _fields(
        "version:4=4, header length:4=5, type of service:8&, DSCP:6, ECN:2, total length:16!length, identification:16, "
        "reserved bit:1, don't fragment:1, more fragments:1, fragment offset:13, time to live:8=64~, "
        "protocol:8=61!next, header checksum:16!checksum~, source address:32@ipv4, destination address:32@ipv4"
    ),
    0x0800,
    "IPv4",
    addresses=12,
)
"""RFC 791, without options."""
IPV6 = Header(
    _fields(
        "version:4=6, traffic class:8&, DSCP:6, ECN:2, flow label:20, payload length:16!length, next header:8=59!next, "
        "hop limit:8=64~, source address:128@ipv6, destination address:128@ipv6"
    ),
    0x86DD,
    "IPv6",
    counts_from=40,
    addresses=8,
)
"""RFC 8200, without extension headers."""
UDP = Header(
    _fields("source port:16, destination port:16, length:16!length, checksum:16!checksum"), UDP_PROTOCOL, "UDP"
)
"""RFC 768."""
TCP = Header(
    _fields(
        "source port:16, destination port:16, sequence number:32, acknowledgement number:32, data offset:4=5, "
        "reserved bits:3, flag NS:1, flags:8&, flag CWR:1, flag ECE:1, flag URG:1, flag ACK:1, flag PSH:1, "
        "flag RST:1, flag SYN:1, flag FIN:1, window:16, checksum:16!checksum, urgent pointer:16"
    ),
    TCP_PROTOCOL,
    "TCP",
)
"""RFC 9293, without options."""
VXLAN = Header(_fields("flags:32=0x08000000, network identifier:24, reserved byte:8"), 4789, "VXLAN")
"""RFC 7348."""
SERVICE_TAG = 0x88A8
"""The EtherType of IEEE 802.1ad's service tags."""
_BEHIND_MACS = {SERVICE_TAG: VLAN, VLAN.number: VLAN, MPLS.number: MPLS, IPV4.number: IPV4, IPV6.number: IPV6}
_BEHIND_IP = {TCP.number: TCP, UDP.number: UDP}
# Table: the field that says which header follows, and the headers that may follow, by its values.
_FOLLOWERS: Mapping[Header, tuple[str, Mapping[int, Header]]] = {
    ETHERNET: ("ethertype", _BEHIND_MACS),
    VLAN: ("ethertype", _BEHIND_MACS),
    IPV4: ("protocol", _BEHIND_IP),
    IPV6: ("next header", _BEHIND_IP),
    UDP: ("destination port", {VXLAN.number: VXLAN}),
}


class PlacedHeader(NamedTuple):
    """A header of a frame."""

    header: Header
    """The header."""
    place: int
    """Where it begins, in bytes."""
    end: int
    """Where its options end."""


def headers_of(frame: bytes) -> Iterator[PlacedHeader]:
    """The headers of a frame from the outside in, as far as they are known. The last one may go beyond its end."""
    header: Header | None = ETHERNET
    place = 0
    while header is not None:
        end = place + header.length
        if header is IPV4:
            # RFC 791: options fill the header up to its length.
            end = max(end, place + WORD_BYTES * IPV4.field("header length").value(frame[place:]))
        yield PlacedHeader(header, place, end)
        header = _following(header, frame[place:end], frame[end:])
        place = end


def _following(header: Header, data: bytes, rest: bytes) -> Header | None:
    """What follows a header with these bytes, in front of the rest of the frame."""
    if header is VXLAN:
        return ETHERNET
    if header is MPLS:
        if not header.field("bottom of stack").value(data) and len(rest) >= MPLS.length:
            return MPLS
        # Nothing but the packet's version says what it is.
        return IPV6 if rest[:1] >= b"\x60" else IPV4
    if header not in _FOLLOWERS:
        return None
    name, followers = _FOLLOWERS[header]
    return followers.get(header.field(name).value(data))
