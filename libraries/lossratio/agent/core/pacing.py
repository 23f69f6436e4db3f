# SPDX-License-Identifier: Apache-2.0
"""When to send: a constant load for exactly a duration, however the scheduler delays the sender; and on which CPU."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, Iterable, Sequence

from .protocol import Check

COUNTING = 1
"""Priority of the process that reads counters when frames have had their time to come back."""
SWITCH_SECONDS = 0.0001
"""Seconds after which a thread of an agent gives way to another one that waits for Python's interpreter lock."""


def free_processors(of_devices: Iterable[int]) -> tuple[int, ...]:
    """The processors that senders may use, without those of devices if there are any others.

    `of_devices` are the processors of devices under test on this machine that are programs: a local testbed has a
    processor for each.
    """
    allowed = os.sched_getaffinity(0)
    return tuple(sorted(allowed - set(of_devices)) or sorted(allowed))


def raise_priority(priority: int) -> bool:
    """Gives this process priority over all ordinary ones (SCHED_FIFO); returns whether the kernel grants that."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    return True


def be_prompt() -> None:
    """Makes a process without realtime priority wait for a processor as little as its user may request.

    In its own session, it gets its own share if the kernel groups processes by sessions (autogroups). With short slices
    (Linux 6.12), it runs soon after it wakes up, before processes that are in the middle of longer slices.
    """
    with suppress(OSError):
        os.setsid()
    number = _SCHED_SETATTR.get(platform.machine())
    if number is not None:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, _SLICE_NANOSECONDS, 0, 0)
        # A kernel that does not know slices refuses or ignores them.
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)


NANOSECONDS = 1e9
"""Nanoseconds in a second."""
MICROSECOND_NS = 1000.0
"""Nanoseconds in a microsecond."""
BATCH = 100e-6
"""Seconds of traffic that are sent at once: a frame leaves up to this much before or after it is due."""
CATCH_UP = 1e-3
"""Seconds of traffic that are sent late after a stall, unless another time is given; older frames stay unsent."""
GRACE = 1e-3
"""Share of a duration by which its last frames may leave late, so that the load is at most this share below the
requested one. If a duration is below 0.1 s, its last frames may leave late by `BATCH`, which is more."""
LONGEST_STALL = 1.0
"""Seconds beyond twice the duration after which a sender that must send every frame gives up."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SLICE_NANOSECONDS = 100_000
_CHECK_SECONDS = 0.1
_LONGEST_SLEEP = 20e-3
_BUSY_WAIT = 20e-6
# No sleep is as short as this, and a clock may round down.
_DUE_NOW = 1e-6


@dataclass(frozen=True)
class Transmission:
    """The traffic that one direction sent."""

    intended: int
    """Frames that the load and the duration require; if it was stopped, frames that were due until then."""
    sent: int
    """Frames that left."""
    elapsed: float
    """Seconds from the start to the stop."""
    worst_lateness: float
    """The largest time by which the sender was behind, in seconds, including up to `BATCH` of waiting for a batch."""
    start: float
    """When it began, in seconds of the clock."""


class _Plan:
    """What a transmission should send, in seconds after its beginning: see `transmit`.

    Attributes:
        intended: Its frames.
        last_due: When the last one is due.
        end: When it ends.
        last_call: When it ends even if frames are missing.
        patience: Until when the time of stalls does not count; 0: it always counts.
        most: How many frames may be sent late, all at once; others that are late stay unsent.
    """

    def __init__(self, load: float, duration: float | None, catch_up: float, *, is_patient: bool) -> None:
        self._load = load
        self.end = math.inf if duration is None else duration
        self.intended = sys.maxsize if duration is None else frames_within(duration, load)
        self.last_due = (self.intended - 1) / load
        self.last_call = _last_call(duration, catch_up, is_patient=is_patient)
        self.patience = self.end + LONGEST_STALL if is_patient else 0.0
        # As many frames as may be due within that time, wherever it begins.
        self.most = sys.maxsize if math.isinf(catch_up) else int((BATCH + catch_up) * load) + 1
        if is_patient:
            # It is behind by no more than that, and sends a batch ahead.
            self.most += int(BATCH * load) + 1

    def due(self, now: float) -> int:
        """How many frames may have left by now."""
        lead = BATCH * (1.0 - now / self.last_due) if now < self.last_due else 0.0
        return min(self.intended, int((now + lead + _DUE_NOW) * self._load) + 1)

    def wake_up(self, now: float, done: int) -> float:
        """When the next batch is due after this many frames were sent or skipped."""
        if done == self.intended:
            return self.end
        return min(max(done / self._load, now + BATCH), self.last_due)


def _last_call(duration: float | None, catch_up: float, *, is_patient: bool) -> float:
    """Seconds after the beginning until which a sender sends: see `transmit`."""
    if duration is None:
        return math.inf
    if math.isinf(catch_up):
        return 2.0 * duration + LONGEST_STALL
    if is_patient:
        return duration + BATCH + catch_up
    return duration + grace_after(duration, catch_up)


def transmit(
    offer: Callable[[int], int],
    load: float,
    duration: float | None,
    is_stopped: Callable[[], bool],
    catch_up: float = CATCH_UP,
    *,
    is_patient: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    note: Callable[[int, int], None] | None = None,
    give_way: Callable[[], None] = os.sched_yield,
) -> Transmission:
    """Sends at a constant load; frames that cannot be sent in time stay unsent.

    Frames leave in batches: the first one as soon as its first frame is due, the last one not before its last frame is
    due. So the first and the last frame are as far apart as their due times, and a token bucket of rate N and burst B
    passes N * (frames - 1) / load + B of them.

    A sender that wakes up late still sends the frames that were due before the end, for as long as `grace_after` says.
    Frames that remain after a longer stall, or that are too many for the sender, never make the transmission last
    longer.

    `offer` sends up to this many frames, and returns how many it sent. `catch_up` are seconds of traffic that are made
    up for after a stall, in one go; infinite: every frame is sent, if that takes less than twice the duration plus
    `LONGEST_STALL`. A patient sender also sends every frame within that time. It does not make up for a longer stall:
    the remaining frames, and all that follow, leave late, at the load. `note` is called after each batch with the
    frames sent and skipped until then. `give_way` is called after each piece while the sender is behind: senders of the
    same priority on one processor then take turns. Otherwise, the first one would keep the processor, and the other
    direction would get nothing.
    """
    plan = _Plan(load, duration, catch_up, is_patient=is_patient)
    begin = start = clock()
    sent = skipped = 0
    worst = 0.0

    while True:
        now = clock() - start
        if sent + skipped < plan.intended:
            late = now - (sent + skipped) / load
            worst = max(worst, late)
            # The time of a stall does not count.
            delay = min(late - BATCH - catch_up, begin + plan.patience - start)
            if delay > 0:
                start += delay
                now -= delay
        elif now >= plan.end:
            break

        if now >= plan.last_call or is_stopped():
            break

        due = plan.due(now)
        skipped += max(0, due - sent - skipped - plan.most)

        while sent + skipped < due and clock() - start < plan.last_call and not is_stopped():
            left = offer(due - sent - skipped)
            sent += left
            if not left:
                sleep(_BUSY_WAIT)
            elif sent + skipped < due:
                give_way()

        if note is not None:
            note(sent, skipped)
        rest = plan.wake_up(now, sent + skipped) - (clock() - start)
        if rest > 0:
            sleep(min(rest, _LONGEST_SLEEP))
        else:
            give_way()

    elapsed = clock() - begin
    # Only a stop ends it sooner.
    intended = sent + skipped if elapsed < plan.end else plan.intended
    return Transmission(intended, sent, elapsed, worst, begin)


def in_all(parts: Sequence[Transmission]) -> Transmission:
    """Successive transmissions combined into one."""
    # Record: all of them.
    return Transmission(
        intended=sum(part.intended for part in parts),
        sent=sum(part.sent for part in parts),
        elapsed=sum(part.elapsed for part in parts),
        worst_lateness=max(part.worst_lateness for part in parts),
        start=parts[0].start,
    )


def pause(seconds: float, check: Check) -> None:
    """Waits, and calls `check` several times a second."""
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, _CHECK_SECONDS))
        check()


def grace_after(duration: float, catch_up: float) -> float:
    """Seconds after a duration in which frames that were due before its end may still leave.

    This is the time that a sender makes up for after a stall, but at most a thousandth of the duration, because the
    load would otherwise be a different one. It is at least the lateness of a wake-up on a healthy machine.
    """
    return max(BATCH, min(catch_up, GRACE * duration))


def frames_within(duration: float, load: float) -> int:
    """Frames of a constant load that are due within a duration, the first at its beginning."""
    # The product's rounding error must not count as one more frame.
    return max(1, math.ceil(duration * load * (1.0 - 1e-12)))
