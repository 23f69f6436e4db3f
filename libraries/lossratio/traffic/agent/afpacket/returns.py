"""Counts a direction's frames that come back: those of the latest traffic, and late ones of earlier traffic."""

from __future__ import annotations

from ..core.configuration import TagPlace
from ..core.generator import late_and_copies
from ..core.links import Link
from .receive import FrameCounter

MOST_EARLIER = 8
"""Earlier traffic whose late frames are counted, each by a counter of its own, where a device holds frames."""


class Returns:
    """Counts frames by the tags of their traffic.

    Of earlier traffic usually only the latest is counted, as each counter costs time with each frame. A device that
    has held frames for too long, or that let none through, may hold them for longer than the next trial takes. From
    then on all earlier traffic is counted of which frames are missing.
    """

    def __init__(self, sink: Link, place: TagPlace) -> None:
        self._sink, self._place = sink, place
        self._traffic: list[_Traffic] = []
        self._spare = [FrameCounter(sink, place) for _ in range(2)]
        self._may_hold_frames = False

    def watch(self, tag: int) -> None:
        """Counts frames of new traffic from now on, by its tag."""
        if self._traffic and self._traffic[0].counted is None:
            # Nobody has asked for the count of a trial that failed.
            self._traffic[0].count()
        self._end_counters()
        counter = self._spare.pop() if self._spare else FrameCounter(self._sink, self._place)
        counter.watch(tag)
        self._traffic.insert(0, _Traffic(counter))

    def arrived(self) -> int:
        """Frames of the latest traffic that came back until now."""
        return self._traffic[0].counter.read()

    def count(self) -> int:
        """The same; frames that come from now on are late."""
        return self._traffic[0].count()

    def end(self, sent: int, received: int) -> None:
        """Says how many frames of the latest traffic left, and how many came back in time."""
        self._traffic[0].missing = max(0, sent - received)
        if sent and not received:
            self._may_hold_frames = True

    def late(self) -> int:
        """Late frames of the latest traffic since they were counted; none of a trial that failed before that."""
        return self._late_and_copies(self._traffic[0])[0] if self._traffic else 0

    def late_of_earlier(self) -> tuple[list[int], int]:
        """Late frames of the traffic before, of that before that..., since this was asked; further copies of all."""
        found = [self._late_and_copies(traffic) for traffic in self._traffic[1:]]
        return [late for late, _ in found], sum(copies for _, copies in found)

    def close(self) -> None:
        """Closes all sockets."""
        for counter in (*self._spare, *(traffic.counter for traffic in self._traffic)):
            counter.close()

    def _late_and_copies(self, traffic: _Traffic) -> tuple[int, int]:
        is_counted = traffic.counted is not None and traffic.missing is not None
        late, copies = traffic.late_and_copies()
        if late and is_counted:
            self._may_hold_frames = True
        return late, copies

    def _end_counters(self) -> None:
        """Ends those of traffic that is too old, or of which nothing is missing, before the next traffic begins."""
        kept = MOST_EARLIER if self._may_hold_frames else 1
        while len(self._traffic) > kept or (len(self._traffic) > 1 and self._traffic[-1].missing == 0):
            counter = self._traffic.pop().counter
            counter.stop()
            self._spare.append(counter)


class _Traffic:
    """The frames of one traffic."""

    def __init__(self, counter: FrameCounter) -> None:
        self.counter = counter
        self.counted: int | None = None
        """Frames that were counted until now; None: nobody has asked."""
        self.missing: int | None = None
        """How many of them are still missing; None: not known."""

    def count(self) -> int:
        self.counted = self.counter.read()
        return self.counted

    def late_and_copies(self) -> tuple[int, int]:
        before = self.counted
        arrived = self.count() - before if before is not None else 0
        late, copies, self.missing = late_and_copies(arrived, self.missing)
        return late, copies
