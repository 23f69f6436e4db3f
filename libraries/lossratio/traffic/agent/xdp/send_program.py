"""The program that sends: it looks at the clock, and writes the frame that is due, or none.

The kernel runs it again and again. What it is to send is in memory that the agent shares: for each stream a schedule of
segments, each a number of frames at a rate. A segment also has the counts of what was sent of it.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Sequence

from lossratio.bpf import (
    DW,
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
    Array,
    Assembler,
    Helper,
    XdpAction,
    XdpProgram,
)

from .frame_code import FREE_STACK, FrameCode

FRACTION_BITS = 20
"""Bits behind the point of times in the schedule, which are in nanoseconds."""

MOST_SEGMENTS = 64
"""Segments of a schedule at most."""

FOREVER = (1 << 64) - 1
"""A time, or a number, that never comes."""

SLACK_BITS = 3
"""Frames that are too late stay unsent until the next one is no later than `Segment.catch_up`, less 1/8 of it."""

RING_BITS = 20
"""Of how many frames of a stream the time of sending is kept: a power of two. Later ones take their places."""

WRAP_BITS = 16
"""Lower bits of an entry of the ring that hold how often the ring was full before this frame, plus 1.

Above them is the time of sending: the lower 48 bits of the kernel's clock in nanoseconds.
"""

_START, _UNTIL, _CLOCK, _CPU, _HOME, _STRAYED, _DUES = 0, 8, 16, 24, 32, 40, 64
_LEFT, _NUMBER, _INDEX, _SEGMENTS = 0, 8, 16, 24
_INTERVAL, _FRAMES, _BEGIN, _LAST_CALL, _CATCH_UP, _TAG, _FIRST = 0, 8, 16, 24, 32, 40, 48
_SENT, _UNSENT, _LATENESS, _LAST = 56, 64, 72, 80
_SEGMENT_BYTES = 88
_STREAM_BYTES = _SEGMENTS + MOST_SEGMENTS * _SEGMENT_BYTES
_NUMBER_SLOT, _ORDER_SLOT = -FREE_STACK - 8, -FREE_STACK - 16


@dataclass(frozen=True)
class SendStream:
    """One sender's frames of a direction, with numbers of their own from 0 on."""

    frames: FrameCode
    """Code for the frames."""
    interface: int
    """Number of the interface that they leave from."""
    times: Array
    """When each of the latest frames was sent: see `RING_BITS` and `WRAP_BITS`."""
    first: int = 0
    """Which of the direction's frames is its first one."""
    step: int = 1
    """By how many of the direction's frames its frames are apart."""
    flows: Array | None = None
    """Counts of received frames by flow, four bytes each; None: flows are not counted."""


@dataclass(frozen=True)
class Segment:
    """A part of a stream's schedule."""

    interval: float
    """Nanoseconds from frame to frame; 0: as fast as can be."""
    frames: int
    """How many."""
    begin: float
    """Nanoseconds from the start of the schedule to its first frame."""
    last_call: float
    """Nanoseconds from the start after which its frames stay unsent."""
    catch_up: float
    """Nanoseconds of lateness up to which frames are made up for; older ones stay unsent."""
    tag: int
    """Tag of its frames."""
    renumbers: bool = True
    """Whether its first frame has the number 0; otherwise the numbers go on."""


@dataclass(frozen=True)
class SentSegment:
    """What was sent of a segment."""

    sent: int
    """Frames."""
    unsent: int
    """Frames that there was no time for."""
    lateness: float
    """Seconds by which a frame was late at most."""
    last: float
    """Seconds from the start of the schedule to its last frame."""


class SendProgram:
    """A program that sends the frames of some streams, each by its schedule.

    Args:
        streams: The streams.

    Attributes:
        template: A frame for the memory that the kernel begins with.
        program: The program.

    Raises:
        BpfError: If the kernel refuses it.
    """

    def __init__(self, streams: Sequence[SendStream]) -> None:
        self._count = len(streams)
        self._streams = _DUES + 8 * self._count
        self._control = Array(self._streams + _STREAM_BYTES * self._count, "lossratio_send")
        self.template = max((template for stream in streams for template in stream.frames.plan.templates), key=len)
        self.stop()
        self.clear()
        code = Assembler()
        self._assemble(code, streams)
        self.program = XdpProgram(code.code(), "lossratio_send")

    def close(self) -> None:
        """Gives program and memory back."""
        self.program.close()
        self._control.close()

    def clear(self) -> None:
        """Empties all schedules, so that it waits for one."""
        self._put(_START, FOREVER)
        for number in range(self._count):
            self._put(_DUES + 8 * number, FOREVER)

    def schedule(self, start: int, segments: Sequence[Sequence[Segment]], home: int = 0) -> None:
        """Gives each stream a schedule. Nothing is sent before `renew` has allowed it.

        Args:
            start: When it starts, in nanoseconds of the kernel's monotonic clock.
            segments: The segments of each stream. One without frames ends it.
            home: The processor that it should run on.

        Raises:
            ValueError: If there are more than `MOST_SEGMENTS`.
        """
        self.clear()
        for number, one in enumerate(segments):
            if len(one) > MOST_SEGMENTS:
                raise ValueError(f"A schedule has {len(one)} segments, and may have {MOST_SEGMENTS}.")
            base = self._streams + _STREAM_BYTES * number
            table = b"".join(_pack(segment) for segment in one).ljust(_STREAM_BYTES - _SEGMENTS, b"\0")
            state = struct.pack("=QQQ", one[0].frames if one else 0, 0, 0)
            self._control.memory[base : base + _STREAM_BYTES] = state + table
        for number, one in enumerate(segments):
            if one and one[0].frames:
                self._put(_DUES + 8 * number, _fixed(one[0].begin))
        self._put(_HOME, home)
        self._put(_STRAYED, 0)
        self._put(_START, start)

    def renew(self, until: int) -> None:
        """Allows it to send until a time of the kernel's clock, in nanoseconds."""
        self._put(_UNTIL, until)

    def stop(self) -> None:
        """Forbids it to send."""
        self._put(_UNTIL, 0)

    def last_run(self) -> int:
        """When it ran last, in nanoseconds of the kernel's clock; 0: never."""
        return self._get(_CLOCK)

    def last_processor(self) -> int:
        """The processor that it ran on last."""
        return self._get(_CPU)

    def strayed_to(self) -> int | None:
        """Another processor than it should be on, where it ran since the last schedule; None: there is none."""
        processor = self._get(_STRAYED)
        return processor - 1 if processor else None

    def has_finished(self) -> bool:
        """Whether all schedules are at their end."""
        return all(self._get(_DUES + 8 * number) == FOREVER for number in range(self._count))

    def sent(self, stream: int, segment: int) -> SentSegment:
        """What was sent of a segment so far."""
        base = self._streams + _STREAM_BYTES * stream + _SEGMENTS + _SEGMENT_BYTES * segment
        sent, unsent, lateness, last = (self._get(base + place) for place in (_SENT, _UNSENT, _LATENESS, _LAST))
        return SentSegment(sent, unsent, lateness / 1e9, last / 1e9)

    def _put(self, place: int, number: int) -> None:
        self._control.words[place // 8] = number

    def _get(self, place: int) -> int:
        return self._control.words[place // 8]

    def _assemble(self, code: Assembler, streams: Sequence[SendStream]) -> None:
        code.mov(R6, R1)
        code.call(Helper.KTIME_GET_NS)
        code.mov(R9, R0)
        code.ld_map_value(R7, self._control.descriptor)
        code.stx(DW, R7, _CLOCK, R9)
        code.call(Helper.GET_SMP_PROCESSOR_ID)
        code.stx(DW, R7, _CPU, R0)
        code.ldx(DW, R1, R7, _HOME)
        code.jeq(R0, R1, "at home")
        code.add(R0, 1)
        code.stx(DW, R7, _STRAYED, R0)
        code.label("at home")
        code.ldx(DW, R1, R7, _START)
        code.jlt(R9, R1, "idle")
        code.ldx(DW, R2, R7, _UNTIL)
        code.jge(R9, R2, "idle")
        code.mov(R8, R9)
        code.sub(R8, R1)
        # The stream whose next frame is due first: all of them are late alike, if any is.
        code.ldx(DW, R2, R7, _DUES)
        code.mov(R4, 0)
        for number in range(1, len(streams)):
            code.ldx(DW, R3, R7, _DUES + 8 * number)
            code.jge(R3, R2, f"later {number}")
            code.mov(R2, R3)
            code.mov(R4, number)
            code.label(f"later {number}")
        code.mov(R3, R8)
        code.lsh(R3, FRACTION_BITS)
        code.jlt(R3, R2, "idle")
        code.sub(R3, R2)
        code.rsh(R3, FRACTION_BITS)
        for number, stream in enumerate(streams):
            if number + 1 < len(streams):
                code.jne(R4, number, f"stream {number + 1}")
            self._assemble_stream(code, number, stream)
            code.label(f"stream {number + 1}")
        code.label("idle")
        code.exit(XdpAction.DROP)

    def _assemble_stream(self, code: Assembler, number: int, stream: SendStream) -> None:
        """Here R8 is the time since the start, and R3 how late the frame is."""
        names = {name: f"{name} {number}" for name in ("late", "given up", "write", "on time", "drop")}
        code.ld_map_value(R7, self._control.descriptor, self._streams + _STREAM_BYTES * number)
        code.ld_map_value(R4, self._control.descriptor, _DUES + 8 * number)
        code.ldx(DW, R1, R7, _INDEX)
        code.jge(R1, MOST_SEGMENTS, "idle")
        code.mul(R1, _SEGMENT_BYTES)
        code.add(R1, R7)
        code.add(R1, _SEGMENTS)
        code.ldx(DW, R2, R1, _LAST_CALL)
        code.mov(R5, R8)
        code.mov(R8, R1)
        code.jgt(R5, R2, names["given up"])
        code.ldx(DW, R2, R8, _LATENESS)
        code.jge(R2, R3, names["on time"])
        code.stx(DW, R8, _LATENESS, R3)
        code.label(names["on time"])
        code.ldx(DW, R2, R8, _CATCH_UP)
        code.jgt(R3, R2, names["late"])
        code.stx(DW, R8, _LAST, R5)
        code.ldx(DW, R1, R8, _SENT)
        code.add(R1, 1)
        code.stx(DW, R8, _SENT, R1)
        code.ldx(DW, R1, R7, _NUMBER)
        code.stx(DW, R10, _NUMBER_SLOT, R1)
        code.mov(R2, R1)
        code.add(R2, 1)
        code.stx(DW, R7, _NUMBER, R2)
        code.mul(R1, stream.step)
        code.add(R1, stream.first)
        code.stx(DW, R10, _ORDER_SLOT, R1)
        code.ldx(DW, R1, R4, 0)
        code.ldx(DW, R2, R8, _INTERVAL)
        code.add(R1, R2)
        code.stx(DW, R4, 0, R1)
        code.ldx(DW, R1, R7, _LEFT)
        code.sub(R1, 1)
        code.stx(DW, R7, _LEFT, R1)
        code.jne(R1, 0, names["write"])
        self._assemble_next(code)
        code.label(names["write"])
        stream.frames.write(code, R6, (R10, _ORDER_SLOT), "idle")
        code.ldx(DW, R2, R10, _NUMBER_SLOT)
        stream.frames.write_number(code, (R8, _TAG))
        _note_time(code, stream.times)
        code.mov(R1, stream.interface)
        code.mov(R2, 0)
        code.call(Helper.REDIRECT)
        code.exit()
        # Frames that are too late: as many that the next one is not, and some more. Otherwise one of two streams in
        # overload would leave out a frame for each one of the other's.
        code.label(names["late"])
        code.sub(R3, R2)
        code.rsh(R2, SLACK_BITS)
        code.add(R3, R2)
        code.lsh(R3, FRACTION_BITS)
        code.ldx(DW, R1, R8, _INTERVAL)
        code.div(R3, R1)
        code.add(R3, 1)
        code.ldx(DW, R2, R7, _LEFT)
        code.jlt(R3, R2, names["drop"])
        code.label(names["given up"])
        code.ldx(DW, R3, R7, _LEFT)
        code.label(names["drop"])
        code.ldx(DW, R1, R8, _UNSENT)
        code.add(R1, R3)
        code.stx(DW, R8, _UNSENT, R1)
        code.ldx(DW, R1, R7, _LEFT)
        code.sub(R1, R3)
        code.stx(DW, R7, _LEFT, R1)
        code.ldx(DW, R2, R8, _INTERVAL)
        code.mul(R2, R3)
        code.ldx(DW, R3, R4, 0)
        code.add(R3, R2)
        code.stx(DW, R4, 0, R3)
        code.jne(R1, 0, "idle")
        self._assemble_next(code)
        code.ja("idle")

    def _assemble_next(self, code: Assembler) -> None:
        """Goes on to the next segment; R4 is the place of the due time."""
        over, done = code.new_label("over"), code.new_label("next")
        code.ldx(DW, R1, R7, _INDEX)
        code.add(R1, 1)
        code.stx(DW, R7, _INDEX, R1)
        code.jge(R1, MOST_SEGMENTS, over)
        code.mul(R1, _SEGMENT_BYTES)
        code.add(R1, R7)
        code.add(R1, _SEGMENTS)
        code.ldx(DW, R3, R1, _FRAMES)
        code.stx(DW, R7, _LEFT, R3)
        code.jeq(R3, 0, over)
        code.ldx(DW, R3, R1, _BEGIN)
        code.stx(DW, R4, 0, R3)
        code.ldx(DW, R3, R1, _FIRST)
        code.jeq(R3, -1, done)
        code.stx(DW, R7, _NUMBER, R3)
        code.ja(done)
        code.label(over)
        code.mov(R3, -1)
        code.stx(DW, R4, 0, R3)
        code.label(done)


def _note_time(code: Assembler, times: Array) -> None:
    """Keeps the time in R9 as that of the frame whose number is in R2."""
    code.mov32(R3, R2)
    code.and_(R3, (1 << RING_BITS) - 1)
    code.lsh(R3, 3)
    code.ld_map_value(R4, times.descriptor)
    code.add(R4, R3)
    code.mov(R5, R9)
    code.lsh(R5, WRAP_BITS)
    code.mov32(R3, R2)
    code.rsh(R3, RING_BITS)
    code.add(R3, 1)
    code.or_(R5, R3)
    code.stx(DW, R4, 0, R5)


def _fixed(nanoseconds: float) -> int:
    return round(nanoseconds * (1 << FRACTION_BITS))


def _whole(nanoseconds: float) -> int:
    return FOREVER if nanoseconds == math.inf else round(nanoseconds)


def _pack(segment: Segment) -> bytes:
    numbers = (
        _fixed(segment.interval),
        segment.frames,
        _fixed(segment.begin),
        _whole(segment.last_call),
        _whole(segment.catch_up),
    )
    words = (segment.tag >> 16) + (segment.tag & 0xFFFF)
    tag = segment.tag.to_bytes(4, "big") + struct.pack("=I", words)
    return struct.pack("=5Q", *numbers) + tag + struct.pack("=5Q", 0 if segment.renumbers else FOREVER, 0, 0, 0, 0)
