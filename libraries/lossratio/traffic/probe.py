"""Frames of a profile for a check of the cabling, with a mark in the payload that survives rewritten headers."""

import secrets
from dataclasses import dataclass
from ipaddress import ip_address

from lossratio.agent import (
    ARP_ETHERTYPE,
    FCS_BYTES,
    ICMPV6_PROTOCOL,
    IPV4_ETHERTYPE,
    IPV6_ETHERTYPE,
    LLDP_ETHERTYPE,
    Direction,
    FramesSpec,
    behind_tags,
    mac_bytes,
    word_sum,
)
from lossratio.traffic.headers import SMALLEST_FRAME

_MARK_BYTES, _SUM_BYTES = 8, 2

_LEAST_ETHERTYPE = 0x600
_NEIGHBOURS = range(130, 154)
"""ICMPv6 types by which nodes find neighbours and multicast groups."""
MARK_ROOM = _MARK_BYTES + _SUM_BYTES
"""Bytes of payload that a frame needs."""


@dataclass(frozen=True)
class Arrival:
    """A frame that came out of the testbed."""

    port: str
    """The interface that it arrived on."""
    head: bytes
    """Its first bytes, with its tags."""
    length: int
    """Bytes, without FCS."""
    count: int
    """How often it came."""

    @property
    def chatter(self) -> str | None:
        """The name of a protocol by which devices find each other; None: the frame belongs to another protocol."""
        kind, body = self._contents()
        if kind == ARP_ETHERTYPE:
            return "ARP"
        if kind == LLDP_ETHERTYPE:
            return "LLDP"
        if int.from_bytes(kind, "big") < _LEAST_ETHERTYPE:
            return "spanning tree or discovery (IEEE 802.2)"
        if kind == IPV6_ETHERTYPE and len(body) > 48:
            # Reports of groups come after a hop-by-hop header of eight bytes.
            place = 48 if body[6] == 0 and body[40] == ICMPV6_PROTOCOL else 40
            if (place == 48 or body[6] == ICMPV6_PROTOCOL) and body[place] in _NEIGHBOURS:
                return "neighbour discovery"
        return None

    @property
    def in_words(self) -> str:
        """Its protocol and who sent it."""
        kind, body = self._contents()
        source = self.head[6:12].hex(":")
        if kind == IPV4_ETHERTYPE and len(body) >= 20:
            return (
                f"IPv4 from {ip_address(body[12:16])} to {ip_address(body[16:20])} (from {source})"
            )
        if kind == IPV6_ETHERTYPE and len(body) >= 40:
            return (
                f"IPv6 from {ip_address(body[8:24])} to {ip_address(body[24:40])} (from {source})"
            )
        return f"ethertype 0x{kind.hex()} from {source}"

    def _contents(self) -> tuple[bytes, bytes]:
        """The ethertype after its tags, and what follows."""
        place = behind_tags(self.head)
        return self.head[place - 2 : place], self.head[place:]


@dataclass(frozen=True)
class ProbeAnswer:
    """What a probe has seen."""

    arrivals: tuple[Arrival, ...]
    """The frames that arrived."""
    unsent: tuple[tuple[str, int, str], ...]
    """Interface, length and reason of frames that the kernel did not take."""
    is_storm: bool
    """Whether more frames came than were examined."""


@dataclass(frozen=True)
class MarkedFrame:
    """A frame with a mark."""

    sent: bytes
    """The frame as it is sent."""
    wanted: bytes
    """The frame as a measurement expects it to come back."""


class Marker:
    """Marks frames, and finds the marks again."""

    def __init__(self) -> None:
        self._id = secrets.token_bytes(_MARK_BYTES - 2)

    def frame(
        self,
        direction: Direction,
        source_mac: str,
        destination_mac: str,
        port: int,
        number: int,
        flow: int = 0,
    ) -> MarkedFrame:
        """A frame of a direction, marked with the number of its port and its own number, both below 256.

        It belongs to the flow with this number. Its checksums stay correct. The direction's smallest frame has room for
        the mark.
        """
        macs = (source_mac, destination_mac)
        sent = self._marked(direction.frames, macs, (port, number), flow)
        if direction.arriving_frames is None:
            return MarkedFrame(sent, sent)
        return MarkedFrame(
            sent, self._marked(direction.arriving_frames, macs, (port, number), flow)
        )

    def _marked(
        self, frames: FramesSpec, macs: tuple[str, str], mark: tuple[int, int], flow: int
    ) -> bytes:
        # Imported here because numpy takes a while, and other commands need none of it.
        from lossratio.agent.afpacket import build_frames

        cycle = build_frames(frames, *map(mac_bytes, macs))
        row = flow % len(cycle.lengths)
        data = bytearray(cycle.data[row][: cycle.lengths[row]].tobytes())
        start = frames.tag_offset
        end = start + MARK_ROOM
        before = word_sum(bytes(data[start:end]))
        data[start : end - _SUM_BYTES] = self._id + bytes(mark)
        missing = (before - word_sum(bytes(data[start : end - _SUM_BYTES]))) % 0xFFFF
        data[end - _SUM_BYTES : end] = missing.to_bytes(_SUM_BYTES, "big")
        return bytes(data)

    def mark_in(self, head: bytes) -> tuple[int, int] | None:
        """Numbers of the port and the frame, whatever was done to its headers; None: it is somebody else's frame."""
        place = head.find(self._id)
        mark = head[place + len(self._id) : place + _MARK_BYTES]
        if place >= 0 and len(mark) == 2:
            return (mark[0], mark[1])
        return None


def with_room(direction: Direction) -> Direction:
    """The smallest frames of a direction, in which there is room for a mark."""
    smallest = min(size for size, _ in direction.frames.sizes)
    return direction.of_size(max(smallest_probe(direction), smallest))


def smallest_probe(direction: Direction) -> int:
    """Bytes, with FCS, of the smallest frame of a direction that has room for a mark."""
    return max(SMALLEST_FRAME, direction.frames.tag_offset + MARK_ROOM + FCS_BYTES)
