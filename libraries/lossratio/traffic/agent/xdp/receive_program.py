"""The program that receives: it looks at every frame that arrives on a port, and keeps those of the trial.

Frames with a tag of this agent are counted, compared with what was sent, and end here. All others go on untouched.
"""

from __future__ import annotations

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
    H,
    Helper,
    Register,
    W,
    XdpAction,
    XdpProgram,
)

from ..core.configuration import DIRECTIONS, VLAN_TAG_BYTES
from . import histogram
from .findings import MAXIMA, ReceivedFrames
from .frame_code import FREE_STACK, Faults
from .send_program import FOREVER, RING_BITS, WRAP_BITS, SendStream

_NO_TAG = 1 << 32
_FAMILY, _PREVIOUS, _RAMP, _TAGS = 0, 8, 16, 24
_TAG_BYTES = 8
_WORDS = ("late", "strayed", "foreign", "next")
"""Counters of a stream: frames of the tag before, of other streams, and of no known tag; and the number after the
highest one that has arrived."""
_COUNTERS = (
    *("arrived", "wrong_length", "wrong_mac", "corrupted", "readdressed", "duplicated", "stale", "intact"),
    *("reordered", "displacement", "extent", "late_offset", "latency_sum", "latency_least", "latency_most"),
    *("jitter_sum", "jitter_count", "next_in_turn", "last_latency"),
)
_PLACES = {name: 8 * place for place, name in enumerate(_COUNTERS)}
_HISTOGRAM = 8 * len(_COUNTERS)
_BLOCK = _HISTOGRAM + 8 * histogram.INTERVALS
_POSITION, _GAP_COUNT, _GAPS = 0, 8, 16
_GAP_BYTES, _MOST_GAPS = 32, 16
_GAP_START, _GAP_END, _GAP_POSITION, _GAP_TIME = 0, 8, 16, 24
_ORDER_BYTES = _GAPS + _GAP_BYTES * _MOST_GAPS
_END_SLOT, _LENGTH_SLOT, _NOW_SLOT = -FREE_STACK - 8, -FREE_STACK - 16, -FREE_STACK - 24


@dataclass(frozen=True)
class ReceiveStream:
    """A stream of frames at the port that it comes back to."""

    stream: SendStream
    """The stream as it was sent."""
    number: int
    """Its number among all streams of a trial: the lowest bits of its tag."""
    mac: bytes
    """The port's MAC address."""


class Reception:
    """Memory that all programs of the receiving ports share: tags, and counters for each stream and processor.

    Args:
        streams: How many streams there are.
        cpus: How many processors the machine may have.

    Raises:
        BpfError: If the kernel refuses it.
    """

    def __init__(self, streams: int, cpus: int) -> None:
        self.streams, self.cpus = streams, cpus
        self._words = _TAGS + _TAG_BYTES * streams
        self._order = self._words + 8 * len(_WORDS) * streams
        self.control = Array(self._order + _ORDER_BYTES * streams, "lossratio_tags")
        self.counters = Array(_BLOCK * streams * cpus, "lossratio_recv")
        for place in (_FAMILY, _PREVIOUS, _RAMP):
            self._put(place, _NO_TAG)

    def close(self) -> None:
        """Gives the memory back."""
        self.control.close()
        self.counters.close()

    def place(self, name: str, stream: int) -> int:
        """Place of one of the `_WORDS` of a stream."""
        return self._words + 8 * (len(_WORDS) * stream + _WORDS.index(name))

    def order_place(self, stream: int) -> int:
        """Place of the number of a stream's arrivals, and of the latest gaps in its numbers."""
        return self._order + _ORDER_BYTES * stream

    def watch(self, tag: int, ramp_tag: int) -> None:
        """Counts from zero, frames with other tags than before.

        Args:
            tag: Tag of the first stream, with zeros in the bits of `DIRECTIONS`; those of the others follow.
            ramp_tag: The same for frames that are not to be counted.
        """
        previous = self._get(_FAMILY)
        self._put(_FAMILY, _NO_TAG)
        self._put(_PREVIOUS, previous)
        self._put(_RAMP, ramp_tag)
        fresh = bytearray(_BLOCK)
        for name in ("latency_least", "next_in_turn"):
            struct.pack_into("=Q", fresh, _PLACES[name], FOREVER)
        self.counters.memory[:] = bytes(fresh) * (self.streams * self.cpus)
        for stream in range(self.streams):
            own = tag + stream
            words = struct.pack("=I", (own >> 16) + (own & 0xFFFF))
            place = _TAGS + _TAG_BYTES * stream
            self.control.memory[place : place + _TAG_BYTES] = own.to_bytes(4, "big") + words
            for name in _WORDS:
                self._put(self.place(name, stream), 0)
        self.control.memory[self._order :] = bytes(_ORDER_BYTES * self.streams)
        self._put(_FAMILY, tag)

    def late(self, stream: int) -> int:
        """Frames of the tags before that arrived since `watch`."""
        return self._get(self.place("late", stream))

    def strayed(self, stream: int) -> int:
        """Frames of other streams that arrived where this one should, since `watch`."""
        return self._get(self.place("strayed", stream))

    def foreign(self, stream: int) -> int:
        """Frames without any known tag that arrived where this stream is the first one, since `watch`."""
        return self._get(self.place("foreign", stream))

    def arrived(self, stream: int) -> int:
        """Frames of a stream that arrived since `watch`."""
        places = (self._block(stream, cpu) + _PLACES["arrived"] for cpu in range(self.cpus))
        return sum(self.counters.words[place // 8] for place in places)

    def received(self, stream: int) -> ReceivedFrames:
        """What arrived of a stream since `watch`."""
        blocks = [
            struct.unpack_from(f"={len(_COUNTERS) + histogram.INTERVALS}Q", self.counters.memory, place)
            for place in (self._block(stream, cpu) for cpu in range(self.cpus))
            if self.counters.words[place // 8]
        ]
        sums = [sum(column) for column in zip(*blocks)] or [0] * (len(_COUNTERS) + histogram.INTERVALS)
        counts = dict(zip(_COUNTERS, sums))
        for name in MAXIMA:
            counts[name] = max((block[_COUNTERS.index(name)] for block in blocks), default=0)
        least = min((block[_COUNTERS.index("latency_least")] for block in blocks), default=FOREVER)
        del counts["next_in_turn"], counts["last_latency"], counts["latency_least"]
        return ReceivedFrames(
            **counts, latency_least=None if least == FOREVER else least, histogram=tuple(sums[len(_COUNTERS) :])
        )

    def block_bytes(self) -> int:
        """Bytes of the counters of one processor."""
        return _BLOCK * self.streams

    def _block(self, stream: int, cpu: int) -> int:
        return self.block_bytes() * cpu + _BLOCK * stream

    def _put(self, place: int, number: int) -> None:
        self.control.words[place // 8] = number

    def _get(self, place: int) -> int:
        return self.control.words[place // 8]


class ReceiveProgram:
    """The program of one port.

    Args:
        reception: Memory that all ports share.
        streams: The streams that come back to this port.

    Attributes:
        program: The program.

    Raises:
        BpfError: If the kernel refuses it.
    """

    def __init__(self, reception: Reception, streams: Sequence[ReceiveStream]) -> None:
        self._reception = reception
        self._streams = streams
        code = Assembler()
        self._assemble(code)
        self.program = XdpProgram(code.code(), "lossratio_recv")

    def close(self) -> None:
        """Gives the program back."""
        self.program.close()

    def _assemble(self, code: Assembler) -> None:
        code.ldx(W, R6, R1, 0)
        code.ldx(W, R3, R1, 4)
        code.stx(DW, R10, _END_SLOT, R3)
        code.ld_map_value(R7, self._reception.control.descriptor)
        places = {(one.stream.frames.plan.spec.tag_offset, shift) for one in self._streams for shift in _shifts(one)}
        for offset, shift in sorted(places, reverse=True):
            here = [
                one
                for one in self._streams
                if one.stream.frames.plan.spec.tag_offset == offset and shift in _shifts(one)
            ]
            self._assemble_place(code, offset, shift, here)
        for offset in sorted({one.stream.frames.plan.spec.tag_offset for one in self._streams}):
            here = [one for one in self._streams if one.stream.frames.plan.spec.tag_offset == offset]
            self._assemble_longer(code, offset, here)
        code.mov(R1, 1)
        code.atomic_add(DW, R7, self._reception.place("foreign", self._streams[0].number), R1)
        code.exit(XdpAction.PASS)
        code.label("drop")
        code.exit(XdpAction.DROP)

    def _assemble_place(self, code: Assembler, offset: int, shift: int, streams: Sequence[ReceiveStream]) -> None:
        """Looks for a tag at one place of the frame."""
        name = f"{offset}{shift:+}"
        code.ldx(DW, R3, R10, _END_SLOT)
        code.mov(R4, R6)
        code.add(R4, offset + shift + 4)
        code.jgt(R4, R3, f"no tag {name}")
        code.sub(R3, R6)
        code.sub(R3, shift)
        code.stx(DW, R10, _LENGTH_SLOT, R3)
        code.ldx(W, R4, R6, offset + shift)
        code.to_be(R4, 32)
        code.mov32(R5, R4)
        code.and32(R5, ~DIRECTIONS & 0xFFFFFFFF)
        code.and_(R4, DIRECTIONS)
        for place, label in ((_FAMILY, "ours"), (_PREVIOUS, "late"), (_RAMP, "drop")):
            code.ldx(DW, R0, R7, place)
            code.jeq(R5, R0, "drop" if label == "drop" else f"{label} {name}")
        code.ja(f"no tag {name}")
        code.label(f"late {name}")
        code.mov(R1, 1)
        for one in streams:
            code.jeq(R4, one.number, f"late {one.number} {name}")
        code.ja("drop")
        for one in streams:
            code.label(f"late {one.number} {name}")
            code.atomic_add(DW, R7, self._reception.place("late", one.number), R1)
            code.ja("drop")
        code.label(f"ours {name}")
        for one in streams:
            code.jeq(R4, one.number, f"stream {one.number} {name}")
        code.mov(R1, 1)
        code.atomic_add(DW, R7, self._reception.place("strayed", streams[0].number), R1)
        code.ja("drop")
        for one in streams:
            code.label(f"stream {one.number} {name}")
            self._assemble_stream(code, one, shift)
        code.label(f"no tag {name}")

    def _assemble_longer(self, code: Assembler, offset: int, streams: Sequence[ReceiveStream]) -> None:
        """Counts frames that a device has put into a VLAN: their tag is further on."""
        none = code.new_label("in no VLAN")
        code.ldx(DW, R3, R10, _END_SLOT)
        code.mov(R4, R6)
        code.add(R4, offset + VLAN_TAG_BYTES + 4)
        code.jgt(R4, R3, none)
        code.ldx(W, R4, R6, offset + VLAN_TAG_BYTES)
        code.to_be(R4, 32)
        code.mov32(R5, R4)
        code.and32(R5, ~DIRECTIONS & 0xFFFFFFFF)
        code.and_(R4, DIRECTIONS)
        code.ldx(DW, R0, R7, _FAMILY)
        code.jne(R5, R0, none)
        for one in streams:
            other = code.new_label("other stream")
            code.jne(R4, one.number, other)
            self._find_counters(code, one)
            _increment(code, "arrived")
            _increment(code, "wrong_length")
            code.ja("drop")
            code.label(other)
        code.label(none)

    def _find_counters(self, code: Assembler, one: ReceiveStream) -> None:
        """Has R7 point to a stream's counters of this processor."""
        code.call(Helper.GET_SMP_PROCESSOR_ID)
        code.jge(R0, self._reception.cpus, "drop")
        code.mul(R0, self._reception.block_bytes())
        code.ld_map_value(R7, self._reception.counters.descriptor, _BLOCK * one.number)
        code.add(R7, R0)

    def _assemble_stream(self, code: Assembler, one: ReceiveStream, shift: int) -> None:
        reception, frames = self._reception, one.stream.frames
        spec = frames.plan.spec
        known = _COUNTERS[1:7] if spec.is_numbered else _COUNTERS[1:3]
        faults = {name: code.new_label(name) for name in known}
        code.call(Helper.KTIME_GET_NS)
        code.stx(DW, R10, _NOW_SLOT, R0)
        self._find_counters(code, one)
        code.ld_map_value(R8, reception.control.descriptor)
        _increment(code, "arrived")
        is_known = code.new_label("length")
        code.ldx(DW, R2, R10, _LENGTH_SLOT)
        for length in sorted(set(frames.plan.lengths)):
            code.jeq(R2, length, is_known)
        code.ja(faults["wrong_length"])
        code.label(is_known)
        code.mov(R4, R6)
        code.add(R4, frames.direct + shift)
        code.ldx(DW, R3, R10, _END_SLOT)
        code.jgt(R4, R3, faults["wrong_length"])
        code.ldx(W, R4, R6, 0)
        code.ldx(H, R5, R6, 4)
        code.jne32(R4, struct.unpack("=I", one.mac[:4])[0], faults["wrong_mac"])
        code.jne32(R5, struct.unpack("=H", one.mac[4:])[0], faults["wrong_mac"])
        if spec.is_numbered:
            code.ldx(W, R2, R6, spec.tag_offset + 4 + shift)
            code.to_be(R2, 32)
            code.mov(R9, R2)
            places = Faults(faults["corrupted"], faults["readdressed"], _LENGTH_SLOT, _END_SLOT, shift)
            frames.compare(code, (R8, _TAGS + _TAG_BYTES * one.number), places, one.stream.first, one.stream.step)
            self._assemble_arrival(code, one, faults)
        else:
            _increment(code, "intact")
        code.ja("drop")
        for name, label in faults.items():
            code.label(label)
            _increment(code, name)
            code.ja("drop")

    def _assemble_arrival(self, code: Assembler, one: ReceiveStream, faults: dict[str, str]) -> None:
        """Looks up when a frame was sent: once. Its number is in R9."""
        code.mov32(R3, R9)
        code.and_(R3, (1 << RING_BITS) - 1)
        code.lsh(R3, 3)
        code.ld_map_value(R4, one.stream.times.descriptor)
        code.add(R4, R3)
        code.ldx(DW, R0, R4, 0)
        code.mov32(R5, R9)
        code.rsh(R5, RING_BITS)
        code.add(R5, 1)
        code.mov(R3, R0)
        code.and_(R3, (1 << WRAP_BITS) - 1)
        code.jgt(R3, R5, faults["stale"])
        # A frame that was never sent has a wrong number.
        code.jlt(R3, R5, faults["corrupted"])
        code.mov(R3, R0)
        code.rsh(R3, WRAP_BITS)
        code.jeq(R3, 0, faults["duplicated"])
        code.mov(R3, R0)
        code.cmpxchg(DW, R4, 0, R5)
        code.jne(R0, R3, faults["duplicated"])
        _increment(code, "intact")
        # The difference of both times, each in the upper 48 bits.
        code.ldx(DW, R1, R10, _NOW_SLOT)
        code.lsh(R1, WRAP_BITS)
        code.sub(R3, R5)
        code.sub(R1, R3)
        code.rsh(R1, WRAP_BITS)
        # Clocks of two processors may differ by some nanoseconds.
        is_positive = code.new_label("positive")
        code.mov(R2, R1)
        code.rsh(R2, 63 - WRAP_BITS)
        code.jeq(R2, 0, is_positive)
        code.mov(R1, 0)
        code.label(is_positive)
        self._assemble_latency(code)
        self._assemble_order(code, one)
        if one.stream.flows is not None:
            one.stream.frames.count_flow(code, one.stream.flows)
        histogram.count(code, R7, _HISTOGRAM, "drop")

    def _assemble_latency(self, code: Assembler) -> None:
        """Counts the latency in R1 of the frame whose number is in R9."""
        places = _PLACES
        code.ldx(DW, R2, R7, places["latency_sum"])
        code.add(R2, R1)
        code.stx(DW, R7, places["latency_sum"], R2)
        for name in ("latency_least", "latency_most"):
            is_inside = code.new_label(name)
            code.ldx(DW, R2, R7, places[name])
            (code.jge if name == "latency_least" else code.jle)(R1, R2, is_inside)
            code.stx(DW, R7, places[name], R1)
            code.label(is_inside)
        is_alone, is_longer = code.new_label("alone"), code.new_label("longer")
        code.ldx(DW, R2, R7, places["next_in_turn"])
        code.jne(R2, R9, is_alone)
        code.ldx(DW, R2, R7, places["last_latency"])
        code.sub(R2, R1)
        code.mov(R3, R2)
        code.rsh(R3, 63)
        code.jeq(R3, 0, is_longer)
        code.neg(R2)
        code.label(is_longer)
        code.ldx(DW, R3, R7, places["jitter_sum"])
        code.add(R3, R2)
        code.stx(DW, R7, places["jitter_sum"], R3)
        _increment(code, "jitter_count")
        code.label(is_alone)
        code.mov(R2, R9)
        code.add(R2, 1)
        code.stx(DW, R7, places["next_in_turn"], R2)
        code.stx(DW, R7, places["last_latency"], R1)

    def _assemble_order(self, code: Assembler, one: ReceiveStream) -> None:
        """Compares the number in R9 with the highest one so far; R1 stays."""
        names = {name: code.new_label(name) for name in ("next", "highest", "ordered", "found")}
        place, order = self._reception.place("next", one.number), self._reception.order_place(one.number)
        code.ldx(DW, R5, R8, order + _POSITION)
        code.add(R5, 1)
        code.stx(DW, R8, order + _POSITION, R5)
        code.ldx(DW, R2, R8, place)
        code.jge(R9, R2, names["next"])
        _increment(code, "reordered", R3)
        code.sub(R2, R9)
        code.sub(R2, 1)
        _raise_to(code, "displacement")
        for gap in range(_MOST_GAPS):
            other = code.new_label("other gap")
            begin = order + _GAPS + _GAP_BYTES * gap
            code.ldx(DW, R2, R8, begin + _GAP_START)
            code.jgt(R2, R9, other)
            code.ldx(DW, R2, R8, begin + _GAP_END)
            code.jle(R2, R9, other)
            code.ldx(DW, R2, R8, begin + _GAP_POSITION)
            code.ldx(DW, R4, R8, begin + _GAP_TIME)
            code.ja(names["found"])
            code.label(other)
        code.ja(names["ordered"])
        code.label(names["found"])
        code.sub(R5, R2)
        code.mov(R2, R5)
        _raise_to(code, "extent")
        code.ldx(DW, R2, R10, _NOW_SLOT)
        code.sub(R2, R4)
        _raise_to(code, "late_offset")
        code.ja(names["ordered"])
        code.label(names["next"])
        code.jeq(R9, R2, names["highest"])
        # Numbers are missing from R2 on: they are lost, or will be late.
        code.ldx(DW, R3, R8, order + _GAP_COUNT)
        code.mov(R4, R3)
        code.add(R4, 1)
        code.stx(DW, R8, order + _GAP_COUNT, R4)
        code.and_(R3, _MOST_GAPS - 1)
        code.mul(R3, _GAP_BYTES)
        code.mov(R4, R8)
        code.add(R4, R3)
        begin = order + _GAPS
        code.stx(DW, R4, begin + _GAP_START, R2)
        code.stx(DW, R4, begin + _GAP_END, R9)
        code.stx(DW, R4, begin + _GAP_POSITION, R5)
        code.ldx(DW, R3, R10, _NOW_SLOT)
        code.stx(DW, R4, begin + _GAP_TIME, R3)
        code.label(names["highest"])
        code.mov(R3, R9)
        code.add(R3, 1)
        code.stx(DW, R8, place, R3)
        code.label(names["ordered"])


def _shifts(one: ReceiveStream) -> tuple[int, ...]:
    """By how much a stream's frames may be displaced: without the tag of their VLAN, if the kernel took it off."""
    return (0, -VLAN_TAG_BYTES) if one.stream.frames.plan.spec.tag_place.behind_vlan else (0,)


def _increment(code: Assembler, name: str, scratch: Register = R2) -> None:
    code.ldx(DW, scratch, R7, _PLACES[name])
    code.add(scratch, 1)
    code.stx(DW, R7, _PLACES[name], scratch)


def _raise_to(code: Assembler, name: str) -> None:
    """Has a counter of the largest value be R2 at least; R3 is lost."""
    is_enough = code.new_label(name)
    code.ldx(DW, R3, R7, _PLACES[name])
    code.jle(R2, R3, is_enough)
    code.stx(DW, R7, _PLACES[name], R2)
    code.label(is_enough)
