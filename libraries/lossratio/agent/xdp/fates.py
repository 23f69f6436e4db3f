# SPDX-License-Identifier: Apache-2.0
"""Which frames were lost: the times of sending that remain in the ring, read while the traffic flows.

A sender keeps the time of each frame in a ring, and the receiver takes it out. If another node sends, the receiver
writes the round of each frame into the ring. The ring has room for the latest 2^20 frames of a stream, so earlier
frames are read before later ones take their places.
"""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Fates
from .constants import RING, RING_BITS, WRAP_BITS

CHUNK = 1 << 16
"""Number of frames of a stream that are read together."""
MOST_CHUNKS = 128
"""The maximum number of chunks of a stream that are kept, one bit for each frame; in longer traffic, every second chunk
is kept, and so on."""
_ROUNDS = 1 << 32 - RING_BITS
"""After this many rounds of the ring, frame numbers begin again."""


class FateLog:
    """Notes which frames of a stream were lost; `ring` gives its part of the times of sending.

    `is_elsewhere`: another node sends it.
    """

    def __init__(self, ring: Callable[[], memoryview], *, is_elsewhere: bool = False) -> None:
        self._ring = ring
        self._is_elsewhere = is_elsewhere
        self.chunks: dict[int, NDArray[np.uint8]] = {}
        self._next = 0
        self._stride = 1

    def begin(self) -> None:
        """Begins again."""
        self.chunks = {}
        self._next = 0
        self._stride = 1

    def note(self, sent: int) -> None:
        """Reads frames whose places will soon be taken; none of them is still in flight."""
        while sent - self._next * CHUNK > RING // 2:
            self._look(sent, CHUNK)

    def end(self, sent: int) -> None:
        """Reads all others, because no frame is still in flight."""
        while self._next * CHUNK < sent:
            self._look(sent, min(CHUNK, sent - self._next * CHUNK))

    def _look(self, sent: int, count: int) -> None:
        number = self._next
        self._next += 1
        # Later frames may have taken the places of frames that are this far behind.
        if number % self._stride or sent - number * CHUNK > RING:
            return

        start = number * CHUNK % RING
        entries = np.frombuffer(self._ring()[start : start + count], dtype=np.uint64)
        if self._is_elsewhere:
            lost = entries != np.uint64((number * CHUNK >> RING_BITS) % _ROUNDS + 1)
        else:
            lost = entries >> np.uint64(WRAP_BITS) != 0

        self.chunks[number] = np.packbits(lost)
        if len(self.chunks) > MOST_CHUNKS:
            self._stride *= 2
            self.chunks = {kept: bits for kept, bits in self.chunks.items() if kept % self._stride == 0}


def fates_of(logs: Sequence[FateLog], sent: Sequence[int], lost: int) -> Fates | None:
    """Which frames of a direction were lost; None: not known.

    Its streams send every second frame, or every third one and so on, in the order of the logs: this many frames each.
    `lost` is how many frames did not come back, by the counters; the frames that are known must agree with it.
    """
    together = min(sent)
    for log, of_stream in zip(logs, sent):
        log.end(of_stream)
    common = sorted(set.intersection(*(set(log.chunks) for log in logs)))
    numbers = [number for number in common if number * CHUNK < together]
    if not numbers:
        return None

    parts = [np.arange(0)]
    for number in numbers:
        count = min(CHUNK, together - number * CHUNK)
        columns = [np.unpackbits(log.chunks[number], count=count) for log in logs]
        parts.append(np.flatnonzero(np.stack(columns, axis=1)) + number * CHUNK * len(logs))

    run = CHUNK * len(logs)
    starts = np.array(numbers) * run
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        # They follow each other.
        starts = starts[:1]
        run *= len(numbers)
    fates = Fates(together * len(logs), starts, run, np.concatenate(parts))
    is_all = fates.known == sum(sent)
    if (is_all and len(fates.lost) != lost) or len(fates.lost) > lost:
        return None
    return fates
