# SPDX-License-Identifier: Apache-2.0
"""Connections by packet sockets: see `lossratio.agent.core.passes`.

An end has one header for each connection: the header that it received, or sends in its turn. So no stack is needed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Callable, Iterator, Sequence

from ..core.arrays import np
from ..core.frames_spec import FramesSpec
from ..core.links import Link
from ..core.pacing import Transmission
from ..core.passes import FIN, LEAST_SILENT, OTHER_PORT, SYN, Pass, answered_again, check_answerable, passes_of, silence
from ..core.plan import Exchange, Plan
from ..core.protocol import Message
from ..core.wire import FCS_BYTES, MAC_BYTES, PORT_BYTES
from .ends import End
from .frames import Bytes, Numbers, build_frames, complete, sums_of_payloads, tag_bytes
from .receive import FrameCounter, words_at
from .sender import Sender, SendOrder
from .transmit import SenderSetup

_SEQUENCE = 4
_ACKNOWLEDGEMENT = 8
_FLAGS = 13


class Conversation:
    """The passes over all connections of a direction, the first of which opens them."""

    def __init__(self, source: Link, sink: Link, frames: FramesSpec, setup: SenderSetup) -> None:
        check_answerable(frames)
        self._frames = frames
        self._tcp = frames.handshake
        self._cycle = setup.cycle
        self.opener: Sender | None = None
        if self._tcp is not None:
            self._cycle = build_frames(
                self._opening(), setup.cycle.data[0, 6:12].tobytes(), setup.cycle.data[0, :6].tobytes()
            )
            self.opener = Sender(replace(setup, frames=self._cycle))

        self._initiator, self._responder = (End(port, frames, setup) for port in (source, sink))
        self._rejections = FrameCounter(source, frames.tag_place)
        self._sums = sums_of_payloads(frames)
        self._passes: list[Pass] = []
        self._first = 0
        self._is_patient = False
        self._late_seen = 0
        self._strangers = 0
        self.late_before = 0
        """Connections of earlier exchanges whose answers came late, and that were not reported before this exchange."""
        self.left: list[int] = []
        """Number of connections of which all frames had arrived, after each pass."""
        self._alive = np.empty(0, dtype=np.int64)

    def begin(self, tag: int, connections: int, exchange: Exchange) -> None:
        """Forgets all connections, and notes those that are opened by frames with a tag."""
        self._passes = passes_of(exchange, is_tcp=self._tcp is not None)
        self._is_patient = exchange.is_complete
        self.late_before = self.late()
        self._begin_passes()
        self._rejections.watch_rejections(self._frames)
        self._responder.begin(tag, connections, None, self._change(*self._passes[:2]))

    def note(self) -> None:
        """Takes arrived frames out of the rings."""
        self._initiator.note()
        self._responder.note()

    def end(self) -> None:
        """Stops noting frames."""
        self._initiator.end()
        self._responder.end()

    def replies(self, first: int, load: float, next_tag: Callable[[], int]) -> Iterator[tuple[Sender, SendOrder]]:
        """Each pass after the first: who sends, and what. Request the next pass when the frames have arrived.

        `first` is the number of the first frame that opened a connection; the load is in frames per second.
        """
        self._first = first
        self._alive = opened = self._responder.arrived()
        self.left = [len(opened)]
        self._responder.keep(opened)
        for number, (before, now) in enumerate(zip(self._passes, self._passes[1:])):
            if not len(self._alive):
                return

            sends, receives = self._initiator, self._responder
            if not now.is_forward:
                sends, receives = receives, sends
            # The header that the receiving end has: it sent that header, or received it earlier.
            expected: Callable[[Numbers], Bytes] = receives.headers
            if number == 0:
                expected = self._opened_headers(opened)
            if before.is_forward != now.is_forward:
                expected = self._answered(expected)
            count = len(self._alive)
            tag = next_tag()
            length = self._length(now)
            if before.is_forward == now.is_forward:
                sends.make_next(count, self._change(before, now))
            receives.begin(tag, count, expected, self._kept(now, self._passes[number + 2 :]))
            yield sends.sender, self._order(load, count, tag, length)
            arrived = receives.arrived()
            is_silent = number == 0 and not len(arrived) and not receives.overlooked
            if is_silent and count >= LEAST_SILENT and not receives.are_late(tag):
                raise silence(receives.name, count, receives.strangers)

            self._strangers += receives.strangers
            self._alive = self._alive[arrived]
            self.left.append(len(arrived))
            if len(arrived) < count:
                sends.keep(arrived)
                receives.keep(arrived)

    def late(self) -> int:
        """Connections whose missing frame came late, unless an earlier call returned them."""
        self.note()
        late = self._initiator.late + self._responder.late
        new = late - self._late_seen
        self._late_seen = late
        return new

    @property
    def strangers(self) -> int:
        """Connections that ended because a frame over them came with other addresses."""
        return self._strangers

    @property
    def rejections(self) -> int:
        """Frames with which a device has rejected the connections since the first one was opened."""
        return self._rejections.read()

    @property
    def copies(self) -> int:
        """Further copies of frames."""
        return self._initiator.copies + self._responder.copies

    def _begin_passes(self) -> None:
        for end in (self._initiator, self._responder):
            end.overlooked = end.copies = 0
        self._strangers = 0
        self.left = []

    def answers_again(
        self, load: float, next_tag: Callable[[], int], *, is_unasked: bool
    ) -> Iterator[tuple[Sender, SendOrder]]:
        """Repeats the first answer over all connections of the previous exchange; see `replies`.

        Unasked answers come from a port other than the one that a connection was opened to; the connections end with
        them.
        """
        count = len(self._alive)
        if not count:
            return

        asked = self._answered(self._opened_headers(self._alive))
        expected = asked
        if is_unasked:
            self._responder.make_next(count, lambda rows: self._completed(self._from_elsewhere(rows), self._passes[1]))

            def elsewhere(numbers: Numbers) -> Bytes:
                return self._from_elsewhere(asked(numbers))

            expected = elsewhere

        tag = next_tag()
        self._begin_passes()
        self._initiator.begin(tag, count, expected, None)
        yield self._responder.sender, self._order(load, count, tag, self._length(self._passes[1]))
        arrived = self._initiator.arrived()
        if is_unasked or len(arrived) < count:
            self._responder.keep(arrived)
            self._alive = self._alive[arrived]

    def _order(self, load: float, count: int, tag: int, length: int) -> SendOrder:
        """The order to answer over the first connections."""
        plan = Plan(((load, (count - 0.5) / load),))
        return SendOrder(plan, tag, replies=count, length=length, is_patient=self._is_patient)

    @property
    def alive(self) -> int:
        """Connections over which all frames have arrived so far."""
        return len(self._alive)

    @property
    def overlooked(self) -> int:
        """The maximum number of connections about which nothing is known, because their frames found a ring full."""
        return self._initiator.overlooked + self._responder.overlooked

    def close(self) -> None:
        """Ends all its processes."""
        if self.opener is not None:
            self.opener.close()
        self._rejections.close()
        self._initiator.close()
        self._responder.close()

    def _opening(self) -> FramesSpec:
        """The frames with the flag SYN, which end with their headers."""
        header = bytearray.fromhex(self._frames.header)
        place = self._tcp or 0
        header[place + _SEQUENCE : place + _ACKNOWLEDGEMENT + 4] = bytes(8)
        header[place + _FLAGS] = SYN
        return replace(self._frames, header=header.hex(), sizes=((self._frames.payload_offset + FCS_BYTES, 1),))

    def _opened_headers(self, opened: Numbers) -> Callable[[Numbers], Bytes]:
        start = self._frames.tag_offset
        return lambda numbers: self._cycle.frames(self._first + opened[numbers])[0][:, :start]

    def _answered(self, headers: Callable[[Numbers], Bytes]) -> Callable[[Numbers], Bytes]:
        return lambda numbers: swapped(headers(numbers), *self._frames.addresses[0])

    def _length(self, each: Pass) -> int:
        if each.has_payload:
            return self._frames.max_size - FCS_BYTES
        return self._frames.payload_offset

    def _kept(self, now: Pass, later: Sequence[Pass]) -> Callable[[Bytes], Bytes] | None:
        """Turns the headers that arrive in a pass into the headers of the answer, if an answer is next."""
        if not later:
            return None
        if later[0].is_forward != now.is_forward:
            return self._change(now, later[0])
        return lambda rows: rows

    def _change(self, before: Pass, now: Pass) -> Callable[[Bytes], Bytes]:
        """From the headers of one pass to the headers of the next one, which an end sends."""
        frames = self._frames
        taken = self._length(before) - frames.payload_offset + bool(before.flags & (SYN | FIN))

        def change(rows: Bytes) -> Bytes:
            is_answer = before.is_forward != now.is_forward
            if is_answer:
                data = swapped(rows, *frames.addresses[0])
            else:
                data = rows.copy()
            if self._tcp is not None:
                sequence, acknowledged = (words_at(data, self._tcp + place) for place in (_SEQUENCE, _ACKNOWLEDGEMENT))
                if is_answer:
                    sequence, acknowledged = acknowledged, sequence + taken
                else:
                    sequence = sequence + taken
                _set_word(data, self._tcp + _SEQUENCE, sequence)
                _set_word(data, self._tcp + _ACKNOWLEDGEMENT, acknowledged)
                data[:, self._tcp + _FLAGS] = now.flags
            return self._completed(data, now)

        return change

    def _completed(self, rows: Bytes, now: Pass) -> Bytes:
        """Headers for the frames of a pass, from headers in which only times to live and checksums may be wrong."""
        frames = self._frames
        start = self._frames.tag_offset
        header = bytes.fromhex(frames.header)
        tail = np.frombuffer(tag_bytes(0).ljust(frames.payload_offset - start, b"\0"), dtype=np.uint8)
        data: Bytes = np.hstack((rows, np.tile(tail, (len(rows), 1))))

        for first, end in frames.rewritable:
            # The time to live, which routers have decremented.
            if end - first == 1:
                data[:, first] = header[first]

        for checksum in frames.checksums:
            data[:, checksum.offset : checksum.offset + 2] = 0

        complete(data, np.full(len(data), self._length(now)), frames, self._sums)
        return data[:, :start]

    def _from_elsewhere(self, rows: Bytes) -> Bytes:
        """Headers from a port to which no connection was opened: the port of these headers, with one bit changed."""
        place = self._frames.addresses[0][1]
        changed: Bytes = rows.copy()
        changed[:, place] ^= OTHER_PORT
        return changed


def answer_again(
    name: str,
    conversation: Conversation,
    load: float,
    exchange: Exchange,
    transmit: Callable[[Sender, SendOrder], Transmission],
    next_tag: Callable[[], int],
) -> Message:
    """Repeats the answers over the previous exchange's connections, and counts those that come back as received."""
    count = conversation.alive
    sent = 0
    began = time.monotonic()
    for sender, order in conversation.answers_again(load, next_tag, is_unasked=exchange.answers == "unasked"):
        sent = transmit(sender, order).sent

    elapsed = time.monotonic() - began
    return answered_again(name, sent, count, conversation.alive, conversation.overlooked, elapsed)


def swapped(data: Bytes, start: int, end: int) -> Bytes:
    """Headers with source and destination swapped; the arguments are where the addresses begin and end."""
    answers: Bytes = data.copy()
    for place, size in ((0, MAC_BYTES), (start, (end - start) // 2), (end, PORT_BYTES)):
        answers[:, place : place + size] = data[:, place + size : place + 2 * size]
        answers[:, place + size : place + 2 * size] = data[:, place : place + size]
    return answers


def _set_word(data: Bytes, place: int, words: Numbers) -> None:
    data[:, place : place + 4] = (words & 0xFFFFFFFF).astype(">u4").view(np.uint8).reshape(-1, 4)
