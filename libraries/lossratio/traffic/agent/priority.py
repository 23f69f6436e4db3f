"""Realtime priority, where the kernel grants it: timing must not depend on what else the node has to do."""

from __future__ import annotations

import os

SENDING = 10
"""Priority of processes that send."""

COUNTING = 1
"""Priority of the process that reads counters when frames have had their time to come back."""


def raise_priority(priority: int) -> bool:
    """Lets this process go before all ordinary ones (SCHED_FIFO); returns whether the kernel grants that."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return False
    return True
