# SPDX-License-Identifier: Apache-2.0
"""Sockets that receive: packet filters (classic BPF) by tag, a ring that keeps frames, and a counter of frames."""

from __future__ import annotations

import mmap
import os
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import List, Mapping, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from lossratio.bpf import Array, Attachment, BpfError, read_object

from ..core.configuration import DIRECTIONS, MOST_STREAMS, VLAN_TAG_BYTES, FramesSpec, TagPlace, stream_tag
from ..core.links import Link
from ..core.packets import (
    PACKET_STATISTICS,
    SOL_PACKET,
    Jump,
    attach_filter,
    overlooked,
    ring_socket,
    share_frames,
    take_all,
)
from ..core.protocol import AgentError
from .frames import Bytes, Numbers

_LOAD_WORD = 0x20
_LOAD_HALF = 0x28
_LOAD_WORD_BEHIND_X = 0x40
_LOAD_HALF_BEHIND_X = 0x48
_LOAD_BYTE_BEHIND_X = 0x50
_LOAD_LENGTH = 0x80
_A_TO_X = 0x07
_JUMP_IF_EQUAL = 0x15
_AND = 0x54
_XOR = 0xA4
_SHIFT_LEFT = 0x64
_SUBTRACT_X = 0x1C
_RETURN = 0x06
_RETURN_A = 0x16
_SHIFT_RIGHT = 0x74
_MULTIPLY = 0x24
_JUMP_IF_AT_LEAST = 0x35
_STORE = 0x02
_LOAD_STORED = 0x60
_ADD_X = 0x0C
_ANCILLARY_PACKET_TYPE, _ANCILLARY_VLAN_PRESENT = 0xFFFFF004, 0xFFFFF030
_VLAN_TAG_BITS = 2
# X, zero at the beginning, becomes 4 in a frame that still has its VLAN tag; most arriving frames have lost it.
_FIND_BEHIND_VLAN_TAG = (
    (_LOAD_WORD, 0, 0, _ANCILLARY_VLAN_PRESENT),
    (_XOR, 0, 0, 1),
    (_SHIFT_LEFT, 0, 0, _VLAN_TAG_BITS),
    (_A_TO_X, 0, 0, 0),
)
_TCP_FLAGS = 13
_RESET = 0x04
_ALL_BITS = 0xFFFFFFFF
_WHOLE_FRAME = 0x40000
_TAKE, _LEAVE = -2, -1
"""Jumps to the last two instructions of a program."""
_ENDS = ((_RETURN, 0, 0, _WHOLE_FRAME), (_RETURN, 0, 0, 0))
_RUN_BITS = 4
RUN_FRAMES = 1 << _RUN_BITS
"""Number of neighbouring frames that are chosen together."""
# With one multiplication, runs would be chosen in step with flows if a Fibonacci number of runs contains all flows.
_MULTIPLIERS = (0x9E3779B1, 0x85EBCA6B)
_MIXED_BITS = 8

_Program = List[Jump]
_PACKET_RX_RING = 5
_STATUS_VLAN_VALID = 0x10
_MAC_HALF = 6
_VLAN_HALF = 12
_VLAN_TYPE_HALF = 13
_HEADER_BYTES = 96
_ETHERNET_BYTES = 14
_MACS = 12
_BLOCK_BYTES = 1 << 15
_CHUNK = 1024
_TAGS_OF_TRAFFIC_BITS = 9
_STREAM_SHIFT = stream_tag(0, 1).bit_length() - 1
TRAFFIC_AT_ONCE = 16
"""How many runs of traffic are counted at the same time: the latest and earlier ones. A power of two."""
MOST_COUNTED = (1 << 32) - 1
"""The maximum number of frames that the kernel counts between two readings; after that, it begins at zero again."""


@dataclass(frozen=True)
class Sample:
    """Which arriving frames of a trial to see: some of a direction's frames by number, and all odd ones.

    Frames are chosen in runs of 16 neighbours by a hash of the run, so that nothing that repeats in the traffic, such
    as flows, is always left out.
    """

    tag: int
    """The direction's tag."""
    one_in: int
    """One of this many runs is examined; a power of two. A larger number chooses some of a smaller one's runs."""
    mac: bytes
    """Destination MAC address that all frames must have; empty: they have several."""
    lengths: tuple[int, ...]
    """Lengths that frames may have when they come back, in bytes without FCS; at most 64 of them."""
    own_bits: int = _ALL_BITS
    """Bits of the tag that are the same in all frames of the direction."""

    @property
    def mask(self) -> int:
        """Bits of the hash that are zero in runs to be seen: the highest ones, because they are mixed best."""
        return -((_ALL_BITS + 1) // self.one_in) & _ALL_BITS

    def chooses(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Whether frames are chosen because of their sequence numbers."""
        runs = numbers.astype(np.uint64) >> np.uint64(_RUN_BITS)
        mixed = (runs * np.uint64(_MULTIPLIERS[0]) & np.uint64(_ALL_BITS)) >> np.uint64(_MIXED_BITS)
        chosen: NDArray[np.bool_] = (mixed * np.uint64(_MULTIPLIERS[1]) & np.uint64(self.mask)) == 0
        return chosen


class _Protocols(NamedTuple):
    """Positions before the addresses of an IP header, in bytes, and the protocol of its errors."""

    ethertype: int
    ethertype_before: int
    next_before: int
    icmp: int
    unreachable: int


# By the bytes of both addresses.
_PROTOCOLS = {
    8: _Protocols(0x0800, 14, 3, socket.IPPROTO_ICMP, 3),
    32: _Protocols(0x86DD, 10, 2, socket.IPPROTO_ICMPV6, 1),
}


def let_nothing_through(packets: socket.socket) -> None:
    """Makes a packet socket ignore every frame."""
    attach_filter(packets, [(_RETURN, 0, 0, 0)])


def let_tag_through(packets: socket.socket, place: TagPlace, tag: int, bits: int = _ALL_BITS) -> None:
    """Makes a packet socket take only arriving frames with a tag, or with some bits of it."""
    start = _start(place)
    attach_filter(packets, [*_direction(place), *_unless(start, bits, tag, _LEAVE), *_ENDS])


def let_foreign_through(packets: socket.socket, place: TagPlace, tags: Mapping[int, Sequence[int]]) -> None:
    """Makes a packet socket take only arriving frames that have none of these tags, by the bits that matter."""
    start = _start(place)
    # A word beyond the end of a frame cannot be loaded, and the kernel would skip the frame.
    program = [*_direction(place), (_LOAD_LENGTH, 0, 0, 0), (_JUMP_IF_AT_LEAST, 0, _TAKE, start + 4)]
    for mask, known in tags.items():
        program += [(_LOAD_WORD_BEHIND_X, 0, 0, start), (_AND, 0, 0, mask)]
        program += [(_JUMP_IF_EQUAL, _LEAVE, 0, tag & mask) for tag in known]
    attach_filter(packets, [*program, *_ENDS])


def let_probes_through(packets: socket.socket, place: TagPlace, tag: int, mask: int, *, outgoing: bool) -> None:
    """Makes a packet socket take only latency frames, by some bits of a tag and of the complement after it."""
    start = _start(place)
    program = [*_direction(place, outgoing), *_unless(start, mask, tag, _LEAVE)]
    attach_filter(packets, [*program, *_unless(start + 4, mask, ~tag, _LEAVE), *_ENDS])


def let_rejections_through(packets: socket.socket, frames: FramesSpec) -> None:
    """Makes a packet socket take only arriving frames with which a device rejects connections.

    These are TCP resets (RST), and ICMP "destination unreachable".

    Args:
        packets: A packet socket of the port that sends these frames.
        frames: The frames that it sends; their answers have headers of the same lengths.
    """
    addresses, ports = frames.addresses[0]
    protocols = _PROTOCOLS[ports - addresses]
    place = frames.tag_place
    ahead = _bytes_ahead(place)

    # Table: first IP's protocol, then what distinguishes a rejection from other TCP and ICMP frames.
    program = [
        *_direction(place),
        (_LOAD_HALF_BEHIND_X, 0, 0, addresses - protocols.ethertype_before - ahead),
        (_JUMP_IF_EQUAL, 0, _LEAVE, protocols.ethertype),
        (_LOAD_BYTE_BEHIND_X, 0, 0, addresses - protocols.next_before - ahead),
        # Frames that are not TCP continue after the next three instructions.
        (_JUMP_IF_EQUAL, 0, 3, socket.IPPROTO_TCP),
        (_LOAD_BYTE_BEHIND_X, 0, 0, ports + _TCP_FLAGS - ahead),
        (_AND, 0, 0, _RESET),
        (_JUMP_IF_EQUAL, _LEAVE, _TAKE, 0),
        (_JUMP_IF_EQUAL, 0, _LEAVE, protocols.icmp),
        (_LOAD_BYTE_BEHIND_X, 0, 0, ports - ahead),
        (_JUMP_IF_EQUAL, _TAKE, _LEAVE, protocols.unreachable),
    ]
    attach_filter(packets, [*program, *_ENDS])


def let_sample_through(packets: socket.socket, place: TagPlace, sample: Sample) -> None:
    """Makes a packet socket take only the frames that should be seen.

    Odd frames have the tag of another direction of the trial, another length or another destination, or a device has
    put them into a VLAN.
    """
    start = _start(place)
    program = [
        *_direction(place),
        *_unless(start, _ALL_BITS & ~DIRECTIONS, sample.tag, _LEAVE),
        *_unless(start, sample.own_bits, sample.tag, _TAKE),
    ]
    parts = ((_LOAD_WORD, 0, sample.mac[:4]), (_LOAD_HALF, 4, sample.mac[4:]))
    for load, offset, value in parts if sample.mac else ():
        program += [(load, 0, 0, offset), (_JUMP_IF_EQUAL, 0, _TAKE, int.from_bytes(value, "big"))]
    if not place.behind_vlan:
        program += [(_LOAD_WORD, 0, 0, _ANCILLARY_VLAN_PRESENT), (_JUMP_IF_EQUAL, 0, _TAKE, 0)]
    # X is zero in frames that have lost their VLAN tag.
    lost = VLAN_TAG_BYTES if place.behind_vlan else 0
    program += [(_LOAD_LENGTH, 0, 0, 0), (_SUBTRACT_X, 0, 0, 0)]
    *others, last = sample.lengths
    program += [(_JUMP_IF_EQUAL, len(others) - number, 0, length - lost) for number, length in enumerate(others)]
    program.append((_JUMP_IF_EQUAL, 0, _TAKE, last - lost))

    # The number comes last, because it cannot be loaded from frames that are too short, and the kernel would skip these
    # frames.
    if place.is_numbered:
        # Table: the number of a frame, mixed.
        program += [
            (_LOAD_WORD_BEHIND_X, 0, 0, start + 4),
            (_SHIFT_RIGHT, 0, 0, _RUN_BITS),
            (_MULTIPLY, 0, 0, _MULTIPLIERS[0]),
            (_SHIFT_RIGHT, 0, 0, _MIXED_BITS),
            (_MULTIPLY, 0, 0, _MULTIPLIERS[1]),
            (_AND, 0, 0, sample.mask),
            (_JUMP_IF_EQUAL, _TAKE, _LEAVE, 0),
        ]
    else:
        program.append((_RETURN, 0, 0, 0))

    attach_filter(packets, [*program, *_ENDS])


def _direction(place: TagPlace, outgoing: bool = False) -> _Program:
    """Skips frames that go the other way, and finds where the tags of the others are."""
    jumps = (0, _LEAVE) if outgoing else (_LEAVE, 0)
    check = [(_LOAD_WORD, 0, 0, _ANCILLARY_PACKET_TYPE), (_JUMP_IF_EQUAL, *jumps, socket.PACKET_OUTGOING)]
    return [*check, *_behind_vlan_tag(place)]


def _behind_vlan_tag(place: TagPlace) -> _Program:
    """Finds where the other frames begin."""
    return [*_FIND_BEHIND_VLAN_TAG] if place.behind_vlan else []


def _start(place: TagPlace) -> int:
    """Where the tag is, relative to X."""
    return place.offset - _bytes_ahead(place)


def _bytes_ahead(place: TagPlace) -> int:
    """By how many bytes fields are closer to X than in the frame as it was written."""
    return VLAN_TAG_BYTES if place.behind_vlan else 0


def _unless(start: int, mask: int, value: int, jump: int) -> _Program:
    """Jumps unless some bits of a word after X have a value."""
    load = [(_LOAD_WORD_BEHIND_X, 0, 0, start)]
    return [*load, *([] if mask == _ALL_BITS else [(_AND, 0, 0, mask)]), (_JUMP_IF_EQUAL, 0, jump, value & mask)]


def ring_slot_bytes(frame: int) -> int:
    """Bytes of a slot that has room for this many bytes of a frame: a power of two."""
    return 1 << (_HEADER_BYTES + frame - 1).bit_length()


def words_at(contents: Bytes, offset: int) -> Numbers:
    """The word of 32 bits at a place of each frame."""
    words: Numbers = np.ascontiguousarray(contents[:, offset : offset + 4]).view(">u4")[:, 0].astype(np.int64)
    return words


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
        self.has_lost_tag = (words[:, 0] & _STATUS_VLAN_VALID) != 0
        self.lengths: Numbers = words[:, 1].astype(np.int64) + VLAN_TAG_BYTES * self.has_lost_tag

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def times(self) -> Numbers:
        """When each frame was seen, in nanoseconds of the system's clock."""
        words = self._slots.view(np.uint32)
        return words[:, 4].astype(np.int64) * 1_000_000_000 + words[:, 5]

    def followed_by(self, others: CapturedFrames) -> CapturedFrames:
        """A copy of these frames, followed by others."""
        return CapturedFrames(np.concatenate((self._slots, others._slots)))

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
        whole = np.hstack((plain[:, :_MACS], tags.view(np.uint8), plain[:, _MACS : end - VLAN_TAG_BYTES]))
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

    def __init__(self, link: Link, place: TagPlace) -> None:
        self._place = place
        self._count = 0
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
        let_nothing_through(self.socket)
        take_all(self.socket, link)

    def watch(self, tag: int) -> None:
        """Counts frames with this tag from now on, from zero."""
        let_tag_through(self.socket, self._place, tag)
        self._begin()

    def watch_rejections(self, frames: FramesSpec) -> None:
        """Counts frames with which a device rejects these from now on, from zero; see `let_rejections_through`."""
        let_rejections_through(self.socket, frames)
        self._begin()

    def watch_foreign(self, tags: Mapping[int, Sequence[int]]) -> None:
        """Counts frames with none of these tags from now on, from zero; see `let_foreign_through`."""
        let_foreign_through(self.socket, self._place, tags)
        self._begin()

    def read(self) -> int:
        """Frames counted since then."""
        # Reading clears the kernel's 32-bit count.
        counted, _ = struct.unpack("=II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._count += counted
        return self._count

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()

    def _begin(self) -> None:
        self.read()
        self._count = 0


class StreamsCounter:
    """Counts the frames of several streams of one run of traffic.

    Attributes:
        by_stream: Frames of each stream at the last count.
    """

    def __init__(self, counters: Sequence[FrameCounter]) -> None:
        self._counters = counters
        self.by_stream: list[int] = []

    def watch(self, tag: int) -> None:
        """Counts frames of new traffic with this tag from now on, from zero."""
        for stream, counter in enumerate(self._counters):
            counter.watch(stream_tag(tag, stream))
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
                self._counters.append(FrameCounter(link, place))
            # These programs see frames without the link's header.
            load = (_LOAD_WORD_BEHIND_X, 0, 0, _start(place) - _ETHERNET_BYTES)
            traffic = (_SHIFT_RIGHT, 0, 0, _TAGS_OF_TRAFFIC_BITS)
            program = [*_behind_vlan_tag(place), load, traffic, (_RETURN_A, 0, 0, 0)]
            if streams > 1:
                program = [*_behind_vlan_tag(place), load, *_find_counter(streams), (_RETURN_A, 0, 0, 0)]
            share_frames([counter.socket for counter in self._counters], program)
            undo.pop_all()

        firsts = range(0, len(self._counters), streams)
        self._traffic = [StreamsCounter(self._counters[first : first + streams]) for first in firsts]

    def counter_of(self, tag: int) -> StreamsCounter:
        """The counter of new traffic with a tag. It may have counted earlier traffic.

        That traffic was `TRAFFIC_AT_ONCE` runs ago, or fewer if there were replies in between, because replies also
        take tags.
        """
        counter = self._traffic[(tag >> _TAGS_OF_TRAFFIC_BITS) % TRAFFIC_AT_ONCE]
        counter.watch(tag)
        return counter

    def close(self) -> None:
        """Closes all sockets."""
        # The kernel waits for each socket, but only once for all sockets that are closed at the same time.
        with ThreadPoolExecutor(TRAFFIC_AT_ONCE) as together:
            for counter in self._counters:
                together.submit(counter.close)


def _find_counter(streams: int) -> _Program:
    """From a tag to the number of its counter: the counters of the streams of a run of traffic follow each other."""
    # Table: the stream goes to X, and the traffic's first counter is added to it.
    return [
        (_STORE, 0, 0, 0),
        (_SHIFT_RIGHT, 0, 0, _STREAM_SHIFT),
        (_AND, 0, 0, MOST_STREAMS - 1),
        (_A_TO_X, 0, 0, 0),
        (_LOAD_STORED, 0, 0, 0),
        (_SHIFT_RIGHT, 0, 0, _TAGS_OF_TRAFFIC_BITS),
        (_AND, 0, 0, TRAFFIC_AT_ONCE - 1),
        (_MULTIPLY, 0, 0, streams),
        (_ADD_X, 0, 0, 0),
    ]


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
            constants = {"PLACE": struct.pack("=I", _start(place))}
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
