"""Contents of a transmit ring: all frames that differ, or some of them and the headers of all others."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ..core.configuration import FCS_BYTES, FramesSpec
from ..core.protocol import AgentError
from .frames import Bytes, FrameBuilder, FrameOrder, Numbers, payload

MOST_HEADERS = 1 << 22
"""Most headers that are kept beside a ring: flows times sizes."""

SLOT_HEADER_BYTES = 42
"""Bytes of a ring's slot before the frame: the kernel's header, and that of virtual network devices."""

_RING_BYTES = 1 << 24
_PART_BYTES = 1 << 20
_CHUNK = 1 << 16
_WORTH_A_GAP = 8


@dataclass(frozen=True)
class FrameCycle:
    """Frames of one direction, in the order in which they are sent, over and over.

    Attributes:
        data: One row per frame, without FCS; what lies behind its length is not sent.
        lengths: Bytes of each frame, without FCS.
        patches: What frames differ in from those of the round before; None: these are all frames that differ.
    """

    data: Bytes
    lengths: NDArray[np.uint32]
    patches: HeaderPatches | None = None

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

    Args:
        spec: The description of the frames.
        source_mac: Source MAC address of all frames.
        destination_mac: Destination MAC address of all frames.

    Raises:
        AgentError: Of kind ``unsupported``, if a frame is too small for its headers, or too many headers differ.
    """
    builder, order = FrameBuilder(spec, source_mac, destination_mac), FrameOrder(spec)
    slot = slot_bytes(spec.max_size - FCS_BYTES)
    if _lcm(order.period, slots_per_block(slot)) * slot <= _RING_BYTES:
        return FrameCycle(*_first_frames(builder, order, order.period))
    if order.flows * len(spec.sizes) > MOST_HEADERS:
        raise AgentError(
            "unsupported",
            f"{order.flows} flows in {len(spec.sizes)} sizes are more than this generator can tell apart: "
            f"flows times sizes may be {MOST_HEADERS}.",
        )
    part = _lcm(len(order.pattern), slots_per_block(slot))
    count = part * max(1, _PART_BYTES // (part * slot))
    return FrameCycle(*_first_frames(builder, order, count), HeaderPatches(spec, builder, order, count))


def slot_bytes(frame: int) -> int:
    """Bytes of a ring's slot for frames of so many bytes: a power of two, so that none lies across a block's end."""
    return 1 << (SLOT_HEADER_BYTES + frame - 1).bit_length()


def slots_per_block(slot: int) -> int:
    """How many slots of so many bytes are in one block of a ring, which is a page or larger."""
    return max(1, mmap.PAGESIZE // slot)


class HeaderPatches:
    """The parts of headers that differ from flow to flow, for each flow and size: to be copied into a ring's slots.

    Args:
        spec: The description of the frames.
        builder: Builds them.
        order: Their order.
        slots: How many slots the ring has: whole patterns of sizes.

    Attributes:
        parts: Where each part is in the frame, and the part of each size and flow.
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
        """How many frames can be patched at once.

        Args:
            number: Number of the first one, from 0 on.
        """
        return self._order.run(number)[1]

    def rows(self, number: int, count: int) -> Numbers:
        """Which parts belong to frames.

        Args:
            number: Number of the first one, from 0 on.
            count: How many they are: `run` of them at most, none of them beyond the last slot.
        """
        flow, _ = self._order.run(number)
        slot = number % len(self._first_rows)
        rows: Numbers = self._first_rows[slot : slot + count] + (self._steps[:count] + flow)
        return rows

    def write(self, data: Bytes, numbers: Numbers) -> None:
        """Writes the parts that belong to any frames.

        Args:
            data: The frames, one in each row.
            numbers: Their numbers, from 0 on.
        """
        rows = self._first_rows[numbers % len(self._first_rows)] + self._order.flow_numbers(numbers)
        for start, table in self.parts:
            part = np.ascontiguousarray(table.take(rows)).view(np.uint8).reshape(len(rows), -1)
            data[:, start : start + table.itemsize] = part


def _first_frames(builder: FrameBuilder, order: FrameOrder, count: int) -> tuple[Bytes, NDArray[np.uint32]]:
    sizes = order.sizes(count)
    beginnings = builder.beginnings(order.flow_numbers(np.arange(count)), sizes)
    data = np.tile(payload(int(sizes.max()) - FCS_BYTES), (count, 1))
    data[:, : beginnings.shape[1]] = beginnings
    return data, (sizes - FCS_BYTES).astype(np.uint32)


def _changing_places(spec: FramesSpec) -> list[tuple[int, int]]:
    """Starts and ends of the bytes that differ from flow to flow; short gaps between them are included."""
    changing = {place for field in spec.fields for place in range(field.offset, field.offset + field.width)}
    for checksum in spec.checksums:
        end = spec.tag_offset if checksum.end is None else checksum.end
        covered = set(range(checksum.start, end))
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


def _lcm(one: int, other: int) -> int:
    return one * other // gcd(one, other)
