"""Packet filters (classic BPF) that let through frames of one trial by their tag: all, or those to be seen."""

from __future__ import annotations

import ctypes
import socket
import struct
from dataclasses import dataclass
from typing import List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from .configuration import VLAN_TAG_BYTES, TagPlace
from .frames import Numbers

DIRECTIONS = 0xFF
"""Bits of a tag that tell the directions of a trial from each other; the others are the same for all of them."""

_SO_ATTACH_FILTER = 26
_PACKET_OUTGOING = 4
_LOAD_WORD, _LOAD_HALF, _LOAD_WORD_BEHIND_X, _LOAD_LENGTH, _A_TO_X = 0x20, 0x28, 0x40, 0x80, 0x07
_JUMP_IF_EQUAL, _AND, _XOR, _SHIFT_LEFT, _SUBTRACT_X, _RETURN = 0x15, 0x54, 0xA4, 0x64, 0x1C, 0x06
_SHIFT_RIGHT, _MULTIPLY = 0x74, 0x24
_ANCILLARY_PACKET_TYPE, _ANCILLARY_VLAN_PRESENT = 0xFFFFF004, 0xFFFFF030
_VLAN_TAG_BITS = 2
# X, zero at the beginning, becomes 4 in a frame that has its VLAN's tag yet; arriving ones mostly have lost it.
_FIND_BEHIND_VLAN_TAG = (
    (_LOAD_WORD, 0, 0, _ANCILLARY_VLAN_PRESENT),
    (_XOR, 0, 0, 1),
    (_SHIFT_LEFT, 0, 0, _VLAN_TAG_BITS),
    (_A_TO_X, 0, 0, 0),
)
_ALL_BITS = 0xFFFFFFFF
_WHOLE_FRAME = 0x40000
_TAKE, _LEAVE = -2, -1
"""Jumps to the last two instructions of a program."""
_ENDS = ((_RETURN, 0, 0, _WHOLE_FRAME), (_RETURN, 0, 0, 0))
_RUN_BITS = 4
# Multiplied only once, runs would be chosen in step with the flows where a Fibonacci number of runs has all of them.
_MULTIPLIERS, _MIXED_BITS = (0x9E3779B1, 0x85EBCA6B), 8

_Program = List[Tuple[int, int, int, int]]


@dataclass(frozen=True)
class Sample:
    """Which arriving frames of a trial are to be seen: some of a direction's by their numbers, and all that are odd.

    Frames are chosen in runs of 16 neighbours by a hash of the run, so that nothing that repeats in the traffic, such
    as flows, is left out for good.

    Attributes:
        tag: The direction's tag.
        one_in: Of how many runs one is to be seen; a power of two. A sample of fewer runs is a part of one of more.
        mac: Destination MAC address that all frames must have.
        lengths: Lengths that they may have, in bytes without FCS, as they were sent: 64 of them at most.
    """

    tag: int
    one_in: int
    mac: bytes
    lengths: tuple[int, ...]

    @property
    def mask(self) -> int:
        """Bits of the hash that are zero in runs to be seen: the highest ones, as they are mixed best."""
        return -((_ALL_BITS + 1) // self.one_in) & _ALL_BITS

    def chooses(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Whether frames are to be seen for their sequence numbers."""
        runs = numbers.astype(np.uint64) >> np.uint64(_RUN_BITS)
        mixed = (runs * np.uint64(_MULTIPLIERS[0]) & np.uint64(_ALL_BITS)) >> np.uint64(_MIXED_BITS)
        chosen: NDArray[np.bool_] = (mixed * np.uint64(_MULTIPLIERS[1]) & np.uint64(self.mask)) == 0
        return chosen


def let_nothing_through(packets: socket.socket) -> None:
    """Has a packet socket ignore every frame."""
    _attach(packets, [(_RETURN, 0, 0, 0)])


def let_tag_through(packets: socket.socket, place: TagPlace, tag: int) -> None:
    """Has a packet socket take only arriving frames with a tag."""
    start = _start(place)
    _attach(packets, [*_direction(place), *_unless(start, _ALL_BITS, tag, _LEAVE), *_ENDS])


def let_probes_through(packets: socket.socket, place: TagPlace, tag: int, mask: int, *, outgoing: bool) -> None:
    """Has a packet socket take only latency frames: those with a tag and its complement behind it.

    Args:
        packets: The socket.
        place: Where it is in each frame.
        tag: The tag.
        mask: The bits of the tag that matter.
        outgoing: Whether to take frames that leave the interface, instead of those that arrive.
    """
    start = _start(place)
    program = [*_direction(place, outgoing), *_unless(start, mask, tag, _LEAVE)]
    _attach(packets, [*program, *_unless(start + 4, mask, ~tag, _LEAVE), *_ENDS])


def let_sample_through(packets: socket.socket, place: TagPlace, sample: Sample) -> None:
    """Has a packet socket take only the frames that are to be seen.

    Odd are frames with the tag of another direction of the trial, of another length, or with another destination.
    """
    start = _start(place)
    program = [
        *_direction(place),
        *_unless(start, _ALL_BITS & ~DIRECTIONS, sample.tag, _LEAVE),
        *_unless(start, _ALL_BITS, sample.tag, _TAKE),
    ]
    for load, offset, value in ((_LOAD_WORD, 0, sample.mac[:4]), (_LOAD_HALF, 4, sample.mac[4:])):
        program += [(load, 0, 0, offset), (_JUMP_IF_EQUAL, 0, _TAKE, int.from_bytes(value, "big"))]
    # X is zero in frames that have lost the tag of their VLAN.
    lost = VLAN_TAG_BYTES if place.behind_vlan else 0
    program += [(_LOAD_LENGTH, 0, 0, 0), (_SUBTRACT_X, 0, 0, 0)]
    *others, last = sample.lengths
    program += [(_JUMP_IF_EQUAL, len(others) - number, 0, length - lost) for number, length in enumerate(others)]
    program.append((_JUMP_IF_EQUAL, 0, _TAKE, last - lost))
    # Only now, as a number that a frame is too short for cannot be loaded, and the kernel would leave the frame.
    if place.is_numbered:
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
    _attach(packets, [*program, *_ENDS])


def _direction(place: TagPlace, outgoing: bool = False) -> _Program:
    """Leaves frames that go the other way, and finds where the others begin."""
    jumps = (0, _LEAVE) if outgoing else (_LEAVE, 0)
    check = [(_LOAD_WORD, 0, 0, _ANCILLARY_PACKET_TYPE), (_JUMP_IF_EQUAL, *jumps, _PACKET_OUTGOING)]
    return [*check, *(_FIND_BEHIND_VLAN_TAG if place.behind_vlan else ())]


def _start(place: TagPlace) -> int:
    """Where the tag is behind X."""
    return place.offset - VLAN_TAG_BYTES if place.behind_vlan else place.offset


def _unless(start: int, mask: int, value: int, jump: int) -> _Program:
    """Jumps unless some bits of a word behind X have a value."""
    load = [(_LOAD_WORD_BEHIND_X, 0, 0, start)]
    return [*load, *([] if mask == _ALL_BITS else [(_AND, 0, 0, mask)]), (_JUMP_IF_EQUAL, 0, jump, value & mask)]


def _attach(packets: socket.socket, program: Sequence[tuple[int, int, int, int]]) -> None:
    size = len(program)
    code = b"".join(
        struct.pack("=HBBI", what, *(jump if jump >= 0 else size + jump - place - 1 for jump in jumps), value)
        for place, (what, *jumps, value) in enumerate(program)
    )
    buffer = ctypes.create_string_buffer(code, len(code))
    packets.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", size, ctypes.addressof(buffer)))
