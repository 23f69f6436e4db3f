"""By how much a server is behind while it sends, where its ports are Linux interfaces."""

from __future__ import annotations

import math
from typing import Callable, Mapping, Sequence

from ..core.configuration import Direction

LOOK_SECONDS = 2e-3
"""Seconds between two looks; a stall is seen but for so much of it."""

BATCH = 1e-3
"""Seconds of traffic that a server sends in one go, so that it is behind by so much before each batch."""

_INTERFACES = "/proc/self/net/dev"
_HEADINGS = 2
_PACKETS, _DROPPED = 9, 11
# The reader waited for a CPU.
_SLOW_LOOK = 0.5e-3


def transmitted() -> dict[str, int]:
    """Frames that each interface was given to transmit, by its name."""
    with open(_INTERFACES, encoding="ascii", errors="replace") as file:
        lines = file.read().splitlines()[_HEADINGS:]
    pairs = (line.split(":", 1) for line in lines)
    return {name.strip(): sum(map(int, counters.split()[_PACKETS : _DROPPED + 1])) for name, counters in pairs}


class Pace:
    """Looks at what interfaces have transmitted in a trial.

    A server that was stalled sends at once what was due meanwhile, and its counters are right in the end. A device with
    memory, such as a policer, passes less of that. While nothing was sent too early, each look says when traffic began
    at the latest, and at the earliest if nothing were late. The largest difference of the two is a lateness that there
    was at least.

    Args:
        directions: The directions.
        load: Frames per second; each direction has its share.
        duration: Seconds.
        clock: Returns the time, in seconds.
        read: Tells the frames that interfaces have transmitted, by their names.
    """

    def __init__(
        self,
        directions: Sequence[Direction],
        load: float,
        duration: float,
        clock: Callable[[], float],
        read: Callable[[], Mapping[str, int]] = transmitted,
    ) -> None:
        self._rates = {direction.transmit: load * direction.load_share for direction in directions}
        # Each stream sends its first frame at once.
        self._early = {direction.transmit: len(direction.frames.sizes) + 1 for direction in directions}
        self._duration = duration
        self._clock, self._read = clock, read
        self._zero = read()
        self._begun = dict.fromkeys(self._rates, math.inf)
        self._seeming = dict.fromkeys(self._rates, -math.inf)

    def look(self) -> None:
        """Looks once."""
        before = self._clock()
        counted = self._read()
        after = self._clock()
        if after - before > _SLOW_LOOK:
            return
        for port, rate in self._rates.items():
            sent = counted.get(port, 0) - self._zero.get(port, 0)
            if sent >= rate * self._duration - self._early[port]:
                continue
            self._seeming[port] = max(self._seeming[port], before - sent / rate)
            if sent:
                self._begun[port] = min(self._begun[port], after - (sent - self._early[port]) / rate)

    def lateness(self, port: str) -> float:
        """Seconds by which a port was behind at most, but for a batch."""
        return max(0.0, self._seeming[port] - self._begun[port] - BATCH)
