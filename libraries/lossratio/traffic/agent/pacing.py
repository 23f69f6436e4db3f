"""When to send: a constant load for exactly a duration, whatever the scheduler does to the sender."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Callable

LEAD = 100e-6
"""Seconds of traffic that are sent in one go: a frame leaves up to this much before it is due."""

CATCH_UP = 1e-3
"""Seconds of traffic that are made up for after a stall, unless said otherwise; what is older stays unsent."""

RAMP_STEPS = 20
"""Steps in which a ramp grows to the load."""

_LONGEST_SLEEP = 20e-3
_BUSY_WAIT = 20e-6


@dataclass(frozen=True)
class Transmission:
    """What one direction sent.

    Attributes:
        intended: Frames that the load and the duration ask for; without a duration: that were due when it stopped.
        sent: Frames that left.
        elapsed: Seconds from the start to the stop.
        worst_lateness: Seconds by which the sender was behind at most.
    """

    intended: int
    sent: int
    elapsed: float
    worst_lateness: float


def transmit(
    offer: Callable[[int], int],
    load: float,
    duration: float | None,
    is_stopped: Callable[[], bool],
    catch_up: float = CATCH_UP,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Transmission:
    """Sends at a constant load; what cannot be sent in time stays unsent, and never makes it last longer.

    Args:
        offer: Sends up to so many frames, and returns how many it sent.
        load: Frames per second.
        duration: Seconds; None: until it is stopped.
        is_stopped: Whether somebody wants it to stop now.
        catch_up: Seconds of traffic that are made up for after a stall, in one go.
        clock: Tells the time, in seconds.
        sleep: Waits for so many seconds.
    """
    end = math.inf if duration is None else duration
    intended = sys.maxsize if duration is None else frames_within(duration, load)
    most = max(1, int((LEAD + catch_up) * load))
    start = clock()
    sent = skipped = 0
    worst = 0.0
    while True:
        now = clock() - start
        worst = max(worst, min(now, end) - (sent + skipped) / load)
        if now >= end or is_stopped():
            break
        due = min(intended, int((now + LEAD) * load) + 1)
        skipped += max(0, due - sent - skipped - most)
        while sent + skipped < due and clock() - start < end and not is_stopped():
            left = offer(due - sent - skipped)
            sent += left
            if not left:
                sleep(_BUSY_WAIT)
        next_due = (sent + skipped) / load if sent + skipped < intended else end
        pause = min(next_due, end) - (clock() - start)
        if pause > 0:
            sleep(min(pause, _LONGEST_SLEEP))
    elapsed = clock() - start
    return Transmission(sent + skipped if duration is None else intended, sent, elapsed, worst)


def ramp_up(
    offer: Callable[[int], int],
    load: float,
    duration: float,
    is_stopped: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Sends at a load that grows from nothing, in steps as high as they are long.

    Args:
        offer: Sends up to so many frames, and returns how many it sent.
        load: Frames per second that it grows to.
        duration: Seconds until then.
        is_stopped: Whether somebody wants it to stop now.
        clock: Tells the time, in seconds.
        sleep: Waits for so many seconds.
    """
    for step in range(1, RAMP_STEPS + 1):
        transmit(offer, load * step / (RAMP_STEPS + 1), duration / RAMP_STEPS, is_stopped, clock=clock, sleep=sleep)


def frames_within(duration: float, load: float) -> int:
    """Frames of a constant load that are due within a duration, the first at its beginning."""
    # The product's rounding error must not count as one frame more.
    return max(1, math.ceil(duration * load * (1.0 - 1e-12)))
