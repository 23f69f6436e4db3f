"""Latency of one direction: frames that measure it, when the kernel saw them, and a summary of these times."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..core.configuration import TAG_BYTES, TagPlace
from ..core.links import Link
from ..core.protocol import Message
from .receive import ReceiveRing, let_probes_through, ring_slot_bytes
from .sender import Sender, SenderSetup, SendOrder

_ROOM = 2
_SPARE = 64

PROBE_RATE = 997.0
"""Latency frames per second in each direction.

A prime number, so that they do not keep step with the load, which is sent in bursts of a round number of microseconds.
"""

PROBE_SHARE = 0.1
"""Share of a load that is latency frames at most."""
_LEAST_SLOT = 512
_NUMBER_BITS = 18
MOST_FRAMES = 1 << _NUMBER_BITS
"""Latency frames of one trial that can be distinguished."""

NUMBERS = MOST_FRAMES - 1
"""The bits of a latency frame's tag that hold its number; the others are the same in all frames of a trial."""

RESOLUTION_NS = 100
"""Width of the histogram's intervals, in nanoseconds; the kernel's own times are finer, and less exact."""

_MICROSECOND = 1000.0
_CLOCK_WAS_SET = "The system's clock was set while frames were on their way. Measure again when it is in order."
_READINGS = 5
_READING_ERROR_NS = 100_000


def probe_rate(load: float, duration: float) -> float:
    """Latency frames per second within a load.

    Args:
        load: Frames per second.
        duration: Seconds.
    """
    # Less by a half, as one frame is due at the very beginning.
    return min(PROBE_RATE, PROBE_SHARE * load, MOST_FRAMES / 2 / duration)


class Probe:
    """Measures the latency of one direction once.

    Args:
        name: The direction.
        setup: The sender of the direction's load.
        source: Interface that the frames leave from.
        sink: Interface that they come back to.
        tag: Tag of the first latency frame.
        rate: Latency frames per second.
        duration: Seconds for which there will be some.

    Attributes:
        name: The direction.
        rate: Latency frames per second.
        sender: The process that sends them.

    Raises:
        OSError: If the kernel does not give the sockets.
    """

    def __init__(
        self, name: str, setup: SenderSetup, source: Link, sink: Link, tag: int, *, rate: float, duration: float
    ) -> None:
        self.name = name
        self.rate = rate
        self._tag = tag
        self._duration = duration
        self._clock = ClockWatch()
        frames = int(rate * duration) + _SPARE
        with ExitStack() as opened:
            self.sender = Sender(replace(setup, probes=True))
            opened.callback(self.sender.close)
            self._left = StampRing(source.name, source.index, setup.tag_place, tag, frames, outgoing=True)
            opened.callback(self._left.close)
            self._arrived = StampRing(sink.name, sink.index, setup.tag_place, tag, _ROOM * frames, outgoing=False)
            opened.callback(self._arrived.close)
            self._opened = opened.pop_all()

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def start(self) -> None:
        """Begins to send.

        Raises:
            AgentError: If the sender died.
        """
        self.sender.start(SendOrder(self.rate, self._duration, self._tag))

    def latency(self) -> Message:
        """The latency that was measured; see `lossratio.traffic.agent.core.generator.Generator.latency`."""
        return summarize(self.name, self._left.read(), self._arrived.read(), clock_was_set=self._clock.was_set())


@dataclass(frozen=True)
class Stamps:
    """Latency frames as the kernel saw them, in the order in which it did.

    Attributes:
        numbers: Number of each frame, from 0 in the order of sending.
        times: When it was seen, in nanoseconds of the system's clock.
        overlooked: Frames that there was no more room for.
    """

    numbers: NDArray[np.int64]
    times: NDArray[np.int64]
    overlooked: int


class StampRing:
    """Keeps the time at which latency frames pass an interface.

    The kernel stamps a leaving frame when it hands it to the interface's driver, and an arriving one when it takes it
    from there.

    Args:
        interface: Name of the interface.
        index: The kernel's number of it.
        tag_place: Where the tag is in each frame.
        tag: The tag of the first frame; see `NUMBERS`.
        frames: How many frames there is to be room for.
        outgoing: Whether frames are to be seen when they leave the interface, instead of when they arrive.

    Raises:
        OSError: If the kernel does not give the ring.
    """

    def __init__(
        self, interface: str, index: int, tag_place: TagPlace, tag: int, frames: int, *, outgoing: bool
    ) -> None:
        self._tag_place = tag_place
        slot = max(_LEAST_SLOT, ring_slot_bytes(tag_place.offset + TAG_BYTES))
        self._ring = ReceiveRing(interface, index, slot, frames)
        let_probes_through(self._ring.socket, tag_place, tag, ~NUMBERS & 0xFFFFFFFF, outgoing=outgoing)

    def read(self) -> Stamps:
        """Times at which the kernel saw frames since the ring was made; to be asked once."""
        overlooked, captured = self._ring.overlooked(), self._ring.captured()
        start = self._tag_place.offset
        tags = np.ascontiguousarray(captured.contents(start + 4)[:, start:]).view(">u4")[:, 0]
        return Stamps(tags.astype(np.int64) & NUMBERS, captured.times, overlooked)

    def close(self) -> None:
        """Closes the socket."""
        self._ring.close()


def summarize(name: str, left: Stamps, arrived: Stamps, *, clock_was_set: bool) -> Message:
    """The latency of one direction, as a reply to ``latency`` has it.

    Args:
        name: The direction.
        left: The frames as they left, each once.
        arrived: The frames as they came back.
        clock_was_set: Whether the clock of these times was set meanwhile.
    """
    numbers, first = np.unique(arrived.numbers, return_index=True)
    in_order = np.sort(first)
    firsts = arrived.numbers[in_order]
    answer: Message = {
        "name": name,
        "sent": len(left.numbers),
        "received": len(numbers),
        "out_of_order": int(np.count_nonzero(firsts < np.maximum.accumulate(firsts))) if len(firsts) else 0,
        "duplicates": len(arrived.numbers) - len(numbers),
        "min_us": None,
        "average_us": None,
        "max_us": None,
        "jitter_us": None,
        "middle_us": None,
        "hdr": None,
        "histogram": [],
        "resolution_us": RESOLUTION_NS / _MICROSECOND,
        "error": _CLOCK_WAS_SET if clock_was_set else _fault(left, arrived),
    }
    if answer["error"] is not None:
        return answer
    sent_at = dict(zip(left.numbers.tolist(), left.times.tolist()))
    if not set(numbers.tolist()) <= sent_at.keys():
        return {**answer, "error": "Latency frames came back that never left. Something repeats earlier frames."}
    sent_times = np.array([sent_at[number] for number in numbers.tolist()], dtype=np.int64)
    latencies = arrived.times[first] - sent_times
    if int(latencies.min()) < 0:
        return {**answer, "error": f"Frames seem to have arrived before they left. {_CLOCK_WAS_SET}"}
    intervals, counts = np.unique(latencies // RESOLUTION_NS, return_counts=True)
    differences = np.abs(np.diff(latencies))
    middle = (int(left.times[0]) + int(left.times[-1])) // 2
    after_middle = latencies[sent_times >= middle]
    return {
        **answer,
        "min_us": float(latencies.min()) / _MICROSECOND,
        "average_us": float(latencies.mean()) / _MICROSECOND,
        "max_us": float(latencies.max()) / _MICROSECOND,
        "jitter_us": float(differences.mean()) / _MICROSECOND if len(differences) else 0.0,
        "middle_us": float(after_middle[0]) / _MICROSECOND if len(after_middle) else None,
        "histogram": [
            [interval * RESOLUTION_NS / _MICROSECOND, count]
            for interval, count in zip(intervals.tolist(), counts.tolist())
        ],
    }


def _fault(left: Stamps, arrived: Stamps) -> str | None:
    if left.overlooked or arrived.overlooked:
        return "More latency frames came back than can be, or left: something repeats them."
    if not len(arrived.numbers):
        return f"None of {len(left.numbers)} latency frames came back."
    return None


class ClockWatch:
    """Watches the system's clock from now on.

    Slewing goes unnoticed, and does no harm: it changes both clocks alike.

    Attributes:
        ahead: Nanoseconds that it was ahead of the clock that cannot be set.
    """

    def __init__(self) -> None:
        self.ahead = _ahead()

    def was_set(self) -> bool:
        """Whether it was set since then, by more than a tenth of a millisecond."""
        return abs(_ahead() - self.ahead) > _READING_ERROR_NS


def _ahead() -> int:
    """Nanoseconds that the system's clock is ahead of the one that cannot be set."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_READINGS)]
    before, now, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return now - (before + after) // 2
