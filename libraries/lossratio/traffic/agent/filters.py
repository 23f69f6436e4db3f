"""Packet filters (classic BPF) that let through the frames of one trial, by their tag."""

from __future__ import annotations

import ctypes
import socket
import struct

from .configuration import VLAN_TAG_BYTES, TagPlace

_SO_ATTACH_FILTER = 26
_PACKET_OUTGOING = 4
_LOAD_WORD, _LOAD_WORD_BEHIND_X, _A_TO_X = 0x20, 0x40, 0x07
_JUMP_IF_EQUAL, _AND, _XOR, _SHIFT_LEFT, _RETURN = 0x15, 0x54, 0xA4, 0x64, 0x06
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


def let_nothing_through(packets: socket.socket) -> None:
    """Has a packet socket ignore every frame."""
    _attach(packets, [(_RETURN, 0, 0, 0)])


def let_tags_through(
    packets: socket.socket, place: TagPlace, tag: int, *, mask: int = _ALL_BITS, outgoing: bool = False
) -> None:
    """Has a packet socket take only frames with a tag (and its complement behind it).

    Args:
        packets: The socket.
        place: Where it is in each frame.
        tag: The tag.
        mask: The bits of the tag that matter.
        outgoing: Whether to take frames that leave the interface, instead of those that arrive.
    """
    find = _FIND_BEHIND_VLAN_TAG if place.behind_vlan else ()
    leaves, arrives = (0, 7 + len(find)) if outgoing else (7 + len(find), 0)
    start = place.offset - VLAN_TAG_BYTES if place.behind_vlan else place.offset
    program = [
        (_LOAD_WORD, 0, 0, _ANCILLARY_PACKET_TYPE),
        (_JUMP_IF_EQUAL, leaves, arrives, _PACKET_OUTGOING),
        *find,
        (_LOAD_WORD_BEHIND_X, 0, 0, start),
        (_AND, 0, 0, mask),
        (_JUMP_IF_EQUAL, 0, 4, tag & mask),
        (_LOAD_WORD_BEHIND_X, 0, 0, start + 4),
        (_AND, 0, 0, mask),
        (_JUMP_IF_EQUAL, 0, 1, ~tag & mask),
        (_RETURN, 0, 0, _WHOLE_FRAME),
        (_RETURN, 0, 0, 0),
    ]
    _attach(packets, program)


def _attach(packets: socket.socket, program: list[tuple[int, int, int, int]]) -> None:
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    packets.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(buffer)))
