"""Sends frames that measure latency: one by one, past no queue, each with a number in its tag."""

from __future__ import annotations

import errno
import os
import socket

from .configuration import TagPlace
from .cycle import FrameCycle
from .frames import tag_bytes
from .protocol import AgentError
from .stamps import MOST_FRAMES

PROBE_RATE = 997.0
"""Latency frames per second in each direction.

A prime number, so that they do not keep step with the load, which is sent in bursts of a round number of microseconds.
"""

PROBE_SHARE = 0.1
"""Share of a load that is latency frames at most."""

_GONE = (errno.ENETDOWN, errno.ENXIO, errno.ENODEV)


def probe_rate(load: float, duration: float) -> float:
    """Latency frames per second within a load.

    Args:
        load: Frames per second.
        duration: Seconds.
    """
    # Less by a half, as one frame is due at the very beginning.
    return min(PROBE_RATE, PROBE_SHARE * load, MOST_FRAMES / 2 / duration)


class ProbeSocket:
    """Sends the frames of a direction in their order, each with the next number in its tag.

    Unlike the load's, these frames pass the tap of the interface, where the kernel notes the time.

    Args:
        interface: Name of the interface to send on.
        cycle: The frames, in their order.
        place: Where the tag is in each frame.
        drops_beyond: See `lossratio.traffic.agent.ring.TransmitRing`.

    Attributes:
        dropped_beyond: Frames sent so far that were lost at the far end of the link.
        first: 0: the frames begin anew with each tag.

    Raises:
        OSError: If the kernel does not give the socket.
    """

    def __init__(self, interface: str, cycle: FrameCycle, place: TagPlace, *, drops_beyond: bool) -> None:
        self.dropped_beyond = self.first = 0
        self._interface = interface
        self._drops_beyond = drops_beyond
        self._cycle = cycle
        self._tag_offset = place.offset
        self._tag = 0
        self._number = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.bind((interface, 0))

    def tag(self, tag: int) -> None:
        """Sets the tag of the first frame; the numbers begin anew."""
        self._tag = tag
        self._number = 0

    def offer(self, count: int) -> int:
        """Sends the next frame, and returns how many frames left the generator: one, or none if it was busy.

        Raises:
            AgentError: Of kind ``interface_down`` or ``send_failed``.
        """
        row = self._number % len(self._cycle.lengths)
        frame = bytearray(self._cycle.data[row, : self._cycle.lengths[row]].tobytes())
        tag = tag_bytes(self._tag + self._number)
        frame[self._tag_offset : self._tag_offset + len(tag)] = tag
        try:
            self._socket.send(frame, socket.MSG_DONTWAIT)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.ENOBUFS):
                if not (error.errno == errno.ENOBUFS and self._drops_beyond):
                    return 0
                self.dropped_beyond += 1
            else:
                kind = "interface_down" if error.errno in _GONE else "send_failed"
                raise AgentError(kind, f"Cannot send on {self._interface}: {os.strerror(error.errno or 0)}.") from error
        self._number += 1
        return 1
