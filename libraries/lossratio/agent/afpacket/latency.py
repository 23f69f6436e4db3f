# SPDX-License-Identifier: Apache-2.0
"""Latency of one direction: the frames that measure it, when the kernel saw them, and a summary of these times."""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass, field, replace

from ..core.arrays import NDArray, np
from ..core.configuration import Direction
from ..core.frames_spec import TAG_BYTES, TagPlace
from ..core.generator import unknown_latency
from ..core.links import Link
from ..core.pacing import MICROSECOND_NS, frames_within
from ..core.protocol import Message
from .clocks import ClockState, clock_state, clocks_error
from .filters import let_probes_through
from .receive import CapturedFrames, ReceiveRing, overtaken_in, ring_slot_bytes, words_at
from .sender import SendOrder

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
_CLOCK_WAS_SET = "The system's clock was set while frames were on their way. Measure again when the clock is stable."
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


def latency_of(direction: Direction, left: Stamps, arrived: Stamps) -> Message:
    """The latency of a direction's frames; see `lossratio.agent.core.plan.Answer.latency`."""
    answer = {**summarize(direction.name, left, arrived), "by_stream": []}
    order = direction.frames.order
    if order is None:
        return answer
    # Latency frames have the same order of streams as all frames.
    streams = np.array(order.streams)
    for number, name in enumerate(order.names):
        own = [stamps.of_frames(streams[stamps.numbers % len(streams)] == number) for stamps in (left, arrived)]
        answer["by_stream"].append({**summarize(direction.name, *own), "stream": name})
    return answer


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
    """Keeps the times at which the latency frames of an order leave an interface, or arrive there.

    The kernel stamps a leaving frame when it hands it to the interface's driver, and an arriving frame when it takes it
    from there. It sees late frames until it is closed.
    """

    def __init__(self, link: Link, place: TagPlace, order: SendOrder, direction: Direction, *, outgoing: bool) -> None:
        self._place = place
        # If both ends are here, the error of the clock does not matter.
        self._has_other_end = bool(direction.elsewhere)
        self._clock = ClockWatch()
        slots = (len(order.probes) + _SPARE) * (1 if outgoing else _ROOM)
        super().__init__(link, max(_LEAST_SLOT, ring_slot_bytes(place.offset + TAG_BYTES)), slots)
        let_probes_through(self.socket, place, order.probe_tag, ~NUMBERS & 0xFFFFFFFF, outgoing=outgoing)

    def read(self) -> Stamps:
        """Times at which the kernel saw frames since the ring was made; `overlooked` counts since the last call."""
        overlooked, captured = self.overlooked(), self.captured()
        clock = clock_state() if self._has_other_end else ClockState()
        return Stamps(self._numbers(captured), captured.times, overlooked, started_as(), self._clock.was_set(), clock)

    def seen(self) -> int:
        """How many frames it has seen, without copies."""
        return len(np.unique(self._numbers(self.captured())))

    def _numbers(self, captured: CapturedFrames) -> NDArray[np.int64]:
        start = self._place.offset
        return words_at(captured.contents(start + 4), start) & NUMBERS


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
