# SPDX-License-Identifier: Apache-2.0
"""When a server sends, and by how much it is behind, if its ports are Linux interfaces."""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from typing import Callable, Iterator, Mapping, Sequence

from ..core.configuration import Direction

LOOK_SECONDS = 2e-3
"""Seconds between two checks; a stall may be this much longer than it seems."""
EDGE_SECONDS = 0.25e-3
"""Seconds between two checks for the beginning or the end of traffic."""
LONGEST_STRETCH = 2.5e-3
"""Share of a trial by which its traffic may take longer: half the width of CSIT's goals, because a policer passes more
in that time."""
LEAST_STRETCH = 3e-3
"""Seconds by which it may always take longer, because batches and checks cannot resolve them."""
BATCH = 1e-3
"""Seconds of traffic that a server sends at once; before each batch, it is behind by this much."""
_PACKETS, _DROPPED = 9, 11
# If a check takes longer, the reader waited for a CPU.
_SLOW_LOOK = 0.5e-3


def transmitted() -> dict[str, int]:
    """Frames that each interface was given to transmit, by its name."""
    with open("/proc/self/net/dev", encoding="ascii", errors="replace") as file:
        lines = file.read().splitlines()[2:]
    pairs = (line.split(":", 1) for line in lines)
    return {name.strip(): sum(map(int, counters.split()[_PACKETS : _DROPPED + 1])) for name, counters in pairs}


class Pace:
    """Checks what interfaces have transmitted in a trial.

    After a stall, a server sends everything that was due at once, and its counters are right in the end. A device with
    memory, such as a policer, passes less of such a burst.

    If nothing was sent too early, each check gives the latest time at which traffic began. If nothing was late either,
    each check also gives the earliest time. The largest difference between the two is the minimum lateness that
    explains the checks. All frames left between the last check before the first frame and the first check after the
    last frame. Because a server catches up after a stall, the checks of at least half of a trial also show when traffic
    began, to within a batch and the lateness.

    `due` are the frames that each port must send, by name; `read` returns what it has transmitted.
    """

    def __init__(
        self,
        directions: Sequence[Direction],
        load: float,
        duration: float,
        due: Mapping[str, int],
        *,
        clock: Callable[[], float],
        read: Callable[[], Mapping[str, int]],
    ) -> None:
        self._rates = {direction.transmit: load * direction.load_share for direction in directions}
        # Each stream sends its first frame at once.
        self._early = {direction.transmit: len(direction.frames.sizes) + 1 for direction in directions}
        self._duration = duration
        self._due = due
        self._clock, self._read = clock, read
        self._sent = dict.fromkeys(self._rates, 0)
        self._silent = dict.fromkeys(self._rates, clock())
        self._complete: dict[str, float] = {}
        self._zero = read()
        self._begun = dict.fromkeys(self._rates, math.inf)
        self._seeming = dict.fromkeys(self._rates, -math.inf)
        self._timed: dict[str, tuple[float, float]] = {}

    def has_begun(self) -> bool:
        """Checks, and returns whether each port has sent a frame."""
        self.look()
        return all(self._sent.values())

    def has_ended(self) -> bool:
        """Checks, and returns whether each port has sent all its frames."""
        self.look()
        return len(self._complete) == len(self._sent)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Checks repeatedly during a request whose answer may take longer than traffic takes to begin.

        Nothing else may check in this time.
        """
        ended = threading.Event()

        def look_on() -> None:
            while not ended.wait(EDGE_SECONDS):
                self.look()

        self.look()
        looker = threading.Thread(target=look_on, daemon=True)
        looker.start()
        try:
            yield
        finally:
            ended.set()
            looker.join()

    def look(self) -> None:
        """Checks once."""
        before = self._clock()
        counted = self._read()
        after = self._clock()
        for port, rate in self._rates.items():
            self._sent[port] = sent = counted.get(port, 0) - self._zero.get(port, 0)
            if not sent:
                self._silent[port] = before
            elif sent >= self._due[port]:
                self._complete.setdefault(port, after)
            if after - before > _SLOW_LOOK or sent >= rate * self._duration - self._early[port]:
                continue
            self._seeming[port] = max(self._seeming[port], before - sent / rate)
            if sent:
                self._begun[port] = min(self._begun[port], after - (sent - self._early[port]) / rate)
                self._timed[port] = self._timed.get(port, (before, before))[0], before

    @property
    def earliest_end(self) -> float:
        """The earliest time at which a port has sent all its frames, apart from the time between two checks."""
        return min(self._silent.values()) + self._duration - LOOK_SECONDS

    @property
    def stretch(self) -> float:
        """How many seconds longer traffic took at most; infinite: a port was not seen to send all its frames."""
        longest = max(self._complete.get(port, math.inf) - self._earliest_begin(port) for port in self._rates)
        return max(0.0, longest - self._duration)

    @property
    def is_kept(self) -> bool:
        """Whether traffic took no longer than allowed."""
        return self.stretch <= max(LEAST_STRETCH, LONGEST_STRETCH * self._duration)

    def _earliest_begin(self, port: str) -> float:
        first, last = self._timed.get(port, (0.0, 0.0))
        if last - first < 0.5 * self._duration:
            # All checks may belong to a single stall.
            return self._silent[port]
        spread = max(BATCH, self._seeming[port] - self._begun[port])
        return max(self._silent[port], self._begun[port] - self._early[port] / self._rates[port] - spread)

    def lateness(self, port: str) -> float:
        """The largest time by which a port was behind, in seconds, apart from a batch."""
        return max(0.0, self._seeming[port] - self._begun[port] - BATCH)
