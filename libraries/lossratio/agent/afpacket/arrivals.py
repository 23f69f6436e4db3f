# SPDX-License-Identifier: Apache-2.0
"""Frames that arrive, with number and time: which frames are lost, when these were sent, and outages."""

from __future__ import annotations

from typing import Sequence

from ..core.arrays import NDArray, np
from ..core.frames_spec import TAG_BYTES, FramesSpec, TagPlace, tag_bits
from ..core.generator import check_numbered
from ..core.links import Link
from ..core.pacing import NANOSECONDS, Transmission
from ..core.protocol import AgentError, Message
from .filters import let_tag_through
from .frames import Numbers
from .latency import ClockWatch
from .receive import ReceiveRing, ring_slot_bytes, words_at
from .sender import SentBatches

MOST_OUTAGES = 1000
"""The maximum number of outages that are reported (the longest ones), and of silences."""
LEAST_SILENCE = 1e-3
"""Seconds without a frame that count as a silence, unless frames are rarer than that."""
_ROOM_SECONDS = 0.4
_LEAST_ROOM, _MOST_ROOM = 1 << 13, 1 << 18
# A number this far beyond the others belongs to a damaged frame.
_FARTHEST = 1 << 22
_SILENT_INTERVALS = 5


class Reception:
    """Numbers of frames that arrived, in any order, and the gaps between them in the order of arrival.

    `least_silence` seconds without a frame are a silence. `silences` are the longest ones, in order: the times of
    receipt before and after each, in seconds.
    """

    def __init__(self, least_silence: float = LEAST_SILENCE) -> None:
        self._least_silence = least_silence
        self.silences = np.empty((0, 2))
        self._has_arrived = np.zeros(1 << 16, dtype=bool)
        self._highest = -1
        self._last_time = np.nan
        self._gaps: list[NDArray[np.float64]] = [np.empty((0, 3))]

    def add(self, numbers: Numbers, times: NDArray[np.float64]) -> None:
        """Adds frames by their numbers in the order of arrival, and the times of arrival in seconds."""
        credible = numbers <= self._highest + _FARTHEST
        numbers, times = numbers[credible], times[credible]
        if not len(numbers):
            return

        highest = np.maximum.accumulate(np.concatenate(([self._highest], numbers)))
        if highest[-1] >= len(self._has_arrived):
            self._has_arrived = np.concatenate((self._has_arrived, np.zeros(highest[-1] + 1, dtype=bool)))
        self._has_arrived[numbers] = True
        (places,) = np.nonzero(numbers > highest[:-1] + 1)
        before = np.concatenate(([self._last_time], times[:-1]))
        self._gaps.append(np.stack((highest[places] + 1.0, before[places], times[places]), axis=1))
        self._highest, self._last_time = int(highest[-1]), float(times[-1])
        (places,) = np.nonzero(times - before >= self._least_silence)

        if len(places):
            silences = np.concatenate((self.silences, np.stack((before[places], times[places]), axis=1)))
            longest = np.argsort(silences[:, 0] - silences[:, 1], kind="stable")[:MOST_OUTAGES]
            self.silences = silences[np.sort(longest)]

    def lost(self, first: int, end: int) -> Numbers:
        """Numbers of the frames that did not arrive, from one number up to, but not including, another."""
        arrived = self._has_arrived[first:end]
        return np.concatenate((np.flatnonzero(~arrived) + first, np.arange(first + len(arrived), end)))

    def outages(self, sent: int) -> tuple[Numbers, Numbers, NDArray[np.float64]]:
        """Runs of lost frames among this many sent frames: the numbers of the first and the last frame of each run.

        The answer also has the times of receipt before and after each run; NaN: no frame was received.
        """
        lost = self.lost(0, sent)
        firsts = lost[np.diff(lost, prepend=-2) != 1]
        lasts = lost[np.diff(lost, append=sent + 2) != 1]
        gaps = np.concatenate((*self._gaps, [[self._highest + 1.0, self._last_time, np.nan]]))
        # If frames overtook each other, a run is a part of a gap.
        return firsts, lasts, gaps[np.searchsorted(gaps[:, 0], firsts, side="right") - 1, 1:]


class ArrivalLog:
    """Notes all frames that arrive with a tag; `note` must be called several times a second meanwhile.

    `loads` are the smallest and the largest load in frames per second.
    """

    def __init__(self, sink: Link, frames: FramesSpec, place: TagPlace, tag: int, loads: tuple[float, float]) -> None:
        least_load, load = loads
        check_numbered([place])
        self._place = place
        self._sink = sink.name
        self._clock = ClockWatch()
        self._reception = Reception(max(LEAST_SILENCE, _SILENT_INTERVALS / least_load))
        room = min(max(_LEAST_ROOM, int(load * _ROOM_SECONDS)), _MOST_ROOM)
        self._ring = ReceiveRing(sink, ring_slot_bytes(place.offset + TAG_BYTES), room)
        let_tag_through(self._ring.socket, place, tag, tag_bits(frames))

    def note(self) -> None:
        """Takes the frames out of the ring, so that there is room for more."""
        captured = self._ring.captured()
        if len(captured):
            start = self._place.offset + TAG_BYTES // 2
            numbers = words_at(captured.contents(start + 4), start)
            self._reception.add(numbers, (captured.times - self._clock.ahead) / NANOSECONDS)
            self._ring.release(len(captured))

    def reception(self) -> Reception:
        """The frames that have arrived so far; no more are noted.

        Raises:
            AgentError: If frames were overlooked, or the system's clock was set in the meantime.
        """
        self.note()
        overlooked = self._ring.overlooked()
        self.close()
        if overlooked:
            raise AgentError(
                "counters",
                f"The agent could not note {overlooked} of the frames that arrived on "
                f"{self._sink}, so it is not known when frames were lost. The node is too busy "
                "for this load. Use a lower one.",
            )
        if self._clock.was_set():
            raise AgentError("counters", "The system's clock was set while frames were on their way. Measure again.")
        return self._reception

    def close(self) -> None:
        """Closes the socket."""
        self._ring.close()


def course(batches: SentBatches, steps: Sequence[Transmission], reception: Reception | None) -> Message:
    """The course of a direction's traffic in time, as in `Answer.directions`.

    Without a reception, frames are only counted.
    """
    began = batches.times[0] if batches.times else steps[0].start
    sent = sum(step.sent for step in steps)
    span = batches.times[-1] - began if batches.times else 0.0
    message: Message = {
        "began": began,
        "resolution": batches.resolution,
        # The last batch leaves when its last frame is due.
        "rate": (sent - 1) / span if span > 0 else None,
        "steps": [],
    }
    first = 0

    for part in steps:
        lost = None if reception is None else reception.lost(first, first + part.sent)
        last_lost = None
        if lost is not None and len(lost):
            last_lost = float(batches.time_of(lost[-1:])[0]) - began
        fields = {
            "start": part.start - began,
            "elapsed": part.elapsed,
            "intended": part.intended,
            "sent": part.sent,
            "lost": None if lost is None else len(lost),
            "last_lost": last_lost,
        }
        message["steps"].append(fields)
        first += part.sent

    if reception is not None and sent:
        firsts, lasts, times = reception.outages(sent)
        longest = np.sort(np.argsort(firsts - lasts, kind="stable")[:MOST_OUTAGES])
        sent_at = np.stack((batches.time_of(firsts[longest]), batches.time_of(lasts[longest])), axis=1)
        relative = (np.hstack((sent_at, times[longest])) - began).tolist()
        frames = (lasts - firsts + 1)[longest].tolist()
        message["outage_count"] = len(firsts)
        names = ("frames", "first_sent", "last_sent", "start", "end")
        message["outages"] = [
            dict(zip(names, (count, *(None if np.isnan(time) else time for time in row))))
            for count, row in zip(frames, relative)
        ]
        silences = (reception.silences - began).tolist()
        message["silences"] = [{"start": start, "end": end} for start, end in silences]

    return message
