# SPDX-License-Identifier: Apache-2.0
"""The program that sends (`send.c`), and the memory that the agent shares with it.

The kernel runs it repeatedly. For each stream, it has a schedule of segments, each a number of frames at a rate. A
segment also has the counts of what was sent.
"""

from __future__ import annotations

import ctypes
import math
import sys
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from lossratio.bpf import Array, Attachment

from ..core.protocol import unsupported
from .constants import FOREVER, MOST_WAYS, Frames, constants_of, program, structure
from .frames import FramePlan, Share

MOST_SEGMENTS = 64
"""The maximum number of segments of a schedule."""


_Segment = structure(
    "u64 interval, interval_fraction, frames, begin, begin_fraction, last_call, catch_up",
    "u32 tag, tag_sum",
    "u64 first, is_patient, sent, unsent, lateness, last",
)
_Schedule = structure("u64 left, number, index, fraction", ("segments", _Segment * MOST_SEGMENTS))
_Stream = structure(("frames", Frames), "u32 interface, first, step, ring")


@dataclass(frozen=True)
class Segment:
    """A part of a stream's schedule."""

    interval: float
    """Nanoseconds from frame to frame; 0: as fast as possible."""
    frames: int
    """Number of frames."""
    begin: float
    """Nanoseconds from the start of the schedule to its first frame."""
    last_call: float
    """Nanoseconds from the start after which its frames stay unsent."""
    catch_up: float
    """Nanoseconds of lateness up to which frames are still sent; older ones stay unsent."""
    tag: int
    """Tag of its frames."""
    renumbers: bool = True
    """Whether its first frame has the number 0; otherwise, the numbers continue."""
    is_patient: bool = False
    """Whether everything after a stall longer than `catch_up` leaves later by that stall, and nothing stays unsent."""


@dataclass(frozen=True)
class SentSegment:
    """What was sent of a segment."""

    sent: int
    """Frames."""
    unsent: int
    """Frames for which there was no time."""
    lateness: float
    """The largest time by which a frame was late, in seconds."""
    last: float
    """Seconds from the start of the schedule to its last frame."""


class ScheduledProgram:
    """A program that sends the frames of some streams, each by its schedule.

    Attributes:
        template: A frame for the kernel's initial memory.
        program: The program.
        last_call: When its last frames must leave, in nanoseconds of the kernel's monotonic clock; 0: there are none.
    """

    def __init__(
        self, name: str, streams: int, template: bytes, contents: bytes, maps: Mapping[str, Array], **constants: bytes
    ) -> None:
        sending = structure(f"u64 start, until, clock, dues[{MOST_WAYS}]", ("schedules", _Schedule * streams))
        self._memory = Array(ctypes.sizeof(sending), "lossratio_send")
        self._shared = sending.from_buffer(self._memory.memory)
        self._contents = Array(len(contents), "lossratio_frame")
        self._contents.memory[: len(contents)] = contents
        self.template = template
        self.stop()
        self.clear()
        all_maps = {"sending": self._memory, "contents": self._contents, **maps}
        self.program = program(name).load(f"lossratio_{name}", all_maps, constants)
        self._ready = Attachment.nowhere(self.program)

    def close(self) -> None:
        """Gives program and memory back."""
        for one in (self._ready, self.program, self._memory, self._contents):
            one.close()

    def clear(self) -> None:
        """Empties all schedules, so that the program waits for new ones."""
        self._shared.start = FOREVER
        self.last_call = 0
        for number in range(MOST_WAYS):
            self._shared.dues[number] = FOREVER

    def schedule(self, start: int, segments: Sequence[Sequence[Segment]]) -> None:
        """Gives each stream its segments; an empty segment ends the stream. Nothing is sent before `renew` allows it.

        All start at a time in nanoseconds of the kernel's monotonic clock.
        """
        self.clear()
        for schedule, one in zip(self._shared.schedules, segments):
            if len(one) > MOST_SEGMENTS:
                raise ValueError(f"A schedule has {len(one)} segments, but can have at most {MOST_SEGMENTS}.")
            ctypes.memset(ctypes.addressof(schedule), 0, ctypes.sizeof(schedule))
            for index, segment in enumerate(one):
                schedule.segments[index] = _packed(segment)
            schedule.left, schedule.fraction = schedule.segments[0].frames, schedule.segments[0].begin_fraction
        for number, schedule in enumerate(self._shared.schedules):
            if schedule.left:
                self._shared.dues[number] = schedule.segments[0].begin
        self.last_call = start + _whole(min(stream[-1].last_call for stream in segments))
        self._shared.start = start

    def renew(self, until: int) -> None:
        """Allows it to send until a time of the kernel's clock, in nanoseconds."""
        self._shared.until = until

    def stop(self) -> None:
        """Forbids it to send."""
        self._shared.until = 0

    def last_run(self) -> int:
        """When it ran last, in nanoseconds of the kernel's clock; 0: never."""
        return int(self._shared.clock)

    def has_finished(self) -> bool:
        """Whether all schedules are at their end."""
        return all(due == FOREVER for due in self._shared.dues)

    def sent(self, stream: int, segment: int) -> SentSegment:
        """What was sent of a segment so far."""
        one = self._shared.schedules[stream].segments[segment]
        return SentSegment(one.sent, one.unsent, one.lateness / 1e9, one.last / 1e9)


class SendProgram(ScheduledProgram):
    """A program that sends the frames of some streams.

    Each stream has the frames of its direction, and the number of the interface that they leave from. The time of each
    frame is kept in `times`.
    """

    def __init__(self, streams: Sequence[tuple[FramePlan, int, Share]], times: Array) -> None:
        if len(streams) > MOST_WAYS:
            raise unsupported(
                f"Each sender of the generator xdp serves at most {MOST_WAYS} directions. Give the generator more "
                "'cpus'."
            )

        plans = [plan for plan, _, _ in streams]
        frames, contents = constants_of(plans)
        ways = (_Stream * MOST_WAYS)(
            *(
                _Stream(one, interface, *stream.share, stream.number)
                for one, (_, interface, stream) in zip(frames, streams)
            )
        )
        template = max((template for plan in plans for template in plan.templates), key=len)
        constants = {"STREAMS": bytes(ctypes.c_uint32(len(streams))), "STREAM": bytes(ways)}
        super().__init__("send", len(streams), template, contents, {"times": times}, **constants)


def _packed(segment: Segment) -> Any:
    # Record: a segment as the program in C reads it.
    return _Segment(
        *_fixed(segment.interval),
        segment.frames,
        *_fixed(segment.begin),
        _whole(segment.last_call),
        _whole(segment.catch_up),
        int.from_bytes(segment.tag.to_bytes(4, "big"), sys.byteorder),
        (segment.tag >> 16) + (segment.tag & 0xFFFF),
        0 if segment.renumbers else FOREVER,
        segment.is_patient,
    )


def _fixed(nanoseconds: float) -> tuple[int, int]:
    """Nanoseconds, and their fraction in units of 2^-32."""
    return divmod(round(nanoseconds * (1 << 32)), 1 << 32)


def _whole(nanoseconds: float) -> int:
    if nanoseconds == math.inf:
        return FOREVER
    return round(nanoseconds)
