# SPDX-License-Identifier: Apache-2.0
"""From the description of one direction's frames to their bytes, many at once, with tags and sequence numbers.

A transmit ring holds all frames that differ (`FrameCycle`), or some of them and the headers of all others.

After its trial's tag, each frame has its number in the order of sending: 32 bits, from 0 on in each trial. If a
checksum covers both, a word elsewhere in the frame compensates for them (RFC 1071: the sum of the three is always the
same), so that nothing else in the frame depends on its number.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass

from ..core.arrays import NDArray, np
from ..core.frame_order import FrameOrder, Numbers, values_of
from ..core.frames_spec import (
    COMPENSATION_BYTES,
    MOST_STREAMS,
    SEQUENCE_BYTES,
    TAG_BYTES,
    ChecksumField,
    FramesSpec,
    SteppingField,
    TagPlace,
    least_common_multiple,
    stream_tag,
)
from ..core.protocol import unsupported
from ..core.wire import FCS_BYTES, MACS_BYTES, word_sum

Bytes = NDArray[np.uint8]

_TAG_ALONE_BYTES = TAG_BYTES - SEQUENCE_BYTES
_AT_ONCE = 1 << 12

MOST_HEADERS = 1 << 22
"""The maximum number of headers that are kept beside a ring: flows times sizes."""
SLOT_HEADER_BYTES = 42
"""Bytes of a ring's slot before the frame: the kernel's header, and the header of virtual network devices."""
_RING_BYTES = 1 << 24
_STREAMS_RING_BYTES = 1 << 27
_PART_BYTES = 1 << 20
_CHUNK = 1 << 16
_WORTH_A_GAP = 8


class FrameBuilder:
    """Builds headers of one direction's frames, all with these MAC addresses.

    Attributes:
        longest: The largest frame, as it is before flows and checksums are written into it.
    """

    def __init__(self, spec: FramesSpec, source_mac: bytes, destination_mac: bytes) -> None:
        spec.check_room()
        self._spec = spec
        self.longest = np.frombuffer(spec.template(spec.max_size - FCS_BYTES, destination_mac + source_mac), np.uint8)
        self._payload_sums = sums_of_payloads(spec)
        self._values = [_values(field) for field in spec.fields]

    def beginnings(self, flows: Numbers, sizes: Numbers) -> Bytes:
        """Headers and tags of frames, with correct lengths and checksums; `payload` makes the bytes after them.

        The place of the tag holds a tag of zero and its complement; any other tag leaves the checksums correct. Sizes
        are in bytes with FCS.
        """
        data = np.tile(self.longest[: self._spec.payload_offset], (len(flows), 1))
        for field, values in zip(self._spec.fields, self._values):
            data[:, field.offset : field.offset + field.width] = values[flows % field.count]
        complete(data, sizes - FCS_BYTES, self._spec, self._payload_sums)
        return data


def complete(data: Bytes, lengths: Numbers, spec: FramesSpec, payload_sums: NDArray[np.uint64]) -> None:
    """Writes lengths and checksums into the headers of frames, whose checksums must be zero."""
    for length in spec.lengths:
        data[:, length.offset : length.offset + 2] = _big_endian(lengths - length.start, 2)
    for checksum in spec.checksums:
        payload = None if checksum.end is not None else payload_sums[lengths]
        data[:, checksum.offset : checksum.offset + 2] = _big_endian(_checksums(data, lengths, checksum, payload), 2)


def tag_bytes(tag: int) -> bytes:
    """A tag of frames without a sequence number: 32 bits, and their complement, so that checksums do not change."""
    return tag.to_bytes(4, "big") + (tag ^ 0xFFFFFFFF).to_bytes(4, "big")


def _values(field: SteppingField) -> Bytes:
    """The bytes of all values of a field, one row per value, in their order."""
    return _big_endian(values_of(field), field.width)


def sums_of_payloads(spec: FramesSpec) -> NDArray[np.uint64]:
    """Sums of the payload's words, by the length of the frame."""
    sums = np.zeros(spec.max_size, dtype=np.uint64)
    for size, _ in spec.sizes:
        frame = spec.template(size - FCS_BYTES, bytes(MACS_BYTES))
        sums[size - FCS_BYTES] = word_sum(bytes(frame[spec.payload_offset :]))
    return sums


def _checksums(
    data: Bytes, lengths: Numbers, field: ChecksumField, payload_sums: NDArray[np.uint64] | None
) -> NDArray[np.uint64]:
    part = data[:, field.start : data.shape[1] if field.end is None else field.end]
    if part.shape[1] % 2:
        part = np.pad(part, ((0, 0), (0, 1)))
    sums = word_sums(part)
    if payload_sums is not None:
        sums += payload_sums
    if field.pseudo_header is not None:
        start, stop, protocol = field.pseudo_header
        sums += word_sums(data[:, start:stop]) + np.uint64(protocol) + (lengths - field.start).astype(np.uint64)
    complement: NDArray[np.uint64] = np.uint64(0xFFFF) - folded_sums(sums)
    if field.is_udp:
        # RFC 768: a checksum of zero is sent as all ones; zero would mean that there is no checksum.
        complement[complement == 0] = 0xFFFF
    return complement


def word_sums(part: Bytes) -> NDArray[np.uint64]:
    """The sums of the 16-bit words of each row."""
    words = np.ascontiguousarray(part).view(">u2")
    sums = np.zeros(len(words), dtype=np.uint64)
    # A sum along short rows would take numpy three times as long.
    for number in range(words.shape[1]):
        sums += words[:, number]
    return sums


def folded_sums(sums: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sums below 2 to the power of 32 with their carries added (RFC 1071)."""
    for _ in range(2):
        sums = (sums & np.uint64(0xFFFF)) + (sums >> np.uint64(16))
    return sums


def _big_endian(values: NDArray[np.int64] | NDArray[np.uint64], width: int) -> Bytes:
    every_byte: Bytes = values.astype(">u8").view(np.uint8)
    return every_byte.reshape(-1, 8)[:, 8 - width :]


class Numbering:
    """Writes tags and sequence numbers into frames that wait to be sent.

    Numbers are computed some thousands at a time; computing them for each batch would cost several times as much.
    """

    def __init__(self, memory: Bytes, start: int, place: TagPlace, streams: Numbers | None = None) -> None:
        """Numbers frames in memory; `streams` is the stream of each row, if tags distinguish streams."""
        self._place = place
        self._streams = streams
        self._whole_tags = memory[:, start + place.offset : start + place.offset + TAG_BYTES]
        parts = number_parts(place) if place.is_numbered else []
        self._parts = [column(memory, start + offset, width) for offset, width in parts]
        self._tables: list[NDArray[np.void]] = []
        self._tag = self._first = self._first_row = 0

    def begin(self, tag: int, row: int = 0) -> None:
        """Writes a tag into all frames; the next frame to be numbered is in this row, and becomes number 0."""
        if self._streams is None:
            self._whole_tags[:] = np.frombuffer(tag_bytes(tag), dtype=np.uint8)
        else:
            tags = np.array([list(tag_bytes(stream_tag(tag, stream))) for stream in range(MOST_STREAMS)], np.uint8)
            self._whole_tags[:] = tags[self._streams]
        self._tag = tag
        self._first_row = row
        self._compute(0)

    def write(self, row: int, number: int, count: int) -> int:
        """Numbers frames from a row on, as many as are computed at once; returns how many, at least one."""
        if not self._parts:
            return count
        if not 0 <= number - self._first < _AT_ONCE:
            self._compute(number)
        place = number - self._first
        count = min(count, _AT_ONCE - place)
        for part, table in zip(self._parts, self._tables):
            part[row : row + count] = table[place : place + count]
        return count

    def _compute(self, first: int) -> None:
        self._first = first
        if self._parts:
            numbers = np.arange(first, first + _AT_ONCE)
            tags: int | Numbers = self._tag
            if self._streams is not None:
                tags = stream_tags(self._tag, self._streams[(numbers + self._first_row) % len(self._streams)])
            written = number_bytes(self._place, tags, numbers)
            self._tables = [part.view(f"V{part.shape[1]}").reshape(-1) for part in written]


def number_parts(place: TagPlace) -> list[tuple[int, int]]:
    """The places of numbers in a frame: starts and widths, in the order of `number_bytes`."""
    start = place.offset + _TAG_ALONE_BYTES
    if place.compensation is None:
        return [(start, SEQUENCE_BYTES)]
    if place.compensation == start + SEQUENCE_BYTES:
        return [(start, SEQUENCE_BYTES + COMPENSATION_BYTES)]
    return [(start, SEQUENCE_BYTES), (place.compensation, COMPENSATION_BYTES)]


def stream_tags(tag: int, streams: Numbers) -> Numbers:
    """The tag of each frame, by its stream."""
    return tag + stream_tag(0, 1) * streams


def number_bytes(place: TagPlace, tag: int | Numbers, numbers: Numbers) -> list[Bytes]:
    """Sequence numbers in bytes, after a tag (one for all frames, or one for each).

    For each part of a frame, these are the numbers of all frames, one in each row.
    """
    words = numbers.astype(np.uint64) & np.uint64(0xFFFFFFFF)
    sequence = np.ascontiguousarray(words.astype(">u4")).view(np.uint8).reshape(-1, SEQUENCE_BYTES)
    if place.compensation is None:
        return [sequence]
    of_tags = np.asarray((tag >> 16) + (tag & 0xFFFF)).astype(np.uint64)
    sums = (words >> np.uint64(16)) + (words & np.uint64(0xFFFF)) + of_tags
    compensation = (np.uint64(0xFFFF) - folded_sums(sums)).astype(">u2").view(np.uint8).reshape(-1, COMPENSATION_BYTES)
    if len(number_parts(place)) == 1:
        return [np.hstack((sequence, compensation))]
    return [sequence, compensation]


def column(memory: Bytes, start: int, width: int) -> NDArray[np.void]:
    """The same part of all rows."""
    part: NDArray[np.void] = np.ndarray((len(memory),), f"V{width}", memory, start, strides=memory.strides[:1])
    return part


class Replies:
    """Whole headers in memory that two processes share; a prefix of them is copied into the slots of a ring."""

    def __init__(self, headers: Bytes, count: int) -> None:
        self.count = count
        self.parts = [(0, headers.view(f"V{headers.shape[1]}").reshape(-1))]

    def run(self, number: int) -> int:
        """How many frames, beginning with this number, can be patched at once."""
        return self.count - number % self.count

    def rows(self, number: int, count: int) -> Numbers:
        """Which headers belong to this many frames from a number on."""
        first = number % self.count
        rows: Numbers = np.arange(first, first + count)
        return rows

    def write(self, data: Bytes, numbers: Numbers) -> None:
        """Writes the headers that belong to any frames, one in each row, by their numbers."""
        ((_, table),) = self.parts
        data[:, : table.itemsize] = table.take(numbers % self.count).view(np.uint8).reshape(len(numbers), -1)


@dataclass(frozen=True)
class FrameCycle:
    """Frames of one direction, in the order in which they are sent, over and over."""

    data: Bytes
    """One row per frame, without FCS; bytes beyond its length are not sent."""
    lengths: NDArray[np.uint32]
    """Bytes of each frame, without FCS."""
    patches: HeaderPatches | Replies | None = None
    """How frames differ from the previous round; None: the rows hold all frames that differ."""
    streams: Numbers | None = None
    """The stream of each frame, if there are several; in that case, there are no patches."""

    def frames(self, numbers: Numbers) -> tuple[Bytes, NDArray[np.uint32]]:
        """Frames by their numbers in the order of sending, from 0 on, as `data` and `lengths` hold them."""
        rows = numbers % len(self.lengths)
        data = self.data[rows]
        if self.patches is not None:
            self.patches.write(data, numbers)
        return data, self.lengths[rows]


def build_frames(spec: FramesSpec, source_mac: bytes, destination_mac: bytes) -> FrameCycle:
    """Builds as many frames as a ring should hold, with correct lengths and checksums.

    The place of the tag holds a tag of zero and its complement; any other tag leaves the checksums correct.
    """
    builder = FrameBuilder(spec, source_mac, destination_mac)
    order = FrameOrder(spec)
    slot = slot_bytes(spec.max_size - FCS_BYTES)
    if spec.order is not None:
        if order.period * slot > _STREAMS_RING_BYTES:
            raise unsupported(
                f"The streams of this traffic profile repeat only after {order.period} frames of up to "
                f"{spec.max_size} bytes, which is more than the generator afpacket keeps in memory. Use fewer "
                "flows in each stream, simpler shares, such as 1 and 3, or smaller frames."
            )
        return FrameCycle(*_first_frames(builder, order, order.period), streams=np.array(spec.order.streams))

    if least_common_multiple(order.period, slots_per_block(slot)) * slot <= _RING_BYTES:
        return FrameCycle(*_first_frames(builder, order, order.period))
    if order.flows * len(spec.sizes) > MOST_HEADERS:
        raise unsupported(
            f"This traffic profile has {order.flows} flows in {len(spec.sizes)} sizes, but the generator afpacket "
            f"keeps at most {MOST_HEADERS} different headers (flows times sizes). Use fewer flows or fewer sizes."
        )
    part = least_common_multiple(len(order.pattern), slots_per_block(slot))
    count = part * max(1, _PART_BYTES // (part * slot))
    return FrameCycle(*_first_frames(builder, order, count), HeaderPatches(spec, builder, order, count))


def slot_bytes(frame: int) -> int:
    """Bytes of a ring's slot for frames of this many bytes: a power of two, so that none lies across a block's end."""
    return 1 << (SLOT_HEADER_BYTES + frame - 1).bit_length()


def slots_per_block(slot: int) -> int:
    """How many slots of this many bytes are in one block of a ring, which is a page or larger."""
    return max(1, mmap.PAGESIZE // slot)


class HeaderPatches:
    """The parts of headers that differ from flow to flow, to be copied into a ring's slots.

    Each of the `parts` is a place in the frame, and its contents for each size and flow.
    """

    def __init__(self, spec: FramesSpec, builder: FrameBuilder, order: FrameOrder, slots: int) -> None:
        self._order = order
        sizes = [size for size, _ in spec.sizes]
        pattern = np.array([sizes.index(size) for size in order.pattern.tolist()])
        self._first_rows = np.resize(pattern * order.flows, slots)
        self._steps = np.arange(slots)
        places = _changing_places(spec)
        tables = [np.empty((len(sizes) * order.flows, end - start), dtype=np.uint8) for start, end in places]

        for number, size in enumerate(sizes):
            for first in range(0, order.flows, _CHUNK):
                flows = np.arange(first, min(first + _CHUNK, order.flows))
                data = builder.beginnings(flows, np.full(len(flows), size))
                rows = slice(number * order.flows + first, number * order.flows + first + len(flows))
                for (start, end), table in zip(places, tables):
                    table[rows] = data[:, start:end]

        self.parts = [(start, table.view(f"V{end - start}").reshape(-1)) for (start, end), table in zip(places, tables)]

    def run(self, number: int) -> int:
        """How many frames, beginning with this number, can be patched at once."""
        return self._order.run(number)[1]

    def rows(self, number: int, count: int) -> Numbers:
        """Which parts belong to this many frames from a number on: at most `run` of them, none beyond the last slot."""
        flow, _ = self._order.run(number)
        slot = number % len(self._first_rows)
        rows: Numbers = self._first_rows[slot : slot + count] + (self._steps[:count] + flow)
        return rows

    def write(self, data: Bytes, numbers: Numbers) -> None:
        """Writes the parts that belong to any frames, one in each row, by their numbers."""
        rows = self._first_rows[numbers % len(self._first_rows)] + self._order.flow_numbers(numbers)
        for start, table in self.parts:
            part = np.ascontiguousarray(table.take(rows)).view(np.uint8).reshape(len(rows), table.itemsize)
            data[:, start : start + table.itemsize] = part


def _first_frames(builder: FrameBuilder, order: FrameOrder, count: int) -> tuple[Bytes, NDArray[np.uint32]]:
    sizes = np.resize(order.pattern, count)
    beginnings = builder.beginnings(order.flow_numbers(np.arange(count)), sizes)
    data = np.tile(builder.longest[: int(sizes.max()) - FCS_BYTES], (count, 1))
    data[:, : beginnings.shape[1]] = beginnings
    return data, (sizes - FCS_BYTES).astype(np.uint32)


def _changing_places(spec: FramesSpec) -> list[tuple[int, int]]:
    """Starts and ends of the bytes that differ from flow to flow; short gaps between them are included."""
    changing = {place for field in spec.fields for place in range(field.offset, field.offset + field.width)}
    for checksum in spec.checksums:
        covered = set(range(checksum.start, spec.tag_offset if checksum.end is None else checksum.end))
        if checksum.pseudo_header is not None:
            covered |= set(range(*checksum.pseudo_header[:2]))
        if covered & changing:
            changing |= {checksum.offset, checksum.offset + 1}
    places: list[tuple[int, int]] = []
    for place in sorted(changing):
        if places and place - places[-1][1] <= _WORTH_A_GAP:
            places[-1] = (places[-1][0], place + 1)
        else:
            places.append((place, place + 1))
    return places
