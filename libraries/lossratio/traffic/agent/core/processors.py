"""Processors that devices under test on this machine need, and who goes first there."""

from __future__ import annotations

import os
from typing import Iterable

COUNTING = 1
"""Priority of the process that reads counters when frames have had their time to come back."""


def free_processors(of_devices: Iterable[int]) -> tuple[int, ...]:
    """The processors that senders may use: none of a device's, if there are others.

    `of_devices` are those of devices under test of this machine that are programs: a local testbed has one for each.
    """
    allowed = os.sched_getaffinity(0)
    return tuple(sorted(allowed - set(of_devices)) or sorted(allowed))


def raise_priority(priority: int) -> bool:
    """Lets this process go before all ordinary ones (SCHED_FIFO); returns whether the kernel grants that."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    return True
