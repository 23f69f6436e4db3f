# SPDX-License-Identifier: Apache-2.0
"""Latency of one direction: the frames that measure it, when the kernel saw them, and a summary of these times."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Iterator

from ..core.arrays import NDArray, np
from ..core.frames_spec import TAG_BYTES, StreamOrder, TagPlace
from ..core.generator import unknown_latency
from ..core.links import Link
from ..core.pacing import MICROSECOND_NS, frames_within
from ..core.protocol import AgentError, Message
from .clocks import ClockState, clock_state, clocks_error
from .filters import let_probes_through
from .receive import ReceiveRing, overtaken_in, ring_slot_bytes, words_at

_ROOM = 2
_SPARE = 64

PROBE_RATE = 1000.0
"""Latency frames per second in each direction."""
PROBE_SHARE = 0.1
"""The largest share of latency frames in a load."""
_LEAST_SLOT = 512
_NUMBER_BITS = 18
MOST_FRAMES = 1 << _NUMBER_BITS
"""The maximum number of latency frames of one trial that can be distinguished."""
NUMBERS = MOST_FRAMES - 1
"""The bits of a latency frame's tag that hold its number; the other bits are the same in all frames of a trial."""
RESOLUTION_NS = 100
"""Width of the histogram's intervals, in nanoseconds; the kernel's own times are finer, but less exact."""
_CLOCK_WAS_SET = "The system's clock was set while frames were on their way. Measure again when it is in order."
_ONE_CLOCK = (
    "Have chrony at both ends follow one nearby server, give both ports to the TG's first node, or have a "
    "reflector send frames back."
)
_READINGS = 5
_READING_ERROR_NS = 100_000


def latency_frames(load: float, duration: float) -> tuple[int, ...]:
    """Draws which frames of a load measure their latency: their numbers from 0 on, in order.

    They are drawn at random (RFC 2330, section 11.1): at equal distances, they would be in step with a device that
    treats, say, every tenth frame differently, and hit either all of these frames or none.
    """
    rate = min(PROBE_RATE, PROBE_SHARE * load, MOST_FRAMES / 2 / duration)
    return tuple(sorted(random.sample(range(frames_within(duration, load)), frames_within(duration, rate))))


class Probe:
    """Measures the latency of one direction once, with some `frames` of the load, whose tags count up from `tag`.

    It sees late frames until it is closed. `source` or `sink` is None if another agent has that end; that agent then
    says what it saw.

    Attributes:
        name: The direction.
    """

    def __init__(
        self,
        name: str,
        source: tuple[Link, TagPlace] | None,
        sink: tuple[Link, TagPlace] | None,
        *,
        tag: int,
        frames: tuple[int, ...],
        order: StreamOrder | None = None,
    ) -> None:
        self.tag = tag
        self._order = order
        self.frames = frames
        self.name = name
        self._is_whole = None not in (source, sink)
        self._counted = 0
        self._clock = ClockWatch()
        room = len(frames) + _SPARE

        with ExitStack() as opened:
            self._left = self._arrived = None
            if source is not None:
                self._left = StampRing(*source, tag, room, outgoing=True)
                opened.callback(self._left.close)
            if sink is not None:
                self._arrived = StampRing(*sink, tag, _ROOM * room, outgoing=False)
                opened.callback(self._arrived.close)
            self._opened = opened.pop_all()

    def left(self) -> Stamps | None:
        """When its frames left; None: they leave from another node."""
        if self._left is None:
            return None
        return self._by_this_clock(self._left.read())

    def latency(self, elsewhere: Stamps | None = None) -> Message:
        """The latency that was measured; see `lossratio.agent.core.plan.Answer.latency`.

        `elsewhere`: when its frames left, by the agent of the node that they left from.

        Raises:
            AgentError: If it is not known when they left, or they come back to another node.
        """
        arrived = self._by_this_clock(self._arrivals())
        left = self.left() or elsewhere
        if left is None:
            raise AgentError(
                "out_of_step",
                f"The node that sends direction {self.name} did not say when its frames left. Configure the "
                "generator again.",
            )
        answer = summarize(self.name, left, arrived)
        self._counted = answer["received_frames"]
        return {**answer, "by_stream": list(self._by_stream(left, arrived))}

    def late(self) -> int:
        """Latency frames that came back here since the count."""
        if self._arrived is None:
            return 0
        before = self._counted
        self._counted = len(np.unique(self._arrived.read().numbers))
        return self._counted - before

    def close(self) -> None:
        """Closes its sockets."""
        self._opened.close()

    def _by_stream(self, left: Stamps, arrived: Stamps) -> Iterator[Message]:
        """The latency of each of the traffic's streams; latency frames have the same order of streams as all frames."""
        if self._order is None:
            return
        streams = np.array(self._order.streams)
        for number, name in enumerate(self._order.names):
            own_left, own_arrived = (
                stamps.of_frames(streams[stamps.numbers % len(streams)] == number) for stamps in (left, arrived)
            )
            yield {**summarize(self.name, own_left, own_arrived), "stream": name}

    def _by_this_clock(self, stamps: Stamps) -> Stamps:
        """The stamps with what is known about the clock; if both ends are here, its error does not matter."""
        clock = ClockState() if self._is_whole else clock_state()
        return replace(stamps, clock_was_set=self._clock.was_set(), clock=clock)

    def _arrivals(self) -> Stamps:
        if self._arrived is None:
            raise AgentError(
                "out_of_step",
                f"Frames of direction {self.name} come back to another node. Configure the generator again.",
            )
        return self._arrived.read()


@dataclass(frozen=True)
class Stamps:
    """Latency frames, in the order in which the kernel saw them."""

    numbers: NDArray[np.int64]
    """Number of each frame, from 0 in the order of sending."""
    times: NDArray[np.int64]
    """When it was seen, in nanoseconds of the system's clock."""
    overlooked: int
    """Frames for which there was no more room."""
    kernel: str
    """The run of the kernel that saw them, as `started_as` names it; each kernel has one clock."""
    clock_was_set: bool = False
    """Whether its clock was set in the meantime."""
    clock: ClockState = field(default_factory=ClockState)
    """What is known about its clock, if another kernel saw the same frames."""

    def of_frames(self, chosen: NDArray[np.bool_]) -> Stamps:
        """The stamps of some frames."""
        return replace(self, numbers=self.numbers[chosen], times=self.times[chosen])

    def as_message(self) -> Message:
        """These stamps, as a message for the agent at the other end: see `stamps_of`."""
        return {**asdict(self), "numbers": self.numbers.tolist(), "times": self.times.tolist()}


def stamps_of(message: Message) -> Stamps:
    """Reads what `Stamps.as_message` wrote."""
    numbers, times = (np.array(message[name], dtype=np.int64) for name in ("numbers", "times"))
    clock = ClockState(**message["clock"])
    return Stamps(**{**message, "numbers": numbers, "times": times, "clock": clock})


class StampRing(ReceiveRing):
    """Keeps the times at which latency frames leave an interface, or arrive there.

    The kernel stamps a leaving frame when it hands it to the interface's driver, and an arriving frame when it takes it
    from there. `tag` is the tag of the first frame; see `NUMBERS`.
    """

    def __init__(self, link: Link, tag_place: TagPlace, tag: int, frames: int, *, outgoing: bool) -> None:
        self._tag_place = tag_place
        super().__init__(link, max(_LEAST_SLOT, ring_slot_bytes(tag_place.offset + TAG_BYTES)), frames)
        let_probes_through(self.socket, tag_place, tag, ~NUMBERS & 0xFFFFFFFF, outgoing=outgoing)

    def read(self) -> Stamps:
        """Times at which the kernel saw frames since the ring was made; `overlooked` counts since the last call."""
        overlooked, captured = self.overlooked(), self.captured()
        start = self._tag_place.offset
        numbers = words_at(captured.contents(start + 4), start) & NUMBERS
        return Stamps(numbers, captured.times, overlooked, started_as())


def started_as() -> str:
    """The name of the present run of this node's kernel: no other kernel or run has the same name."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def summarize(name: str, left: Stamps, arrived: Stamps) -> Message:
    """The latency of one direction, as in a reply to ``latency``. Each frame was sent once."""
    numbers, first = np.unique(arrived.numbers, return_index=True)
    overtaken = overtaken_in(arrived.numbers[np.sort(first)])
    error = _fault(left, arrived)
    answer: Message = {
        **unknown_latency(name, RESOLUTION_NS / MICROSECOND_NS, error),
        "sent_frames": len(left.numbers),
        "received_frames": len(numbers),
        "out_of_order_frames": overtaken,
        "duplicate_frames": len(arrived.numbers) - len(numbers),
        "middle_us": None,
    }
    if answer["error"] is not None:
        return answer

    clocks = ClockState()
    if left.kernel != arrived.kernel:
        clocks = clocks_error(left.clock, arrived.clock)
        if clocks.problem:
            return {
                **answer,
                "error": f"The two ends are machines with separate clocks, and {clocks.problem}. {_ONE_CLOCK}",
            }

    sent_at = dict(zip(left.numbers.tolist(), left.times.tolist()))
    if not set(numbers.tolist()) <= sent_at.keys():
        return {
            **answer,
            "error": (
                "Latency frames came back that were never sent: something on the path repeats earlier frames. "
                "Look for a loop."
            ),
        }

    sent_times = np.array([sent_at[number] for number in numbers.tolist()], dtype=np.int64)
    latencies = arrived.times[first] - sent_times
    least = int(latencies.min())
    if least <= clocks.error_ns and clocks.reference:
        return {**answer, "error": _within_error(least, clocks)}
    if least < 0:
        return {**answer, "error": f"Frames seem to have arrived before they left. {_CLOCK_WAS_SET}"}

    intervals, counts = np.unique(latencies // RESOLUTION_NS, return_counts=True)
    differences = np.abs(np.diff(latencies))
    after_middle = latencies[sent_times >= (int(left.times[0]) + int(left.times[-1])) // 2]
    middle = float(after_middle[0]) / MICROSECOND_NS if len(after_middle) else None
    jitter = float(differences.mean()) / MICROSECOND_NS if len(differences) else 0.0
    histogram = []
    for interval, count in zip(intervals.tolist(), counts.tolist()):
        histogram.append([interval * RESOLUTION_NS / MICROSECOND_NS, count])

    # Record: the latencies of a direction.
    return {
        **answer,
        "least_us": float(least) / MICROSECOND_NS,
        "mean_us": float(latencies.mean()) / MICROSECOND_NS,
        "most_us": float(latencies.max()) / MICROSECOND_NS,
        "jitter_us": jitter,
        "middle_us": middle,
        "histogram": histogram,
        "clock_error_us": clocks.error_ns / MICROSECOND_NS,
    }


def _within_error(least: int, clocks: ClockState) -> str:
    """Why latencies are not stated if the smallest one (nanoseconds) is not beyond the error of the clocks."""
    return (
        f"The smallest latency is {least / MICROSECOND_NS:.0f} µs by the clocks of both machines, which may differ by "
        f"{clocks.error_ns / MICROSECOND_NS:.0f} µs (chrony, {clocks.reference}). {_ONE_CLOCK}"
    )


def _fault(left: Stamps, arrived: Stamps) -> str | None:
    if left.clock_was_set or arrived.clock_was_set:
        return _CLOCK_WAS_SET
    if left.overlooked or arrived.overlooked:
        return (
            "More latency frames came back than were sent: something on the path copies them. Look for a "
            "loop or a mirror port."
        )
    if not len(arrived.numbers):
        return (
            f"None of {len(left.numbers)} latency frames came back. Measure at a lower load, "
            "at which frames get through."
        )
    return None


class ClockWatch:
    """Watches the system's clock from now on, when it is this many nanoseconds `ahead` of the monotonic clock.

    Slewing goes unnoticed, but does no harm, because it changes both clocks alike.
    """

    def __init__(self) -> None:
        self.ahead = _ahead()

    def was_set(self) -> bool:
        """Whether it was set since then, by more than a tenth of a millisecond."""
        return abs(_ahead() - self.ahead) > _READING_ERROR_NS


def _ahead() -> int:
    """Nanoseconds by which the system's clock is ahead of the monotonic clock."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_READINGS)]
    before, now, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return now - (before + after) // 2
