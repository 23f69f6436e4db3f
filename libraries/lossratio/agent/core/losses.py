# SPDX-License-Identifier: Apache-2.0
"""Where the lost frames of a direction are: tables by flow, size, moment and run, from the numbers of lost frames.

They are the fields of `lossratio.trials.Losses`. The generator says which frames were lost by their numbers in the
order of sending; everything else about a frame follows from its number.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from itertools import islice
from typing import Any, Iterator, Sequence

from .arrays import NDArray, np
from .comparison import header_fields
from .frame_order import FrameOrder, Numbers, values_of
from .frames_spec import FramesSpec, SteppingField, StreamOrder
from .headers import ETHERNET, TCP, UDP, VLAN, HeaderField, headers_of
from .protocol import Message
from .wire import PORT_BYTES

MOST_FLOWS = 1024
"""The number of flows, from the first one on, whose lost frames are counted separately."""
MOST_PLACES = 256
"""How many places of a pattern of sizes, and of the losses of a turn, are counted separately."""
MOST_CLASSES = 64
"""The maximum number of values of a field that makes classes of flows."""
BLOCKS = 16
"""The maximum number of parts of a trial that are counted separately."""
STEP_SECONDS = 0.01
"""Seconds of each step for which lost frames are counted; doubled until there are at most `MOST_STEPS` steps."""
MOST_STEPS = 4096
HASH_BITS = 7
"""Bits of a hash that are kept: as many as cards use in the tables that determine receive queues."""
_RSS_KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
"""The key in Microsoft's specification of receive-side scaling, which drivers use unless they choose a random one."""
_KEY_BITS = 8 * len(_RSS_KEY)
_HASH_WORD_BITS = 32
_MOST_VALUE_BITS = 32
_LEAST_TURNS = 10
"""How often a regular loss has to repeat; and lost frames of which one at least is of it."""
_MOSTLY = 0.95
"""The least share of the lost frames that a regular loss explains."""
_NO_TURN = 0, 1, 0.0
_WITH_PORTS = (TCP, UDP)


class Fates:
    """Which frames of a trial were lost, if known.

    Frames are known in runs: `run` frames from each of the `starts` on, or fewer if the traffic ended. All numbers are
    those of the order of sending, in ascending order.
    """

    def __init__(self, sent: int, starts: Numbers, run: int, lost: Numbers) -> None:
        self.sent = sent
        self.run = run
        self.lost = lost
        self._starts = starts[starts < sent]
        self._counts = np.concatenate(([0], np.cumsum(np.minimum(run, sent - self._starts))))

    @property
    def known(self) -> int:
        """How many frames are known."""
        return int(self._counts[-1])

    @property
    def first(self) -> int:
        """Number of the first frame that is known."""
        return int(self._starts[0]) if len(self._starts) else 0

    @property
    def is_whole(self) -> bool:
        """Whether all known frames are successive."""
        return len(self._starts) == 1

    def known_below(self, numbers: Numbers) -> Numbers:
        """How many frames with a lower number are known, for each number."""
        runs = np.searchsorted(self._starts, numbers)
        starts = self._starts[np.maximum(runs - 1, 0)]
        within = np.minimum(self._counts[runs], self._counts[np.maximum(runs - 1, 0)] + np.maximum(numbers - starts, 0))
        below: Numbers = np.where(runs > 0, within, 0)
        return below

    def numbers(self, least: int = 0) -> Numbers:
        """The numbers of all known frames from one on."""
        parts = [np.arange(max(least, start), min(start + self.run, self.sent)) for start in self._starts.tolist()]
        return np.concatenate([np.arange(0), *parts])


class LossTables:
    """Makes the tables of one direction's trials, whose frames are `spec`."""

    def __init__(self, spec: FramesSpec) -> None:
        self._order = FrameOrder(spec)
        self._flows = min(self._order.flows, MOST_FLOWS)
        self._places = len(self._order.pattern)
        # Table: the parts that are the same in all trials.
        self._constant: Message = {
            "flows": self._order.flows,
            "flow_hashes": _counts(_hashes(spec, self._flows)),
            "classes": _classes(spec) if spec.order is None else _classes_of_streams(spec, spec.order),
        }

    def of(self, fates: Fates, first: int, duration: float) -> Message | None:
        """The losses of a trial, as in `lossratio.trials.Losses`; None: no known frame was lost.

        `first` is the number of the first frame of the trial among the frames of `FrameOrder`, and `duration` the
        seconds of traffic.
        """
        if not len(fates.lost):
            return None

        span = fates.sent - fates.first
        blocks = int(min(BLOCKS, max(1, span // max(self._order.flows, self._places))))
        block = (fates.lost - fates.first) * blocks // span
        # Record: what is known about the places of lost frames.
        message: Message = {
            "known_frames": fates.known,
            "lost_frames": len(fates.lost),
            "duration_s": duration,
            "run_frames": fates.known if fates.is_whole else fates.run,
            "last_frames": fates.first if fates.is_whole else 0,
            "blocks": blocks,
            **self._constant,
            **self._by_step(fates, duration),
            **_events(fates),
        }
        if self._order.flows > 1:
            message.update(self._by_flow(fates, first, blocks, block))
        if 1 < self._places <= MOST_PLACES and len(set(self._order.pattern.tolist())) > 1:
            message.update(self._by_size(fates, first, blocks, block))
        return message

    def _by_flow(self, fates: Fates, first: int, blocks: int, block: Numbers) -> Message:
        flows = self._order.flow_numbers(fates.lost + first)
        kept = flows < self._flows
        lost = np.bincount(block[kept] * self._flows + flows[kept], minlength=blocks * self._flows)
        # All flows have the same number of frames in each period.
        period = self._order.period
        periods = (fates.sent - fates.first) // period if fates.is_whole else 0
        rest = fates.numbers(fates.first + periods * period)
        of_rest = np.bincount(self._order.flow_numbers(rest + first), minlength=self._flows)[: self._flows]
        known = of_rest + periods * (period // self._order.flows)
        return {"flows_lost": _counts(lost), "flows_known": _counts(known)}

    def _by_size(self, fates: Fates, first: int, blocks: int, block: Numbers) -> Message:
        places = (fates.lost + first) % self._places
        lost = np.bincount(block * self._places + places, minlength=blocks * self._places)
        periods = (fates.sent - fates.first) // self._places if fates.is_whole else 0
        rest = fates.numbers(fates.first + periods * self._places)
        known = np.bincount((rest + first) % self._places, minlength=self._places) + periods
        sizes = self._order.pattern.tolist()
        return {"sizes_bytes": sizes, "sizes_lost": _counts(lost), "sizes_known": _counts(known)}

    def _by_step(self, fates: Fates, duration: float) -> Message:
        step = STEP_SECONDS
        while duration / step > MOST_STEPS:
            step *= 2
        per_step = fates.sent * step / duration
        steps = max(1, int(np.ceil(fates.sent / per_step)))
        ends = np.minimum(np.ceil(np.arange(steps + 1) * per_step).astype(np.int64), fates.sent)
        return {
            "step_s": step,
            "steps_lost": _counts(np.diff(np.searchsorted(fates.lost, ends))),
            "steps_known": _counts(np.diff(fates.known_below(ends))),
        }


def _events(fates: Fates) -> Message:
    """Loss events by their size, those at both ends of the trial, and their distance if it is constant."""
    lost = fates.lost
    follows = np.diff(lost) == 1
    if not fates.is_whole:
        follows &= lost[1:] % fates.run != 0
    starts = np.flatnonzero(np.concatenate(([True], ~follows)))
    sizes = np.diff(np.concatenate((starts, [len(lost)])))
    leading = int(sizes[0]) if lost[0] == 0 and fates.is_whole else 0
    trailing = int(sizes[-1]) if lost[-1] == fates.sent - 1 and fates.is_whole else 0
    every_frames, every_lost, every_ratio = _turn(lost) if fates.is_whole else _NO_TURN
    # Record: runs of lost frames, and how far apart they are.
    return {
        "events": _counts(np.bincount(np.log2(sizes).astype(np.int64))),
        "leading_frames": leading,
        "trailing_frames": trailing,
        "every_frames": every_frames,
        "every_lost": every_lost,
        "every_ratio": every_ratio,
    }


def _turn(lost: Numbers) -> tuple[int, int, float]:
    """After how many frames the same ones are lost again, how many these are, and their share of the lost frames.

    A device that counts frames loses each frame at these places, and seldom others. 0: nothing like that is seen.
    """
    span = int(lost[-1] - lost[0])
    most = span // _LEAST_TURNS
    distances = np.unique(lost[: MOST_PLACES + 1] - lost[:_LEAST_TURNS, None])
    distances = distances[(distances > 0) & (distances <= most)]
    if not len(distances):
        return _NO_TURN

    is_lost = np.zeros(int(lost[-1]) + 1, dtype=bool)
    is_lost[lost] = True
    early = lost[lost <= lost[-1] - most][:MOST_PLACES]
    again = is_lost[early + distances[:, None]].sum(axis=1)
    longest = int(distances[np.argmax(again)])
    is_regular = np.bincount(lost % longest, minlength=longest) >= span // longest
    share = float(is_regular[lost % longest].mean())
    if share < _MOSTLY:
        return _NO_TURN

    parts = (part for part in range(1, longest + 1) if longest % part == 0)
    turn = next(part for part in parts if (np.roll(is_regular, part) == is_regular).all())
    places = np.flatnonzero(is_regular[:turn])
    # Counters lose one run of frames, or evenly spread ones. A long turn with many places fits any losses.
    kinds = len(np.unique(np.diff(places, append=places[:1] + turn)))
    if kinds > 2 or len(places) * turn > span:
        return _NO_TURN
    return turn, len(places), share


def _counts(numbers: NDArray[Any]) -> str:
    """Numbers below 2^32 as `lossratio.trials.read_counts` reads them."""
    if not len(numbers):
        return ""
    return b64encode(zlib.compress(numbers.astype("<u4").tobytes(), 6)).decode()


def _classes(spec: FramesSpec) -> list[Message]:
    """The fields in whose value the flows of a direction differ, apart from those that are unique for each flow."""
    names = {}
    for field in header_fields(bytes.fromhex(spec.header)):
        names[(field.first, field.end - field.first)] = field.name
    return [
        {"field": names.get((field.offset, field.width), f"octet {field.offset}"), "values": values_of(field).tolist()}
        for field in spec.fields
        if 1 < field.count <= min(MOST_CLASSES, spec.flows - 1)
    ]


def _classes_of_streams(spec: FramesSpec, order: StreamOrder) -> list[Message]:
    """The streams of the first frames of a round, and the fields in whose value these frames differ."""
    count = min(len(order.streams), MOST_FLOWS)
    classes: list[Message] = [{"field": "stream", "values": order.streams[:count], "names": order.names}]
    headers = [bytearray(bytes.fromhex(spec.header)) for _ in range(count)]
    for field in spec.fields:
        for header, value in zip(headers, values_of(field).tolist()):
            header[field.offset : field.offset + field.width] = value.to_bytes(field.width, "big")

    for part in (*_fields_of_tags(bytes(headers[0])), *header_fields(bytes(headers[0]))):
        values = [part.value(bytes(header)) for header in headers]
        if 1 < len(set(values)) <= MOST_CLASSES and part.bits <= _MOST_VALUE_BITS:
            classes.append({"field": part.name, "values": values})
    return classes


def _fields_of_tags(frame: bytes) -> Iterator[HeaderField]:
    for header, place, _ in headers_of(frame):
        if header is VLAN:
            yield from islice(VLAN.at(place), 3)
        if header.addresses:
            return


def _hashes(spec: FramesSpec, flows: int) -> Numbers:
    """The lowest bits of each flow's hash for receive queues; empty if flows do not differ in the hashed fields."""
    header = bytes.fromhex(spec.header)
    layers = [part for part in headers_of(header) if part.header not in (ETHERNET, VLAN)]
    if not layers or not layers[0].header.addresses or flows < 2:
        return np.zeros(0, dtype=np.int64)

    ip, start, _ = layers[0]
    hashed = [*range(start + ip.addresses, start + ip.length)]
    if len(layers) > 1 and layers[1].header in _WITH_PORTS:
        ports = layers[1].place
        hashed += range(ports, ports + 2 * PORT_BYTES)
    octets = np.tile(np.frombuffer(header, dtype=np.uint8)[hashed].astype(np.uint64), (flows, 1))
    differ = False
    for field in spec.fields:
        differ |= _write(field, octets, hashed)
    if not differ:
        return np.zeros(0, dtype=np.int64)
    return _toeplitz(octets)


def _write(field: SteppingField, octets: NDArray[np.uint64], hashed: Sequence[int]) -> bool:
    """Writes a field of all flows into the hashed octets; returns whether the field is hashed."""
    values = values_of(field)[np.arange(len(octets)) % field.count]
    found = False
    for place in range(field.width):
        if field.offset + place in hashed:
            shift = np.uint64(8 * (field.width - 1 - place))
            octets[:, hashed.index(field.offset + place)] = values >> shift & np.uint64(0xFF)
            found = True
    return found


def _toeplitz(octets: NDArray[np.uint64]) -> Numbers:
    """The lowest bits of the hash of each row (Toeplitz, as in Microsoft's receive-side scaling)."""
    key = int.from_bytes(_RSS_KEY, "big")
    hashes = np.zeros(len(octets), dtype=np.int64)
    for bit in range(8 * octets.shape[1]):
        is_set = (octets[:, bit // 8] >> np.uint64(7 - bit % 8) & np.uint64(1)).astype(bool)
        window = key >> (_KEY_BITS - _HASH_WORD_BITS - bit) & ((1 << HASH_BITS) - 1)
        hashes[is_set] ^= window
    return hashes
