"""Counts a direction's frames that come back: those of the latest traffic, and late ones of earlier traffic."""

from __future__ import annotations

from typing import Callable, Protocol

from .generator import late_and_copies


class FrameCounter(Protocol):
    """Counts arriving frames with a tag."""

    def watch(self, tag: int) -> None:
        """Counts frames with this tag from now on, from zero."""

    def read(self) -> int:
        """Frames counted since then."""

    def stop(self) -> None:
        """Counts nothing more."""

    def close(self) -> None:
        """Gives all that it has back."""


class Returns:
    """Counts frames by the tags of their traffic, each traffic by a counter of its own.

    Where each counter costs time with each frame (`is_costly`), usually only the latest of earlier traffic is counted.
    A device that has held frames for too long, or that let none through, may hold them for longer than the next trial
    takes. From then on all earlier traffic is counted of which frames are missing, up to `most_earlier`.
    """

    def __init__(self, make_counter: Callable[[], FrameCounter], most_earlier: int, *, is_costly: bool) -> None:
        self._make_counter = make_counter
        self._most_earlier = most_earlier
        self._traffic: list[_Traffic] = []
        self._spare = [make_counter() for _ in range(2)]
        self._counts_all = not is_costly

    def watch(self, tag: int) -> None:
        """Counts frames of new traffic from now on, by its tag."""
        if self._traffic and self._traffic[0].counted is None:
            # Nobody has asked for the count of a trial that failed.
            self._traffic[0].count()
        self._end_counters()
        counter = self._spare.pop() if self._spare else self._make_counter()
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
            self._counts_all = True

    def late(self) -> int:
        """Late frames of the latest traffic since they were counted; none of a trial that failed before that."""
        if self._traffic:
            return self._late_and_copies(self._traffic[0])[0]
        return 0

    def late_of_earlier(self) -> tuple[list[int], int]:
        """Late frames of the traffic before, of that before that..., since this was asked; further copies of all.

        It ends with the oldest traffic that has some.
        """
        found = [self._late_and_copies(traffic) for traffic in self._traffic[1:]]
        late = [frames for frames, _ in found]
        while late and not late[-1]:
            late.pop()
        return late, sum(copies for _, copies in found)

    def close(self) -> None:
        """Closes all sockets."""
        for counter in (*self._spare, *(traffic.counter for traffic in self._traffic)):
            counter.close()

    def _late_and_copies(self, traffic: _Traffic) -> tuple[int, int]:
        is_counted = traffic.counted is not None and traffic.missing is not None
        late, copies = traffic.late_and_copies()
        if late and is_counted:
            self._counts_all = True
        return late, copies

    def _end_counters(self) -> None:
        """Ends those of traffic that is too old, or of which nothing is missing, before the next traffic begins."""
        kept = self._most_earlier if self._counts_all else 1
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
