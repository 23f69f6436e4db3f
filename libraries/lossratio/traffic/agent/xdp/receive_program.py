"""The programs that receive (`receive.c`), and the memory that they share with the agent."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any, Sequence

from lossratio.bpf import Array

from ..core.protocol import AgentError
from . import histogram
from .constants import FOREVER, LONGEST_FRAME, MOST_WAYS, RING_BITS, Frames, constants_of, members, program
from .findings import MAXIMA, ReceivedFrames
from .frames import FramePlan

_NO_TAG = 1 << 32
_QUEUES, _MOST_GAPS = 64, 16


class _Gap(ctypes.Structure):
    _fields_ = members("u64 start, end, position, time")


class _Order(ctypes.Structure):
    _fields_ = members("u64 next, position, gap_count", gaps=_Gap * _MOST_GAPS)


class _Stream(ctypes.Structure):
    _fields_ = members("u32 tag, tag_sum", "u64 late, strayed, foreign", orders=_Order * _QUEUES)


class _Counters(ctypes.Structure):
    _fields_ = members(
        "u64 arrived, wrong_length, wrong_mac, corrupted, readdressed, duplicated, stale, intact",
        "u64 reordered, displacement, extent, late_offset, latency_sum, latency_least, latency_most",
        "u64 jitter_sum, jitter_count, next_in_turn, last_latency, unstamped",
        f"u64 histogram[{histogram.INTERVALS}]",
    )


_MANY = 1 << 16
"""In place of the end of a MAC address, where frames have many."""


class _Way(ctypes.Structure):
    _fields_ = [
        ("frames", Frames),
        *members("u32 mac, mac_end, number, streams, first, step, flow_counts, counts_flows"),
        *members(f"u64 lengths[{LONGEST_FRAME // 64}]"),
    ]


_WORDS = ctypes.sizeof(_Counters) // 8
_NAMES = [name for name, _ in _Counters._fields_[:-1]]


@dataclass(frozen=True)
class ReceiveWay:
    """The frames of a direction, at the port that they come back to."""

    plan: FramePlan
    """The frames."""
    mac: bytes
    """The port's MAC address."""
    number: int = 0
    """The number of its first stream among all of a trial: the lowest bits of the stream's tag. Others follow."""
    streams: int = 1
    """How many streams it has."""
    first: int = 0
    """Which of the direction's frames is the first one of the first stream."""
    step: int = 1
    """By how many of them the frames of a stream are apart."""
    flows: int | None = None
    """Where its flows are counted in `Reception.flows`; None: they are not."""


class Reception:
    """Memory that all programs of the receiving ports share: tags, and counters for each stream and processor.

    Attributes:
        flows: Counts of received frames by flow, four bytes each.
        times: When each of the latest frames of a stream was sent: see `RING_BITS` and `WRAP_BITS`.
    """

    def __init__(self, streams: int, cpus: int, flows: int = 0) -> None:
        class Shared(ctypes.Structure):
            _fields_ = [*members("u64 family, previous, ramp"), ("streams", _Stream * streams)]

        self.streams, self.cpus = streams, cpus
        self._control = Array(ctypes.sizeof(Shared), "lossratio_tags")
        self._shared = Shared.from_buffer(self._control.memory)
        self._counters = Array(ctypes.sizeof(_Counters) * streams * cpus, "lossratio_recv")
        self._blocks = (_Counters * streams * cpus).from_buffer(self._counters.memory)
        self.flows = Array(max(8, 4 * flows), "lossratio_flows")
        self.times = Array(streams * 8 << RING_BITS, "lossratio_times")
        self._shared.family = self._shared.previous = self._shared.ramp = _NO_TAG

    def close(self) -> None:
        """Gives the memory back."""
        for one in (self._control, self._counters, self.flows, self.times):
            one.close()

    def maps(self) -> dict[str, Array]:
        """The memory by its names in the program."""
        counts = {"counters": self._counters, "flow_counts": self.flows}
        return {"reception": self._control, "times": self.times, **counts}

    def watch(self, tag: int, ramp_tag: int) -> None:
        """Counts from zero, frames with other tags than before.

        Args:
            tag: Tag of the first stream, with zeros in the bits of `DIRECTIONS`; the other streams' tags follow.
            ramp_tag: The same for frames that are not to be counted.
        """
        shared = self._shared
        previous, shared.family = shared.family, _NO_TAG
        shared.previous, shared.ramp = previous, ramp_tag
        fresh = bytes(_Counters(latency_least=FOREVER, next_in_turn=FOREVER))
        self._counters.memory[:] = fresh * (self.streams * self.cpus)
        self.flows.memory[:] = bytes(len(self.flows.memory))
        for number in range(self.streams):
            own = tag + number
            in_memory = int.from_bytes(own.to_bytes(4, "big"), sys.byteorder)
            shared.streams[number] = _Stream(in_memory, (own >> 16) + (own & 0xFFFF))
        shared.family = tag

    def ring(self, stream: int) -> memoryview:
        """A stream's part of `times`, in words of eight bytes."""
        return self.times.words[stream << RING_BITS : stream + 1 << RING_BITS]

    def late(self, stream: int) -> int:
        """Frames of the tags before that arrived since `watch`."""
        return int(self._shared.streams[stream].late)

    def strayed(self, stream: int) -> int:
        """Frames of other streams that arrived where this one should, since `watch`."""
        return int(self._shared.streams[stream].strayed)

    def foreign(self, stream: int) -> int:
        """Frames without any known tag that arrived where this stream is the first one, since `watch`."""
        return int(self._shared.streams[stream].foreign)

    def arrived(self, stream: int) -> int:
        """Frames of a stream that arrived since `watch`."""
        return sum(blocks[stream].arrived for blocks in self._blocks)

    def received(self, stream: int) -> ReceivedFrames:
        """What arrived of a stream since `watch`."""
        blocks: list[Any] = [blocks[stream] for blocks in self._blocks if blocks[stream].arrived]
        counts = {name: sum(getattr(block, name) for block in blocks) for name in _NAMES}
        for name in MAXIMA:
            counts[name] = max((getattr(block, name) for block in blocks), default=0)
        least = min((block.latency_least for block in blocks), default=FOREVER)
        del counts["next_in_turn"], counts["last_latency"], counts["latency_least"]
        columns = histogram.added([block.histogram[:] for block in blocks] or [(0,) * histogram.INTERVALS])
        return ReceivedFrames(**counts, latency_least=None if least == FOREVER else least, histogram=columns)


class ReceiveProgram:
    """The program of one port; all ports' programs share the memory of the reception.

    `card` is the index of the port and the memory of its `CardClock`, if its card stamps frames.
    """

    def __init__(self, reception: Reception, ways: Sequence[ReceiveWay], card: tuple[int, Array] | None = None) -> None:
        if len(ways) > MOST_WAYS:
            raise AgentError("unsupported", f"Frames of {MOST_WAYS} directions at most may come back to one port.")
        # A tag is looked for at its last place first.
        ways = sorted(ways, key=lambda way: -way.plan.spec.tag_offset)
        frames, contents = constants_of([way.plan for way in ways])
        self._contents = Array(len(contents), "lossratio_frame")
        self._contents.memory[: len(contents)] = contents
        numbers = {"WAYS": len(ways), "ALL_STREAMS": reception.streams, "PROCESSORS": reception.cpus}
        driver, clock = card or (None, None)
        numbers["CARD_STAMPS"] = card is not None
        constants = {name: bytes(ctypes.c_uint32(number)) for name, number in numbers.items()}
        constants["WAY"] = bytes((_Way * MOST_WAYS)(*map(_way, ways, frames)))
        maps = {**reception.maps(), "contents": self._contents, "card_clock": clock}
        self.program = program("receive").load("lossratio_recv", maps, constants, driver)

    def close(self) -> None:
        """Gives the program back."""
        self.program.close()
        self._contents.close()


def _way(way: ReceiveWay, frames: Frames) -> _Way:
    mac, mac_end = (int.from_bytes(part, sys.byteorder) for part in (way.mac[:4], way.mac[4:]))
    mac_end = _MANY if way.plan.spec.has_macs else mac_end
    place = (0, 0) if way.flows is None else (way.flows, 1)
    packed = _Way(frames, mac, mac_end, way.number, way.streams, way.first, way.step, *place)
    for length in way.plan.lengths:
        packed.lengths[length // 64] |= 1 << length % 64
    return packed
