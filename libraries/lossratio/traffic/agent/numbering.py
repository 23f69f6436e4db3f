"""Sequence numbers in frames, which change no checksum.

Behind the tag of its trial each frame has the number of its place in the order of sending: 32 bits, from 0 on in each
trial. Where a checksum covers both, a word elsewhere in the frame makes up for them (RFC 1071: the sum of the three is
always the same), so that nothing else of the frame depends on its number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .configuration import COMPENSATION_BYTES, TAG_BYTES, TagPlace
from .frames import Bytes, Numbers, tag_bytes

SEQUENCE_BYTES = 4
_TAG_ALONE_BYTES = TAG_BYTES - SEQUENCE_BYTES
_AT_ONCE = 1 << 12


class Numbering:
    """Writes tags and sequence numbers into frames that wait to be sent.

    Numbers are computed some thousands at a time: for each batch alone, that would cost several times as much.

    Args:
        memory: The frames, one in each row.
        start: Where they begin in their rows.
        place: Where their tag is.
    """

    def __init__(self, memory: Bytes, start: int, place: TagPlace) -> None:
        self._place = place
        self._whole_tags = memory[:, start + place.offset : start + place.offset + TAG_BYTES]
        parts = number_parts(place) if place.is_numbered else []
        self._parts = [_column(memory, start + offset, width) for offset, width in parts]
        self._tables: list[NDArray[np.void]] = []
        self._tag = self._first = 0

    def begin(self, tag: int) -> None:
        """Writes a tag into all frames; the next one to be numbered is number 0."""
        self._whole_tags[:] = np.frombuffer(tag_bytes(tag), dtype=np.uint8)
        self._tag = tag
        self._compute(0)

    def write(self, row: int, number: int, count: int) -> int:
        """Numbers frames, as many of them as are computed at once.

        Args:
            row: The first frame's.
            number: Its number.
            count: How many frames, none beyond the last row.

        Returns:
            How many were numbered; at least one.
        """
        if not self._parts:
            return count
        if not 0 <= number - self._first < _AT_ONCE:
            self._compute(number)
        place = number - self._first
        count = min(count, _AT_ONCE - place)
        for column, table in zip(self._parts, self._tables):
            column[row : row + count] = table[place : place + count]
        return count

    def _compute(self, first: int) -> None:
        self._first = first
        if self._parts:
            written = number_bytes(self._place, self._tag, np.arange(first, first + _AT_ONCE))
            self._tables = [each.view(f"V{each.shape[1]}").reshape(-1) for each in written]


def number_parts(place: TagPlace) -> list[tuple[int, int]]:
    """Where numbers are written in a frame: starts and widths, in the order of `number_bytes`."""
    start = place.offset + _TAG_ALONE_BYTES
    if place.compensation is None:
        return [(start, SEQUENCE_BYTES)]
    if place.compensation == start + SEQUENCE_BYTES:
        return [(start, SEQUENCE_BYTES + COMPENSATION_BYTES)]
    return [(start, SEQUENCE_BYTES), (place.compensation, COMPENSATION_BYTES)]


def number_bytes(place: TagPlace, tag: int, numbers: Numbers) -> list[Bytes]:
    """What is written there: for each part the bytes of all frames, one frame in each row.

    Args:
        place: Where the tag is.
        tag: The tag.
        numbers: The frames' numbers.
    """
    words = numbers.astype(np.uint64) & np.uint64(0xFFFFFFFF)
    sequence = np.ascontiguousarray(words.astype(">u4")).view(np.uint8).reshape(-1, SEQUENCE_BYTES)
    if place.compensation is None:
        return [sequence]
    sums = (words >> np.uint64(16)) + (words & np.uint64(0xFFFF)) + np.uint64((tag >> 16) + (tag & 0xFFFF))
    for _ in range(2):
        sums = (sums & np.uint64(0xFFFF)) + (sums >> np.uint64(16))
    compensation = (np.uint64(0xFFFF) - sums).astype(">u2").view(np.uint8).reshape(-1, COMPENSATION_BYTES)
    if len(number_parts(place)) == 1:
        return [np.hstack((sequence, compensation))]
    return [sequence, compensation]


def _column(memory: Bytes, start: int, width: int) -> NDArray[np.void]:
    """The same part of all rows."""
    column: NDArray[np.void] = np.ndarray((len(memory),), f"V{width}", memory, start, strides=memory.strides[:1])
    return column
