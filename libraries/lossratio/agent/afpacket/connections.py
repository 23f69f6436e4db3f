# SPDX-License-Identifier: Apache-2.0
"""Connections by packet sockets: see `lossratio.agent.core.passes`.

An end has one header for each connection: the header that it received, or sends in its turn. So no stack is needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Sequence

from ..core.arrays import np
from ..core.frames_spec import FramesSpec
from ..core.links import Link
from ..core.pacing import Transmission
from ..core.passes import FIN, OTHER_PORT, SYN, ExchangeCounts, Pass, check_answerable, passes_of
from ..core.plan import Control, Exchange, Plan
from ..core.protocol import Message
from ..core.wire import FCS_BYTES, MAC_BYTES, PORT_BYTES
from .ends import End
from .filters import let_rejections_through
from .frames import Bytes, Numbers, build_frames, complete, sums_of_payloads, tag_bytes
from .receive import FrameCounter, words_at
from .sender import Sender, SendOrder
from .transmit import SenderSetup

_SEQUENCE = 4
_ACKNOWLEDGEMENT = 8
_FLAGS = 13


class Conversation:
    """The passes over all connections of a direction, the first of which opens them: see `Ends`.

    The generator sends the first pass (`open_first`), for which it returns the counters and the number of the first
    frame, and all others (`transmit`), whose tags it chooses.
    """

    def __init__(
        self,
        ports: tuple[Link, Link],
        frames: FramesSpec,
        setup: SenderSetup,
        open_first: Callable[[Plan, Exchange, Control], tuple[Message, int]],
        transmit: Callable[[Sender, SendOrder, Control], Transmission],
        next_tag: Callable[[], int],
    ) -> None:
        check_answerable(frames)
        self._open_first, self._transmit, self._next_tag = open_first, transmit, next_tag
        self._frames = frames
        self._tcp = frames.handshake
        self._cycle = setup.cycle
        self.opener: Sender | None = None
        if self._tcp is not None:
            self._cycle = build_frames(
                self._opening(), setup.cycle.data[0, 6:12].tobytes(), setup.cycle.data[0, :6].tobytes()
            )
            self.opener = Sender(replace(setup, frames=self._cycle))

        self._initiator, self._responder = (End(port, frames, setup) for port in ports)
        self._rejections = FrameCounter(ports[0])
        self._sums = sums_of_payloads(frames)
        self._passes: list[Pass] = []
        self._first = self._latest_tag = 0
        self._is_patient = False
        self._late_seen = 0
        self._strangers = 0
        # Connections of earlier exchanges whose answers came late, and that were not reported before this exchange.
        self._late_before = 0
        self._alive = self._opened = np.empty(0, dtype=np.int64)

    def begin(self, tag: int, connections: int, exchange: Exchange) -> None:
        """Forgets all connections, and notes those that are opened by frames with a tag."""
        self._passes = passes_of(exchange, is_tcp=self._tcp is not None)
        self._is_patient = exchange.is_complete
        self._late_before = self.late()
        self._begin_passes()
        let_rejections_through(self._rejections.socket, self._frames)
        self._rejections.begin()
        self._responder.begin(tag, connections, None, self._change(*self._passes[:2]))

    def note(self) -> None:
        """Takes arrived frames out of the rings."""
        self._initiator.note()
        self._responder.note()

    def end(self) -> None:
        """Stops noting frames."""
        self._initiator.end()
        self._responder.end()

    @property
    def counts(self) -> ExchangeCounts:
        """See `Ends.counts`."""
        ends = (self._initiator, self._responder)
        # Record: what both ends have seen.
        return ExchangeCounts(
            alive=len(self._alive),
            overlooked=sum(end.overlooked for end in ends),
            copies=sum(end.copies for end in ends),
            strangers=self._strangers,
            rejections=self._rejections.read(),
        )

    def open(self, plan: Plan, exchange: Exchange, control: Control) -> Message:
        """See `Ends.open`."""
        counters, self._first = self._open_first(plan, exchange, control)
        self._alive = self._opened = self._responder.arrived()
        self._responder.keep(self._opened)
        counters["late_frames"] += self._late_before
        return counters

    def send_pass(self, number: int, load: float, control: Control) -> int:
        """See `Ends.send_pass`."""
        before, now, *later = self._passes[number - 1 :]
        sends, receives = self._initiator, self._responder
        if not now.is_forward:
            sends, receives = receives, sends
        # The header that the receiving end has: it sent that header, or received it earlier.
        expected: Callable[[Numbers], Bytes] = receives.headers
        if number == 1:
            expected = self._opened_headers(self._opened)
        if before.is_forward != now.is_forward:
            expected = self._answered(expected)

        count = len(self._alive)
        if before.is_forward == now.is_forward:
            sends.make_next(count, self._change(before, now))
        order = self._order(load, count, self._length(now))
        receives.begin(order.tag, count, expected, self._kept(now, later))
        sent = self._transmit(sends.sender, order, control)
        arrived = receives.arrived()
        self._strangers += receives.strangers
        self._alive = self._alive[arrived]
        if len(arrived) < count:
            sends.keep(arrived)
            receives.keep(arrived)
        return max(0, sent.intended - sent.sent)

    def are_late(self, control: Control) -> bool:
        """See `Ends.are_late`."""
        are_late = self._initiator.are_late(self._latest_tag, control.check)
        self._strangers = self._initiator.strangers
        return are_late

    def late(self) -> int:
        """Connections whose missing frame came late, unless an earlier call returned them."""
        self.note()
        late = self._initiator.late + self._responder.late
        new = late - self._late_seen
        self._late_seen = late
        return new

    def _begin_passes(self) -> None:
        for end in (self._initiator, self._responder):
            end.overlooked = end.copies = 0
        self._strangers = 0

    def send_again(self, load: float, exchange: Exchange, control: Control) -> int:
        """See `Ends.send_again`.

        Unasked answers come from a port other than the one that a connection was opened to; the connections end with
        them.
        """
        count = len(self._alive)
        is_unasked = exchange.answers == "unasked"
        asked = self._answered(self._opened_headers(self._alive))
        expected = asked
        if is_unasked:
            self._responder.make_next(count, lambda rows: self._completed(self._from_elsewhere(rows), self._passes[1]))

            def elsewhere(numbers: Numbers) -> Bytes:
                return self._from_elsewhere(asked(numbers))

            expected = elsewhere

        self._begin_passes()
        order = self._order(load, count, self._length(self._passes[1]))
        self._initiator.begin(order.tag, count, expected, None)
        sent = self._transmit(self._responder.sender, order, control).sent
        arrived = self._initiator.arrived()
        if is_unasked or len(arrived) < count:
            self._responder.keep(arrived)
        self._alive = self._alive[arrived]
        return sent

    def _order(self, load: float, count: int, length: int) -> SendOrder:
        """The order to answer over the first connections."""
        self._latest_tag = self._next_tag()
        plan = Plan(((load, (count - 0.5) / load),))
        return SendOrder(plan, self._latest_tag, replies=count, length=length, is_patient=self._is_patient)

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


def swapped(data: Bytes, start: int, end: int) -> Bytes:
    """Headers with source and destination swapped; the arguments are where the addresses begin and end."""
    answers: Bytes = data.copy()
    for place, size in ((0, MAC_BYTES), (start, (end - start) // 2), (end, PORT_BYTES)):
        answers[:, place : place + size] = data[:, place + size : place + 2 * size]
        answers[:, place + size : place + 2 * size] = data[:, place : place + size]
    return answers


def _set_word(data: Bytes, place: int, words: Numbers) -> None:
    data[:, place : place + 4] = (words & 0xFFFFFFFF).astype(">u4").view(np.uint8).reshape(-1, 4)
