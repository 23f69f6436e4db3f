# SPDX-License-Identifier: Apache-2.0
"""Traffic whose pace the kernel keeps: a process without realtime priority hands it frames ahead of time.

On a busy machine, an ordinary user's process waits for a processor for tens of milliseconds. A queue of the interface
(TBF) sends each frame when it is due, by a timer of the kernel, without needing a process. The kernel itself reports
when the first and the last frame left.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from typing import Callable, Protocol

from lossratio.bpf import ask_netlink, netlink_attribute

from ..core.pacing import BATCH, Transmission, frames_within, grace_after

LEAD = 0.1
"""The maximum number of seconds of traffic that are handed over ahead of time; a socket may take less."""
MOST_LOAD = 20_000.0
"""The highest load, in frames per second, for which a socket takes enough frames ahead of time."""
_RTM_NEWQDISC, _RTM_DELQDISC = 36, 37
_NLM_F_ACK, _NLM_F_REPLACE, _NLM_F_CREATE = 0x4, 0x100, 0x400
_ROOT = 0xFFFFFFFF
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_TBF_PARMS, _TCA_TBF_BURST = 1, 6
_ETHERNET = 1
_QUEUE_BYTES = 1 << 28
_FRAME_COST = 20_000
"""Bytes that each frame counts as in the queue, whatever its size, because a load is in frames per second."""
_AHEAD_SECONDS = 200e-6
"""Seconds by which a frame may leave early after a late one; never two frames at once."""
_SHORTEST_PAUSE = 1e-3
_PACE_SECONDS = 10e-3
_CATCH_UP_SECONDS = 20e-3
_HURRY = 0.02
_PART_OF_LEAD = 0.125
_DRAIN_SECONDS = 2.0
_STAMPED_FRAMES = 2
_SO_TIMESTAMPING = 37
_TX_SOFTWARE, _SOFTWARE, _TIME_ONLY = 1 << 1, 1 << 4, 1 << 11
STAMPED = [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _TX_SOFTWARE))]
"""The control data that make the kernel report when a frame left."""


class PacedOutput(Protocol):
    """The output to which frames are handed over."""

    def offer(self, count: int) -> int:
        """Hands over up to this many frames, and returns how many were taken."""

    def offer_stamped(self) -> int:
        """Hands over one frame for which the kernel reports when it left; returns how many were taken: 1 or 0."""

    def waiting(self) -> int:
        """How many of the frames handed over have not left yet."""

    def stamps(self) -> list[float]:
        """When stamped frames left since the last call: times in seconds, in order."""


class Queue:
    """The queue of an interface that sends frames at a load.

    Args:
        index: The kernel's number of the interface.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._is_there = False

    def set_load(self, load: float) -> bool:
        """Sends this many frames per second from now on; returns whether the kernel has such a queue, and grants it.

        Args:
            load: Frames per second.
        """
        at_once = max(1.0, BATCH * load) + min(0.9, _AHEAD_SECONDS * load)
        rate = struct.pack("=BBHhHI", 0, _ETHERNET, 0, 0, _FRAME_COST, round(load * _FRAME_COST))
        parameters = rate + bytes(len(rate)) + struct.pack("=III", _QUEUE_BYTES, 0, 0)
        burst = struct.pack("=I", round(at_once * _FRAME_COST))
        options = netlink_attribute(_TCA_TBF_PARMS, parameters) + netlink_attribute(_TCA_TBF_BURST, burst)
        kind = netlink_attribute(_TCA_KIND, b"tbf\0")
        wanted = kind + netlink_attribute(_TCA_OPTIONS, options)
        try:
            self._ask(_RTM_NEWQDISC, wanted, _NLM_F_CREATE | _NLM_F_REPLACE)
        except OSError:
            return False
        self._is_there = True
        return True

    def remove(self) -> None:
        """Sends all frames at once again, as before."""
        if self._is_there:
            # Somebody else may have removed it.
            with suppress(OSError):
                self._ask(_RTM_DELQDISC)
        self._is_there = False

    def _ask(self, kind: int, attributes: bytes = b"", flags: int = 0) -> None:
        header = struct.pack("=BBHiIII", socket.AF_UNSPEC, 0, 0, self._index, 0, _ROOT, 0)
        ask_netlink(socket.NETLINK_ROUTE, kind, header + attributes, flags=flags | _NLM_F_ACK)


def can_be_paced(load: float, duration: float, catch_up: float) -> bool:
    """Whether the queue can keep a load: it takes enough frames ahead of time, and a single frame makes no difference.

    Args:
        load: Frames per second.
        duration: Seconds of the trial.
        catch_up: Seconds of traffic that are made up for after a stall.
    """
    return load <= MOST_LOAD and load * grace_after(duration, catch_up) >= 1.0


def have_stamps(packets: socket.socket) -> None:
    """Makes the kernel report on a socket when stamped frames left."""
    packets.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _SOFTWARE | _TIME_ONLY)


def read_stamps(packets: socket.socket) -> list[float]:
    """When a socket's stamped frames left since the last call: times in seconds, in order."""
    left: list[float] = []
    while True:
        try:
            _, ancillary, _, _ = packets.recvmsg(0, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return left
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPING):
                seconds, nanoseconds = struct.unpack_from("=qq", data)
                left.append(seconds + nanoseconds * 1e-9)


def transmit_ahead(
    output: PacedOutput,
    set_load: Callable[[float], object],
    load: float,
    duration: float,
    is_stopped: Callable[[], bool],
    catch_up: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Transmission:
    """Hands over frames of a constant load ahead of time, to a queue that sends them when they are due.

    If the queue is behind, because a timer of the kernel was late or no frames were handed over, `set_load` makes it
    faster for a while, by at most `_HURRY`; if it is ahead, it is made slower in the same way. If the time from the
    first to the last frame still differs by more than `grace_after` allows, the load was not the requested one: the
    frames that are due in the difference count as unsent. So do frames that could not be handed over in time.
    """
    pace = _Pace(load, set_load)
    intended = frames_within(duration, load)
    grace = grace_after(duration, catch_up)
    output.stamps()
    begin = clock()
    sent = waiting = 0
    while (sent < intended or waiting) and clock() - begin < duration + grace and not is_stopped():
        now = clock() - begin
        taken = _hand_over(output, sent, min(intended, int((now + LEAD) * load) + 1), intended)
        sent += taken
        if taken:
            continue

        waiting = output.waiting()
        # On average, half a frame is due but has not left.
        pace.follow(now, min(now, duration) - (sent - waiting - 0.5) / load)
        # The queue has this many seconds of traffic.
        sleep(min(_PACE_SECONDS, max(_SHORTEST_PAUSE, _PART_OF_LEAD * waiting / load)))

    is_whole = not is_stopped()
    while clock() - begin < duration + _DRAIN_SECONDS and output.waiting():
        sleep(_SHORTEST_PAUSE)

    left = output.stamps()
    off = 0.0
    if len(left) == _STAMPED_FRAMES:
        off = abs(left[1] - left[0] - (intended - 1) / load)
    if off > grace:
        intended = frames_within(duration + off, load)
    if is_whole:
        sleep(max(_SHORTEST_PAUSE, begin + duration - clock()))

    elapsed = clock() - begin
    if elapsed < duration:
        # Only these frames were due.
        intended = min(intended, max(sent, int(elapsed * load) + 1))
    return Transmission(intended, sent, elapsed, max(off, pace.worst))


def _hand_over(output: PacedOutput, sent: int, due: int, intended: int) -> int:
    """Hands over frames up to this number; the kernel reports when the first and the last one left."""
    if sent == due:
        return 0
    if sent in (0, intended - 1):
        return output.offer_stamped()
    return output.offer(min(due, intended - 1) - sent)


class _Pace:
    """The pace of a queue, which is changed slightly when it is behind or ahead of the load.

    Attributes:
        worst: The largest time by which it was behind, in seconds.
    """

    def __init__(self, load: float, set_load: Callable[[float], object]) -> None:
        self.worst = 0.0
        self._load = load
        self._set_load = set_load
        self._pace = load
        self._changed = 0.0

    def follow(self, now: float, behind: float) -> None:
        """Changes the pace at some time of the trial, unless it was just changed."""
        self.worst = max(self.worst, behind)
        if now - self._changed < _PACE_SECONDS:
            return
        change = max(-_HURRY, min(_HURRY, behind / _CATCH_UP_SECONDS))
        if abs(behind) * self._load < 1.0:
            change = 0.0
        wanted = self._load * (1.0 + change)
        if wanted != self._pace:
            self._set_load(wanted)
            self._pace = wanted
            self._changed = now
