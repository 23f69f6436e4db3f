# SPDX-License-Identifier: Apache-2.0
"""The comparison of a frame that came back with the one that was sent, field by field.

Measurements and checks of the cabling expect the same of a frame: `Direction.arriving`. The fields that devices may
rewrite are `FramesSpec.rewritable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generator, Iterator

from .configuration import Direction
from .wire import (
    IPV4_ETHERTYPE,
    IPV4_HEADER_BYTES,
    IPV6_ETHERTYPE,
    IPV6_HEADER_BYTES,
    LEAST_LENGTH,
    MAC_BYTES,
    MACS_BYTES,
    TCP_HEADER_BYTES,
    TCP_PROTOCOL,
    UDP_HEADER_BYTES,
    UDP_PROTOCOL,
    behind_tags,
    folded,
    word_sum,
)

# Names of differences that are not fields of the sent headers.
VLAN_TAG = "VLAN tag"
DESTINATION_MAC = "destination MAC address"
LENGTH = "length"
DSCP, ECN = "DSCP", "ECN"
ADDRESSES = ("source address", "destination address")
PAYLOAD = "payload"
_MPLS = b"\x88\x47"
_MPLS_BYTES = 4
_VXLAN_PORT = (4789).to_bytes(2, "big")
_VXLAN_BYTES = 8
_CHECKSUM = "checksum"


@dataclass(frozen=True)
class FieldChange:
    """A field that had another value when a frame came back."""

    name: str
    """The field's name, with its header's: ``IPv4 DSCP``."""
    before: str
    """Its value in the frame that was sent."""
    after: str
    """Its value in the frame that came back."""

    @property
    def in_words(self) -> str:
        """Its values."""
        return f"{self.before} before, {self.after} after"


@dataclass(frozen=True)
class HeaderField:
    """A field of a frame's headers, in whole bytes, some of whose bits may belong to other fields."""

    name: str
    """Its name."""
    start: int
    """Its first byte."""
    width: int
    """Its number of bytes."""
    mask: int = -1
    """Its bits in these bytes; -1: all."""
    is_address: bool = False
    """Whether it is shown as an address."""

    def value(self, frame: bytes) -> int:
        """Its value in a frame, with all bits in the place of the mask."""
        number = int.from_bytes(frame[self.start : self.start + self.width], "big")
        if self.mask == -1:
            return number
        return number & self.mask

    def shown(self, frame: bytes) -> str:
        """Its value in a frame, as people write it."""
        if self.is_address:
            part = frame[self.start : self.start + self.width]
            if self.width == 4:
                return ".".join(map(str, part))
            if self.width == MAC_BYTES:
                return part.hex(":")
            return part.hex(":", 2)
        number = self.value(frame)
        return str(number if self.mask == -1 else number // (self.mask & -self.mask))


def changed_fields(
    direction: Direction,
    wanted: bytes,
    got: bytes,
    mac: bytes | None = None,
    length: int | None = None,
    sent: bytes | None = None,
) -> list[FieldChange]:
    """The fields of a frame that differ from `wanted` when it came back, from the outside in.

    `got` may be only its beginning; `length` is then the number of bytes of the whole frame. `mac` is the receiving
    port's address; None: it is not compared. If its tags differ, the answer also says how it was `sent`, if known.
    """
    spec = direction.arriving
    changes = []
    if mac is not None and not spec.has_macs and got[:MAC_BYTES] != mac:
        changes.append(FieldChange(DESTINATION_MAC, mac.hex(":"), got[:MAC_BYTES].hex(":")))
    if direction.growth:
        # Bytes that devices put before the packet are their own.
        return changes

    behind, got_behind = behind_tags(wanted) - 2, behind_tags(got) - 2
    tags, got_tags = (_without(spec.rewritable, frame[:end]) for frame, end in ((wanted, behind), (got, got_behind)))
    if tags[MACS_BYTES:] != got_tags[MACS_BYTES:]:
        changes.append(_changed_tags(wanted if sent is None else sent, wanted, got))
    rest = wanted[:behind] + got[got_behind:]
    left, right = (_without(spec.rewritable, frame) for frame in (wanted, rest))
    for field in header_fields(wanted):
        if field.start + field.width <= len(rest) and field.value(left) != field.value(right):
            changes.append(FieldChange(field.name, field.shown(wanted), field.shown(rest)))
    changes += (
        FieldChange(f"IPv4 header {_CHECKSUM}", "right", "wrong")
        for checksum in spec.checksums
        if checksum.end is not None and folded(word_sum(rest[checksum.start : checksum.end])) != 0xFFFF
    )
    whole = len(got) if length is None else length
    longer = whole - got_behind - (len(wanted) - behind)
    is_padding = direction.may_be_padded and len(wanted) < LEAST_LENGTH == whole
    if longer and not is_padding:
        changes.append(FieldChange(LENGTH, f"{len(wanted)} bytes", f"{whole} bytes"))
    others = [change for change in changes if not change.name.endswith(_CHECKSUM)]

    # A device that changes a field recomputes its checksums.
    return others or changes


def _without(parts: tuple[tuple[int, int], ...], frame: bytes) -> bytes:
    """A frame without the bytes that devices may rewrite."""
    left = bytearray(frame)
    for start, stop in parts:
        left[start:stop] = bytes(len(left[start:stop]))
    return bytes(left)


def header_fields(frame: bytes, start: int = 0, prefix: str = "") -> Iterator[HeaderField]:
    """The fields of the headers of a frame that begins at a place, from the outside in, and the octets after them."""
    place = start + behind_tags(frame[start:])
    ethertype = frame[place - 2 : place]
    yield HeaderField(f"{prefix}ethertype", place - 2, 2)
    if ethertype == _MPLS:
        place = yield from _labels(frame, place)
        # Nothing but the packet's version says what it is.
        ethertype = IPV6_ETHERTYPE if frame[place : place + 1] >= b"\x60" else IPV4_ETHERTYPE

    end = place
    protocol = None
    if ethertype == IPV4_ETHERTYPE:
        yield from _ipv4(place, prefix)
        protocol = frame[place + 9]
        end = place + IPV4_HEADER_BYTES
    elif ethertype == IPV6_ETHERTYPE:
        yield from _ipv6(place, prefix)
        protocol = frame[place + 6]
        end = place + IPV6_HEADER_BYTES

    if protocol == UDP_PROTOCOL:
        parts = (("source port", 2), ("destination port", 2), ("length", 2), (_CHECKSUM, 2))
        yield from _numbers(f"{prefix}UDP", end, parts)
        port = frame[end + 2 : end + 4]
        end += UDP_HEADER_BYTES
        if port == _VXLAN_PORT and not prefix:
            yield from _numbers("VXLAN", end, (("flags", 4), ("network identifier", 3), ("reserved byte", 1)))
            end += _VXLAN_BYTES
            yield HeaderField("inner destination MAC address", end, MAC_BYTES, is_address=True)
            yield HeaderField("inner source MAC address", end + MAC_BYTES, MAC_BYTES, is_address=True)
            for octet in range(end + MACS_BYTES, end + behind_tags(frame[end:]) - 2):
                yield HeaderField("inner VLAN tag", octet, 1)
            yield from header_fields(frame, end, "inner ")
            return
    elif protocol == TCP_PROTOCOL:
        parts = (("source port", 2), ("destination port", 2), ("sequence number", 4), ("acknowledgement number", 4))
        more = (("flags", 2), ("window", 2), (_CHECKSUM, 2), ("urgent pointer", 2))
        yield from _numbers(f"{prefix}TCP", end, (*parts, *more))
        end += TCP_HEADER_BYTES

    for octet in range(end, len(frame)):
        yield HeaderField(f"{PAYLOAD} at octet {octet}", octet, 1)


def _labels(frame: bytes, place: int) -> Generator[HeaderField, None, int]:
    """The fields of a stack of MPLS labels (RFC 3032) that begins at a place; returns where it ends."""
    is_last = False
    while not is_last and place + _MPLS_BYTES <= len(frame):
        yield HeaderField("MPLS label", place, 3, 0xFFFFF0)
        yield HeaderField("MPLS traffic class", place + 2, 1, 0x0E)
        yield HeaderField("MPLS bottom of stack", place + 2, 1, 0x01)
        yield HeaderField("MPLS time to live", place + 3, 1)
        is_last = bool(frame[place + 2] & 1)
        place += _MPLS_BYTES
    return place


def _ipv4(place: int, prefix: str) -> Iterator[HeaderField]:
    header = f"{prefix}IPv4"
    yield HeaderField(f"{header} {DSCP}", place + 1, 1, 0xFC)
    yield HeaderField(f"{header} {ECN}", place + 1, 1, 0x03)
    parts = (("total length", 2), ("identification", 2), ("fragment offset and flags", 2), ("time to live", 1))
    yield from _numbers(header, place + 2, (*parts, ("protocol", 1), (f"header {_CHECKSUM}", 2)))
    for number, name in enumerate(ADDRESSES):
        yield HeaderField(f"{header} {name}", place + 12 + 4 * number, 4, is_address=True)


def _ipv6(place: int, prefix: str) -> Iterator[HeaderField]:
    header = f"{prefix}IPv6"
    yield HeaderField(f"{header} {DSCP}", place, 2, 0x0FC0)
    yield HeaderField(f"{header} {ECN}", place, 2, 0x0030)
    yield HeaderField(f"{header} flow label", place + 1, 3, 0x0FFFFF)
    yield from _numbers(header, place + 4, (("payload length", 2), ("next header", 1), ("hop limit", 1)))
    for number, name in enumerate(ADDRESSES):
        yield HeaderField(f"{header} {name}", place + 8 + 16 * number, 16, is_address=True)


def _numbers(header: str, place: int, parts: tuple[tuple[str, int], ...]) -> Iterator[HeaderField]:
    for name, width in parts:
        yield HeaderField(f"{header} {name}", place, width)
        place += width


def _changed_tags(sent: bytes, wanted: bytes, got: bytes) -> FieldChange:
    after = _tags_in_words(got)
    if sent != wanted:
        after += f" (expected: {_tags_in_words(wanted)})"
    return FieldChange(VLAN_TAG, _tags_in_words(sent), after)


def _tags_in_words(frame: bytes) -> str:
    tags = [int.from_bytes(frame[place : place + 2], "big") for place in range(MACS_BYTES + 2, behind_tags(frame), 4)]
    return " in ".join(f"VLAN {tag & 0xFFF} with priority {tag >> 13}" for tag in reversed(tags)) or "untagged"
