"""Whether somebody sets the system's clock, by which the kernel stamps frames."""

from __future__ import annotations

import time

_READINGS = 5
_READING_ERROR_NS = 100_000


class ClockWatch:
    """Watches the system's clock from now on.

    Slewing goes unnoticed, and does no harm: it changes both clocks alike.
    """

    def __init__(self) -> None:
        self._ahead = _ahead()

    def was_set(self) -> bool:
        """Whether it was set since then, by more than a tenth of a millisecond."""
        return abs(_ahead() - self._ahead) > _READING_ERROR_NS


def _ahead() -> int:
    """Nanoseconds that the system's clock is ahead of the one that nobody can set."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_READINGS)]
    before, now, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return now - (before + after) // 2
