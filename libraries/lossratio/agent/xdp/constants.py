# SPDX-License-Identifier: Apache-2.0
"""The constants of programs in C: a direction's frames, as `frames.h` has them."""

from __future__ import annotations

import ctypes
import struct
import sys
from functools import lru_cache
from typing import Any, Iterable, Literal, Sequence

from lossratio.bpf import ObjectFile, read_object

from ..core.frames_spec import COMPENSATION_BYTES, TAG_BYTES
from ..core.headers import IPV4
from ..core.protocol import unsupported
from ..core.wire import MACS_BYTES, VLAN_TAG_BYTES, folded
from .frames import FramePlan

MOST_WAYS = 8
"""The maximum number of directions of a sender, or of a port."""
FOREVER = (1 << 64) - 1
"""A time, or a number, that never comes."""
RING_BITS = 20
RING = 1 << RING_BITS
"""For how many frames of a stream the sending time is kept. Later frames overwrite the oldest."""
WRAP_BITS = 16
"""Lower bits of an entry of the ring that hold how often the ring was full before this frame, plus 1. Above them is the
time of sending: the lower 48 bits of the kernel's clock in nanoseconds."""
LONGEST_FRAME = 4096
"""All frames are shorter than this, in bytes."""
_MOST_WORDS, _WORD = 20, 8
_BLOCK = 64
_ORDER: Literal["little", "big"] = "little" if sys.byteorder == "little" else "big"


def structure(*parts: str | tuple[str, Any]) -> Any:
    """A structure in C: its members in lines such as ``u32 offset, width``, and members that are not numbers."""
    types = {"u64": ctypes.c_uint64, "u32": ctypes.c_uint32}
    members: list[tuple[str, Any]] = []
    for part in parts:
        if isinstance(part, tuple):
            members.append(part)
            continue
        kind, names = part.split(" ", 1)
        for name in names.split(", "):
            base, _, count = name.partition("[")
            members.append((base, types[kind] * int(count[:-1]) if count else types[kind]))
    return type("Structure", (ctypes.Structure,), {"_fields_": members})


_Field = structure("u64 first", "u32 offset, width, count, is_shuffled, order, is_ignored, is_address, pad")
_Checksum = structure("u32 offset, sum, covers_all, covered, is_udp, is_ignored")
# Table: the programs in C have the same structure.
Frames = structure(
    f"u64 words[{_MOST_WORDS}], masks[{_MOST_WORDS}], addresses[{_MOST_WORDS}]",
    "u64 tail, tail_mask, tail_addresses",
    *(("fields", _Field * 6), ("checksums", _Checksum * 4)),
    *(("sized", structure("u32 offset, is_ignored") * 6), ("headers", structure("u32 start, options") * 2)),
    "u32 field_count, checksum_count, sized_count, header_count, direct, longest",
    "u32 pad, words_count, tag_offset, is_numbered, compensation, behind_vlan, flows, round, period",
    "u32 sizes, pattern, stride, contents, sums",
)
"""``struct frames``."""


@lru_cache(maxsize=None)
def program(name: str) -> ObjectFile:
    """A program of this folder, as the compiler wrote it."""
    return read_object(__package__ or "", name)


def constants_of(plans: Sequence[FramePlan]) -> tuple[list[Any], bytes]:
    """What programs know about frames: the constants of each plan, and the contents of the map ``contents``.

    This map holds sizes in their order, orders of stepping fields, and contents of frames.
    """
    contents = bytearray()
    return [_frames(plan, contents) for plan in plans], bytes(contents)


def _frames(plan: FramePlan, contents: bytearray) -> Any:
    spec = plan.spec
    longest = max(plan.templates, key=len)
    direct = min(*plan.lengths, len(longest), _MOST_WORDS * _WORD)
    entries = b"".join(_entry(plan, number) for number in plan.pattern)
    headers = [
        (header.start, folded(int.from_bytes(longest[header.start + IPV4.length : header.end], _ORDER)))
        for header in spec.checksums
        if header.end is not None and _is_within(header.offset, spec.rewritable)
    ]

    # Record: the constants of one kind of frames.
    frames = Frames(
        field_count=len(spec.fields),
        checksum_count=len(plan.checksums),
        sized_count=len(plan.sized),
        header_count=len(headers),
        direct=direct,
        longest=len(longest),
        words_count=direct // _WORD,
        tag_offset=spec.tag_offset,
        is_numbered=spec.is_numbered,
        compensation=spec.compensation or 0,
        behind_vlan=spec.tag_place.behind_vlan,
        flows=plan.flows,
        round=plan.round,
        period=plan.period,
        sizes=len(plan.pattern) if len(plan.lengths) > 1 else 0,
        pattern=len(contents),
        stride=len(entries) // len(plan.pattern),
    )

    contents += entries
    _fill_tables(frames, plan, headers, contents)
    _fill_template(frames, plan, longest, contents)
    return frames


def _fill_tables(frames: Any, plan: FramePlan, headers: Sequence[Sequence[int]], contents: bytearray) -> None:
    """Writes the constants of fields and checksums; orders of fields go to the contents.

    Raises:
        AgentError: If there is no room for them.
    """
    spec = plan.spec
    # Table: the rows of each structure.
    rows: dict[str, Sequence[Sequence[int]]] = {
        "fields": [_field(plan, number, contents) for number in range(len(spec.fields))],
        "checksums": [_checksum(plan, checksum) for checksum in plan.checksums],
        "sized": [(offset, _is_within(offset, spec.rewritable)) for offset in plan.sized],
        "headers": headers,
    }
    most = {name: len(getattr(frames, name)) for name in rows}
    is_full = any(len(rows[name]) > most[name] for name in rows)
    if is_full or spec.payload_offset > frames.direct or plan.period >= 1 << 32:
        raise unsupported(
            f"The generator xdp has no room for these headers. It has room for {_MOST_WORDS * _WORD} bytes "
            f"with the tag, {most['fields']} ranges, and {most['checksums']} checksums over these ranges. Use "
            "'kind: afpacket'."
        )

    for name, row in rows.items():
        for place, values in enumerate(row):
            getattr(frames, name)[place] = tuple(values)


def _fill_template(frames: Any, plan: FramePlan, longest: bytes, contents: bytearray) -> None:
    """Writes the first bytes of all frames as words; the whole of the longest frame goes to the contents."""
    direct = frames.direct
    masks, addresses = _masks(plan, direct)
    last = direct - _WORD
    for place in range(direct // _WORD):
        for name, data in (("words", longest), ("masks", masks), ("addresses", addresses)):
            getattr(frames, name)[place] = _word(data, place * _WORD)

    frames.tail, frames.tail_mask, frames.tail_addresses = (_word(data, last) for data in (longest, masks, addresses))
    frames.contents = len(contents)
    contents += longest.ljust(LONGEST_FRAME, b"\0")
    frames.sums = len(contents)
    sums = [_sums(longest, direct, max(length, _BLOCK)) for length in plan.lengths]
    contents += b"".join(sums[number] for number in plan.pattern)


def _entry(plan: FramePlan, number: int) -> bytes:
    template = plan.templates[number]
    words = [struct.pack("=I", plan.lengths[number])]
    words += [template[offset : offset + 2] + bytes(2) for offset in plan.sized]
    words += [struct.pack("=I", folded(checksum.sums[number])) for checksum in plan.checksums]
    return b"".join(words)


def _field(plan: FramePlan, number: int, contents: bytearray) -> tuple[int, ...]:
    spec = plan.spec
    order = plan.orders[number]
    start = len(contents)
    field = spec.fields[number]
    if order is not None:
        contents += struct.pack(f"={len(order)}I", *order)
    is_address = _is_within(field.offset, spec.addresses)
    left_out = [*spec.rewritable]
    if spec.tag_place.behind_vlan:
        # The kernel has removed the tag.
        left_out.append((MACS_BYTES, MACS_BYTES + VLAN_TAG_BYTES))
    is_ignored = any(_is_within(place, left_out) for place in range(field.offset, field.offset + field.width))
    return field.first, field.offset, field.width, field.count, order is not None, start, is_ignored, is_address


def _checksum(plan: FramePlan, checksum: Any) -> Sequence[int]:
    """A row of the structure of checksums."""
    spec = plan.spec
    return (
        checksum.field.offset,
        folded(checksum.sums[0]),
        len(checksum.covered) == len(spec.fields),
        sum(1 << number for number in checksum.covered),
        checksum.field.is_udp,
        _is_within(checksum.field.offset, spec.rewritable),
    )


def _masks(plan: FramePlan, size: int) -> tuple[bytes, bytes]:
    """Bits that are the same in all frames, and that no device may rewrite; and the addresses' bits among them."""
    spec = plan.spec
    # Table: the ranges that are not compared.
    left_out: list[tuple[int, int]] = [
        (0, MACS_BYTES),
        (spec.tag_offset, spec.tag_offset + TAG_BYTES),
        *spec.rewritable,
        *((field.offset, field.offset + field.width) for field in spec.fields),
        *((one.field.offset, one.field.offset + 2) for one in plan.checksums),
        *((offset, offset + 2) for offset in plan.sized),
    ]
    if spec.compensation is not None:
        left_out.append((spec.compensation, spec.compensation + COMPENSATION_BYTES))
    masks = bytes(0 if _is_within(place, left_out) else 0xFF for place in range(size))
    return masks, bytes(mask if _is_within(place, spec.addresses) else 0 for place, mask in enumerate(masks))


def _sums(frame: bytes, start: int, end: int) -> bytes:
    """The sum of the words from `start` on, and the sum of its partial sums, as the program adds them up."""
    total, of_sums = 0, 0
    places = [*range(start, end - _BLOCK + 1, _BLOCK), end - _BLOCK]
    for place in (place + offset for place in places for offset in range(0, _BLOCK, _WORD)):
        total += _word(frame, place)
        of_sums += total
    return struct.pack("=2Q", total & FOREVER, of_sums & FOREVER)


def _word(data: bytes, place: int) -> int:
    return int.from_bytes(data[place : place + _WORD], _ORDER)


def _is_within(place: int, parts: Iterable[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in parts)
