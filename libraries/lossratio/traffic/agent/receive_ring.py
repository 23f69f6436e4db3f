"""Receive rings of the kernel (TPACKET_V2): it writes arriving or leaving frames into memory, to be read afterwards."""

from __future__ import annotations

import mmap
import socket
import struct

import numpy as np
from numpy.typing import NDArray

from .configuration import VLAN_TAG_BYTES
from .filters import let_nothing_through
from .frames import Bytes, Numbers

_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP, _PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 1, 5, 6, 10
_PACKET_MR_PROMISC = 1
_TPACKET_V2 = 1
_ETH_P_ALL = 3
_STATUS_VLAN_VALID = 0x10
_MAC_HALF, _VLAN_HALF, _VLAN_TYPE_HALF = 6, 12, 13
_HEADER_BYTES = 96
_MACS = 12
_BLOCK_BYTES = 1 << 15


def ring_slot_bytes(frame: int) -> int:
    """Bytes of a slot that has room for so many bytes of a frame: a power of two."""
    return 1 << (_HEADER_BYTES + frame - 1).bit_length()


class ReceiveRing:
    """A packet socket whose frames the kernel writes into memory; nothing passes until it gets a filter.

    Args:
        interface: Name of the interface.
        index: The kernel's number of it.
        slot: Bytes of each slot, a power of two; what a frame has beyond that is left out.
        slots: How many slots there are to be at least.

    Attributes:
        socket: The socket, for its filter.

    Raises:
        OSError: If the kernel does not give the ring.
    """

    def __init__(self, interface: str, index: int, slot: int, slots: int) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        let_nothing_through(self.socket)
        block = max(slot, _BLOCK_BYTES)
        blocks = -(-slots * slot // block)
        slots = blocks * block // slot
        self.socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, struct.pack("=4I", block, blocks, slot, slots))
        memory = mmap.mmap(self.socket.fileno(), blocks * block)
        self._memory = np.frombuffer(memory, dtype=np.uint8).reshape(slots, slot)
        self._status: NDArray[np.uint32] = self._memory.view(np.uint32)[:, 0]
        self._head = 0
        self.socket.bind((interface, _ETH_P_ALL))
        membership = struct.pack("=IHH8x", index, _PACKET_MR_PROMISC, 0)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)

    @property
    def slots(self) -> int:
        """How many frames there is room for."""
        return len(self._memory)

    def overlooked(self) -> int:
        """Frames that passed the filter and had no more room, since this was asked before."""
        _, dropped = struct.unpack("=II", self.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        return int(dropped)

    def is_half_full(self) -> bool:
        """Whether half of the room is taken."""
        # The kernel fills the slots one after the other.
        return bool(self._status[(self._head + self.slots // 2) % self.slots])

    def captured(self) -> CapturedFrames:
        """Frames since the last `release`, in the order in which the kernel saw them."""
        is_filled = np.roll(self._status != 0, -self._head)
        # One processor may still fill a slot while another has filled the next one.
        count = self.slots if is_filled.all() else int(is_filled.argmin())
        if self._head + count <= self.slots:
            return CapturedFrames(self._memory[self._head : self._head + count])
        return CapturedFrames(self._memory[(self._head + np.arange(count)) % self.slots])

    def release(self, count: int) -> None:
        """Gives slots back to the kernel, which may fill others meanwhile.

        Args:
            count: How many: the first ones of those `captured`, whose frames mean nothing from now on.
        """
        self._status[(self._head + np.arange(count)) % self.slots] = 0
        self._head = (self._head + count) % self.slots

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()


class CapturedFrames:
    """Frames out of a ring, one in each row.

    Args:
        slots: Their slots, with the kernel's headers.

    Attributes:
        lengths: Bytes of each frame with all of its tags, without FCS.
        times: When it was seen, in nanoseconds of the system's clock.
    """

    def __init__(self, slots: Bytes) -> None:
        words, self._halves = slots.view(np.uint32), slots.view(np.uint16)
        self._slots = slots
        self._has_lost_tag = (words[:, 0] & _STATUS_VLAN_VALID) != 0
        self.lengths: Numbers = words[:, 1].astype(np.int64) + VLAN_TAG_BYTES * self._has_lost_tag
        self.times: Numbers = words[:, 4].astype(np.int64) * 1_000_000_000 + words[:, 5]

    def __len__(self) -> int:
        return len(self._slots)

    def followed_by(self, others: CapturedFrames) -> CapturedFrames:
        """A copy of these frames, and of others behind them."""
        return CapturedFrames(np.concatenate((self._slots, others._slots)))

    def those(self, flags: NDArray[np.bool_]) -> CapturedFrames:
        """A copy of some of them."""
        return CapturedFrames(self._slots[flags])

    def part(self, start: int, end: int) -> CapturedFrames:
        """Those from one number on to before another one."""
        return CapturedFrames(self._slots[start:end])

    def contents(self, end: int) -> Bytes:
        """The first bytes of each frame, with the tag of its VLAN, which the kernel takes off when it arrives.

        Args:
            end: How many bytes; those behind the end of a shorter frame mean nothing.
        """
        starts = self._halves[:, _MAC_HALF].astype(np.int64)
        if len(starts) and (starts == starts[0]).all():
            # The usual case, in which nothing has to be copied.
            plain = self._slots[:, starts[0] : starts[0] + end]
        else:
            plain = np.take_along_axis(self._slots, starts[:, np.newaxis] + np.arange(end), axis=1)
        if not self._has_lost_tag.any():
            return plain
        tags = np.stack((self._halves[:, _VLAN_TYPE_HALF], self._halves[:, _VLAN_HALF]), axis=1).astype(">u2")
        whole = np.hstack((plain[:, :_MACS], tags.view(np.uint8), plain[:, _MACS : end - VLAN_TAG_BYTES]))
        return np.where(self._has_lost_tag[:, np.newaxis], whole, plain)
