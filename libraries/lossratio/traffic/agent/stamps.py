"""When the kernel saw latency frames: it writes them into a ring (TPACKET_V2) with the time, to be read afterwards."""

from __future__ import annotations

import mmap
import socket
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .configuration import TAG_BYTES, VLAN_TAG_BYTES, TagPlace
from .filters import let_nothing_through, let_tags_through

_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP, _PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 1, 5, 6, 10
_PACKET_MR_PROMISC = 1
_TPACKET_V2 = 1
_ETH_P_ALL = 3
_STATUS_VLAN_VALID = 0x10
_HEADER_BYTES = 96
_SLOTS_PER_PAGE = 8
_NUMBER_BITS = 18

MOST_FRAMES = 1 << _NUMBER_BITS
"""Latency frames of one trial that can be told from each other."""

NUMBERS = MOST_FRAMES - 1
"""The bits of a latency frame's tag that hold its number; the others are the same in all frames of a trial."""


@dataclass(frozen=True)
class Stamps:
    """Latency frames as the kernel saw them, in the order in which it did.

    Attributes:
        numbers: Number of each frame, from 0 in the order of sending.
        times: When it was seen, in nanoseconds of the system's clock.
        overlooked: Frames that there was no more room for.
    """

    numbers: NDArray[np.int64]
    times: NDArray[np.int64]
    overlooked: int


class StampRing:
    """Keeps the time at which latency frames pass an interface.

    The kernel stamps a leaving frame when it hands it to the interface's driver, and an arriving one when it takes it
    from there.

    Args:
        interface: Name of the interface.
        index: The kernel's number of it.
        tag_place: Where the tag is in each frame.
        tag: The tag of the first frame; see `NUMBERS`.
        frames: How many frames there is to be room for.
        outgoing: Whether frames are to be seen when they leave the interface, instead of when they arrive.

    Raises:
        OSError: If the kernel does not give the ring.
    """

    def __init__(
        self, interface: str, index: int, tag_place: TagPlace, tag: int, frames: int, *, outgoing: bool
    ) -> None:
        self._tag_place = tag_place
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        let_nothing_through(self._socket)
        self._slot = max(mmap.PAGESIZE // _SLOTS_PER_PAGE, _slot_bytes(tag_place.offset + TAG_BYTES))
        per_page = mmap.PAGESIZE // self._slot
        pages = -(-frames // per_page)
        self._slots = pages * per_page
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        ring = struct.pack("=4I", mmap.PAGESIZE, pages, self._slot, self._slots)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
        self._memory = mmap.mmap(self._socket.fileno(), pages * mmap.PAGESIZE)
        self._socket.bind((interface, _ETH_P_ALL))
        membership = struct.pack("=IHH8x", index, _PACKET_MR_PROMISC, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)
        let_tags_through(self._socket, tag_place, tag, mask=~NUMBERS & 0xFFFFFFFF, outgoing=outgoing)

    def read(self) -> Stamps:
        """What the kernel has seen since it was made; to be asked once."""
        _, overlooked = struct.unpack("=II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        slots = np.frombuffer(self._memory, dtype=np.uint8).reshape(self._slots, self._slot)
        # The kernel fills them one after the other, and none is ever given back to it.
        slots = slots[: np.count_nonzero(slots.view(np.uint32)[:, 0])]
        words, halves = slots.view(np.uint32), slots.view(np.uint16)
        start = halves[:, 6].astype(np.int64) + self._tag_place.offset
        if self._tag_place.behind_vlan:
            start -= np.where(words[:, 0] & _STATUS_VLAN_VALID, VLAN_TAG_BYTES, 0)
        place = start[:, np.newaxis] + np.arange(4)
        tags = np.ascontiguousarray(np.take_along_axis(slots, place, axis=1)).view(">u4")[:, 0]
        times = words[:, 4].astype(np.int64) * 1_000_000_000 + words[:, 5]
        return Stamps(tags.astype(np.int64) & NUMBERS, times, overlooked)

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


def _slot_bytes(frame: int) -> int:
    return 1 << (_HEADER_BYTES + frame - 1).bit_length()
