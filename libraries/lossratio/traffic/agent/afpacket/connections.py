"""The Responder's table of connections, the frames that answer over each entry, and the entries that were answered.

RFC 9693: the Initiator's frames open connections, and the Responder keeps the addresses with which they arrive, as a
NAT has changed them. A connection is established only if the answer over its entry comes back to its own address.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.configuration import COMPENSATION_BYTES, TAG_BYTES, FramesSpec
from ..core.links import Link
from ..core.protocol import AgentError
from .frames import Bytes, FrameCycle, Numbers
from .receive import ReceiveRing, let_nothing_through, let_tag_through, ring_slot_bytes

_ROOM = 1 << 17
_PORT_BYTES = 2
_MAC_BYTES = 6


class ConnectionTable:
    """Notes each connection of which a frame arrives, by the frame's sequence number, with its headers.

    It is made once, as closing the ring of a port takes the kernel tens of milliseconds.

    Args:
        sink: The port where frames arrive.
        frames: The frames.

    Raises:
        OSError: If the kernel does not give the ring.
        AgentError: Of kind ``unsupported``, if the frames have no numbers or no ports.
    """

    def __init__(self, sink: Link, frames: FramesSpec) -> None:
        check_answerable(frames)
        self._place = frames.tag_place
        self._start = self._place.offset
        self._sink = sink.name
        self._headers = np.empty((0, self._start), dtype=np.uint8)
        self._has_arrived = np.empty(0, dtype=bool)
        self._ring = ReceiveRing(sink, ring_slot_bytes(self._start + TAG_BYTES), _ROOM)

    def begin(self, tag: int, most: int) -> None:
        """Forgets all connections, and notes those of frames with a tag from now on: so many at most."""
        self.end()
        self._ring.release(len(self._ring.captured()))
        self._ring.overlooked()
        self._headers = np.zeros((most, self._start), dtype=np.uint8)
        self._has_arrived = np.zeros(most, dtype=bool)
        let_tag_through(self._ring.socket, self._place, tag)

    def end(self) -> None:
        """Notes no more."""
        let_nothing_through(self._ring.socket)

    def note(self) -> None:
        """Takes the frames out of the ring, so that there is room for more."""
        captured = self._ring.captured()
        if len(captured):
            end = self._start + TAG_BYTES
            contents = captured.contents(end)
            numbers = np.ascontiguousarray(contents[:, end - 4 :]).view(">u4")[:, 0].astype(np.int64)
            is_known = numbers < len(self._has_arrived)
            self._headers[numbers[is_known]] = contents[is_known, : self._start]
            self._has_arrived[numbers[is_known]] = True
            self._ring.release(len(captured))

    def entries(self) -> Numbers:
        """Numbers of the connections until now, in their order.

        Raises:
            AgentError: If frames arrived that there was no room for.
        """
        self.note()
        overlooked = self._ring.overlooked()
        if overlooked:
            raise AgentError(
                "counters",
                f"The agent could not note {overlooked} of the frames that arrived on {self._sink}, so it is not known "
                "which connections they opened. The node is too busy for this rate; take a lower one.",
            )
        numbers: Numbers = np.flatnonzero(self._has_arrived)
        return numbers

    def headers(self, numbers: Numbers) -> Bytes:
        """The headers with which connections arrived."""
        headers: Bytes = self._headers[numbers]
        return headers

    def close(self) -> None:
        """Closes the socket."""
        self._ring.close()


def check_answerable(frames: FramesSpec) -> None:
    """Makes sure that frames can open connections, and be answered.

    Raises:
        AgentError: Of kind ``unsupported``.
    """
    is_udp = any(checksum.is_udp for checksum in frames.checksums)
    if not (frames.is_numbered and is_udp and len(frames.addresses) == 1 and len(frames.sizes) == 1):
        raise AgentError(
            "unsupported",
            "Connections are opened by UDP frames of one size, with room for a sequence number and without a tunnel. "
            f"Take such a traffic profile, e.g. ethip4-udp-connections, of {_least_size(frames)} bytes or more.",
        )


def _least_size(frames: FramesSpec) -> int:
    return frames.tag_offset + TAG_BYTES + COMPENSATION_BYTES + 4


def answers_to(headers: Bytes, frames: FramesSpec) -> Bytes:
    """Headers of the answers: source and destination have changed places. So all checksums stay as they are."""
    start, end = frames.addresses[0]
    answers: Bytes = headers.copy()
    width = (end - start) // 2
    for place, size in ((0, _MAC_BYTES), (start, width), (end, _PORT_BYTES)):
        answers[:, place : place + size] = headers[:, place + size : place + 2 * size]
        answers[:, place + size : place + 2 * size] = headers[:, place : place + size]
    return answers


def answering_frames(cycle: FrameCycle, answers: Bytes) -> FrameCycle:
    """The frames that answer, with these headers in their order, over and over; the rest is as in those of a cycle."""
    return FrameCycle(cycle.data, cycle.lengths, _Answers(np.ascontiguousarray(answers)))


def are_own(arrived: Bytes, sent: Bytes, frames: FramesSpec) -> int:
    """How many answers arrived with the addresses and ports of the connection that they are for.

    Args:
        arrived: Headers of the answers, as they arrived.
        sent: Headers of the frames that opened their connections, as these were sent.
        frames: The frames.
    """
    start, end = frames.addresses[0]
    expected = answers_to(sent, frames)
    places = slice(start, end + 2 * _PORT_BYTES)
    are_equal: NDArray[np.bool_] = (arrived[:, places] == expected[:, places]).all(axis=1)
    return len(np.flatnonzero(are_equal))


class _Answers:
    """Whole headers that are copied into the slots of a ring, as `Patches` are."""

    def __init__(self, headers: Bytes) -> None:
        self._count = len(headers)
        self.parts = [(0, headers.view(f"V{headers.shape[1]}").reshape(-1))]

    def run(self, number: int) -> int:
        """How many frames can be patched at once, from the one of this number on."""
        return self._count - number % self._count

    def rows(self, number: int, count: int) -> Numbers:
        """Which headers belong to so many frames from a number on."""
        first = number % self._count
        rows: Numbers = np.arange(first, first + count)
        return rows

    def write(self, data: Bytes, numbers: Numbers) -> None:
        """Writes the headers that belong to any frames, one in each row, by their numbers."""
        ((_, table),) = self.parts
        data[:, : table.itemsize] = table.take(numbers % self._count).view(np.uint8).reshape(len(numbers), -1)
