# SPDX-License-Identifier: Apache-2.0
"""The programs that receive (`receive.c`), and the memory that they share with the agent."""

from __future__ import annotations

import ctypes
import sys
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from types import SimpleNamespace
from typing import Any, Sequence

from lossratio.bpf import Array

from ..core.frames_spec import DIRECTIONS
from ..core.protocol import unsupported
from . import histogram
from .constants import FOREVER, LONGEST_FRAME, MOST_WAYS, RING_BITS, Frames, constants_of, program, structure
from .frames import FramePlan, Share

_NO_TAG = 1 << 32
_QUEUES, MOST_GAPS = 64, 1 << 10
TAGS_OF_TRAFFIC = 2 * (DIRECTIONS + 1)
"""By how much the tags of traffic differ from those of the previous traffic: each has a ramp with its own tags."""
MOST_TRAFFIC = 64
"""How many of the latest runs of traffic are counted: the present one, and earlier ones whose frames are late."""
_Gap = structure("u64 start, end, position, time")
_Order = structure("u64 next, position, gap_count")
_Stream = structure(
    "u32 tag, tag_sum", "u64 strayed, foreign", ("orders", _Order * _QUEUES), f"u64 late[{MOST_TRAFFIC}]"
)
_Latencies = structure("u64 sum, least, most, reordered, duplicated", f"u64 histogram[{histogram.INTERVALS}]")
_Counters = structure(
    "u64 arrived, wrong_length, wrong_mac, corrupted, readdressed, duplicated, stale, intact",
    "u64 reordered, displacement, extent, late_offset",
    "u64 jitter_sum, jitter_count, next_in_turn, last_latency",
    ("latencies", _Latencies),
)
"""What arrived of a stream on a processor: frames, and nanoseconds.

Stale frames were overtaken by so many later ones that it is not known whether they are copies. Intact frames arrived as
they were sent, each counted once; reordered frames are those among them with a lower number than an earlier frame (RFC
4737, type-P-reordered). The displacement is by how many numbers, at most, a frame was behind the highest one; the
extent, how many frames at most came by the same receive queue before it since the first one with a higher number, if it
was missing in one of the `MOST_GAPS` latest gaps of that queue; the late offset, the longest time between these two.
Jitter (RFC 3393) is the difference between latencies of frames with consecutive numbers.
"""
_MANY = 1 << 16
"""In place of the end of a MAC address, if frames have several."""
_Way = structure(
    ("frames", Frames),
    "u32 mac, mac_end, number, streams, first, step, is_elsewhere",
    "u32 streams_of_flows, has_streams, first_latencies",
    f"u64 lengths[{LONGEST_FRAME // 64}]",
)
_MAXIMA = ("displacement", "extent", "late_offset")
"""Counters that, for streams, are the maximum over frames and not the sum."""


@dataclass(frozen=True)
class ReceiveWay:
    """The frames of a direction, at the port that they come back to."""

    plan: FramePlan
    """The frames."""
    mac: bytes
    """The port's MAC address."""
    stream: Share
    """Its first stream. Others follow."""
    streams: int = 1
    """How many streams it has."""
    is_elsewhere: bool = False
    """Whether another node sends it."""
    streams_of_flows: Sequence[int] = ()
    """Which of the profile's streams the frames of each flow belong to; empty: it has no streams."""
    first_latencies: int = 0
    """Where the latencies of the first stream, followed by those of the others, are counted in the reception."""


class Reception:
    """Memory that all programs of the receiving ports share: tags, and counters for each stream and processor.

    `times` say when each of the latest frames of a stream was sent: see `RING_BITS` and `WRAP_BITS`. If another node
    sends a stream (`elsewhere`), `times` say which of its frames came back: the lower bits of an entry are the round of
    the latest one.
    """

    def __init__(self, streams: int, cpus: int, elsewhere: Sequence[int] = (), latencies: int = 0) -> None:
        shared = structure("u64 family, latest", ("streams", _Stream * streams))
        self.streams, self.cpus = streams, cpus
        self._control = Array(ctypes.sizeof(shared), "lossratio_tags")
        self._shared = shared.from_buffer(self._control.memory)
        self._counters = Array(ctypes.sizeof(_Counters) * streams * cpus, "lossratio_recv")
        self._blocks = (_Counters * streams * cpus).from_buffer(self._counters.memory)
        self.latencies = latencies
        room = max(1, latencies * cpus)
        self._stream_latencies = Array(ctypes.sizeof(_Latencies) * room, "lossratio_laten")
        self._latencies = (_Latencies * room).from_buffer(self._stream_latencies.memory)
        for block in self._latencies:
            block.least = FOREVER
        self._gaps = Array(ctypes.sizeof(_Gap) * MOST_GAPS * _QUEUES * streams, "lossratio_gaps")
        self.times = Array(streams * 8 << RING_BITS, "lossratio_times")
        self._shared.family = self._shared.latest = _NO_TAG
        self._in_time: OrderedDict[int, Sequence[int]] = OrderedDict()
        self._elsewhere = elsewhere

    def close(self) -> None:
        """Gives the memory back."""
        for one in (self._control, self._counters, self._stream_latencies, self._gaps, self.times):
            one.close()

    def maps(self) -> dict[str, Array]:
        """The memory by its names in the program."""
        counts = {"counters": self._counters, "stream_latencies": self._stream_latencies}
        return {"reception": self._control, "times": self.times, "gaps": self._gaps, **counts}

    def watch(self, tag: int) -> None:
        """Counts from zero the frames of new traffic, with other tags than before.

        The tag is the first stream's, with zeros in the bits of `DIRECTIONS`; the other streams' tags follow. The tags
        before it are the ramp's, whose frames must not be counted: see `TAGS_OF_TRAFFIC`.
        """
        shared = self._shared
        before = shared.latest
        shared.family = _NO_TAG
        if before != _NO_TAG:
            self._in_time[before] = [self.arrived(number) for number in range(self.streams)]
        while len(self._in_time) >= MOST_TRAFFIC:
            self._in_time.popitem(last=False)
        # From now on, frames of the previous traffic are late, and none belong to the oldest traffic.
        shared.latest = tag
        fresh = bytes(_Counters(next_in_turn=FOREVER, latencies=_Latencies(least=FOREVER)))
        self._counters.memory[:] = fresh * (self.streams * self.cpus)
        for block in self._latencies:
            # Most processors receive nothing.
            if block.least != FOREVER or block.duplicated:
                ctypes.memset(ctypes.addressof(block), 0, ctypes.sizeof(block))
                block.least = FOREVER
        for number in self._elsewhere:
            ring = self.ring(number).cast("B")
            ring[:] = bytes(len(ring))

        for number in range(self.streams):
            own = tag + number
            stream = shared.streams[number]
            ctypes.memset(ctypes.addressof(stream), 0, _Stream.late.offset)
            stream.tag = int.from_bytes(own.to_bytes(4, "big"), sys.byteorder)
            stream.tag_sum = (own >> 16) + (own & 0xFFFF)
            stream.late[_place(tag)] = 0

        shared.family = tag

    def ring(self, stream: int) -> memoryview:
        """A stream's part of `times`, in words of eight bytes."""
        return self.times.words[stream << RING_BITS : stream + 1 << RING_BITS]

    def highest(self, stream: int) -> int:
        """One more than the highest number among a stream's frames that have come back, through any queue."""
        return max(int(order.next) for order in self._shared.streams[stream].orders)

    def others(self, *streams: int) -> tuple[int, int]:
        """Frames that arrived at the port of these streams since `watch`, but belong to none of them.

        They have the tag of another stream, or no known tag. The port's first stream has these counts.
        """
        own: list[Any] = [self._shared.streams[stream] for stream in streams]
        return sum(one.strayed for one in own), sum(one.foreign for one in own)

    def arrived(self, *streams: int) -> int:
        """Frames of some streams that arrived since `watch`."""
        return sum(blocks[stream].arrived for blocks in self._blocks for stream in streams)

    def arrived_of(self, streams: Sequence[int], tag: int) -> int:
        """Frames of some streams that arrived of traffic with a tag of `watch`, in time or late."""
        if tag == self._shared.latest:
            return self.arrived(*streams)
        in_time, place = self._in_time.get(tag), _place(tag)
        if in_time is None:
            # It never began, or was too long ago.
            return 0
        return sum(in_time[stream] + self._shared.streams[stream].late[place] for stream in streams)

    def received(self, *streams: int, latencies: range = range(0)) -> SimpleNamespace:
        """What arrived of some streams since `watch`: ``struct counters`` in `receive.c`, with their `latencies`.

        Args:
            streams: The streams.
            latencies: The places of the latencies of the profile's streams, which become its ``by_stream``.
        """
        blocks: list[Any] = [
            block for each in self._blocks for block in map(each.__getitem__, streams) if block.arrived
        ]
        received = SimpleNamespace(by_stream=[])
        for name, _ in _Counters._fields_[:-1]:
            combine = max if name in _MAXIMA else sum
            setattr(received, name, combine([0, *(getattr(block, name) for block in blocks)]))

        for place in latencies:
            of_cpus = [self._latencies[cpu * self.latencies + place] for cpu in range(self.cpus)]
            received.by_stream.append(_together(of_cpus))
        received.latencies = _together([*(block.latencies for block in blocks), *received.by_stream])
        return received


class ReceiveProgram:
    """The program of one port; all ports' programs share the memory of the reception."""

    def __init__(self, reception: Reception, ways: Sequence[ReceiveWay]) -> None:
        if len(ways) > MOST_WAYS:
            raise unsupported(
                f"Frames of at most {MOST_WAYS} directions can come back to one port. Use more ports, or 'kind: "
                "afpacket'."
            )
        # A tag is first looked for at its last place.
        ways = sorted(ways, key=lambda way: -way.plan.spec.tag_offset)
        frames, contents = constants_of([way.plan for way in ways])
        places = []
        for way in ways:
            places.append(len(contents))
            contents += bytes(way.streams_of_flows)

        self._contents = Array(len(contents), "lossratio_frame")
        self._contents.memory[: len(contents)] = contents
        numbers = {"WAYS": len(ways), "ALL_STREAMS": reception.streams, "PROCESSORS": reception.cpus}
        numbers["ALL_LATENCIES"] = reception.latencies
        constants = {name: bytes(ctypes.c_uint32(number)) for name, number in numbers.items()}
        constants["WAY"] = bytes((_Way * MOST_WAYS)(*map(_way, ways, frames, places)))
        maps = {**reception.maps(), "contents": self._contents}
        self.program = program("receive").load("lossratio_recv", maps, constants)

    def close(self) -> None:
        """Gives the program back."""
        self.program.close()
        self._contents.close()


def _together(blocks: Sequence[Any]) -> SimpleNamespace:
    """The latencies of several streams and processors; if there was no frame, the smallest one is `FOREVER`."""
    histograms = [block.histogram[:] for block in blocks if block.least != FOREVER]
    together = SimpleNamespace(histogram=tuple(reduce(partial(map, add), histograms or [()])))
    together.least = min((block.least for block in blocks), default=FOREVER)
    together.most = max((block.most for block in blocks), default=0)
    for name in ("sum", "reordered", "duplicated"):
        setattr(together, name, sum(getattr(block, name) for block in blocks))
    return together


def _place(tag: int) -> int:
    """Where late frames of traffic are counted."""
    return tag // TAGS_OF_TRAFFIC % MOST_TRAFFIC


def _way(way: ReceiveWay, frames: Any, streams_of_flows: int) -> Any:
    mac, mac_end = (int.from_bytes(part, sys.byteorder) for part in (way.mac[:4], way.mac[4:]))
    mac_end = _MANY if way.plan.spec.has_macs else mac_end
    packed = _Way(frames, mac, mac_end, way.stream.number, way.streams, *way.stream.share, way.is_elsewhere)
    packed.has_streams = bool(way.streams_of_flows)
    packed.streams_of_flows = streams_of_flows
    packed.first_latencies = way.first_latencies
    for length in way.plan.lengths:
        packed.lengths[length // 64] |= 1 << length % 64
    return packed
