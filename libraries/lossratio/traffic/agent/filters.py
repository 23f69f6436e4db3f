"""Packet filters (classic BPF) that let through the frames of one trial, by their tag."""

from __future__ import annotations

import ctypes
import socket
import struct

_SO_ATTACH_FILTER = 26
_PACKET_OUTGOING = 4
_LOAD_WORD, _JUMP_IF_EQUAL, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06
_ANCILLARY_PACKET_TYPE = 0xFFFFF004
_ALL_BITS = 0xFFFFFFFF
_WHOLE_FRAME = 0x40000


def let_nothing_through(packets: socket.socket) -> None:
    """Has a packet socket ignore every frame."""
    _attach(packets, [(_RETURN, 0, 0, 0)])


def let_tags_through(
    packets: socket.socket, tag_offset: int, tag: int, *, mask: int = _ALL_BITS, outgoing: bool = False
) -> None:
    """Has a packet socket take only frames with a tag (and its complement behind it).

    Args:
        packets: The socket.
        tag_offset: Where the tag is in each frame.
        tag: The tag.
        mask: The bits of the tag that matter.
        outgoing: Whether to take frames that leave the interface, instead of those that arrive.
    """
    leaves, arrives = (0, 7) if outgoing else (7, 0)
    program = [
        (_LOAD_WORD, 0, 0, _ANCILLARY_PACKET_TYPE),
        (_JUMP_IF_EQUAL, leaves, arrives, _PACKET_OUTGOING),
        (_LOAD_WORD, 0, 0, tag_offset),
        (_AND, 0, 0, mask),
        (_JUMP_IF_EQUAL, 0, 4, tag & mask),
        (_LOAD_WORD, 0, 0, tag_offset + 4),
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
