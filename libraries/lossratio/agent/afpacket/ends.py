# SPDX-License-Identifier: Apache-2.0
"""An end of connections: what arrives over each connection, and the header with which the end answers."""

from __future__ import annotations

import mmap
import time
from dataclasses import replace
from typing import Callable

from ..core.arrays import np
from ..core.frames_spec import TAG_BYTES, FramesSpec
from ..core.links import Link
from ..core.pacing import pause
from ..core.passes import LATE_LOOK, LATE_SECONDS
from ..core.protocol import Check
from ..core.wire import PORT_BYTES
from .filters import let_nothing_through, let_tag_through
from .frames import Bytes, FrameCycle, Numbers, Replies
from .receive import ReceiveRing, ring_slot_bytes, words_at
from .sender import Sender
from .transmit import SenderSetup

_ROOM = 1 << 17
_AT_ONCE = 1 << 16
_RING_FRAMES = 1 << 12


class End:
    """A port's end of all connections; made once, because it forks, and closing a ring takes tens of milliseconds."""

    def __init__(self, port: Link, frames: FramesSpec, setup: SenderSetup) -> None:
        self._place, self._start = frames.tag_place, frames.tag_offset
        self._address, self._port = frames.addresses[0]
        self.name = port.name
        self._rows = np.frombuffer(mmap.mmap(-1, frames.flows * self._start), dtype=np.uint8).reshape(-1, self._start)
        self._has_arrived = np.empty(0, dtype=bool)
        self._is_strange = np.empty(0, dtype=bool)
        self._is_over = True
        self.late = self.copies = 0
        self._expected: Callable[[Numbers], Bytes] | None = None
        self._change: Callable[[Bytes], Bytes] | None = None
        self.overlooked = 0
        cycle = FrameCycle(
            setup.cycle.data[:_RING_FRAMES], setup.cycle.lengths[:_RING_FRAMES], Replies(self._rows, frames.flows)
        )
        self._setup = replace(setup, interface=port.name, frames=cycle, drops_beyond=port.kind == "veth")
        self._sender: Sender | None = None
        self._ring = ReceiveRing(port, ring_slot_bytes(self._start + TAG_BYTES), _ROOM)

    @property
    def sender(self) -> Sender:
        """The process that sends over its connections."""
        if self._sender is None:
            self._sender = Sender(self._setup)
        return self._sender

    def begin(
        self, tag: int, most: int, expected: Callable[[Numbers], Bytes] | None, change: Callable[[Bytes], Bytes] | None
    ) -> None:
        """Forgets what has arrived, and from now on notes frames with a tag of the first `most` connections.

        `expected` gives headers with their addresses; None: the frames open connections. `change` turns arriving
        headers into what this end keeps; None: they are not needed.
        """
        self.end()
        self.note()
        self._ring.overlooked()
        self._has_arrived = np.zeros(most, dtype=bool)
        self._is_strange = np.zeros(most, dtype=bool)
        self._is_over = False
        self._expected = expected
        self._change = change
        let_tag_through(self._ring.socket, self._place, tag)

    def end(self) -> None:
        """Notes no more."""
        let_nothing_through(self._ring.socket)

    @property
    def strangers(self) -> int:
        """Connections for which a frame arrived with other addresses, but none with the right ones."""
        return int((self._is_strange & ~self._has_arrived).sum())

    def note(self) -> None:
        """Takes the frames out of the ring, so that there is room for more."""
        captured = self._ring.captured()
        if not len(captured):
            return

        end = self._start + TAG_BYTES
        contents = captured.contents(end)
        numbers = words_at(contents, end - 4)
        is_known = numbers < len(self._has_arrived)
        is_new = is_known.copy()
        is_new[is_known] = ~self._has_arrived[numbers[is_known]]
        is_own = is_new.copy()

        if self._expected is not None and not self._is_over:
            ends = self._expected(numbers[is_new])[:, self._ends]
            is_own[is_new] = (contents[is_new][:, self._ends] == ends).all(axis=1)
            self._is_strange[numbers[is_new & ~is_own]] = True

        own = numbers[is_own]
        arrived = len(np.unique(own))
        self._has_arrived[own] = True
        if self._is_over and self._expected is not None:
            self.late += arrived
        elif not self._is_over:
            self.copies += int(is_known.sum()) - int(is_new.sum()) + len(own) - arrived
        if self._change is not None and not self._is_over:
            # Answers are made while other frames arrive, so that they take no time once all have arrived.
            self._rows[own] = self._change(contents[is_own, : self._start])

        self._ring.release(len(captured))

    def arrived(self) -> Numbers:
        """Numbers of the connections whose frames have arrived so far, in order; later frames are late."""
        self.note()
        self._is_over = True
        numbers: Numbers = np.flatnonzero(self._has_arrived)
        # It is not known which connections these frames belonged to.
        self.overlooked += min(self._ring.overlooked(), len(self._has_arrived) - len(numbers))
        return numbers

    def are_late(self, tag: int, check: Check) -> bool:
        """Waits for late frames with a tag; returns whether any arrive."""
        let_tag_through(self._ring.socket, self._place, tag)
        self._is_over = False
        end = time.monotonic() + LATE_SECONDS
        while not (self._has_arrived.any() or self.strangers) and time.monotonic() < end:
            pause(LATE_LOOK, check)
            self.note()
        self.end()
        self._is_over = True
        return bool(self._has_arrived.any())

    def headers(self, numbers: Numbers) -> Bytes:
        """The headers of connections, by their numbers."""
        rows: Bytes = self._rows[numbers]
        return rows

    def keep(self, numbers: Numbers) -> None:
        """Keeps only some of the connections, which are then numbered from 0 on."""
        if len(numbers) and numbers[-1] == len(numbers) - 1:
            return
        for first in range(0, len(numbers), _AT_ONCE):
            part = numbers[first : first + _AT_ONCE]
            self._rows[first : first + len(part)] = self._rows[part]

    def make_next(self, count: int, change: Callable[[Bytes], Bytes]) -> None:
        """Makes the headers that it sends next from the headers of the first connections."""
        for first in range(0, count, _AT_ONCE):
            rows = self._rows[first : min(first + _AT_ONCE, count)]
            rows[:] = change(rows)

    def close(self) -> None:
        """Ends its process."""
        self._ring.close()
        if self._sender is not None:
            self._sender.close()

    @property
    def _ends(self) -> slice:
        return slice(self._address, self._port + 2 * PORT_BYTES)
