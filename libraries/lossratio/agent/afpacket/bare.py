# SPDX-License-Identifier: Apache-2.0
"""Frames one by one, on a node whose Python has no numpy: they are made and sent in bare Python.

The bytes are those of `lossratio.agent.afpacket.frames`. Such a node sends less, and examines no frames.
"""

from __future__ import annotations

from typing import cast

from ..core.frames_spec import TAG_BYTES, FramesSpec, stream_tag
from ..core.wire import FCS_BYTES
from .transmit import MAX_BATCH, FrameSocket, ProbeSocket, SenderSetup

_MOST_CACHED_BYTES = 1 << 25


class BareFrames:
    """The frames of one direction, by their numbers in the order of sending."""

    def __init__(self, spec: FramesSpec, source_mac: bytes, destination_mac: bytes) -> None:
        spec.check_room()
        self._place = spec.tag_place
        self._spec = spec
        self._macs = destination_mac + source_mac
        # They take time to compute.
        self._flows, self._period, self._round = spec.flows, spec.period, spec.round
        self._sizes = [spec.sizes[number][0] for number in spec.size_order]
        self._streams = () if spec.order is None else spec.order.streams
        self._steps = [field.steps for field in spec.fields]
        self._cached: dict[tuple[int, int], bytes] = {}
        self._most_cached = max(1, _MOST_CACHED_BYTES // spec.max_size)

    def frame(self, number: int, tag: int, sequence: int) -> bytearray:
        """A frame without FCS, with a trial's tag, and its number in the order of the trial's frames."""
        place = number % self._period
        flow = (place + place // self._round) % self._flows
        size = self._sizes[place % len(self._sizes)]
        made = self._cached.get((flow, size))
        if made is None:
            made = self._made(flow, size)
            if len(self._cached) < self._most_cached:
                self._cached[flow, size] = made

        if self._streams:
            tag = stream_tag(tag, self._streams[place])
        frame = bytearray(made)
        start = self._place.offset
        compensated = self._place.compensation
        # Without a number, the tag's complement follows it.
        words = tag << 32 | (sequence & 0xFFFFFFFF if self._place.is_numbered else tag ^ 0xFFFFFFFF)
        frame[start : start + TAG_BYTES] = words.to_bytes(TAG_BYTES, "big")
        if self._place.is_numbered and compensated is not None:
            # A number and the sum of its 16-bit words leave the same remainder (RFC 1071 adds the carries).
            compensation = -words % 0xFFFF
            frame[compensated : compensated + 2] = compensation.to_bytes(2, "big")
        return frame

    def _made(self, flow: int, size: int) -> bytes:
        """A frame of a flow and a size in bytes with FCS, with a tag of zero and its complement."""
        frame = self._spec.template(size - FCS_BYTES, self._macs)
        for field, steps in zip(self._spec.fields, self._steps):
            value = field.first + steps[flow % field.count]
            frame[field.offset : field.offset + field.width] = value.to_bytes(field.width, "big")
        for checksum in self._spec.checksums:
            checksum.write(frame)
        return bytes(frame)


class BareOutput(FrameSocket):
    """Sends the frames of a direction one by one, as `lossratio.agent.afpacket.transmit.MixedOutput` does many at once.

    Attributes:
        first: Number, since it was made, of the frame that was sent first with the present tag.
        latency_frames: The socket for latency frames, which are never requested here.
    """

    def __init__(self, setup: SenderSetup) -> None:
        super().__init__(setup)
        self.latency_frames = ProbeSocket(setup)
        self._frames = cast(BareFrames, setup.frames)
        self._tag = self._number = self.first = 0

    def tag(self, tag: int, *_: object) -> None:
        """Sets a trial's tag; sequence numbers begin again."""
        self._tag = tag
        self.first = self._number

    def offer(self, count: int) -> int:
        """Sends up to this many frames, and returns how many left: none if the interface was busy."""
        for left in range(min(count, MAX_BATCH)):
            if not self.send(self._frames.frame(self._number, self._tag, self._number - self.first)):
                return left
            self._number += 1
        return min(count, MAX_BATCH)
