"""Processors that devices under test on this machine need, and who goes first there."""

from __future__ import annotations

import os
from typing import Iterable

from .protocol import AgentError

COUNTING = 1
"""Priority of the process that reads counters when frames have had their time to come back."""


class DeviceProcessors:
    """Processors of devices under test of this machine that are programs: a local testbed has one for each."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.numbers = frozenset(numbers)

    def free(self) -> tuple[int, ...]:
        """The processors that senders may use: none of a device, if there are others."""
        allowed = os.sched_getaffinity(0)
        return tuple(sorted(allowed - self.numbers) or sorted(allowed))

    def check(self, home: int, place: int | None) -> None:
        """Makes sure that no sender kept a device from running, by its own processor and another one that it was on."""
        if place in self.numbers:
            raise AgentError(
                "displaced",
                f"The kernel moved the sender from processor {home} to {place}, which belongs to a device under test, "
                "so that the device could not receive all frames. Other programs take too much time of this machine.",
            )


def raise_priority(priority: int) -> bool:
    """Lets this process go before all ordinary ones (SCHED_FIFO); returns whether the kernel grants that."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    return True
