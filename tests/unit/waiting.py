"""Waiting for what other processes do, which takes as long as the machine lets it; and whether they still run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 900.0
"""Seconds after which something does not happen any more, however busy the machine is."""


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Waits until a condition holds; it is an error if it does not within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it has not ended: one that nobody has waited for yet is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
