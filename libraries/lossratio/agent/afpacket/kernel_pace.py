# SPDX-License-Identifier: Apache-2.0
"""Traffic whose pace the kernel keeps: a process without realtime priority hands it frames ahead of time.

On a busy machine, an ordinary user's process waits for a processor for tens of milliseconds. A queue of the interface
(HTB) sends each frame when it is due, by a timer of the kernel, without needing a process. The kernel itself reports
when the first and the last frame left.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Callable

from lossratio.bpf import ask_netlink, netlink_attribute

from ..core.pacing import Transmission, frames_within, grace_after
from ..core.packets import SOL_PACKET

if TYPE_CHECKING:
    from .transmit import TransmitRing

LEAD = 0.1
"""The maximum number of seconds of traffic that are handed over ahead of time; a socket may take less."""
MOST_LOAD = 20_000.0
"""The highest load, in frames per second, for which a socket takes enough frames ahead of time."""
MADE_UP_FOR = 20e-3
"""The maximum delay, in seconds, that the queue makes up for."""
HURRY = 0.05
"""How much faster than the load the queue is while it makes up for a delay, as a share of the load."""
_RTM_NEWQDISC, _RTM_DELQDISC, _RTM_NEWTCLASS = 36, 37, 40
_NLM_F_ACK, _NLM_F_REPLACE, _NLM_F_CREATE = 0x4, 0x100, 0x400
_ROOT = 0xFFFFFFFF
_QUEUE, _CLASS, _FIFO = 0x10000, 0x10001, 0x20000
"""Handles: the queue, its only class, and the frames that wait in this class."""
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_HTB_PARMS, _TCA_HTB_INIT = 1, 2
_HTB_VERSION, _RATE_TO_QUANTUM = 3, 10
_QUANTUM_BYTES = 1514
_ETHERNET = 1
_TICK_SECONDS = 64e-9
_MOST_WAITING = 1 << 16
_FRAME_COST = 20_000
"""Bytes that each frame counts as in the queue, whatever its size, because a load is in frames per second."""
_AT_ONCE_SECONDS = 200e-6
"""Seconds of traffic that may leave at once while the queue makes up for a delay."""
_SHORTEST_PAUSE = 1e-3
_LONGEST_PAUSE = 10e-3
_PART_OF_LEAD = 0.125
_DRAIN_SECONDS = 2.0
_SO_TIMESTAMPING = 37
_TX_SOFTWARE, _SOFTWARE, _NUMBERED, _TIME_ONLY = 1 << 1, 1 << 4, 1 << 7, 1 << 11
_PACKET_TX_TIMESTAMP = 16
_EXTENDED_ERROR = struct.Struct("=IBBBBII")
STAMPED = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _TX_SOFTWARE))]
"""The control data that make the kernel report when a frame left."""


class Queue:
    """The queue of an interface that sends frames at a load.

    Args:
        index: The kernel's number of the interface.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._load = 0.0
        self._is_there = False

    def begin(self, load: float) -> bool:
        """Sends at a load from now on; returns whether the kernel has such a queue, and grants it.

        The queue does not make up for delays yet. Otherwise it would also make up for the time before the first frame.

        Args:
            load: Frames per second.
        """
        self._load = load
        try:
            if self._is_there:
                self._set_class(makes_up_for=0.0)
            else:
                self._make()
        except OSError:
            self.remove()
            return False
        return True

    def make_up_for_delays(self) -> None:
        """From now on, sends a little faster after a delay, until all frames that are due have left."""
        self._set_class(makes_up_for=MADE_UP_FOR)

    def remove(self) -> None:
        """Sends all frames at once again, as before."""
        if self._is_there:
            # Somebody else may have removed it.
            with suppress(OSError):
                self._ask(_RTM_DELQDISC, _ROOT, 0)
        self._is_there = False

    def _make(self) -> None:
        defaults = struct.pack("=5I", _HTB_VERSION, _RATE_TO_QUANTUM, _CLASS - _QUEUE, 0, 0)
        options = netlink_attribute(_TCA_OPTIONS, netlink_attribute(_TCA_HTB_INIT, defaults))
        self._ask(_RTM_NEWQDISC, _ROOT, _QUEUE, netlink_attribute(_TCA_KIND, b"htb\0") + options)
        self._is_there = True
        self._set_class(makes_up_for=0.0)
        room = netlink_attribute(_TCA_OPTIONS, struct.pack("=I", _MOST_WAITING))
        self._ask(_RTM_NEWQDISC, _CLASS, _FIFO, netlink_attribute(_TCA_KIND, b"pfifo\0") + room)

    def _set_class(self, makes_up_for: float) -> None:
        rate = _rate(self._load)
        fastest = _rate(self._load * (1.0 + HURRY))
        ticks = [max(1, round(seconds / _TICK_SECONDS)) for seconds in (makes_up_for, _AT_ONCE_SECONDS)]
        parameters = rate + fastest + struct.pack("=5I", *ticks, _QUANTUM_BYTES, 0, 0)
        options = netlink_attribute(_TCA_OPTIONS, netlink_attribute(_TCA_HTB_PARMS, parameters))
        self._ask(_RTM_NEWTCLASS, _QUEUE, _CLASS, netlink_attribute(_TCA_KIND, b"htb\0") + options)

    def _ask(self, kind: int, parent: int, handle: int, attributes: bytes = b"") -> None:
        flags = _NLM_F_ACK
        if kind != _RTM_DELQDISC:
            flags |= _NLM_F_CREATE | _NLM_F_REPLACE
        header = struct.pack("=BBHiIII", socket.AF_UNSPEC, 0, 0, self._index, handle, parent, 0)
        ask_netlink(socket.NETLINK_ROUTE, kind, header + attributes, flags=flags)


def can_be_paced(load: float, duration: float, catch_up: float) -> bool:
    """Whether the queue can keep a load: it takes enough frames ahead of time, and a single frame makes no difference.

    Args:
        load: Frames per second.
        duration: Seconds of the trial.
        catch_up: Seconds of traffic that are made up for after a stall.
    """
    return load <= MOST_LOAD and load * grace_after(duration, catch_up) >= 1.0


class Stamps:
    """When the stamped frames of a socket left, as the kernel reports it.

    A frame that passes further virtual links, such as those of a bridge, is stamped on each of them. Only its first
    stamp is from the socket's own interface.
    """

    def __init__(self, packets: socket.socket) -> None:
        packets.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _SOFTWARE | _NUMBERED | _TIME_ONLY)
        self._packets = packets
        self._newest = -1

    def read(self) -> dict[int, float]:
        """When frames left that had not been reported before: by their numbers among stamped frames, seconds."""
        left: dict[int, float] = {}
        while True:
            try:
                _, ancillary, _, _ = self._packets.recvmsg(0, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return left
            parts = {(level, kind): data for level, kind, data in ancillary}
            number = _EXTENDED_ERROR.unpack_from(parts[SOL_PACKET, _PACKET_TX_TIMESTAMP])[-1]
            if number > self._newest:
                self._newest = number
                seconds, nanoseconds = struct.unpack_from("=qq", parts[socket.SOL_SOCKET, _SO_TIMESTAMPING])
                left[number] = seconds + nanoseconds * 1e-9


def transmit_ahead(
    output: TransmitRing,
    make_up_for_delays: Callable[[], object],
    load: float,
    duration: float,
    is_stopped: Callable[[], bool],
    catch_up: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Transmission:
    """Hands over frames of a constant load ahead of time, to a queue that sends them when they are due.

    The kernel reports when the last frame of each hand-over left, and the first one if the queue may have run dry. So
    frames that a device behind the link holds back have left, although their memory is not free yet.

    `make_up_for_delays` is called once, when the first frame has left. If the time from the first to the last frame
    still differs by more than `grace_after` allows, the load was not the requested one: the frames that are due in the
    difference count as unsent. So do frames that could not be handed over in time.
    """
    intended = frames_within(duration, load)
    grace = grace_after(duration, catch_up)
    output.stamps()
    first = output.stamped
    places: list[int] = []
    left: dict[int, float] = {}
    begin = clock()
    sent = 0

    def are_gone() -> bool:
        left.update(output.stamps())
        is_last_stamped = places[-1:] == [sent - 1]
        return (is_last_stamped and output.stamped - 1 in left) or not output.waiting()

    while not (sent == intended and are_gone()) and clock() - begin < duration + grace and not is_stopped():
        now = clock() - begin
        if sent <= min(intended - 1, now * load):
            # The queue may have run dry. Then this frame is later than all that follow, which leave faster.
            is_first = sent == 0
            sent = _hand_over(output, sent, sent + 1, places)
            if is_first and sent:
                make_up_for_delays()
        sent = _hand_over(output, sent, min(intended, int((now + LEAD) * load) + 1), places)
        left.update(output.stamps())
        # The queue has this many seconds of traffic.
        ahead = sent / load - now
        sleep(min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, _PART_OF_LEAD * ahead)))

    is_whole = not is_stopped()
    while clock() - begin < duration + _DRAIN_SECONDS and not are_gone():
        sleep(_SHORTEST_PAUSE)

    # A stamped frame that was lost at the far end of the link has no stamp.
    late = {place: left[number] - place / load for number, place in enumerate(places, first) if number in left}
    is_known = {0, intended - 1} <= late.keys()
    off = late[intended - 1] - late[0] if is_known else max(0.0, clock() - begin - duration)
    behind = max(late.values()) - late[0] if 0 in late else 0.0
    if abs(off) > grace:
        intended = frames_within(duration + abs(off), load)
    if is_whole:
        sleep(max(_SHORTEST_PAUSE, begin + duration - clock()))

    elapsed = duration + max(0.0, off) if is_whole and is_known else clock() - begin
    if elapsed < duration:
        # Only these frames were due.
        intended = min(intended, max(sent, int(elapsed * load) + 1))
    return Transmission(intended, sent, elapsed, max(abs(off), behind), begin)


def _hand_over(output: TransmitRing, sent: int, due: int, places: list[int]) -> int:
    """Hands over frames up to this number; the kernel reports when the last one left, whose place is noted."""
    while sent < due:
        rest = due - sent
        taken = output.offer(rest - 1) if rest > 1 else output.offer_stamped()
        if not taken:
            break
        if rest == 1:
            places.append(sent)
        sent += taken
    return sent


def _rate(load: float) -> bytes:
    """Frames per second, as the kernel wants them."""
    return struct.pack("=BBHhHI", 0, _ETHERNET, 0, 0, _FRAME_COST, round(load * _FRAME_COST))
