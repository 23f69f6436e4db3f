"""Counts one trial's frames as they arrive, without reading a single one."""

from __future__ import annotations

import socket
import struct

from .configuration import TagPlace
from .filters import let_nothing_through, let_tag_through
from .protocol import AgentError

MOST_COUNTED = (1 << 32) - 1
"""Frames that the kernel counts between two readings; then it begins at zero again."""

_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP, _PACKET_STATISTICS = 1, 6
_PACKET_MR_PROMISC = 1
_ETH_P_ALL = 3


def check_countable(name: str, sent: int) -> None:
    """Makes sure that what came back of so many frames could be counted at once.

    Args:
        name: The direction.
        sent: Frames sent since its counter was read before.

    Raises:
        AgentError: Of kind ``counters``.
    """
    if sent > MOST_COUNTED:
        raise AgentError(
            "counters",
            f"{name} sent {sent} frames, and the kernel counts {MOST_COUNTED} arriving ones at most, so that nobody "
            "knows how many came back. Stop the traffic earlier, or make shorter trials.",
        )


class FrameCounter:
    """Counts arriving frames that carry a tag: a packet socket with a filter, whose frames nobody reads.

    The kernel counts what passes the filter, and drops it as the smallest of buffers is full.

    Args:
        interface: Name of the interface.
        index: The kernel's number of it.
        place: Where the trial's tag is in each frame.

    Raises:
        OSError: If the kernel does not give the socket.
    """

    def __init__(self, interface: str, index: int, place: TagPlace) -> None:
        self._place = place
        self._count = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
        let_nothing_through(self._socket)
        self._socket.bind((interface, _ETH_P_ALL))
        membership = struct.pack("=IHH8x", index, _PACKET_MR_PROMISC, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)

    def watch(self, tag: int) -> None:
        """Counts frames with this tag from now on, from zero."""
        let_tag_through(self._socket, self._place, tag)
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
