# SPDX-License-Identifier: Apache-2.0
"""The frames of one direction, as a configuration describes them: headers, stepping fields, checksums and tag."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd
from typing import Iterable, Sequence

from .headers import TCP, headers_of
from .protocol import Message, unsupported
from .wire import (
    ETHERNET_HEADER_BYTES,
    FCS_BYTES,
    MACS_BYTES,
    TAG_ETHERTYPES,
    UDP_PROTOCOL,
    VLAN_TAG_BYTES,
    folded,
    word_sum,
)

TAG_BYTES = 8
"""Bytes of a trial's tag with the sequence number after it: see `lossratio.agent.afpacket.frames`."""
SEQUENCE_BYTES = 4
"""Bytes of a sequence number."""
DIRECTIONS = 0xFF
"""Bits of a tag that distinguish the directions of a trial, or its streams; the others are the same for all."""
COMPENSATION_BYTES = 2
"""Bytes of the word that compensates for a tag and its sequence number in checksums."""
STREAM_BITS = 4
"""How many of those bits distinguish the streams of a direction, if the tag does that: the highest ones."""
MOST_STREAMS = 1 << STREAM_BITS
"""The maximum number of streams of a direction."""
_DIRECTION_BITS = 8 - STREAM_BITS
_STATE_WORDS = 624


@dataclass(frozen=True)
class SteppingField:
    """A header field that changes from frame to frame: it takes the values first, first + 1 ..., over and over.

    Or it takes the listed values, one after the other. Fields step together: the second frame has the second value of
    each. So the number of different frames (of one size) is the least common multiple of all counts.
    """

    offset: int
    """Its place in the frame, in bytes."""
    width: int
    """Its width, in bytes (at most eight)."""
    first: int
    """Its lowest value."""
    count: int
    """How many values it takes."""
    seed: int | None = None
    """Seed of the random order in which it takes them; None: ascending. The same seed always gives the same order."""
    values: tuple[int, ...] = ()
    """All values in their order, if they are listed: `count` of them, and none below `first`."""

    @property
    def is_shuffled(self) -> bool:
        """Whether its steps are listed or random, instead of counting up."""
        return bool(self.values) or self.seed is not None

    @property
    def steps(self) -> Sequence[int]:
        """What is added to its first value in each step."""
        if self.values:
            return tuple(value - self.first for value in self.values)
        return range(self.count) if self.seed is None else permutation(self.seed, self.count)


@dataclass(frozen=True)
class LengthField:
    """Two bytes of a header that hold the number of bytes up to the frame's end (without FCS)."""

    offset: int
    """Its place in the frame, in bytes."""
    start: int
    """From where bytes are counted."""


@dataclass(frozen=True)
class ChecksumField:
    """Two bytes of a header that hold the Internet checksum (RFC 1071) of a part of the frame."""

    offset: int
    """Its place in the frame, in bytes."""
    start: int
    """Where the part begins."""
    end: int | None = None
    """Where it ends; None: at the frame's end."""
    pseudo_header: tuple[int, int, int] | None = None
    """Start and end of the addresses, and the protocol number, of the pseudo header to include."""

    @property
    def is_udp(self) -> bool:
        """Whether it is UDP's, in which zero is written as all ones (RFC 768)."""
        return self.pseudo_header is not None and self.pseudo_header[2] == UDP_PROTOCOL

    def sum_in(self, frame: bytes) -> int:
        """Sum of the 16-bit words that it covers in a frame; its own place must hold zero."""
        part = frame[self.start : len(frame) if self.end is None else self.end]
        total = word_sum(part)
        if self.pseudo_header is not None:
            start, stop, protocol = self.pseudo_header
            total += word_sum(frame[start:stop]) + protocol + len(part)
        return total

    def write(self, frame: bytearray) -> None:
        """Writes the checksum into a frame in which its own field is zero."""
        frame[self.offset : self.offset + 2] = self.value(self.sum_in(bytes(frame)))

    def value(self, total: int) -> bytes:
        """The two bytes for a sum."""
        total = folded(total)
        return (0xFFFF if self.is_udp and total == 0xFFFF else 0xFFFF - total).to_bytes(2, "big")


@dataclass(frozen=True)
class TagPlace:
    """The place of a trial's tag in frames."""

    offset: int
    """The place in the frame as it was sent."""
    behind_vlan: bool
    """Whether the frame begins with a VLAN tag, which the kernel removes when the frame arrives."""
    is_numbered: bool
    """Whether a sequence number follows the tag; otherwise, the tag's complement does."""
    compensation: int | None
    """Where the word is that compensates for both in checksums; None: no checksum covers them."""


@dataclass(frozen=True)
class StreamOrder:
    """The order in which the frames of several streams follow each other, over and over."""

    names: tuple[str, ...]
    """The names of the streams in counters."""
    streams: tuple[int, ...]
    """The stream of each frame of a round, by its index among the names."""
    sizes: tuple[int, ...]
    """The size of each of these frames, by its index in `FramesSpec.sizes`."""

    def count(self, first: int, frames: int, step: int = 1) -> list[int]:
        """How many frames each stream has among this many frames, beginning with a place in the order.

        They are successive frames, or (`step`) every second one, every third one and so on.
        """
        length = len(self.streams)
        turn = (self.streams * (step + 1))[first % length :: step][:length]
        rounds, rest = divmod(frames, length)
        return [rounds * turn.count(number) + turn[:rest].count(number) for number in range(len(self.names))]

    def counted(self, sent: Iterable[int], received: Iterable[int]) -> list[Message]:
        """How many frames of each stream left and came back: see `lossratio.trials.StreamFrames`."""
        frames = zip(self.names, sent, received)
        return [{"name": name, "sent_frames": left, "received_frames": arrived} for name, left, arrived in frames]


def stream_tag(tag: int, stream: int) -> int:
    """The tag of a stream's frames, given the tag of its direction."""
    return tag + (stream << _DIRECTION_BITS)


def tag_bits(frames: FramesSpec) -> int:
    """Bits of a tag that are the same in all frames of a direction."""
    streams = 0 if frames.order is None else stream_tag(0, MOST_STREAMS - 1)
    return 0xFFFFFFFF & ~streams


@dataclass(frozen=True)
class FramesSpec:
    """Description of the frames of one direction."""

    header: str
    """The bytes with which all frames begin, in hexadecimal; MAC addresses, stepping fields, lengths and checksums are
    zero."""
    fields: tuple[SteppingField, ...]
    """Fields that step from frame to frame."""
    lengths: tuple[LengthField, ...]
    """Fields that hold a length."""
    checksums: tuple[ChecksumField, ...]
    """Fields that hold a checksum; a checksum that covers others comes after them."""
    sizes: tuple[tuple[int, int], ...]
    """Frame sizes in bytes with FCS, each with its weight."""
    tag_offset: int
    """Where the trial's tag is."""
    is_numbered: bool
    """Whether the smallest frame has room for a sequence number, with compensation in checksums."""
    compensation: int | None
    """Where the word is that compensates for it; None: no checksum covers the sequence number."""
    rewritable: tuple[tuple[int, int], ...]
    """Starts and ends of fields that devices on the way may rewrite, such as MAC addresses."""
    addresses: tuple[tuple[int, int], ...]
    """Starts and ends of IP addresses that they may not rewrite."""
    any_mac: bool = False
    """Whether they may rewrite the destination MAC address to any other one."""
    payload_shift: int = 0
    """By how many bytes the payload is after the place where it was written. In that place, each of its
    bytes was its own position, modulo 256."""
    order: StreamOrder | None = None
    """The order of the frames of several streams, each of which is a separate flow for all fields; None: there is one
    stream, whose sizes and flows follow each other as `lossratio.agent.core.frame_order` says."""

    def __post_init__(self) -> None:
        bytes.fromhex(self.header)

    def check_room(self) -> None:
        """Makes sure that each frame has room for its headers and the tag."""
        least = self.tag_offset + TAG_BYTES + FCS_BYTES
        smallest = min(size for size, _ in self.sizes)
        if smallest < least:
            raise unsupported(
                f"The smallest frame has {smallest} bytes, but these headers need {least}. Use larger frames."
            )

    @property
    def max_size(self) -> int:
        """Size of the largest frame, in bytes with FCS."""
        return max(size for size, _ in self.sizes)

    @property
    def flows(self) -> int:
        """How many frames differ in more than their size; with several streams, the frames of a round."""
        if self.order is not None:
            return len(self.order.streams)
        return reduce(least_common_multiple, (field.count for field in self.fields), 1)

    @property
    def mtu(self) -> int:
        """Minimum MTU that its largest frame needs: bytes without Ethernet header, FCS and one 802.1Q tag."""
        tag = VLAN_TAG_BYTES if self.tag_place.behind_vlan else 0
        return self.max_size - FCS_BYTES - ETHERNET_HEADER_BYTES - tag

    @property
    def handshake(self) -> int | None:
        """Place of the TCP header if a handshake opens connections and the tag is in a TCP option; otherwise None."""
        has_udp = any(checksum.is_udp for checksum in self.checksums)
        place = self.addresses[0][1] if self.addresses else self.tag_offset
        is_tcp = not has_udp and any(checksum.pseudo_header is not None for checksum in self.checksums)
        if is_tcp and self.tag_offset > place + TCP.length:
            return place
        return None

    @property
    def has_macs(self) -> bool:
        """Whether the frames come back with MAC addresses that are not the ports' own."""
        return self.any_mac or any(field.offset < 12 for field in self.fields)

    @property
    def tag_place(self) -> TagPlace:
        """The place of the trial's tag."""
        behind_vlan = bytes.fromhex(self.header)[12:14] in TAG_ETHERTYPES
        return TagPlace(self.tag_offset, behind_vlan, self.is_numbered, self.compensation)

    def template(self, length: int, macs: bytes) -> bytearray:
        """A frame of a length without FCS, as it is before flows and checksums are written into it.

        It has a tag of zero with its complement, because all other tags leave checksums the same. `macs` are its
        destination and source.
        """
        frame = bytearray((octet - self.payload_shift) & 0xFF for octet in range(length))
        head = macs + bytes.fromhex(self.header)[MACS_BYTES:] + bytes(4) + b"\xff" * 4
        frame[: self.payload_offset] = head.ljust(self.payload_offset, b"\0")
        for field in self.lengths:
            frame[field.offset : field.offset + 2] = (length - field.start).to_bytes(2, "big")
        return frame

    def reflected(self) -> FramesSpec:
        """The frames as they come back from a reflector, which swaps the outermost IP addresses."""
        ip, place, _ = next(part for part in headers_of(bytes.fromhex(self.header)) if part.header.addresses)
        return self.swapped((place + ip.addresses, (ip.length - ip.addresses) // 2))

    def swapped(self, *parts: tuple[int, int]) -> FramesSpec:
        """The frames with parts of their headers swapped with the next parts: the place and the width of each."""
        header = bytearray.fromhex(self.header)
        moves: dict[int, int] = {}
        for first, width in parts:
            second = first + width
            end = second + width
            header[first:end] = header[second:end] + header[first:second]
            moves.update(dict.fromkeys(range(first, second), width))
            moves.update(dict.fromkeys(range(second, end), -width))

        fields = (replace(field, offset=field.offset + moves.get(field.offset, 0)) for field in self.fields)
        return replace(self, header=header.hex(), fields=tuple(fields))

    def sized(self, size: int) -> FramesSpec:
        """The same frames in one size, in bytes with FCS."""
        order = self.order
        if order is not None:
            order = replace(order, sizes=(0,) * len(order.sizes))
        return replace(self, sizes=((size, 1),), order=order)

    @property
    def size_order(self) -> list[int]:
        """Sizes of the first frames, by their index in `sizes`, which repeat for all others."""
        if self.order is not None:
            return list(self.order.sizes)
        return size_pattern([weight for _, weight in self.sizes])

    @property
    def period(self) -> int:
        """After how many frames everything repeats."""
        if self.order is not None:
            return self.flows
        return len(self.size_order) * self.flows

    @property
    def round(self) -> int:
        """After how many frames sizes and flows return together; flows then slip by one, until everything repeats."""
        return self.period // gcd(len(self.size_order), self.flows) if self.order is None else self.flows

    @property
    def payload_offset(self) -> int:
        """The beginning of the payload that follows the tag."""
        end = self.tag_offset + TAG_BYTES
        if self.compensation == end:
            return end + COMPENSATION_BYTES
        return end


def size_pattern(weights: Sequence[int]) -> list[int]:
    """The shortest sequence of numbers from 0 on with these weights, each number spread as evenly as possible."""
    divisor = reduce(gcd, weights)
    weights = [weight // divisor for weight in weights]
    dues = [0] * len(weights)
    pattern: list[int] = []
    for _ in range(sum(weights)):
        dues = [due + weight for due, weight in zip(dues, weights)]
        chosen = dues.index(max(dues))
        dues[chosen] -= sum(weights)
        pattern.append(chosen)
    return pattern


def least_common_multiple(one: int, other: int) -> int:
    """The least common multiple of two numbers, which Python 3.8 does not provide."""
    return one * other // gcd(one, other)


def permutation(seed: int, count: int) -> list[int]:
    """The numbers below `count` in the random order of ``numpy.random.RandomState(seed).permutation(count)``."""
    # Python has the same random number generator, but seeds it differently.
    words = [seed & 0xFFFFFFFF]
    for place in range(1, _STATE_WORDS):
        words.append((1812433253 * (words[-1] ^ words[-1] >> 30) + place) & 0xFFFFFFFF)
    twister = random.Random()
    twister.setstate((3, (*words, _STATE_WORDS), None))
    draw = twister.getrandbits
    numbers = list(range(count))
    for last in range(count - 1, 0, -1):
        mask = (1 << last.bit_length()) - 1
        chosen = draw(32) & mask
        while chosen > last:
            chosen = draw(32) & mask
        numbers[last], numbers[chosen] = numbers[chosen], numbers[last]
    return numbers
