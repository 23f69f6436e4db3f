"""When the kernel saw latency frames: it writes them into a ring (TPACKET_V2) with the time, to be read afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .configuration import TAG_BYTES, TagPlace
from .filters import let_probes_through
from .receive_ring import ReceiveRing, ring_slot_bytes

_LEAST_SLOT = 512
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
        slot = max(_LEAST_SLOT, ring_slot_bytes(tag_place.offset + TAG_BYTES))
        self._ring = ReceiveRing(interface, index, slot, frames)
        let_probes_through(self._ring.socket, tag_place, tag, ~NUMBERS & 0xFFFFFFFF, outgoing=outgoing)

    def read(self) -> Stamps:
        """What the kernel has seen since it was made; to be asked once."""
        overlooked, captured = self._ring.overlooked(), self._ring.captured()
        start = self._tag_place.offset
        tags = np.ascontiguousarray(captured.contents(start + 4)[:, start:]).view(">u4")[:, 0]
        return Stamps(tags.astype(np.int64) & NUMBERS, captured.times, overlooked)

    def close(self) -> None:
        """Closes the socket."""
        self._ring.close()
