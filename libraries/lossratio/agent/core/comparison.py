# SPDX-License-Identifier: Apache-2.0
"""The comparison of a frame that came back with the one that was sent, field by field.

Measurements and checks of the cabling expect the same of a frame: `Direction.arriving`. The fields that devices may
rewrite are `FramesSpec.rewritable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Sequence

from .configuration import Direction
from .headers import ETHERNET, VLAN, VXLAN, HeaderField, headers_of
from .wire import LEAST_LENGTH, MAC_BYTES, MACS_BYTES, behind_tags, folded, word_sum

# Names of differences that are not fields of the sent headers.
VLAN_TAG = "VLAN tag"
DESTINATION_MAC = "destination MAC address"
LENGTH = "length"
PAYLOAD = "payload"
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
    tags, got_tags = (_without(spec.rewritable, frame[:end]) for frame, end in ((wanted, behind), (got, got_behind)))
    if tags[MACS_BYTES:] != got_tags[MACS_BYTES:]:
        changes.append(_changed_tags(wanted if sent is None else sent, wanted, got))
    rest = wanted[:behind] + got[got_behind:]
    left, right = (_without(spec.rewritable, frame) for frame in (wanted, rest))
    for field in header_fields(wanted):
        if field.end <= len(rest) and field.value(left) != field.value(right):
            changes.append(FieldChange(field.name, field.shown(wanted), field.shown(rest)))
    changes += (
        FieldChange(f"IPv4 header {_CHECKSUM}", "right", "wrong")
        for checksum in spec.checksums
        if checksum.end is not None and folded(word_sum(rest[checksum.start : checksum.end])) != 0xFFFF
    )
    whole = len(got)
    if length is not None:
        whole = length
    longer = whole - got_behind - (len(wanted) - behind)
    is_padding = direction.may_be_padded and len(wanted) < LEAST_LENGTH == whole
    if longer and not is_padding:
        changes.append(FieldChange(LENGTH, f"{len(wanted)} bytes", f"{whole} bytes"))
    others = [change for change in changes if not change.name.endswith(_CHECKSUM)]

    # A device that changes a field recomputes its checksums.
    return others or changes


def _without(parts: Sequence[tuple[int, int]], frame: bytes) -> bytes:
    """A frame without the bytes that devices may rewrite."""
    left = bytearray(frame)
    for start, stop in parts:
        left[start:stop] = bytes(len(left[start:stop]))
    return bytes(left)


def header_fields(frame: bytes) -> Iterator[HeaderField]:
    """The fields of the headers of a frame from the outside in, without its MAC addresses and tags, and what follows.

    What follows is a field for each octet.
    """
    yield HeaderField("ethertype", 8 * (behind_tags(frame) - 2), 16)
    inside = ""
    end = 0
    for header, place, end in headers_of(frame):
        if inside or header not in (ETHERNET, VLAN):
            yield from header.at(place, inside)
        for octet in range(place + header.length, end):
            yield HeaderField(f"{inside} IPv4 options".lstrip(), 8 * octet, 8)
        if header is VXLAN:
            inside = "inner"

    for octet in range(end, len(frame)):
        yield HeaderField(f"{PAYLOAD} at octet {octet}", 8 * octet, 8)


def _changed_tags(sent: bytes, wanted: bytes, got: bytes) -> FieldChange:
    after = _tags_in_words(got)
    if sent != wanted:
        after += f" (expected: {_tags_in_words(wanted)})"
    return FieldChange(VLAN_TAG, _tags_in_words(sent), after)


def _tags_in_words(frame: bytes) -> str:
    tags = [int.from_bytes(frame[place : place + 2], "big") for place in range(MACS_BYTES + 2, behind_tags(frame), 4)]
    return " in ".join(f"VLAN {tag & 0xFFF} with priority {tag >> 13}" for tag in reversed(tags)) or "untagged"
