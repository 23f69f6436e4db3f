"""Builds the frames of one direction from their description, all flows and sizes at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import Sequence

import numpy as np
from numpy.typing import NDArray

from .configuration import FCS_BYTES, TAG_BYTES, ChecksumField, FramesSpec
from .protocol import AgentError

MAX_CYCLE = 1 << 16
"""Most frames that are built before they repeat."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class FrameCycle:
    """The frames of one direction, in the order in which they are sent, over and over.

    Attributes:
        data: One row per frame, without FCS, padded with zeros.
        lengths: Bytes of each frame, without FCS.
    """

    data: Bytes
    lengths: NDArray[np.uint32]


def build_frames(spec: FramesSpec, source_mac: bytes, destination_mac: bytes) -> FrameCycle:
    """Builds all frames that differ, with correct lengths and checksums.

    The place of the tag holds a tag of zero and its complement; any other tag leaves the checksums correct.

    Raises:
        AgentError: Of kind ``unsupported``, if there are too many to build, or a frame is too small for its headers.
    """
    pattern = size_pattern(spec.sizes)
    flows = reduce(_lcm, (field.count for field in spec.fields), 1)
    count = len(pattern) * flows
    if count > MAX_CYCLE:
        raise AgentError("unsupported", f"The frames repeat only after {count}; this generator can do {MAX_CYCLE}.")
    lengths = np.resize(np.array(pattern, dtype=np.uint32) - FCS_BYTES, count)
    if int(lengths.min()) < spec.tag_offset + TAG_BYTES:
        least = spec.tag_offset + TAG_BYTES + FCS_BYTES
        raise AgentError("unsupported", f"A frame of {min(pattern)} bytes is too small: these headers need {least}.")
    data = np.zeros((count, int(lengths.max())), dtype=np.uint8)
    header = np.frombuffer(bytes.fromhex(spec.header), dtype=np.uint8)
    data[:, : len(header)] = header
    data[:, :12] = np.frombuffer(destination_mac + source_mac, dtype=np.uint8)
    data[:, spec.tag_offset : spec.tag_offset + TAG_BYTES] = np.frombuffer(tag_bytes(0), dtype=np.uint8)
    numbers = np.arange(count, dtype=np.uint64)
    # Flows slip by one each time both patterns come round together, so that every flow comes in every size.
    numbers += numbers // np.uint64(_lcm(len(pattern), flows))
    for field in spec.fields:
        values = np.uint64(field.first) + numbers % np.uint64(field.count)
        data[:, field.offset : field.offset + field.width] = _big_endian(values, field.width)
    for length in spec.lengths:
        data[:, length.offset : length.offset + 2] = _big_endian((lengths - length.start).astype(np.uint64), 2)
    for checksum in spec.checksums:
        data[:, checksum.offset : checksum.offset + 2] = _big_endian(_checksums(data, lengths, checksum), 2)
    return FrameCycle(data, lengths)


def tag_bytes(tag: int) -> bytes:
    """What is written into a trial's frames: a 32-bit tag, and its complement, so that checksums do not change."""
    return tag.to_bytes(4, "big") + (tag ^ 0xFFFFFFFF).to_bytes(4, "big")


def size_pattern(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """The shortest sequence of sizes with the given weights, each size spread as evenly as can be."""
    divisor = reduce(gcd, (weight for _, weight in sizes))
    weights = [weight // divisor for _, weight in sizes]
    dues = [0] * len(sizes)
    pattern: list[int] = []
    for _ in range(sum(weights)):
        dues = [due + weight for due, weight in zip(dues, weights)]
        chosen = dues.index(max(dues))
        dues[chosen] -= sum(weights)
        pattern.append(sizes[chosen][0])
    return pattern


def _checksums(data: Bytes, lengths: NDArray[np.uint32], field: ChecksumField) -> NDArray[np.uint64]:
    # Rows are padded with zeros, which add nothing to a sum.
    end = data.shape[1] if field.end is None else field.end
    part = data[:, field.start : end]
    if part.shape[1] % 2:
        part = np.pad(part, ((0, 0), (0, 1)))
    sums = _word_sums(part)
    if field.pseudo_header is not None:
        start, stop, protocol = field.pseudo_header
        sums += _word_sums(data[:, start:stop]) + np.uint64(protocol) + (lengths - field.start).astype(np.uint64)
    for _ in range(3):
        sums = (sums & np.uint64(0xFFFF)) + (sums >> np.uint64(16))
    complement: NDArray[np.uint64] = np.uint64(0xFFFF) - sums
    if field.pseudo_header is not None:
        # RFC 768: a checksum of zero is sent as all ones; zero would mean that there is none.
        complement[complement == 0] = 0xFFFF
    return complement


def _word_sums(part: Bytes) -> NDArray[np.uint64]:
    sums: NDArray[np.uint64] = np.ascontiguousarray(part).view(">u2").sum(axis=1, dtype=np.uint64)
    return sums


def _big_endian(values: NDArray[np.uint64], width: int) -> Bytes:
    every_byte: Bytes = values.astype(">u8").view(np.uint8)
    return every_byte.reshape(-1, 8)[:, 8 - width :]


def _lcm(one: int, other: int) -> int:
    return one * other // gcd(one, other)
