# SPDX-License-Identifier: Apache-2.0
"""Sizes and numbers of the protocols on the wire, as their standards give them, and the Internet checksum."""

from __future__ import annotations

FCS_BYTES = 4
"""Bytes of the frame check sequence, which frame sizes include and packet sockets do not send."""
LEAST_LENGTH = 60
"""Bytes of the shortest Ethernet frame, without FCS, to which links pad shorter ones."""
MAC_BYTES = 6
"""Bytes of a MAC address."""
MACS_BYTES = 2 * MAC_BYTES
"""Bytes of both MAC addresses, with which a frame begins."""
ETHERNET_HEADER_BYTES = 14
"""Bytes of an Ethernet header without tags."""
VLAN_TAG_BYTES = 4
"""Bytes of an IEEE 802.1Q or 802.1ad tag."""
WORD_BYTES = 4
"""Bytes of the words in which IP and TCP count the length of their headers."""
IPV4_BYTES = 4
"""Bytes of an IPv4 address."""
PORT_BYTES = 2
"""Bytes of a port of UDP or TCP."""

TAG_ETHERTYPES = (b"\x81\x00", b"\x88\xa8")
"""The ethertypes of IEEE 802.1Q and 802.1ad tags."""
IPV4_ETHERTYPE = b"\x08\x00"
"""The ethertype of IPv4."""
IPV6_ETHERTYPE = b"\x86\xdd"
"""The ethertype of IPv6."""
ARP_ETHERTYPE = b"\x08\x06"
"""The ethertype of ARP."""
LLDP_ETHERTYPE = b"\x88\xcc"
"""The ethertype of LLDP."""
TCP_PROTOCOL = 6
"""The IP protocol number of TCP."""
UDP_PROTOCOL = 17
"""The IP protocol number of UDP."""
ICMPV6_PROTOCOL = 58
"""The IP protocol number of ICMPv6."""


def behind_tags(frame: bytes) -> int:
    """Where the contents after the last ethertype of a frame begin."""
    place = ETHERNET_HEADER_BYTES
    while frame[place - 2 : place] in TAG_ETHERTYPES:
        place += VLAN_TAG_BYTES
    return place


def word_sum(part: bytes) -> int:
    """The sum of 16-bit words; an odd byte at the end is the first one of a word."""
    padded = part + b"\0" * (len(part) % 2)
    return sum(int.from_bytes(padded[place : place + 2], "big") for place in range(0, len(padded), 2))


def folded(total: int) -> int:
    """A sum of 16-bit words with its carries added (RFC 1071)."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
