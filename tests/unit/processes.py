"""Processes of this machine, as the kernel lists them."""

from __future__ import annotations

from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Pids of the processes that the main thread of a process has started, in their order."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
