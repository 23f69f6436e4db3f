# SPDX-License-Identifier: Apache-2.0
"""Frames one by one, on a node whose Python has no numpy: they are made, sent and examined in bare Python.

The bytes are those of `lossratio.agent.afpacket.frames`. Such a node sends less, and examines fewer frames.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import cast

from ..core.comparison import FieldChange, changed_fields, without
from ..core.configuration import Direction
from ..core.frames_spec import COMPENSATION_BYTES, SEQUENCE_BYTES, TAG_BYTES, FramesSpec, TagPlace, stream_tag
from ..core.links import Link
from ..core.packets import ETH_P_ALL, open_packets, overlooked, receive_whole
from ..core.protocol import Message
from ..core.wire import FCS_BYTES, LEAST_LENGTH, MACS_BYTES, TAG_ETHERTYPES, VLAN_TAG_BYTES, folded, word_sum
from .examination import (
    CORRUPTED,
    INTACT,
    NOT_COMPARED,
    OF_ALL,
    READDRESSED,
    STRAYED,
    WRONG_LENGTH,
    WRONG_MAC,
    Sampling,
    examined,
)
from .filters import NOTHING
from .transmit import MAX_BATCH, FrameSocket, ProbeSocket, SenderSetup

MOST_EXAMINED = 1 << 10
"""The approximate maximum number of frames of a trial and direction that are chosen for examination."""
_MOST_KEPT = 2 * MOST_EXAMINED
_MOST_ONE_IN = 1 << 31
_MOST_CACHED_BYTES = 1 << 25
_SO_RCVBUFFORCE = 33
_ROOM_BYTES = 1 << 24


class BareFrames:
    """The frames of one direction, by their numbers in the order of sending.

    Attributes:
        place: Where their tags are.
    """

    def __init__(self, spec: FramesSpec, source_mac: bytes, destination_mac: bytes) -> None:
        spec.check_room()
        self.place = spec.tag_place
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
        _write_tag(frame, self.place, tag, sequence)
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


def _write_tag(frame: bytearray, place: TagPlace, tag: int, sequence: int) -> None:
    start = place.offset
    # Without a number, the tag's complement follows it.
    words = tag << 32 | (sequence & 0xFFFFFFFF if place.is_numbered else tag ^ 0xFFFFFFFF)
    frame[start : start + TAG_BYTES] = words.to_bytes(TAG_BYTES, "big")
    if place.is_numbered and place.compensation is not None:
        # A number and the sum of its 16-bit words leave the same remainder (RFC 1071 adds the carries).
        compensation = -words % 0xFFFF
        frame[place.compensation : place.compensation + 2] = compensation.to_bytes(2, "big")


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


class BareExaminer(Sampling):
    """Keeps some arriving frames of a direction, and compares them with the frames that were sent.

    See `lossratio.agent.afpacket.examination.Examiner`. Losses are not located.
    """

    def __init__(self, direction: Direction, frames: BareFrames, sink: Link) -> None:
        super().__init__(direction, sink, open_packets(sink, ETH_P_ALL, NOTHING), MOST_EXAMINED)
        self._frames = frames
        with suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM_BYTES)
        self._kept: list[bytes] = []
        self._overlooked = 0

    def make_room(self) -> None:
        """Takes the frames that have arrived; call it now and then while traffic flows."""
        while frame := receive_whole(self._socket):
            if len(self._kept) >= _MOST_KEPT and self._sample.one_in < _MOST_ONE_IN:
                self._choose_fewer()
            if len(self._kept) < _MOST_KEPT:
                self._kept.append(frame)
            else:
                self._overlooked += 1

    def _choose_fewer(self) -> None:
        """From now on, chooses half as many frames, and of the kept ones only keeps those and what is wrong at once."""
        self._choose(self._sample.tag, 2 * self._sample.one_in)
        kept = []
        for arrived in self._kept:
            frame, number = self._seen(arrived)
            if self._chooses(frame, number) or self._obvious_fault(arrived, frame):
                kept.append(arrived)
        self._kept = kept

    def look(self, *_: int) -> None:
        """See `make_room`: frames are compared when all have arrived."""
        self.make_room()

    def examine(self, first: int, sent: int) -> Message:
        """Counts of faults in the sample, and the fields that differ; see `Examiner.examine`."""
        self.make_room()
        found = [0] * (CORRUPTED + 1)
        chosen = 0
        intact: list[int] = []
        changes: list[FieldChange] = []

        for arrived in self._kept:
            frame, number = self._seen(arrived)
            wanted = bytes(self._frames.frame(first + number, self._sample.tag, number))
            fault = self._fault_of(arrived, frame, wanted, is_beyond=number >= sent)
            is_chosen = self._place.is_numbered and self._chooses(frame, number)
            if not is_chosen and fault not in OF_ALL.values():
                # It came before fewer frames were chosen.
                continue
            found[fault] += 1
            chosen += is_chosen and fault != STRAYED
            if fault == INTACT:
                intact.append(number)
            elif fault != STRAYED:
                changes = changes or self._changes(arrived, frame, wanted)

        return examined(
            found,
            len(self._kept),
            self._overlooked + overlooked(self._socket),
            changes,
            examined=chosen,
            duplicated=len(intact) - len(set(intact)),
            reordered=_reordered(intact),
        )

    def fates(self, _: int) -> None:
        """None: which frames were lost is not known."""

    def _forget(self) -> None:
        self.make_room()
        overlooked(self._socket)
        self._kept = []
        self._overlooked = 0

    def _seen(self, arrived: bytes) -> tuple[bytes, int]:
        """A frame as the filter sees it: without a VLAN tag that it was sent without. Also its number."""
        is_tagged = arrived[MACS_BYTES : MACS_BYTES + 2] in TAG_ETHERTYPES and not self._place.behind_vlan
        frame = arrived[:MACS_BYTES] + arrived[MACS_BYTES + VLAN_TAG_BYTES :] if is_tagged else arrived
        start = self._place.offset + TAG_BYTES // 2
        return frame, int.from_bytes(frame[start : start + SEQUENCE_BYTES], "big")

    def _chooses(self, frame: bytes, number: int) -> bool:
        return len(frame) >= self._place.offset + TAG_BYTES and bool(self._sample.chooses(number))

    def _obvious_fault(self, arrived: bytes, frame: bytes) -> int:
        """A fault for which all frames are looked at, or `NOT_COMPARED`."""
        sample, start = self._sample, self._place.offset
        tag = int.from_bytes(frame[start : start + TAG_BYTES // 2], "big")
        if (tag ^ sample.tag) & sample.own_bits:
            return STRAYED
        if len(arrived) not in sample.lengths or len(frame) < len(arrived):
            return WRONG_LENGTH
        if frame[: len(sample.mac)] != sample.mac:
            return WRONG_MAC
        return NOT_COMPARED

    def _fault_of(self, arrived: bytes, frame: bytes, wanted: bytes, *, is_beyond: bool) -> int:
        obvious = self._obvious_fault(arrived, frame)
        if obvious or not self._place.is_numbered:
            return obvious

        got = self._aligned(frame)
        if self._direction.may_be_padded and len(got) == LEAST_LENGTH:
            got = got[: len(wanted)]
        if is_beyond:
            return CORRUPTED
        if self._is_same(got, wanted):
            return INTACT
        is_readdressed = self._has_other_addresses(got, wanted) and self._has_same_number(got, wanted)
        return READDRESSED if is_readdressed else CORRUPTED

    def _aligned(self, frame: bytes) -> bytes:
        """A frame without the bytes by which devices on the way have made it longer."""
        growth = self._direction.growth
        return frame[growth:] if growth >= 0 else bytes(-growth) + frame

    def _is_same(self, got: bytes, wanted: bytes) -> bool:
        """Whether frames only differ in bytes that devices may rewrite, and all headers' checksums are right."""
        if without(self._direction.rewritable, got) != without(self._direction.rewritable, wanted):
            return False
        ranges = self._direction.header_checksums
        return all(folded(word_sum(got[start:end])) == 0xFFFF for start, end in ranges)

    def _has_other_addresses(self, got: bytes, wanted: bytes) -> bool:
        return any(got[start:end] != wanted[start:end] for start, end in self._direction.arriving.addresses)

    def _has_same_number(self, got: bytes, wanted: bytes) -> bool:
        """Whether what compensates for the number also belongs to it."""
        place = self._frames.place.compensation
        return place is None or got[place : place + COMPENSATION_BYTES] == wanted[place : place + COMPENSATION_BYTES]

    def _changes(self, arrived: bytes, frame: bytes, wanted: bytes) -> list[FieldChange]:
        """What differs in a frame; nothing if its number may be another frame's."""
        if not self._place.is_numbered or not self._has_same_number(self._aligned(frame), wanted):
            return []
        return changed_fields(self._direction, wanted, self._aligned(arrived), self._sample.mac or None)


def _reordered(numbers: list[int]) -> int:
    """How many frames came after one with a higher number, without copies."""
    count, highest = 0, -1
    for number in dict.fromkeys(numbers):
        count += number < highest
        highest = max(highest, number)
    return count
