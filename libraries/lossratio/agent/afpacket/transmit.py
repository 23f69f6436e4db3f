# SPDX-License-Identifier: Apache-2.0
"""Sockets that send: a transmit ring of the kernel (TPACKET_V2) for the load, and a plain one for latency frames."""

from __future__ import annotations

import errno
import mmap
import os
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.arrays import WITHOUT_NUMPY, NDArray, np
from ..core.frames_spec import TagPlace, least_common_multiple
from ..core.packets import SOL_PACKET, ring_socket
from ..core.protocol import AgentError, unsupported
from .frames import SLOT_HEADER_BYTES, FrameCycle, Numbering, Replies, column, slot_bytes, slots_per_block, tag_bytes
from .kernel_pace import STAMPED, Stamps

if TYPE_CHECKING:
    from .bare import BareFrames

_PACKET_TX_RING = 13
_PACKET_LOSS = 14
_PACKET_VNET_HDR = 15
_PACKET_QDISC_BYPASS = 20
_SO_SNDBUFFORCE = 32
_AVAILABLE, _SEND_REQUEST = 0, 1
_VNET_HEADER = struct.Struct("=BBHHHH")
_VNET_LENGTH_HALF = (SLOT_HEADER_BYTES - _VNET_HEADER.size + 2) // 2
_SEND_BUFFER_BYTES = 1 << 24
MAX_BATCH = 128
"""The maximum number of frames that are handed over at once."""
_GONE = (errno.ENETDOWN, errno.ENXIO, errno.ENODEV)


@dataclass(frozen=True)
class SenderSetup:
    """The set-up of a sender."""

    interface: str
    """Name of the interface to send on."""
    frames: FrameCycle | BareFrames
    """The frames, in their order; one by one on a node without numpy."""
    tag_place: TagPlace
    """Where the trial's tag is in each frame, with the sequence number."""
    drops_beyond: bool
    """Whether a frame that this kind of interface refuses was lost at the far end of the link (as with a veth). Such a
    frame was sent. Otherwise, the interface was busy, and the frame is offered again."""
    cpus: tuple[int, ...]
    """The processors that it may use; it begins on the first one."""
    catch_up: float
    """See `lossratio.agent.core.pacing.transmit`."""

    @property
    def cycle(self) -> FrameCycle:
        """The frames of a node with numpy.

        Raises:
            AgentError: If this node has none.
        """
        if not isinstance(self.frames, FrameCycle):
            raise AgentError("missing_module", WITHOUT_NUMPY)
        return self.frames


def free_slots(status: NDArray[np.uint32]) -> int:
    """How many slots are free before the first one whose frame has not left.

    Args:
        status: The state of each slot, which the kernel may change at any time.
    """
    # NumPy counts an array twice, and fails if the counts differ, so it gets a copy that nobody changes.
    is_busy = status != 0
    busy = np.flatnonzero(is_busy)
    return int(busy[0]) if len(busy) else len(status)


class TransmitRing:
    """Frames of one direction in memory shared with the kernel, which takes any number of them in one system call.

    Attributes:
        dropped_beyond: Frames sent so far that were lost at the far end of the link.
        first: Number, since it was made, of the frame that was sent first with the present tag.
        stamped: How many frames were sent so far for which the kernel reports when they left.
    """

    def __init__(self, setup: SenderSetup) -> None:
        cycle = setup.cycle
        self.dropped_beyond = self.stamped = 0
        self._setup = setup
        self._head = 0
        slot = slot_bytes(int(cycle.lengths.max()))
        # Whole cycles, and whole blocks.
        slots = least_common_multiple(len(cycle.lengths), slots_per_block(slot))
        self._socket = _open(setup.interface, slot, slots)
        self._stamps = Stamps(self._socket)
        self._with_frame: list[tuple[int, int, bytes]] = []
        memory = np.frombuffer(mmap.mmap(self._socket.fileno(), slots * slot), dtype=np.uint8).reshape(slots, slot)
        lengths = np.resize(cycle.lengths, slots)
        self._status: NDArray[np.uint32] = memory.view(np.uint32)[:, 0]
        self._ends = _ends(lengths)
        self._lengths: NDArray[np.uint32] = memory.view(np.uint32)[:, 1]
        self._lengths[:] = lengths + _VNET_HEADER.size
        self._header_lengths: NDArray[np.uint16] = memory.view(np.uint16)[:, _VNET_LENGTH_HALF]
        _fill(memory, cycle, lengths)
        streams = None if cycle.streams is None else np.resize(cycle.streams, slots)
        self._numbering = Numbering(memory, SLOT_HEADER_BYTES, setup.tag_place, streams)
        self._patches = cycle.patches
        self._number = self.first = 0
        parts = [] if cycle.patches is None else cycle.patches.parts

        self._parts = [column(memory, SLOT_HEADER_BYTES + place, table.itemsize) for place, table in parts]

    def tag(self, tag: int) -> None:
        """Writes a trial's tag into all frames; their sequence numbers begin again."""
        self._numbering.begin(tag, self._head)
        self.first = self._number

    def reply(self, count: int, length: int) -> None:
        """From now on, sends this many of the first headers of `Replies`, in frames of this many bytes."""
        if not isinstance(self._patches, Replies):
            raise unsupported("This sender has no replies.")
        self._patches.count = count
        self._number = self.first = 0
        lengths = np.full(len(self._lengths), length)
        self._ends = _ends(lengths)
        self._lengths[:] = lengths + _VNET_HEADER.size
        self._header_lengths[:] = length

    def bypass_queue(self, bypasses: bool) -> None:
        """Sends past the interface's queue, or through it."""
        self._socket.setsockopt(SOL_PACKET, _PACKET_QDISC_BYPASS, int(bypasses))

    def offer_stamped(self) -> int:
        """Sends the next frame, for which the kernel reports when it left; returns how many were taken: 1 or 0."""
        self._with_frame = STAMPED
        try:
            taken = self.offer(1)
        finally:
            self._with_frame = []
        self.stamped += taken
        return taken

    def waiting(self) -> int:
        """How many frames that were taken have not left yet."""
        return int(np.count_nonzero(self._status))

    def stamps(self) -> dict[int, float]:
        """When stamped frames left since the last call: by their numbers since the ring was made, seconds."""
        return self._stamps.read()

    def offer(self, count: int) -> int:
        """Sends the next frames, as many as fit into a batch; returns how many left: none if the interface was busy."""
        count = min(count, MAX_BATCH, len(self._status) - self._head)
        if self._patches is not None:
            count = min(count, self._patches.run(self._number))
        status = self._status[self._head : self._head + count]
        status = status[: free_slots(status)]
        if not len(status):
            return 0

        status = status[: self._numbering.write(self._head, self._number - self.first, len(status))]
        if self._patches is not None:
            rows = self._patches.rows(self._number, len(status))
            for slots, (_, table) in zip(self._parts, self._patches.parts):
                slots[self._head : self._head + len(status)] = table.take(rows)

        status[:] = _SEND_REQUEST
        error_number = self._hand_over(self._head, self._head + len(status))
        left = len(status)
        if error_number:
            # Frames that the kernel did not take are withdrawn.
            waiting = np.flatnonzero(status == _SEND_REQUEST)
            status[waiting] = _AVAILABLE
            left = int(waiting[0]) if len(waiting) else left
        self._head = (self._head + left) % len(self._status)
        self._number += left
        if error_number not in (0, errno.EAGAIN, errno.ENOBUFS):
            raise _failure(self._setup, error_number)

        return left

    def _hand_over(self, place: int, end: int) -> int:
        """Has the kernel take the frames of these slots; returns the error that kept it from taking all, or 0."""
        dropped: list[int] = []
        while True:
            try:
                taken = self._socket.sendmsg([b""], self._with_frame, socket.MSG_DONTWAIT)
                if taken == self._ends[end] - self._ends[place]:
                    error_number = 0
                else:
                    error_number = errno.EAGAIN
            except OSError as error:
                error_number = int(error.errno or 0)

            if error_number != errno.ENOBUFS or not self._setup.drops_beyond:
                break

            while place < end and self._status[place] != _SEND_REQUEST:
                place += 1
            if place == end:
                break

            # The kernel would try this frame again, but it skips a frame that is shorter than its header.
            self._lengths[place] = 0
            dropped.append(place)
            place += 1

        for slot in dropped:
            self._lengths[slot] = self._ends[slot + 1] - self._ends[slot] + _VNET_HEADER.size
        self.dropped_beyond += len(dropped)
        return error_number


def _failure(setup: SenderSetup, error_number: int) -> AgentError:
    kind = "interface_down" if error_number in _GONE else "send_failed"
    return AgentError(
        kind,
        f"Cannot send on {setup.interface}: {os.strerror(error_number)}. Look at this interface and its "
        f"link (ip link show dev {setup.interface}).",
    )


def _open(interface: str, slot: int, slots: int) -> socket.socket:
    ring = ring_socket()
    ring.setsockopt(SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    # With this header, the kernel copies whole frames. Otherwise frames in flight would share the ring's memory (the
    # next trial's tag would be written into them), and sending small ones would cost twice the time.
    ring.setsockopt(SOL_PACKET, _PACKET_VNET_HDR, 1)
    # The kernel skips malformed frames, which is how a frame that was lost beyond the link is left behind.
    ring.setsockopt(SOL_PACKET, _PACKET_LOSS, 1)

    try:
        ring.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SEND_BUFFER_BYTES)
    except PermissionError:
        ring.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)

    block = max(slot, mmap.PAGESIZE)
    ring.setsockopt(SOL_PACKET, _PACKET_TX_RING, struct.pack("=4I", block, slots * slot // block, slot, slots))
    ring.bind((interface, 0))
    return ring


def _ends(lengths: NDArray[np.integer]) -> list[int]:
    """Bytes of all frames before each slot, and of all frames."""
    return [0, *np.cumsum(lengths, dtype=np.int64).tolist()]


def _fill(memory: NDArray[np.uint8], cycle: FrameCycle, lengths: NDArray[np.uint32]) -> None:
    headers = b"".join(_VNET_HEADER.pack(0, 0, length, 0, 0, 0) for length in lengths.tolist())
    start = SLOT_HEADER_BYTES
    memory[:, start - _VNET_HEADER.size : start] = np.frombuffer(headers, dtype=np.uint8).reshape(len(lengths), -1)
    rows = np.resize(np.arange(len(cycle.lengths)), len(lengths))
    memory[:, start : start + cycle.data.shape[1]] = cycle.data[rows]


class FrameSocket:
    """Sends single frames.

    Attributes:
        dropped_beyond: Frames sent so far that were lost at the far end of the link; see `TransmitRing`.
    """

    def __init__(self, setup: SenderSetup) -> None:
        self.dropped_beyond = 0
        self._setup = setup
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.bind((setup.interface, 0))

    def bypass_queue(self, bypasses: bool) -> None:
        """Sends past the interface's queue, or through it."""
        self._socket.setsockopt(SOL_PACKET, _PACKET_QDISC_BYPASS, int(bypasses))

    def send(self, frame: bytearray) -> int:
        """Sends a frame, and returns how many frames left the generator: one, or none if it was busy."""
        try:
            self._socket.send(frame, socket.MSG_DONTWAIT)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ENOBUFS):
                raise _failure(self._setup, error.errno or 0) from error
            if error.errno == errno.EAGAIN or not self._setup.drops_beyond:
                return 0
            self.dropped_beyond += 1
        return 1


class ProbeSocket(FrameSocket):
    """Sends the frames of a direction in their order, each with the next number in its tag.

    Unlike the load's, these frames pass the tap of the interface, where the kernel notes the time.

    Attributes:
        number: How many frames were sent with the present tag.
    """

    def __init__(self, setup: SenderSetup) -> None:
        super().__init__(setup)
        self.number = 0
        self._tag = 0

    def tag(self, tag: int) -> None:
        """Sets the tag of the first frame; the numbers begin again."""
        self._tag = tag
        self.number = 0

    def offer(self) -> int:
        """Sends the next frame, and returns how many frames left the generator: one, or none if it was busy."""
        cycle = self._setup.cycle
        start = self._setup.tag_place.offset
        row = self.number % len(cycle.lengths)
        frame = bytearray(cycle.data[row, : cycle.lengths[row]].tobytes())
        tag = tag_bytes(self._tag + self.number)
        frame[start : start + len(tag)] = tag
        left = self.send(frame)
        self.number += left
        return left


class MixedOutput(TransmitRing):
    """The frames of one direction, some of which measure latency; `latency_frames` is the socket that sends these."""

    def __init__(self, setup: SenderSetup) -> None:
        super().__init__(setup)
        self.latency_frames = ProbeSocket(setup)
        self._places: tuple[int, ...] = ()
        self._offered = 0

    def tag(self, tag: int, probe_tag: int = 0, places: tuple[int, ...] = ()) -> None:
        """Begins again, with the tags of the load's frames and the first latency frame, and latency frames' numbers."""
        super().tag(tag)
        self.latency_frames.tag(probe_tag)
        self._places = places
        self._offered = 0

    def offer(self, count: int) -> int:
        """Sends up to this many frames, and returns how many left; see `TransmitRing.offer` and `ProbeSocket.offer`."""
        probes = self.latency_frames
        if probes.number < len(self._places):
            count = min(count, self._places[probes.number] - self._offered)
        left = super().offer(count) if count else probes.offer()
        self._offered += left
        return left
