"""Processors that devices under test on this machine need, what keeps them from running there, and who goes first."""

from __future__ import annotations

import os
from typing import Iterable

from .protocol import AgentError

COUNTING = 1
"""Priority of the process that reads counters when frames have had their time to come back."""

_PROCESSOR_TIMES = "/proc/stat"
_STOLEN_COLUMN = 7


class DeviceProcessors:
    """Processors on which devices under test of this machine receive: a local testbed has one for each.

    Args:
        numbers: The processors.

    Attributes:
        numbers: The processors.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self.numbers = frozenset(numbers)
        self._before = 0

    def free(self) -> tuple[int, ...]:
        """The processors that senders may use: none of a device, if there are others."""
        allowed = os.sched_getaffinity(0)
        return tuple(sorted(allowed - self.numbers) or sorted(allowed))

    def begin(self) -> None:
        """Begins to watch what is taken from them."""
        self._before = self._stolen_ticks()

    def kept_out(self, refused: int, rate: float) -> int:
        """Of the frames that a device had no room for, those that the host of a virtual machine kept out.

        Args:
            refused: Frames that the device refused since `begin`.
            rate: Frames per second that were sent to it.

        Returns:
            All of them, if the host had these processors for the time of so many frames; else none: the device was
            overloaded.
        """
        ticks = self._stolen_ticks() - self._before
        # How much of the first tick was stolen before is not known.
        seconds = (ticks + 1) / os.sysconf("SC_CLK_TCK") if ticks > 0 else 0.0
        return refused if refused <= seconds * rate else 0

    def check(self, home: int, place: int | None) -> None:
        """Makes sure that no sender kept a device from receiving.

        Args:
            home: The sender's processor.
            place: Another processor that it was on; None: there is none.

        Raises:
            AgentError: Of kind ``displaced``.
        """
        if place in self.numbers:
            raise AgentError(
                "displaced",
                f"The kernel moved the sender from processor {home} to {place}, which belongs to a device under test, "
                "so that the device could not receive all frames. Other programs take too much time of this machine.",
            )

    def _stolen_ticks(self) -> int:
        ticks = 0
        if self.numbers:
            with open(_PROCESSOR_TIMES, encoding="ascii") as file:
                for line in file:
                    name, *columns = line.split()
                    if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in self.numbers:
                        ticks += int(columns[_STOLEN_COLUMN])
        return ticks


def raise_priority(priority: int) -> bool:
    """Lets this process go before all ordinary ones (SCHED_FIFO); returns whether the kernel grants that."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    return True
