"""The clock of a card that stamps frames as they arrive, beside the system's, by which frames are sent."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Callable

from lossratio.bpf import STAMPS, Array, XdpFeatures, xdp_features

from ..core.links import Link
from ..core.protocol import AgentError
from .cards import stamping
from .constants import FOREVER

MOST_ERROR_US = 1000.0
"""Microseconds of error from which on latencies are no longer answered: somebody has set a clock."""

_PERIOD_SECONDS = 0.1
_READINGS = 5
_COMPARED = 32
_MICROSECOND = 1000.0


class CardClock:
    """A card's clock, which is compared with the system's while traffic flows: see ``struct card_clock``.

    It has the name of the card's interface; `read` returns its time, in nanoseconds.

    Attributes:
        memory: What the receiving program needs to know the system's time of a stamp.
        error_us: The largest error of these times since `begin`, in microseconds: what a comparison found, and how
            long its reading of the card took.
    """

    def __init__(self, name: str, read: Callable[[], int]) -> None:
        self._name, self._read = name, read
        self._past: deque[tuple[int, int]] = deque(maxlen=_COMPARED)
        self._stretch = 0
        self._due = 0.0
        self.error_us = 0.0
        self.memory = Array(7 * 8, "lossratio_clock")
        # The second one says how fast the card's clock is.
        self.compare()
        time.sleep(_PERIOD_SECONDS)
        self.compare()

    def begin(self) -> None:
        """Compares before new traffic, whose error this is not."""
        self.compare()
        self.error_us = 0.0

    def renew(self) -> None:
        """Compares every 0.1 s."""
        if time.monotonic() >= self._due:
            self.compare()

    def compare(self) -> None:
        """Compares both clocks."""
        self._due = time.monotonic() + _PERIOD_SECONDS
        took, card, system = min(self._reading() for _ in range(_READINGS))
        error = took / 2
        if self._past:
            last_card, last_system = self._past[-1]
            since = card - last_card
            error += abs(last_system + since + (since * self._stretch >> 32) - system)
        self.error_us = max(self.error_us, error / _MICROSECOND)
        if error > MOST_ERROR_US * _MICROSECOND:
            self._past.clear()
        self._past.append((card, system))
        first_card, first_system = self._past[0]
        passed = card - first_card
        self._stretch = (system - first_system - passed << 32) // passed if passed > 0 else 0
        words, following = self.memory.words, 1 - self.memory.words[0]
        for place, value in enumerate((card, system, self._stretch), 1 + 3 * following):
            words[place] = value & FOREVER
        words[0] = following

    def check(self) -> None:
        """Makes sure that the times since `begin` can be trusted."""
        if self.error_us > MOST_ERROR_US:
            raise AgentError(
                "card_stamps",
                f"The clocks of {self._name} and of the system differed by {self.error_us:.0f} us more than before: "
                "one was set meanwhile, so latencies are not known. Let ptp4l and phc2sys settle first.",
            )

    def close(self) -> None:
        """Gives the memory back."""
        self.memory.close()

    def _reading(self) -> tuple[int, int, int]:
        before = time.monotonic_ns()
        card = self._read()
        took = time.monotonic_ns() - before
        return took, card, before + took // 2


def clock_of(port: Link) -> Callable[[], int]:
    """The clock by which a card stamps the frames that arrive.

    Raises:
        AgentError: If programs cannot have its stamps.
    """
    features = xdp_features(port.index, XdpFeatures.METADATA)
    number, stamps_all = stamping(port.name)
    path = f"/dev/ptp{number}"
    if features is None:
        reason = "the kernel does not say whether its driver has them for programs; Linux 6.6 and later do"
    elif not features & STAMPS:
        reason = "its driver has none for XDP programs"
    elif number is None:
        reason = "it has no clock of its own"
    elif not stamps_all:
        reason = f"not every frame is stamped: hwstamp_ctl -i {port.name} -r 1 has it so"
    else:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            # The kernel's number of a clock that is a file.
            clock = ~descriptor << 3 | 3
            time.clock_gettime_ns(clock)
            return lambda: time.clock_gettime_ns(clock)
        except OSError as error:
            reason = f"its clock {path} cannot be read ({error.strerror})"
    raise AgentError("card_stamps", f"{port.name} has no receive stamps: {reason}. Or leave 'card_stamps' out.")
