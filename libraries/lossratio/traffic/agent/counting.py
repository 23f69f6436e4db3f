"""Counts one trial's frames as they arrive, without reading a single one."""

from __future__ import annotations

import ctypes
import socket
import struct

_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP, _PACKET_STATISTICS = 1, 6
_PACKET_MR_PROMISC = 1
_SO_ATTACH_FILTER = 26
_ETH_P_ALL = 3
_PACKET_OUTGOING = 4
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ANCILLARY_PACKET_TYPE = 0xFFFFF004


class FrameCounter:
    """Counts arriving frames that carry a tag: a packet socket with a filter, whose frames nobody reads.

    The kernel counts what passes the filter, and drops it as the smallest of buffers is full.

    Args:
        interface: Name of the interface.
        index: The kernel's number of it.
        tag_offset: Where the trial's tag is in each frame.

    Raises:
        OSError: If the kernel does not give the socket.
    """

    def __init__(self, interface: str, index: int, tag_offset: int) -> None:
        self._tag_offset = tag_offset
        self._count = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
        self._attach([(_RETURN, 0, 0, 0)])
        self._socket.bind((interface, _ETH_P_ALL))
        membership = struct.pack("=IHH8x", index, _PACKET_MR_PROMISC, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)

    def watch(self, tag: int) -> None:
        """Counts frames with this tag from now on, from zero."""
        program = [
            (_LOAD_WORD, 0, 0, _ANCILLARY_PACKET_TYPE),
            (_JUMP_IF_EQUAL, 5, 0, _PACKET_OUTGOING),
            (_LOAD_WORD, 0, 0, self._tag_offset),
            (_JUMP_IF_EQUAL, 0, 3, tag),
            (_LOAD_WORD, 0, 0, self._tag_offset + 4),
            (_JUMP_IF_EQUAL, 0, 1, tag ^ 0xFFFFFFFF),
            (_RETURN, 0, 0, 1),
            (_RETURN, 0, 0, 0),
        ]
        self._attach(program)
        self.read()
        self._count = 0

    def read(self) -> int:
        """Frames counted since `watch`."""
        # Reading clears the kernel's 32-bit count.
        counted, _ = struct.unpack("=II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        self._count += counted
        return self._count

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def _attach(self, program: list[tuple[int, int, int, int]]) -> None:
        code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
        buffer = ctypes.create_string_buffer(code, len(code))
        self._socket.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(buffer))
        )
