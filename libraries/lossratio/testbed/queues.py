"""How many frames the receive queues of the DUTs took and dropped in a trial."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from lossratio.dut import Dut
from lossratio.trials import QueueCounters

_Place: TypeAlias = tuple[str, str, int]
"""The DUT, the interface, and the number of a queue."""


class QueueReader:
    """Reads the counters of the receive queues between trials, of the DUTs that count drops by queue."""

    def __init__(self, duts: Sequence[Dut[Any]]) -> None:
        self._duts = duts
        self.begin()

    def begin(self) -> None:
        """Begins a measurement. Frames follow that belong to no trial."""
        self._counting = list(self._duts)
        self._before: dict[_Place, QueueCounters] | None = None
        self._is_newest = False

    def begin_attempt(self) -> None:
        """Reads the counters before an attempt at a trial, unless no frames have passed since the last reading.

        Raises:
            NodeError: If a node cannot be reached.
        """
        is_first = self._before is None
        if not self._is_newest and self._counting:
            self._before = self._read()
            if is_first:
                nodes = {counters.node for counters in self._before.values()}
                # Frames have passed the path before. Where no queue has counted one of them, none counts any.
                self._counting = [dut for dut in self._duts if dut.hop.label in nodes]
        self._is_newest = False

    def read(self) -> tuple[QueueCounters, ...]:
        """The counters since the last reading.

        Raises:
            NodeError: If a node cannot be reached.
        """
        if not self._counting:
            return ()
        before = self._before or {}
        self._before = self._read()
        self._is_newest = True
        return tuple(_since(now, before.get(place)) for place, now in self._before.items())

    def _read(self) -> dict[_Place, QueueCounters]:
        counters = {}
        for dut in self._counting:
            for queue in dut.read_queues():
                read = QueueCounters(node=dut.hop.label, **queue)
                counters[read.node, read.interface, read.queue] = read
        return counters


def _since(now: QueueCounters, before: QueueCounters | None) -> QueueCounters:
    """The counters of a queue since an earlier reading. An interface that was made again counts from zero."""
    if before is None or now.frames < before.frames:
        return now
    return replace(
        now,
        frames=now.frames - before.frames,
        dropped_frames=max(0, now.dropped_frames - before.dropped_frames),
    )
