# SPDX-License-Identifier: Apache-2.0
"""The plan of one trial: the schedules of its streams, and the course of its losses in time.

A sender keeps the time of each frame in a ring, and the receiver takes the time out of it. So the times that remain
there are those of lost frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Sequence

from ..core.configuration import Direction
from ..core.generator import check_numbered, counted_course
from ..core.pacing import LONGEST_STALL, RAMP_STEPS, frames_within, grace_after
from ..core.protocol import AgentError, Message, unsupported
from .constants import FOREVER, RING, WRAP_BITS
from .send_program import ScheduledProgram, Segment

_NANOSECONDS = 1e9
_TIME_BITS = 64 - WRAP_BITS


@dataclass(frozen=True)
class Plan:
    """The loads of one trial, the same for all directions."""

    steps: tuple[tuple[float, float | None], ...]
    """Successive loads in frames per second with their seconds. A load with None has no end."""
    ramp: float = 0.0
    """Seconds of growing traffic before them."""
    is_burst: bool = False
    """Whether every frame must leave, however late."""

    @property
    def duration(self) -> float:
        """Seconds of the steps; infinite if there is no end."""
        return sum(math.inf if duration is None else duration for _, duration in self.steps)

    @property
    def load(self) -> float:
        """The largest load, in frames per second."""
        return max(load for load, _ in self.steps)

    @property
    def ramp_segments(self) -> int:
        """How many segments of each stream come before the steps."""
        return len(_ramp(self.ramp))

    def intended(self, direction: Direction) -> int | None:
        """Frames that the steps require in a direction; None: there is no end."""
        if self.duration == math.inf:
            return None
        return sum(frames_within(duration or 0.0, load * direction.load_share) for load, duration in self.steps)

    def segments(
        self, direction: Direction, share: tuple[int, int], tags: tuple[int, int], catch_up: float
    ) -> list[Segment]:
        """The schedule of a stream: the steps of the ramp, and the steps that count; the ramp's tag comes first.

        The stream is one `share` of the direction: its index, and the number of shares. After a stall, `catch_up`
        seconds of traffic are sent late.
        """
        ramp_tag, tag = tags
        load = self.steps[0][0] * direction.load_share
        segments = [
            self._segment(part * load, length, begin, ramp_tag, share=share, catch_up=catch_up)
            for begin, length, part in _ramp(self.ramp)
        ]
        begin = self.ramp
        for index, (step_load, duration) in enumerate(self.steps):
            made = self._segment(step_load * direction.load_share, duration, begin, tag, share=share, catch_up=catch_up)
            segments.append(replace(made, renumbers=index == 0))
            begin += duration or 0.0
        # Only the last segment may be empty, because that is the end.
        return [*(replace(segment, frames=max(1, segment.frames)) for segment in segments[:-1]), segments[-1]]

    def _segment(
        self, rate: float, duration: float | None, begin: float, tag: int, *, share: tuple[int, int], catch_up: float
    ) -> Segment:
        first, step = share
        frames = FOREVER >> 2 if duration is None else frames_within(duration, rate)
        if duration is None:
            last_call = math.inf
        else:
            last_call = begin + duration + grace_after(duration, catch_up)

        if self.is_burst:
            # A sender that cannot keep the rate sends what it can in this time, and the rest stays unsent.
            last_call = begin + (duration or 0.0) + LONGEST_STALL
        # Record: when each frame of a segment is due.
        return Segment(
            interval=step * _NANOSECONDS / rate,
            frames=-(-max(0, frames - first) // step),
            begin=(begin + first / rate) * _NANOSECONDS,
            last_call=last_call * _NANOSECONDS,
            catch_up=(math.inf if self.is_burst else catch_up) * _NANOSECONDS,
            tag=tag,
        )


def check_schedule(steps: Sequence[tuple[float, float]], directions: Sequence[Direction], streams: int) -> None:
    """Checks that losses of a schedule can be located if each direction has at least this many streams."""
    check_numbered(direction.frames for direction in directions)
    frames = sum(load * duration for load, duration in steps[1:]) / streams
    if frames > RING:
        raise unsupported(
            f"The generator xdp keeps the times of the last {RING:,} frames of each sender, and {frames:,.0f} follow "
            "the first step. Shorten the time after it (limit), or lower the load."
        )


def schedule_course(
    plan: Plan, counters: Message, start: int, streams: Sequence[tuple[memoryview, ScheduledProgram, int]], intact: int
) -> Message:
    """The ``course`` of a direction with the steps of a schedule: see `TimedGenerator.schedule`.

    Raises:
        AgentError: If the port refused frames.
    """
    all_steps = range(len(plan.steps))
    sent = []
    for _, program, place in streams:
        sent.append([program.sent(place, number).sent for number in all_steps])
    if sum(map(sum, sent)) != counters["sent_frames"]:
        raise AgentError(
            "counters",
            f"The port of {counters['name']} refused frames, and it is not known which ones. Measure at a lower load.",
        )

    lost: list[list[int]] = [[] for _ in plan.steps]
    for (times, _, _), counts in zip(streams, sent):
        first = 0
        total = sum(counts)
        for step, count in enumerate(counts):
            # When lost frames were sent, in nanoseconds after the start.
            kept = (times[number % RING] >> WRAP_BITS for number in range(max(first, total - RING), first + count))
            lost[step] += [(time - start) % (1 << _TIME_BITS) for time in kept if time]
            first += count

    # The first step may be longer than the ring.
    of_others = [len(times) for times in lost[1:]]
    numbers = [max(0, counters["sent_frames"] - intact - sum(of_others)), *of_others]
    steps = []
    begin = 0.0

    for step, (load, duration) in enumerate(plan.steps):
        last_lost = max(lost[step]) / _NANOSECONDS if lost[step] else None
        fields = {
            "start": begin,
            "elapsed": duration,
            "intended": frames_within(duration or 0.0, load * counters["load_ratio"]),
            "sent": sum(counts[step] for counts in sent),
            "lost": numbers[step],
            "last_lost": last_lost,
        }
        steps.append(fields)
        begin += duration or 0.0

    return {**counted_course(start / _NANOSECONDS, counters), "steps": steps}


def _ramp(seconds: float) -> list[tuple[float, float, float]]:
    """The steps of a ramp: seconds from its start, seconds, and share of the load."""
    if not seconds:
        return []
    length = seconds / RAMP_STEPS
    return [(step * length, length, (step + 1) / (RAMP_STEPS + 1)) for step in range(RAMP_STEPS)]
