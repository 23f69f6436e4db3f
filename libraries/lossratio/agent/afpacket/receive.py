# SPDX-License-Identifier: Apache-2.0
"""Sockets that receive: a ring that keeps frames, and counters of frames."""

from __future__ import annotations

import mmap
import os
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Sequence

from lossratio.bpf import Array, Attachment, BpfError, read_object

from ..core.arrays import NDArray, np
from ..core.frames_spec import TagPlace, stream_tag
from ..core.links import Link
from ..core.packets import (
    PACKET_STATISTICS,
    SOL_PACKET,
    STATUS_VLAN_VALID,
    overlooked,
    ring_socket,
    share_frames,
    take_all,
)
from ..core.protocol import AgentError
from ..core.wire import MACS_BYTES, VLAN_TAG_BYTES
from .filters import (
    TAGS_OF_TRAFFIC_BITS,
    TRAFFIC_AT_ONCE,
    choose_counter,
    let_nothing_through,
    let_tag_through,
    tag_start,
)
from .frames import Bytes, Numbers

_PACKET_RX_RING = 5
_MAC_HALF = 6
_VLAN_HALF = 12
_VLAN_TYPE_HALF = 13
_HEADER_BYTES = 96
_BLOCK_BYTES = 1 << 15
_CHUNK = 1024
MOST_COUNTED = (1 << 32) - 1
"""The maximum number of frames that the kernel counts between two readings; after that, it begins at zero again."""


def ring_slot_bytes(frame: int) -> int:
    """Bytes of a slot that has room for this many bytes of a frame: a power of two."""
    return 1 << (_HEADER_BYTES + frame - 1).bit_length()


def words_at(contents: Bytes, offset: int) -> Numbers:
    """The word of 32 bits at a place of each frame."""
    words: Numbers = np.ascontiguousarray(contents[:, offset : offset + 4]).view(">u4")[:, 0].astype(np.int64)
    return words


def overtaken_in(numbers: Numbers) -> int:
    """How many frames came after one with a higher number, in the order of their arrival."""
    return int(np.count_nonzero(numbers < np.maximum.accumulate(numbers)))


class ReceiveRing:
    """A packet socket whose frames the kernel writes into memory; nothing passes until it gets a filter.

    `slot` is the number of bytes of each slot, a power of two: longer frames are cut off. There are at least `slots` of
    them.
    """

    def __init__(self, link: Link, slot: int, slots: int) -> None:
        self.socket = ring_socket()
        let_nothing_through(self.socket)
        block = max(slot, _BLOCK_BYTES)
        blocks = -(-slots * slot // block)
        self.slots = slots = blocks * block // slot
        self.socket.setsockopt(SOL_PACKET, _PACKET_RX_RING, struct.pack("=4I", block, blocks, slot, slots))
        memory = mmap.mmap(self.socket.fileno(), blocks * block)
        self._memory = np.frombuffer(memory, dtype=np.uint8).reshape(slots, slot)
        self._status: NDArray[np.uint32] = self._memory.view(np.uint32)[:, 0]
        self._head = 0
        take_all(self.socket, link)

    def overlooked(self) -> int:
        """Frames that passed the filter but found no room, since the last call."""
        return overlooked(self.socket)

    def filled(self) -> int:
        """How many frames came since the last `release`."""
        for start in range(0, self.slots, _CHUNK):
            places = np.arange(start, min(start + _CHUNK, self.slots))
            is_filled = self._status[(self._head + places) % self.slots] != 0
            # One processor may still fill a slot while another has filled the next one.
            if not is_filled.all():
                return start + int(is_filled.argmin())
        return self.slots

    def has(self, count: int) -> bool:
        """Whether at least this many frames came since the last `release`; the ring must have more slots than that."""
        # The kernel fills the slots one after the other.
        return bool(self._status[(self._head + count - 1) % self.slots])

    def captured(self) -> CapturedFrames:
        """Frames since the last `release`, in the order in which the kernel saw them."""
        count = self.filled()
        if self._head + count <= self.slots:
            return CapturedFrames(self._memory[self._head : self._head + count])
        return CapturedFrames(self._memory[(self._head + np.arange(count)) % self.slots])

    def release(self, count: int) -> None:
        """Gives slots back to the kernel: the first of the `captured` ones, whose frames are invalid from now on."""
        self._status[(self._head + np.arange(count)) % self.slots] = 0
        self._head = (self._head + count) % self.slots

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()


class CapturedFrames:
    """Frames from a ring, one in each row with the kernel's header; their `lengths` include all tags, but no FCS.

    `has_lost_tag` says from which of them the kernel has removed the VLAN tag.
    """

    def __init__(self, slots: Bytes) -> None:
        words, self._halves = slots.view(np.uint32), slots.view(np.uint16)
        self._slots = slots
        self.has_lost_tag = (words[:, 0] & STATUS_VLAN_VALID) != 0
        self.lengths: Numbers = words[:, 1].astype(np.int64) + VLAN_TAG_BYTES * self.has_lost_tag

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def times(self) -> Numbers:
        """When each frame was seen, in nanoseconds of the system's clock."""
        words = self._slots.view(np.uint32)
        return words[:, 4].astype(np.int64) * 1_000_000_000 + words[:, 5]

    def __getitem__(self, those: slice | NDArray[np.bool_]) -> CapturedFrames:
        return CapturedFrames(self._slots[those])

    def contents(self, end: int, *, with_tags: bool = True, skipped: int = 0) -> Bytes:
        """The first bytes of each frame; bytes after the end of a shorter frame are invalid.

        `with_tags`: with the VLAN tag, which the kernel removes when the frame arrives. `skipped`: bytes that are left
        out at the beginning; below 0: the first bytes are invalid.
        """
        if skipped > 0:
            return self.contents(skipped + end, with_tags=with_tags)[:, skipped:]
        if skipped < 0:
            return np.pad(self.contents(end + skipped, with_tags=with_tags), ((0, 0), (-skipped, 0)))

        starts = self._halves[:, _MAC_HALF].astype(np.int64)
        if len(starts) and (starts == starts[0]).all():
            # The usual case, in which nothing has to be copied.
            plain = self._slots[:, starts[0] : starts[0] + end]
        else:
            plain = np.take_along_axis(self._slots, starts[:, np.newaxis] + np.arange(end), axis=1)

        if not with_tags or not self.has_lost_tag.any():
            return plain

        tags = np.stack((self._halves[:, _VLAN_TYPE_HALF], self._halves[:, _VLAN_HALF]), axis=1).astype(">u2")
        whole = np.hstack((plain[:, :MACS_BYTES], tags.view(np.uint8), plain[:, MACS_BYTES : end - VLAN_TAG_BYTES]))
        return np.where(self.has_lost_tag[:, np.newaxis], whole, plain)


def check_countable(name: str, sent: int) -> None:
    """Makes sure that the kernel could count this many frames of a direction at once.

    Raises:
        AgentError: If it could not.
    """
    if sent > MOST_COUNTED:
        raise AgentError(
            "counters",
            f"{name} sent {sent} frames, but the kernel counts at most {MOST_COUNTED} arriving frames, so it is not "
            "known how many came back. Stop the traffic earlier, or use shorter trials.",
        )


class FrameCounter:
    """Counts some arriving frames: a packet socket with a filter, whose frames are never read.

    The kernel counts frames that pass the filter, and drops them because the buffer, the smallest possible, is full.
    """

    def __init__(self, link: Link) -> None:
        self._count = 0
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
        let_nothing_through(self.socket)
        take_all(self.socket, link)

    def begin(self) -> None:
        """Starts to count from zero; the socket has got a filter before."""
        self.read()
        self._count = 0

    def read(self) -> int:
        """Frames counted since then."""
        # Reading clears the kernel's 32-bit count.
        counted, _ = struct.unpack("=II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._count += counted
        return self._count

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()


class StreamsCounter:
    """Counts the frames of several streams of one run of traffic.

    Attributes:
        by_stream: Frames of each stream at the last count.
    """

    def __init__(self, counters: Sequence[FrameCounter], place: TagPlace) -> None:
        self._counters = counters
        self._place = place
        self.by_stream: list[int] = []

    def watch(self, tag: int) -> None:
        """Starts to count frames of new traffic with this tag, from zero."""
        for stream, counter in enumerate(self._counters):
            let_tag_through(counter.socket, self._place, stream_tag(tag, stream))
            counter.begin()
        self.by_stream = []

    def read(self) -> int:
        """Frames counted so far."""
        self.by_stream = [counter.read() for counter in self._counters]
        return sum(self.by_stream)


class TagCounters:
    """Counters for the frames of several runs of traffic; each frame only costs the time of one counter.

    The kernel hands a frame to only one of them, by some bits of its tag. That counter's filter knows the whole tag.
    Each of the `streams` has its own counter.
    """

    def __init__(self, link: Link, place: TagPlace, streams: int = 1) -> None:
        self._counters: list[FrameCounter] = []
        with ExitStack() as undo:
            undo.callback(self.close)
            for _ in range(TRAFFIC_AT_ONCE * streams):
                self._counters.append(FrameCounter(link))
            share_frames([counter.socket for counter in self._counters], choose_counter(place, streams))
            undo.pop_all()

        firsts = range(0, len(self._counters), streams)
        self._traffic = [StreamsCounter(self._counters[first : first + streams], place) for first in firsts]

    def counter_of(self, tag: int) -> StreamsCounter:
        """The counter of new traffic with a tag. It may have counted earlier traffic.

        That traffic was `TRAFFIC_AT_ONCE` runs ago, or fewer if there were replies in between, because replies also
        take tags.
        """
        counter = self._traffic[(tag >> TAGS_OF_TRAFFIC_BITS) % TRAFFIC_AT_ONCE]
        counter.watch(tag)
        return counter

    def close(self) -> None:
        """Closes all sockets."""
        # The kernel waits for each socket, but only once for all sockets that are closed at the same time.
        with ThreadPoolExecutor(TRAFFIC_AT_ONCE) as together:
            for counter in self._counters:
                together.submit(counter.close)


class StackFilter:
    """Keeps a trial's arriving frames from the node's IP stack, which takes a fifth of the time that a frame costs.

    The packet sockets before it see all frames. If the kernel has no such filter (before Linux 6.6), or does not grant
    it, less can be sent, but nothing else changes.
    """

    def __init__(self, link: Link, place: TagPlace) -> None:
        self._opened = ExitStack()
        self._present: Array | None = None
        with suppress(BpfError), ExitStack() as opened:
            present = Array(8, "lossratio_tag")
            opened.callback(present.close)
            # Random until the first trial: padded ARP frames, and the first TCP frame, have zero where a tag would be.
            present.words[0] = int.from_bytes(os.urandom(4), "big")
            constants = {"PLACE": struct.pack("=I", tag_start(place))}
            program = read_object(__package__ or "", "end").load("lossratio_end", {"present": present}, constants)
            opened.callback(program.close)
            opened.callback(Attachment(program, link.index).close)
            self._present = present
            self._opened = opened.pop_all()

    def watch(self, tag: int) -> None:
        """From now on, holds back frames with this tag, and those of other directions of its trial."""
        if self._present is not None:
            self._present.words[0] = tag

    def close(self) -> None:
        """Ends it."""
        self._opened.close()
