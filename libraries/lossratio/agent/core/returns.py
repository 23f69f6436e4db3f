# SPDX-License-Identifier: Apache-2.0
"""Counts a direction's frames that come back: those of the latest traffic, and late ones of earlier traffic."""

from __future__ import annotations

from itertools import takewhile
from typing import Callable

from .generator import late_and_copies
from .protocol import Message

Counter = Callable[[], int]
"""Says how many frames with a tag have arrived so far."""


class Returns:
    """Counts frames by the tags of their traffic, with a counter for each traffic.

    A device may hold frames for longer than the next trials take, so up to `most_earlier` earlier runs of traffic are
    still counted. `counter_of` gives the counter of new traffic with a tag: a function that says how many frames have
    arrived. If it already counts earlier traffic, that traffic and all before it are no longer counted.
    """

    def __init__(self, counter_of: Callable[[int], Counter], most_earlier: int) -> None:
        self._counter_of = counter_of
        self._most_earlier = most_earlier
        self._traffic: list[_Traffic] = []

    def watch(self, tag: int) -> None:
        """Counts frames of new traffic from now on, by its tag."""
        if self._traffic and self._traffic[0].counted is None:
            # The count of a failed trial was not requested.
            self._traffic[0].count()
        counter = self._counter_of(tag)
        counted_on = takewhile(lambda traffic: traffic.counter != counter, self._traffic[: self._most_earlier])
        self._traffic = [_Traffic(counter), *counted_on]

    def arrived(self) -> int:
        """Frames of the latest traffic that have come back so far."""
        return self._traffic[0].counter()

    def count(self) -> int:
        """The same as `arrived`; frames that come from now on are late."""
        return self._traffic[0].count()

    def end(self, sent: int, received: int) -> None:
        """Notes how many frames of the latest traffic left, and how many came back in time."""
        self._traffic[0].missing = max(0, sent - received)

    def late(self) -> int:
        """Late frames of the latest traffic since the count; none if the trial failed before that."""
        if self._traffic:
            return self._traffic[0].late_and_copies()[0]
        return 0

    def late_of_earlier(self) -> tuple[list[int], int]:
        """Late frames since the last call, by traffic: the previous one, then earlier ones; and further copies.

        The list ends with the oldest traffic that has late frames.
        """
        found = [traffic.late_and_copies() for traffic in self._traffic[1:]]
        late = [frames for frames, _ in found]
        while late and not late[-1]:
            late.pop()
        return late, sum(copies for _, copies in found)

    def counted(self, sent: int, received: int, foreign: int) -> Message:
        """The counters of late and foreign frames, for the latest traffic: see `lossratio.trials.DirectionCounters`.

        Args:
            sent: How many of its frames left.
            received: How many came back in time.
            foreign: How many frames came that belong to no traffic of this generator.
        """
        late, copies = self.late_of_earlier()
        self.end(sent, received)
        return {"late_frames": sum(late[:1]), "earlier_late_frames": late[1:], "foreign_frames": foreign + copies}


class _Traffic:
    """The frames of one run of traffic."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.counted: int | None = None
        """Frames that have been counted so far; None: not requested."""
        self.missing: int | None = None
        """How many of them are still missing; None: not known."""

    def count(self) -> int:
        self.counted = self.counter()
        return self.counted

    def late_and_copies(self) -> tuple[int, int]:
        before = self.counted
        arrived = self.count() - before if before is not None else 0
        late, copies, self.missing = late_and_copies(arrived, self.missing)
        return late, copies
