# SPDX-License-Identifier: Apache-2.0
"""Compares frames that came back with those that were sent: contents, copies, order."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple, Sequence

from ..core.arrays import NDArray, np
from ..core.comparison import FieldChange, changed_fields
from ..core.configuration import Direction
from ..core.frames_spec import DIRECTIONS, TAG_BYTES, tag_bits
from ..core.links import Link
from ..core.losses import Fates
from ..core.protocol import Message
from ..core.wire import FCS_BYTES, LEAST_LENGTH, MACS_BYTES
from .filters import RUN_FRAMES, Sample, let_nothing_through, let_sample_through
from .frames import Bytes, FrameCycle, Numbers, folded_sums, number_bytes, number_parts, stream_tags, word_sums
from .receive import CapturedFrames, ReceiveRing, overtaken_in, ring_slot_bytes, words_at

MOST_EXAMINED = 1 << 14
"""The approximate maximum number of frames of a trial and direction that are chosen for examination, which takes
milliseconds. Their copies, and odd frames, are also examined, so there is room for twice as many."""
_RING_BYTES = 1 << 24
_ROOM = 2
_FULL = 0.75
AT_ONCE = 1024
"""Number of frames that are examined at once while traffic flows, which takes some hundred microseconds."""
_LONG = 60.0
"""Seconds of endless traffic after which fewer of its frames are chosen."""
_MOST_LOCATED = 1 << 26
"""The maximum number of frames in a trial whose lost chosen frames are determined: with more frames, this would take
longer than a trial should."""
_WORD_BYTES = 8
_CACHED_BYTES = 1 << 20
_MOST_CHANGES = 8
NOT_COMPARED, INTACT, STRAYED, WRONG_LENGTH, WRONG_MAC, READDRESSED, CORRUPTED = range(7)
"""What is found of a frame: it belongs to another direction, has a length that no frame has, another destination MAC
address, other IP addresses, or anything else is different. Contents are compared only of frames in the sample."""
_OF_ALL = {"wrong_length": WRONG_LENGTH, "wrong_mac": WRONG_MAC, "strayed": STRAYED}
"""Faults for which all frames are looked at, not only chosen ones."""

Flags = NDArray[np.bool_]


class Examiner:
    """Keeps some arriving frames of a direction and, after the traffic, compares them with the frames that were sent.

    Frames are chosen by their sequence numbers, in runs of neighbours. So all copies of a chosen frame are seen, as are
    frames that overtake each other. In addition, there is every frame that belongs to another direction of the trial,
    has a length that was not sent, or has a destination MAC address other than the port's. The longer endless traffic
    flows, the smaller is the share that is chosen.
    """

    def __init__(self, direction: Direction, cycle: FrameCycle, sink: Link) -> None:
        frames = direction.arriving
        self._expected = _ExpectedFrames(direction, cycle)
        slot = ring_slot_bytes(max(direction.arriving_lengths) + direction.growth)
        self._ring = ReceiveRing(sink, slot, min(_ROOM * MOST_EXAMINED, _RING_BYTES // slot))
        self._place = direction.arriving_tag
        lengths = tuple(sorted(length + direction.growth for length in direction.arriving_lengths))
        self._sample = Sample(0, 1, b"" if frames.has_macs else sink.mac, lengths, tag_bits(frames))
        self._looked: list[_Seen] = []
        self._intact: Numbers | None = None

    def watch(self, tag: int, load: float, duration: float) -> None:
        """Chooses frames from now on, for a load in frames per second and its duration; infinite: not known."""
        self.end()
        self._forget()
        frames = load * (_LONG if duration == math.inf else duration)
        one_in = 1
        while frames / one_in > self._ring.slots / _ROOM:
            one_in *= 2
        self._choose(tag, one_in)

    def end(self) -> None:
        """Ignores all frames that come from now on; frames that have already come remain to be examined."""
        let_nothing_through(self._ring.socket)

    def close(self) -> None:
        """Closes the socket."""
        self._ring.socket.close()

    def _choose(self, tag: int, one_in: int) -> None:
        self._sample = replace(self._sample, tag=tag, one_in=one_in)
        let_sample_through(self._ring.socket, self._place, self._sample)

    def look(self, first: int, least: int) -> None:
        """Examines arrived frames if there are at least `least`; call it now and then while traffic flows.

        `first` is as for `examine`. If more frames come than were expected, the sample is halved; odd frames are kept
        as long as there is room for all of them.
        """
        kept = sum(len(seen.numbers) for seen in self._looked)
        if kept > self._ring.slots or not self._ring.has(least):
            return

        captured = self._ring.captured()
        self._looked.append(_look_at_all(captured, self._sample, self._expected, first))
        self._ring.release(len(captured))
        if kept + len(captured) > _FULL * self._ring.slots:
            self._choose(self._sample.tag, 2 * self._sample.one_in)
            seen = _joined(self._looked)
            chosen = seen.is_chosen & self._sample.chooses(seen.numbers)
            kept_rows = chosen | np.isin(seen.faults, list(_OF_ALL.values()))
            self._looked = [_Seen(seen.numbers[kept_rows], seen.faults[kept_rows], chosen[kept_rows], seen.changes)]

    def examine(self, first: int, sent: int) -> Message:
        """Counts of faults in the sample; call it when the frames have had their time to come back.

        `first` is the number of the frame with sequence number 0, in the order of all frames.
        """
        overlooked = self._ring.overlooked()
        seen = _joined([*self._looked, _look_at_all(self._ring.captured(), self._sample, self._expected, first)])
        # No frame with such a number was sent.
        seen.faults[np.isin(seen.faults, (INTACT, READDRESSED)) & (seen.numbers >= sent)] = CORRUPTED
        in_order = seen.numbers[seen.faults == INTACT]
        numbers, firsts = np.unique(in_order, return_index=True)
        self._intact = None if overlooked or not self._place.is_numbered else numbers
        self.end()
        self._forget()

        found = np.bincount(seen.faults, minlength=CORRUPTED + 1).tolist()
        # Frames for which there was no more room are assumed to be like the earlier ones.
        arrived = len(seen.numbers)
        of_all = {name: -(-found[fault] * (arrived + overlooked) // max(1, arrived)) for name, fault in _OF_ALL.items()}
        # Record: the attributes of `lossratio.trials.counters.Examination`.
        return {
            "examined": int(np.count_nonzero(seen.is_chosen)),
            "duplicated": len(in_order) - len(numbers),
            "reordered": overtaken_in(in_order[np.sort(firsts)]),
            "corrupted": found[CORRUPTED],
            "readdressed": found[READDRESSED],
            **of_all,
            "changed": [vars(change) for change in seen.changes[:_MOST_CHANGES]],
        }

    def fates(self, sent: int) -> Fates | None:
        """Which of the frames chosen for `examine` were lost, of this many that were sent; None: not known."""
        if self._intact is None or sent > _MOST_LOCATED:
            return None
        if self._sample.one_in == 1:
            starts, run = np.zeros(1, dtype=np.int64), sent
        else:
            run = RUN_FRAMES
            runs = np.arange(0, sent, run)
            starts = runs[self._sample.chooses(runs)]
        everything = Fates(sent, starts, run, np.arange(0))
        lost = np.setdiff1d(everything.numbers(), self._intact, assume_unique=True)
        return Fates(sent, starts, run, lost)

    def _forget(self) -> None:
        self._ring.overlooked()
        self._ring.release(self._ring.filled())
        self._looked = []


class _Seen(NamedTuple):
    """Findings about captured frames, one row for each."""

    numbers: Numbers
    """Its sequence number."""
    faults: NDArray[np.uint8]
    """What was found."""
    is_chosen: Flags
    """Whether its number was chosen for the sample."""
    changes: tuple[FieldChange, ...]
    """What differs in the first frame with a fault, if that is known."""


class _ExpectedFrames:
    """Frames as they must come back, as in `cycle`, and their bytes that matter."""

    def __init__(self, direction: Direction, cycle: FrameCycle) -> None:
        spec = direction.arriving
        self._direction = direction
        self.growth = direction.growth
        self._may_be_padded = direction.may_be_padded
        self.rewritable = direction.rewritable
        self.place = spec.tag_place
        self._cycle = cycle
        self.end = spec.max_size - FCS_BYTES
        self.lengths = direction.arriving_lengths

        self.matters = np.ones(self.end, dtype=bool)
        for start, stop in self.rewritable:
            self.matters[start:stop] = False
        self.is_address = np.zeros(self.end, dtype=bool)
        for start, stop in spec.addresses:
            self.is_address[start:stop] = True
        self.checksums = direction.header_checksums

    def frames(self, tag: int, numbers: Numbers, first: int) -> tuple[Bytes, Numbers]:
        """Frames by their sequence numbers, as they must come back, and their lengths."""
        data, whole_lengths = self._cycle.frames(numbers + first)
        lengths = whole_lengths.astype(np.int64)
        tags: Numbers = np.full(len(numbers), tag)
        streams = self._cycle.streams
        if streams is not None:
            tags = stream_tags(tag, streams[(numbers + first) % len(streams)])
        data[:, self.place.offset : self.place.offset + 4] = tags.astype(">u4").view(np.uint8).reshape(-1, 4)
        for (start, width), written in zip(number_parts(self.place), number_bytes(self.place, tags, numbers)):
            data[:, start : start + width] = written
        return data, lengths

    def without_padding(self, lengths: Numbers, sizes: Numbers) -> Numbers:
        """Lengths of frames, without the padding that links add to frames that have become too short."""
        if not self._may_be_padded:
            return lengths
        is_padded = (lengths == LEAST_LENGTH) & (sizes < LEAST_LENGTH)
        return np.where(is_padded, sizes, lengths)

    def differ(self, got: Bytes, wanted: Bytes, sizes: Numbers) -> Flags:
        """Whether frames differ in bytes that no device may rewrite, or a header's checksum is wrong."""
        differences = np.zeros((len(got), -(-self.end // _WORD_BYTES) * _WORD_BYTES), dtype=np.uint8)
        np.bitwise_xor(got[:, MACS_BYTES:], wanted[:, MACS_BYTES:], out=differences[:, MACS_BYTES : self.end])
        for start, stop in self.rewritable:
            differences[:, start:stop] = 0
        if len(self.lengths) > 1:
            differences[:, : self.end] *= np.arange(self.end) < sizes[:, np.newaxis]
        flags: Flags = np.bitwise_or.reduce(differences.view(np.uint64), axis=1) != 0
        for start, end in self.checksums:
            flags |= folded_sums(word_sums(got[:, start:end])) != 0xFFFF
        return flags

    def have_other_addresses(self, got: Bytes, wanted: Bytes, sizes: Numbers) -> Flags:
        """Which of the frames that differ have other IP addresses."""
        different = (got != wanted) & self.matters & (np.arange(self.end) < sizes[:, np.newaxis])
        is_readdressed: Flags = different[:, self.is_address].any(axis=1)
        for start, width in number_parts(self.place):
            # It is another frame's number, and the addresses also belong to that frame.
            is_readdressed &= ~different[:, start : start + width].any(axis=1)
        return is_readdressed

    def changes(self, frame: CapturedFrames, number: int, tag: int, first: int, mac: bytes) -> tuple[FieldChange, ...]:
        """What differs in a single frame with this sequence number; nothing if the number may be another frame's."""
        wanted, sizes = self.frames(tag, np.array([number]), first)
        got = frame.contents(self.end, with_tags=self.place.behind_vlan, skipped=self.growth)
        for start, width in number_parts(self.place):
            if (got[:, start : start + width] != wanted[:, start : start + width]).any():
                return ()
        with_tags = frame.contents(self.end, skipped=self.growth)
        length = int(frame.lengths[0]) - self.growth
        expected = wanted[0, : sizes[0]].tobytes()
        return tuple(changed_fields(self._direction, expected, with_tags[0, :length].tobytes(), mac or None, length))


def _joined(parts: Sequence[_Seen]) -> _Seen:
    numbers, faults, is_chosen, changes = zip(*parts)
    first_changes = next((part for part in changes if part), ())
    return _Seen(np.concatenate(numbers), np.concatenate(faults), np.concatenate(is_chosen), first_changes)


def _look_at_all(captured: CapturedFrames, sample: Sample, expected: _ExpectedFrames, first: int) -> _Seen:
    """Compares frames in portions that fit into a processor's cache."""
    count = max(1, _CACHED_BYTES // expected.end)
    starts = range(0, max(1, len(captured)), count)
    return _joined([_look(captured[start : start + count], sample, expected, first) for start in starts])


def _look(captured: CapturedFrames, sample: Sample, expected: _ExpectedFrames, first: int) -> _Seen:
    # A frame that was sent without a VLAN, and comes back with one, is too long.
    has_vlan = expected.place.behind_vlan
    lengths = captured.lengths - expected.growth
    contents = captured.contents(expected.end, with_tags=has_vlan, skipped=expected.growth)
    offset = expected.place.offset
    tags = words_at(contents, offset)
    numbers = words_at(contents, offset + 4)
    faults = np.full(len(numbers), NOT_COMPARED, dtype=np.uint8)
    ours = (tags ^ sample.tag) & sample.own_bits == 0
    faults[~ours & ((tags ^ sample.tag) & ~DIRECTIONS == 0)] = STRAYED
    has_length = np.isin(lengths, sorted(expected.lengths))
    if not has_vlan:
        # It may be as long as a frame that a link has padded.
        has_length &= ~captured.has_lost_tag

    mac = np.frombuffer(sample.mac, dtype=np.uint8)
    has_mac = (captured.contents(len(mac), with_tags=False) == mac).all(axis=1)
    faults[ours & ~has_mac] = WRONG_MAC
    faults[ours & ~has_length] = WRONG_LENGTH
    is_chosen = ours & sample.chooses(numbers) & (lengths >= offset + TAG_BYTES)
    is_chosen &= expected.place.is_numbered
    rows = np.flatnonzero(is_chosen & (faults == NOT_COMPARED))
    faults[rows] = INTACT
    wanted, sizes = expected.frames(sample.tag, numbers[rows], first)
    got = contents if len(rows) == len(contents) else contents[rows]
    own_lengths = expected.without_padding(lengths[rows], sizes)
    # Few frames differ in bytes that no router may change, and only these frames are compared byte by byte.
    odd = np.flatnonzero(expected.differ(got, wanted, sizes) | (own_lengths != sizes))
    is_readdressed = expected.have_other_addresses(got[odd], wanted[odd], sizes[odd])
    faults[rows[odd]] = np.where(is_readdressed, READDRESSED, CORRUPTED)
    faulty = np.flatnonzero(faults > STRAYED)
    changes: tuple[FieldChange, ...] = ()
    if len(faulty) and expected.place.is_numbered:
        row = int(faulty[0])
        changes = expected.changes(captured[row : row + 1], int(numbers[row]), sample.tag, first, sample.mac)

    return _Seen(numbers, faults, is_chosen, changes)
