"""The headers of the Open Traffic Generator's models: one table, read in both directions."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from lossratio.agent import MAC_BYTES


@dataclass(frozen=True)
class Notation:
    """How the models write a value."""

    read: Callable[[Any], int]
    """From a model's value to the number. Raises ValueError if the value stands for no number."""
    write: Callable[[int], Any]
    """From the number to the model's value."""


_NUMBER = Notation(int, int)
MAC = Notation(
    lambda text: int.from_bytes(bytes.fromhex(text.replace(":", "")), "big"),
    lambda number: number.to_bytes(MAC_BYTES, "big").hex(":"),
)
_IPV4 = Notation(lambda text: int(IPv4Address(text)), lambda number: str(IPv4Address(number)))
_IPV6 = Notation(lambda text: int(IPv6Address(text)), lambda number: str(IPv6Address(number)))


@dataclass(frozen=True)
class HeaderField:
    """A field of a header."""

    path: str
    """Its name in the models; a dot leads into a part of it."""
    start: int
    """Its first bit."""
    bits: int
    """Its width in bits."""
    default: int = 0
    """Its value if none is given."""
    notation: Notation = _NUMBER
    """How the models write its values."""
    computed: str | None = None
    """What it is computed from: the ``next`` header, the ``length`` of the frame, or a part of it (``checksum``); None:
    it is given."""

    def bytes_in(self) -> tuple[int, int]:
        """Its first byte, and the byte after its last one."""
        return self.start // 8, -(-(self.start + self.bits) // 8)


@dataclass(frozen=True)
class Header:
    """A header of the models."""

    length: int
    """Number of its bytes."""
    fields: tuple[HeaderField, ...]
    """Its fields. Bits outside of all fields are zero."""
    number: int | None = None
    """Its identifier in the previous header: an EtherType, or the number of a protocol above IP."""
    followers: tuple[str, ...] = ()
    """The headers that may follow it."""
    counts_from: int = 0
    """The byte from which its length is counted."""
    addresses: int | None = None
    """First byte of the addresses that the next header's checksum covers; they end with this header."""


_LAYOUT = re.compile(
    r"(?P<path>[\w.]*):(?P<bits>-?\d+)(=(?P<default>\w+))?(!(?P<computed>\w+))?(@(?P<notation>\w+))?"
)
_NOTATIONS = {None: _NUMBER, "mac": MAC, "ipv4": _IPV4, "ipv6": _IPV6}


def _fields(layout: str) -> tuple[HeaderField, ...]:
    """Fields (``name:bits=default!computed@notation``); bits below 0 lead back, as another name for the same bits."""
    fields = []
    start = 0
    for found in _LAYOUT.finditer(layout):
        bits = int(found["bits"])
        default = int(found["default"] or "0", 0)
        computed = found["computed"]
        if found["path"]:
            fields.append(
                HeaderField(
                    found["path"], start, bits, default, _NOTATIONS[found["notation"]], computed
                )
            )
        start += bits
    return tuple(fields)


_BEHIND_ETHERNET = ("vlan", "ipv4", "ipv6")
_BEHIND_IP = ("tcp", "udp")
# Table: the headers that flows may have.
HEADERS: Mapping[str, Header] = {
    "ethernet": Header(
        14, _fields("dst:48@mac src:48@mac ether_type:16=0xFFFF!next"), followers=_BEHIND_ETHERNET
    ),
    "vlan": Header(
        4,
        _fields("priority:3 cfi:1 id:12 tpid:16=0xFFFF!next"),
        number=0x8100,
        followers=_BEHIND_ETHERNET,
    ),
    "ipv4": Header(
        20,
        _fields(
            "version:4=4 header_length:4=5 priority.raw:8 :-8 priority.dscp.phb:6 priority.dscp.ecn:2 "
            "total_length:16!length identification:16 reserved:1 dont_fragment:1 more_fragments:1 "
            "fragment_offset:13 time_to_live:8=64 protocol:8=61!next header_checksum:16!checksum "
            "src:32@ipv4 dst:32@ipv4"
        ),
        number=0x0800,
        followers=_BEHIND_IP,
        addresses=12,
    ),
    "ipv6": Header(
        40,
        _fields(
            "version:4=6 traffic_class:8 flow_label:20 payload_length:16!length next_header:8=59!next "
            "hop_limit:8=64 src:128@ipv6 dst:128@ipv6"
        ),
        number=0x86DD,
        followers=_BEHIND_IP,
        counts_from=40,
        addresses=8,
    ),
    "udp": Header(
        8, _fields("src_port:16 dst_port:16 length:16!length checksum:16!checksum"), number=17
    ),
    "tcp": Header(
        20,
        _fields(
            "src_port:16 dst_port:16 seq_num:32 ack_num:32 data_offset:4=5 :3 ecn_ns:1 ecn_cwr:1 ecn_echo:1 "
            "ctl_urg:1 ctl_ack:1 ctl_psh:1 ctl_rst:1 ctl_syn:1 ctl_fin:1 window:16 checksum:16!checksum"
        ),
        number=6,
    ),
}
"""The headers that both directions know. RFC 791, 8200, 768, 9293, IEEE 802.1Q."""
