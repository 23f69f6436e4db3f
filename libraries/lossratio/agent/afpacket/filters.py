# SPDX-License-Identifier: Apache-2.0
"""Packet filters (classic BPF) that choose arriving frames by tag, number, length or protocol."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any, List, Mapping, Sequence

from ..core.classic_bpf import WHOLE_FRAME, Instruction
from ..core.frames_spec import DIRECTIONS, MOST_STREAMS, FramesSpec, TagPlace, stream_tag
from ..core.headers import IPV4, IPV6, TCP
from ..core.packets import attach_filter
from ..core.wire import ETHERNET_HEADER_BYTES, VLAN_TAG_BYTES

_ANCILLARY_PACKET_TYPE, _ANCILLARY_VLAN_PRESENT = 0xFFFFF004, 0xFFFFF030
_VLAN_TAG_BITS = 2
# X, zero at the beginning, becomes 4 in a frame that still has its VLAN tag; most arriving frames have lost it.
_FIND_BEHIND_VLAN_TAG = (
    ("load word", 0, 0, _ANCILLARY_VLAN_PRESENT),
    ("xor", 0, 0, 1),
    ("shift left", 0, 0, _VLAN_TAG_BITS),
    ("copy to X", 0, 0, 0),
)
_TCP_FLAGS = TCP.field("flag RST").first
_RESET = 0x04
_ALL_BITS = 0xFFFFFFFF
_TAKE, _LEAVE = -2, -1
"""Jumps to the last two instructions of a program."""
NOTHING = [("return", 0, 0, 0)]
"""The program that takes no frame."""
_ENDS = (("return", 0, 0, WHOLE_FRAME), ("return", 0, 0, 0))
_RUN_BITS = 4
RUN_FRAMES = 1 << _RUN_BITS
"""Number of neighbouring frames that are chosen together."""
# With one multiplication, runs would be chosen in step with flows if a Fibonacci number of runs contains all flows.
_MULTIPLIERS = (0x9E3779B1, 0x85EBCA6B)
_MIXED_BITS = 8

_Program = List[Instruction]
TAGS_OF_TRAFFIC_BITS = 9
"""How many bits a tag has below the bits that number runs of traffic."""
_STREAM_SHIFT = stream_tag(0, 1).bit_length() - 1
TRAFFIC_AT_ONCE = 16
"""How many runs of traffic are counted at the same time: the latest and earlier ones. A power of two."""


@dataclass(frozen=True)
class Sample:
    """Which arriving frames of a trial to see: some of a direction's frames by number, and all odd ones.

    Frames are chosen in runs of 16 neighbours by a hash of the run, so that nothing that repeats in the traffic, such
    as flows, is always left out.
    """

    tag: int
    """The direction's tag."""
    one_in: int
    """One of this many runs is examined; a power of two. A larger number chooses some of a smaller one's runs."""
    mac: bytes
    """Destination MAC address that all frames must have; empty: they have several."""
    lengths: tuple[int, ...]
    """Lengths that frames may have when they come back, in bytes without FCS; at most 64 of them."""
    own_bits: int = _ALL_BITS
    """Bits of the tag that are the same in all frames of the direction."""

    @property
    def mask(self) -> int:
        """Bits of the hash that are zero in runs to be seen: the highest ones, because they are mixed best."""
        return -((_ALL_BITS + 1) // self.one_in) & _ALL_BITS

    def chooses(self, numbers: Any) -> Any:
        """Whether frames are chosen because of their sequence numbers: a number, or an array of them."""
        runs = numbers >> _RUN_BITS
        mixed = (runs * _MULTIPLIERS[0] & _ALL_BITS) >> _MIXED_BITS
        return (mixed * _MULTIPLIERS[1] & self.mask) == 0


# By the bytes of both addresses: the header, its field for the protocol, and the protocol and type of "unreachable".
_PROTOCOLS = {8: (IPV4, "protocol", socket.IPPROTO_ICMP, 3), 32: (IPV6, "next header", socket.IPPROTO_ICMPV6, 1)}


def let_nothing_through(packets: socket.socket) -> None:
    """Makes a packet socket ignore every frame."""
    attach_filter(packets, NOTHING)


def let_tag_through(packets: socket.socket, place: TagPlace, tag: int, bits: int = _ALL_BITS) -> None:
    """Makes a packet socket take only arriving frames with a tag, or with some bits of it."""
    start = tag_start(place)
    attach_filter(packets, [*_direction(place), *_unless(start, bits, tag, _LEAVE), *_ENDS])


def let_foreign_through(packets: socket.socket, place: TagPlace, tags: Mapping[int, Sequence[int]]) -> None:
    """Makes a packet socket take only arriving frames that have none of these tags, by the bits that matter."""
    start = tag_start(place)
    # A word beyond the end of a frame cannot be loaded, and the kernel would skip the frame.
    program = [*_direction(place), ("load length", 0, 0, 0), ("jump if at least", 0, _TAKE, start + 4)]
    for mask, known in tags.items():
        program += [("load word behind X", 0, 0, start), ("and", 0, 0, mask)]
        program += [("jump if equal", _LEAVE, 0, tag & mask) for tag in known]
    attach_filter(packets, [*program, *_ENDS])


def let_probes_through(packets: socket.socket, place: TagPlace, tag: int, mask: int, *, outgoing: bool) -> None:
    """Makes a packet socket take only latency frames, by some bits of a tag and of the complement after it."""
    start = tag_start(place)
    program = [*_direction(place, outgoing), *_unless(start, mask, tag, _LEAVE)]
    attach_filter(packets, [*program, *_unless(start + 4, mask, ~tag, _LEAVE), *_ENDS])


def let_rejections_through(packets: socket.socket, frames: FramesSpec) -> None:
    """Makes a packet socket take only arriving frames with which a device rejects connections.

    These are TCP resets (RST), and ICMP "destination unreachable".

    Args:
        packets: A packet socket of the port that sends these frames.
        frames: The frames that it sends; their answers have headers of the same lengths.
    """
    addresses, ports = frames.addresses[0]
    header, protocol, icmp, unreachable = _PROTOCOLS[ports - addresses]
    place = frames.tag_place
    ahead = _bytes_ahead(place)
    start = addresses - header.addresses - ahead

    # Table: first IP's protocol, then what distinguishes a rejection from other TCP and ICMP frames.
    program = [
        *_direction(place),
        ("load half behind X", 0, 0, start - 2),
        ("jump if equal", 0, _LEAVE, header.number),
        ("load byte behind X", 0, 0, start + header.field(protocol).first),
        # Frames that are not TCP continue after the next three instructions.
        ("jump if equal", 0, 3, socket.IPPROTO_TCP),
        ("load byte behind X", 0, 0, ports + _TCP_FLAGS - ahead),
        ("and", 0, 0, _RESET),
        ("jump if equal", _LEAVE, _TAKE, 0),
        ("jump if equal", 0, _LEAVE, icmp),
        ("load byte behind X", 0, 0, ports - ahead),
        ("jump if equal", _TAKE, _LEAVE, unreachable),
    ]
    attach_filter(packets, [*program, *_ENDS])


def let_sample_through(packets: socket.socket, place: TagPlace, sample: Sample) -> None:
    """Makes a packet socket take only the frames that should be seen.

    Odd frames have the tag of another direction of the trial, another length or another destination, or a device has
    put them into a VLAN.
    """
    start = tag_start(place)
    program = [
        *_direction(place),
        *_unless(start, _ALL_BITS & ~DIRECTIONS, sample.tag, _LEAVE),
        *_unless(start, sample.own_bits, sample.tag, _TAKE),
    ]
    parts = (("load word", 0, sample.mac[:4]), ("load half", 4, sample.mac[4:]))
    for load, offset, value in parts if sample.mac else ():
        program += [(load, 0, 0, offset), ("jump if equal", 0, _TAKE, int.from_bytes(value, "big"))]
    if not place.behind_vlan:
        program += [("load word", 0, 0, _ANCILLARY_VLAN_PRESENT), ("jump if equal", 0, _TAKE, 0)]
    # X is zero in frames that have lost their VLAN tag.
    lost = VLAN_TAG_BYTES if place.behind_vlan else 0
    program += [("load length", 0, 0, 0), ("subtract X", 0, 0, 0)]
    *others, last = sample.lengths
    program += [("jump if equal", len(others) - number, 0, length - lost) for number, length in enumerate(others)]
    program.append(("jump if equal", 0, _TAKE, last - lost))

    # The number comes last, because it cannot be loaded from frames that are too short, and the kernel would skip these
    # frames.
    if place.is_numbered:
        # Table: the number of a frame, mixed.
        program += [
            ("load word behind X", 0, 0, start + 4),
            ("shift right", 0, 0, _RUN_BITS),
            ("multiply", 0, 0, _MULTIPLIERS[0]),
            ("shift right", 0, 0, _MIXED_BITS),
            ("multiply", 0, 0, _MULTIPLIERS[1]),
            ("and", 0, 0, sample.mask),
            ("jump if equal", _TAKE, _LEAVE, 0),
        ]
    else:
        program.append(("return", 0, 0, 0))

    attach_filter(packets, [*program, *_ENDS])


def choose_counter(place: TagPlace, streams: int) -> _Program:
    """The program that gives each frame the number of its counter, for sockets that share frames.

    The counters of the streams of a run of traffic follow each other.
    """
    # These programs see frames without the link's header.
    load = ("load word behind X", 0, 0, tag_start(place) - ETHERNET_HEADER_BYTES)
    if streams > 1:
        number = _find_stream(streams)
    else:
        number = [("shift right", 0, 0, TAGS_OF_TRAFFIC_BITS)]
    return [*_behind_vlan_tag(place), load, *number, ("return A", 0, 0, 0)]


def _find_stream(streams: int) -> _Program:
    """From a tag to the number of its counter."""
    # Table: the stream goes to X, and the traffic's first counter is added to it.
    return [
        ("store", 0, 0, 0),
        ("shift right", 0, 0, _STREAM_SHIFT),
        ("and", 0, 0, MOST_STREAMS - 1),
        ("copy to X", 0, 0, 0),
        ("load stored", 0, 0, 0),
        ("shift right", 0, 0, TAGS_OF_TRAFFIC_BITS),
        ("and", 0, 0, TRAFFIC_AT_ONCE - 1),
        ("multiply", 0, 0, streams),
        ("add X", 0, 0, 0),
    ]


def _direction(place: TagPlace, outgoing: bool = False) -> _Program:
    """Skips frames that go the other way, and finds where the tags of the others are."""
    jumps = (0, _LEAVE) if outgoing else (_LEAVE, 0)
    check = [("load word", 0, 0, _ANCILLARY_PACKET_TYPE), ("jump if equal", *jumps, socket.PACKET_OUTGOING)]
    return [*check, *_behind_vlan_tag(place)]


def _behind_vlan_tag(place: TagPlace) -> _Program:
    """Finds where the other frames begin."""
    return [*_FIND_BEHIND_VLAN_TAG] if place.behind_vlan else []


def tag_start(place: TagPlace) -> int:
    """Where the tag is, relative to X."""
    return place.offset - _bytes_ahead(place)


def _bytes_ahead(place: TagPlace) -> int:
    """How many bytes closer to X fields are than in the frame as it was written."""
    return VLAN_TAG_BYTES if place.behind_vlan else 0


def _unless(start: int, mask: int, value: int, jump: int) -> _Program:
    """Jumps unless some bits of a word after X have a value."""
    load = [("load word behind X", 0, 0, start)]
    return [*load, *([] if mask == _ALL_BITS else [("and", 0, 0, mask)]), ("jump if equal", 0, jump, value & mask)]
