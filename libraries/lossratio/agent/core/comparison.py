# SPDX-License-Identifier: Apache-2.0
"""The comparison of a frame that came back with the one that was sent, field by field.

Measurements and checks of the cabling expect the same of a frame: `Direction.arriving`. The fields that devices may
rewrite are `FramesSpec.rewritable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Generator, Iterator, Sequence

from .configuration import Direction
from .headers import ETHERNET, IPV4, IPV6, MPLS, TCP, UDP, VXLAN, HeaderField
from .wire import (
    IPV4_ETHERTYPE,
    IPV6_ETHERTYPE,
    LEAST_LENGTH,
    MAC_BYTES,
    MACS_BYTES,
    TCP_PROTOCOL,
    UDP_PROTOCOL,
    WORD_BYTES,
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
    tags, got_tags = (without(spec.rewritable, frame[:end]) for frame, end in ((wanted, behind), (got, got_behind)))
    if tags[MACS_BYTES:] != got_tags[MACS_BYTES:]:
        changes.append(_changed_tags(wanted if sent is None else sent, wanted, got))
    rest = wanted[:behind] + got[got_behind:]
    left, right = (without(spec.rewritable, frame) for frame in (wanted, rest))
    for field in header_fields(wanted):
        if field.end <= len(rest) and field.value(left) != field.value(right):
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


def without(parts: Sequence[tuple[int, int]], frame: bytes) -> bytes:
    """A frame without the bytes that devices may rewrite."""
    left = bytearray(frame)
    for start, stop in parts:
        left[start:stop] = bytes(len(left[start:stop]))
    return bytes(left)


def header_fields(frame: bytes, start: int = 0, prefix: str = "") -> Iterator[HeaderField]:
    """The fields of the headers of a frame that begins at a place, from the outside in, and the octets after them."""
    place = start + behind_tags(frame[start:])
    ethertype = frame[place - 2 : place]
    yield HeaderField(f"{prefix}ethertype", 8 * (place - 2), 16)
    if ethertype == _MPLS:
        place = yield from _labels(frame, place)
        # Nothing but the packet's version says what it is.
        ethertype = IPV6_ETHERTYPE if frame[place : place + 1] >= b"\x60" else IPV4_ETHERTYPE

    end = place
    protocol = None
    if ethertype == IPV4_ETHERTYPE:
        yield from IPV4.behind(place, f"{prefix}IPv4 ")
        protocol = IPV4.field("protocol").value(frame[place:])
        # RFC 791: options fill the header up to its length.
        end = place + max(IPV4.length, WORD_BYTES * IPV4.field("header length").value(frame[place:]))
        for octet in range(place + IPV4.length, end):
            yield HeaderField(f"{prefix}IPv4 options", 8 * octet, 8)
    elif ethertype == IPV6_ETHERTYPE:
        yield from IPV6.behind(place, f"{prefix}IPv6 ")
        protocol = IPV6.field("next header").value(frame[place:])
        end = place + IPV6.length

    if protocol == UDP_PROTOCOL:
        yield from UDP.behind(end, f"{prefix}UDP ")
        port = UDP.field("destination port").value(frame[end:])
        end += UDP.length
        if port == VXLAN.number and not prefix:
            yield from VXLAN.behind(end, "VXLAN ")
            end += VXLAN.length
            yield from islice(ETHERNET.behind(end, "inner "), 2)
            for octet in range(end + MACS_BYTES, end + behind_tags(frame[end:]) - 2):
                yield HeaderField("inner VLAN tag", 8 * octet, 8)
            yield from header_fields(frame, end, "inner ")
            return
    elif protocol == TCP_PROTOCOL:
        yield from TCP.behind(end, f"{prefix}TCP ")
        end += TCP.length

    for octet in range(end, len(frame)):
        yield HeaderField(f"{PAYLOAD} at octet {octet}", 8 * octet, 8)


def _labels(frame: bytes, place: int) -> Generator[HeaderField, None, int]:
    """The fields of a stack of MPLS labels (RFC 3032) that begins at a place; returns where it ends."""
    is_last = False
    while not is_last and place + MPLS.length <= len(frame):
        yield from MPLS.behind(place, "MPLS ")
        is_last = bool(frame[place + 2] & 1)
        place += MPLS.length
    return place


def _changed_tags(sent: bytes, wanted: bytes, got: bytes) -> FieldChange:
    after = _tags_in_words(got)
    if sent != wanted:
        after += f" (expected: {_tags_in_words(wanted)})"
    return FieldChange(VLAN_TAG, _tags_in_words(sent), after)


def _tags_in_words(frame: bytes) -> str:
    tags = [int.from_bytes(frame[place : place + 2], "big") for place in range(MACS_BYTES + 2, behind_tags(frame), 4)]
    return " in ".join(f"VLAN {tag & 0xFFF} with priority {tag >> 13}" for tag in reversed(tags)) or "untagged"
