# SPDX-License-Identifier: Apache-2.0
"""Configuration of a generator: ports and frames. It is in the `configure` request for every generator.

The controller's side also makes these objects, and sends them as JSON, by `dataclasses.asdict`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from math import gcd
from typing import Callable, Sequence

from .protocol import AgentError, unsupported

FCS_BYTES = 4
"""Bytes of the frame check sequence, which frame sizes include and packet sockets do not send."""
LEAST_LENGTH = 60
"""Bytes of the shortest Ethernet frame, without FCS, to which links pad shorter ones."""
VLAN_TAG_BYTES = 4
"""Bytes of an IEEE 802.1Q or 802.1ad tag."""
_ETHERNET_HEADER_BYTES = 14
_IPV4_ETHERTYPE = b"\x08\x00"
_UDP_PROTOCOL = 17
_TCP_BYTES = 20
TAG_ETHERTYPES = (b"\x81\x00", b"\x88\xa8")
"""The ethertypes of IEEE 802.1Q and 802.1ad tags."""


TAG_BYTES = 8
"""Bytes of a trial's tag with the sequence number after it: see `lossratio.traffic.agent.afpacket.frames`."""
DIRECTIONS = 0xFF
"""Bits of a tag that distinguish the directions of a trial, or its streams; the others are the same for all."""
COMPENSATION_BYTES = 2
"""Bytes of the word that compensates for a tag and its sequence number in checksums."""
STREAM_BITS = 4
"""How many of those bits distinguish the streams of a direction, if the tag does that: the highest ones."""
MOST_STREAMS = 1 << STREAM_BITS
"""The maximum number of streams of a direction."""
_DIRECTION_BITS = 8 - STREAM_BITS


@dataclass(frozen=True)
class SteppingField:
    """A header field that changes from frame to frame: it takes the values first, first + 1 ..., over and over.

    Or it takes the listed values, one after the other. Fields step together: the second frame has the second value of
    each. So the number of different frames (of one size) is the least common multiple of all counts.
    """

    offset: int
    """Its place in the frame, in bytes."""
    width: int
    """Its width, in bytes (at most eight)."""
    first: int
    """Its lowest value."""
    count: int
    """How many values it takes."""
    seed: int | None = None
    """Seed of the random order in which it takes them; None: ascending. The same seed always gives the same order."""
    values: tuple[int, ...] = ()
    """All values in their order, if they are listed: `count` of them, and none below `first`."""

    @property
    def offsets(self) -> tuple[int, ...]:
        """What to add to the lowest value for each listed value; empty: the values are not listed."""
        return tuple(value - self.first for value in self.values)


@dataclass(frozen=True)
class LengthField:
    """Two bytes of a header that hold the number of bytes up to the frame's end (without FCS)."""

    offset: int
    """Its place in the frame, in bytes."""
    start: int
    """From where bytes are counted."""


@dataclass(frozen=True)
class ChecksumField:
    """Two bytes of a header that hold the Internet checksum (RFC 1071) of a part of the frame."""

    offset: int
    """Its place in the frame, in bytes."""
    start: int
    """Where the part begins."""
    end: int | None = None
    """Where it ends; None: at the frame's end."""
    pseudo_header: tuple[int, int, int] | None = None
    """Start and end of the addresses, and the protocol number, of the pseudo header to include."""

    @property
    def is_udp(self) -> bool:
        """Whether it is UDP's, in which zero is written as all ones (RFC 768)."""
        return self.pseudo_header is not None and self.pseudo_header[2] == _UDP_PROTOCOL

    def sum_in(self, frame: bytes) -> int:
        """Sum of the 16-bit words that it covers in a frame; its own place must hold zero."""
        part = frame[self.start : len(frame) if self.end is None else self.end]
        total = word_sum(part)
        if self.pseudo_header is not None:
            start, stop, protocol = self.pseudo_header
            total += word_sum(frame[start:stop]) + protocol + len(part)
        return total

    def value(self, total: int) -> bytes:
        """The two bytes for a sum."""
        total = folded(total)
        return (0xFFFF if self.is_udp and total == 0xFFFF else 0xFFFF - total).to_bytes(2, "big")


@dataclass(frozen=True)
class TagPlace:
    """The place of a trial's tag in frames."""

    offset: int
    """The place in the frame as it was sent."""
    behind_vlan: bool
    """Whether the frame begins with a VLAN tag, which the kernel removes when the frame arrives."""
    is_numbered: bool
    """Whether a sequence number follows the tag; otherwise, the tag's complement does."""
    compensation: int | None
    """Where the word is that compensates for both in checksums; None: no checksum covers them."""


@dataclass(frozen=True)
class StreamOrder:
    """The order in which the frames of several streams follow each other, over and over."""

    names: tuple[str, ...]
    """The names of the streams in counters."""
    streams: tuple[int, ...]
    """The stream of each frame of a round, by its index among the names."""
    sizes: tuple[int, ...]
    """The size of each of these frames, by its index in `FramesSpec.sizes`."""

    def count(self, first: int, frames: int) -> list[int]:
        """How many frames each stream has among this many successive frames, which begin at this place in the order."""
        rounds, rest = divmod(frames, len(self.streams))
        first %= len(self.streams)
        of_rest = (self.streams[first:] + self.streams[:first])[:rest]
        return [rounds * self.streams.count(number) + of_rest.count(number) for number in range(len(self.names))]


def stream_tag(tag: int, stream: int) -> int:
    """The tag of a stream's frames, given the tag of its direction."""
    return tag + (stream << _DIRECTION_BITS)


def tag_bits(frames: FramesSpec) -> int:
    """Bits of a tag that are the same in all frames of a direction."""
    streams = 0 if frames.order is None else stream_tag(0, MOST_STREAMS - 1)
    return 0xFFFFFFFF & ~streams


@dataclass(frozen=True)
class FramesSpec:
    """Description of the frames of one direction."""

    header: str
    """The bytes with which all frames begin, in hexadecimal; MAC addresses, stepping fields, lengths and checksums are
    zero."""
    fields: tuple[SteppingField, ...]
    """Fields that step from frame to frame."""
    lengths: tuple[LengthField, ...]
    """Fields that hold a length."""
    checksums: tuple[ChecksumField, ...]
    """Fields that hold a checksum; a checksum that covers others comes after them."""
    sizes: tuple[tuple[int, int], ...]
    """Frame sizes in bytes with FCS, each with its weight."""
    tag_offset: int
    """Where the trial's tag is."""
    is_numbered: bool
    """Whether the smallest frame has room for a sequence number, with compensation in checksums."""
    compensation: int | None
    """Where the word is that compensates for it; None: no checksum covers the sequence number."""
    rewritable: tuple[tuple[int, int], ...]
    """Starts and ends of fields that devices on the way may rewrite, such as MAC addresses."""
    addresses: tuple[tuple[int, int], ...]
    """Starts and ends of IP addresses that they may not rewrite."""
    any_mac: bool = False
    """Whether they may rewrite the destination MAC address to any other one."""
    payload_shift: int = 0
    """By how many bytes the payload is after the place where it was written. In that place, each of its
    bytes was its own position, modulo 256."""
    order: StreamOrder | None = None
    """The order of the frames of several streams, each of which is a separate flow for all fields; None: there is one
    stream, whose sizes and flows follow each other as `lossratio.traffic.agent.core.frame_order` says."""

    def __post_init__(self) -> None:
        bytes.fromhex(self.header)

    def check_room(self) -> None:
        """Makes sure that each frame has room for its headers and the tag."""
        least = self.tag_offset + TAG_BYTES + FCS_BYTES
        smallest = min(size for size, _ in self.sizes)
        if smallest < least:
            raise unsupported(f"A frame of {smallest} bytes is too small: these headers need {least}.")

    @property
    def max_size(self) -> int:
        """Size of the largest frame, in bytes with FCS."""
        return max(size for size, _ in self.sizes)

    @property
    def flows(self) -> int:
        """How many frames differ in more than their size; with several streams, the frames of a round."""
        if self.order is not None:
            return len(self.order.streams)
        return reduce(least_common_multiple, (field.count for field in self.fields), 1)

    @property
    def mtu(self) -> int:
        """Minimum MTU that its largest frame needs: bytes without Ethernet header, FCS and one 802.1Q tag."""
        tag = VLAN_TAG_BYTES if self.tag_place.behind_vlan else 0
        return self.max_size - FCS_BYTES - _ETHERNET_HEADER_BYTES - tag

    @property
    def handshake(self) -> int | None:
        """Place of the TCP header if a handshake opens connections and the tag is in a TCP option; otherwise None."""
        has_udp = any(checksum.is_udp for checksum in self.checksums)
        place = self.addresses[0][1] if self.addresses else self.tag_offset
        is_tcp = not has_udp and any(checksum.pseudo_header is not None for checksum in self.checksums)
        if is_tcp and self.tag_offset > place + _TCP_BYTES:
            return place
        return None

    @property
    def has_macs(self) -> bool:
        """Whether the frames come back with MAC addresses that are not the ports' own."""
        return self.any_mac or any(field.offset < 12 for field in self.fields)

    @property
    def tag_place(self) -> TagPlace:
        """The place of the trial's tag."""
        behind_vlan = bytes.fromhex(self.header)[12:14] in TAG_ETHERTYPES
        return TagPlace(self.tag_offset, behind_vlan, self.is_numbered, self.compensation)

    def reflected(self) -> FramesSpec:
        """The frames as they come back from a reflector, which swaps the outermost IP addresses."""
        header = bytes.fromhex(self.header)
        place = behind_tags(header)
        if header[place - 2 : place] == _IPV4_ETHERTYPE:
            first = place + 12
            width = 4
        else:
            first = place + 8
            width = 16

        second = first + width
        end = first + 2 * width
        moved = {first: width, second: -width}
        fields = (
            replace(field, offset=field.offset + moved[second if field.offset >= second else first])
            if first <= field.offset < end
            else field
            for field in self.fields
        )
        swapped = header[:first] + header[second:end] + header[first:second] + header[end:]
        return replace(self, header=swapped.hex(), fields=tuple(fields))

    def sized(self, size: int) -> FramesSpec:
        """The same frames in one size, in bytes with FCS."""
        order = self.order
        if order is not None:
            order = replace(order, sizes=(0,) * len(order.sizes))
        return replace(self, sizes=((size, 1),), order=order)

    @property
    def size_order(self) -> list[int]:
        """Sizes of the first frames, by their index in `sizes`, which repeat for all others."""
        if self.order is not None:
            return list(self.order.sizes)
        return size_pattern([weight for _, weight in self.sizes])

    @property
    def period(self) -> int:
        """After how many frames everything repeats."""
        if self.order is not None:
            return self.flows
        return len(self.size_order) * self.flows

    @property
    def round(self) -> int:
        """After how many frames sizes and flows return together; flows then slip by one, until everything repeats."""
        return self.period // gcd(len(self.size_order), self.flows) if self.order is None else self.flows

    @property
    def payload_offset(self) -> int:
        """The beginning of the payload that follows the tag."""
        end = self.tag_offset + TAG_BYTES
        if self.compensation == end:
            return end + COMPENSATION_BYTES
        return end


@dataclass(frozen=True)
class Direction:
    """One direction of the traffic."""

    name: str
    """Its name in counters, e.g. ``port0>port1``."""
    transmit: str
    """Interface from which its frames leave."""
    receive: str
    """Interface to which they come back; the same interface: they come from a reflector."""
    destination_mac: str | None
    """Destination MAC address of its frames; None: the receiving interface's own."""
    frames: FramesSpec
    """Its frames."""
    load_share: float = 1.0
    """Its share of a trial's load, above 0 and at most 1. The direction with the largest share has the whole load."""
    source_mac: str | None = None
    """Source MAC address of its frames; None: the transmitting interface's own."""
    broadcast_share: float = 0.0
    """Share of its frames that go to the broadcast address instead (RFC 2544, section 11.1). They are not counted: the
    counters cover all other frames."""
    growth: int = 0
    """Bytes by which its frames are longer when they come back, because devices put headers between the Ethernet header
    and the packet; below 0: they remove some."""
    arriving_frames: FramesSpec | None = None
    """Its frames as they come back, with everything that devices change on purpose; None: as they were sent. The flows
    are the same, and so are the sizes apart from the headers."""
    elsewhere: str = ""
    """The end that the agent of another node has: ``transmit`` or ``receive``; empty: both ends are on this node."""

    @property
    def sends_here(self) -> bool:
        """Whether its frames leave from this node."""
        return self.elsewhere != "transmit"

    @property
    def receives_here(self) -> bool:
        """Whether its frames come back to this node."""
        return self.elsewhere != "receive"

    @property
    def local_ports(self) -> tuple[str, ...]:
        """Its interfaces on this node."""
        both = ((self.transmit, self.sends_here), (self.receive, self.receives_here))
        return tuple(port for port, is_here in both if is_here)

    @property
    def arriving(self) -> FramesSpec:
        """Its frames as they come back, apart from the bytes that devices put after the Ethernet header."""
        if self.arriving_frames is None:
            return self.frames
        return self.arriving_frames

    @property
    def may_be_padded(self) -> bool:
        """Whether links pad some of its frames on the way because they become too short for an Ethernet frame."""
        smallest = min(size for size, _ in self.arriving.sizes)
        return self.arriving_frames is not None and smallest - FCS_BYTES < LEAST_LENGTH

    def changed(self, change: Callable[[FramesSpec], FramesSpec]) -> Direction:
        """The same direction after a change of its frames, both as they are sent and as they come back."""
        arriving = self.arriving_frames
        return replace(self, frames=change(self.frames), arriving_frames=None if arriving is None else change(arriving))

    def of_size(self, size: int) -> Direction:
        """The same direction with frames of one size, in bytes with FCS."""
        grown = self.arriving.max_size - self.frames.max_size
        arriving = self.arriving_frames
        return replace(
            self,
            frames=self.frames.sized(size),
            arriving_frames=None if arriving is None else arriving.sized(size + grown),
        )

    @property
    def arriving_tag(self) -> TagPlace:
        """The place of the trial's tag in frames that come back."""
        place = self.arriving.tag_place
        return replace(place, offset=place.offset + self.growth)

    @property
    def replaced(self) -> int:
        """Number of bytes at the start of its frames that are replaced when they return; 0 if only fields change."""
        if not self.growth:
            return 0
        tag = VLAN_TAG_BYTES if self.arriving.tag_place.behind_vlan else 0
        return _ETHERNET_HEADER_BYTES + tag + max(0, -self.growth)

    @property
    def mtu(self) -> int:
        """Minimum MTU that its largest frame needs, both when it is sent and when it comes back."""
        return max(self.frames.mtu, self.arriving.mtu + self.growth)

    @property
    def returned(self) -> FramesSpec:
        """Its frames as they come back, and as a reflector sends them."""
        if self.transmit == self.receive:
            return self.frames.reflected()
        return self.arriving

    def macs(self, source: bytes, sink: bytes) -> tuple[bytes, bytes]:
        """Source and destination MAC addresses of its frames, given those of its ports."""
        texts = ((self.source_mac, source), (self.destination_mac, sink))
        own, destination = (port if text is None else mac_bytes(text) for text, port in texts)
        return own, destination


@dataclass(frozen=True)
class Speaker:
    """A port that answers for addresses."""

    port: str
    """The interface."""
    addresses: tuple[tuple[str, str], ...]
    """First and last addresses of the ranges for which it answers ARP and neighbour discovery."""
    lldp: bool
    """Whether it announces itself by LLDP."""


BENCHMARK_NETWORKS = ("198.18.0.0/15", "2001:2::/48", "240.0.0.0/5")
"""The networks of test traffic (RFC 2544, RFC 5180, RFC 1112) that a lab does not replace by others."""


@dataclass(frozen=True)
class Configuration:
    """Ports, directions and frames of a generator."""

    ports: tuple[str, ...]
    """Its interfaces."""
    directions: tuple[Direction, ...]
    """The directions in which it transmits: at least one, each from its own interface."""
    settle_time: float
    """Seconds to wait, after the traffic, for frames still in flight."""
    examines: bool = True
    """Whether frames that come back are examined, as far as the generator can."""
    speakers: tuple[Speaker, ...] = ()
    """The ports that answer for addresses."""
    networks: tuple[str, ...] = BENCHMARK_NETWORKS
    """Networks of the traffic's addresses, to which the node must not forward frames."""
    connects: bool = False
    """Whether all its trials open connections; a generator with a special mode for connections then uses that mode."""
    watches: bool = False
    """Whether losses of running traffic are located in time."""
    loads_default_route: bool = False
    """Whether a port may carry the node's default route, because nobody reaches the node over it."""

    def __post_init__(self) -> None:
        used = {port for direction in self.directions for port in direction.local_ports}
        names = {direction.name for direction in self.directions}
        if not used or used - set(self.ports) or len(names) < len(self.directions):
            raise ValueError("a configuration needs directions with different names, and their ports")
        shares = [direction.load_share for direction in self.directions]
        if min(shares) <= 0 or max(shares) != 1:
            raise ValueError(f"shares of the load are above 0, and the largest is 1; not {shares}")
        if not all(0.0 <= direction.broadcast_share < 1.0 for direction in self.directions):
            raise ValueError("a share of broadcast frames is at least 0, and below 1")
        if not self.settle_time >= 0:
            raise ValueError(f"the settle_time must not be {self.settle_time!r}")

        for direction in self.directions:
            order = direction.frames.order
            if order is not None and (direction.elsewhere or not direction.frames.is_numbered):
                raise ValueError(
                    f"the streams of direction {direction.name} need sequence numbers in their frames, and both ends "
                    "on one node"
                )
            if order is not None and max(len(order.names), len(self.directions)) > MOST_STREAMS:
                raise ValueError(f"with streams there are {MOST_STREAMS} directions and streams of each at most")
            texts = (direction.source_mac, direction.destination_mac)
            if direction.elsewhere not in ("", "transmit", "receive") or (direction.elsewhere and None in texts):
                raise ValueError(f"the MAC addresses are not known for direction {direction.name}")

    @property
    def has_other_end(self) -> bool:
        """Whether the agent of another node has one end of a direction."""
        return any(direction.elsewhere for direction in self.directions)


PARTS = {
    "directions": Direction,
    "speakers": Speaker,
    "order": StreamOrder,
    "frames": FramesSpec,
    "arriving_frames": FramesSpec,
    "fields": SteppingField,
    "lengths": LengthField,
    "checksums": ChecksumField,
}
"""The parts of a configuration by the names of the fields that hold them."""


def mac_bytes(text: str) -> bytes:
    """The bytes of a MAC address.

    Raises:
        AgentError: If it is not one.
    """
    try:
        mac = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        mac = b""
    if len(mac) != 6:
        raise AgentError("bad_request", f"{text!r} is not a MAC address.")
    return mac


def behind_tags(frame: bytes) -> int:
    """Where the contents after the last ethertype of a frame begin."""
    place = _ETHERNET_HEADER_BYTES
    while frame[place - 2 : place] in TAG_ETHERTYPES:
        place += VLAN_TAG_BYTES
    return place


def size_pattern(weights: Sequence[int]) -> list[int]:
    """The shortest sequence of numbers from 0 on with these weights, each number spread as evenly as possible."""
    divisor = reduce(gcd, weights)
    weights = [weight // divisor for weight in weights]
    dues = [0] * len(weights)
    pattern: list[int] = []
    for _ in range(sum(weights)):
        dues = [due + weight for due, weight in zip(dues, weights)]
        chosen = dues.index(max(dues))
        dues[chosen] -= sum(weights)
        pattern.append(chosen)
    return pattern


def least_common_multiple(one: int, other: int) -> int:
    """The least common multiple of two numbers, which Python 3.8 does not provide."""
    return one * other // gcd(one, other)


def word_sum(part: bytes) -> int:
    """The sum of 16-bit words; an odd byte at the end is the first one of a word."""
    padded = part + b"\0" * (len(part) % 2)
    return sum(int.from_bytes(padded[place : place + 2], "big") for place in range(0, len(padded), 2))


def folded(total: int) -> int:
    """A sum of 16-bit words with its carries added (RFC 1071)."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
