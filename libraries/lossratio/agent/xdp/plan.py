# SPDX-License-Identifier: Apache-2.0
"""The plan of one trial: the schedules of its streams, and the course of its losses in time.

A sender keeps the time of each frame in a ring, and the receiver takes the time out of it. So the times that remain
there are those of lost frames.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Sequence

from ..core.configuration import Direction
from ..core.generator import check_numbered, counted_course
from ..core.pacing import LONGEST_STALL, NANOSECONDS, frames_within, grace_after
from ..core.plan import Plan
from ..core.protocol import AgentError, Message, unsupported
from .constants import FOREVER, RING, WRAP_BITS
from .send_program import ScheduledProgram, Segment

_TIME_BITS = 64 - WRAP_BITS


def intended(plan: Plan, direction: Direction) -> int | None:
    """Frames that the steps of a plan require in a direction; None: there is no end."""
    if plan.is_endless:
        return None
    return sum(frames_within(duration or 0.0, load * direction.load_share) for load, duration in plan.steps)


def segments(
    plan: Plan, direction: Direction, share: tuple[int, int], tags: tuple[int, int], catch_up: float
) -> list[Segment]:
    """The schedule of a stream: the steps of the ramp, and the steps that count; the ramp's tag comes first.

    The stream is one `share` of the direction: its index, and the number of shares. After a stall, `catch_up`
    seconds of traffic are sent late.
    """
    first, parts = share
    ramp_tag, tag = tags
    ramp = [(load, seconds, ramp_tag) for load, seconds in plan.ramp_steps]
    counted = [(load, duration, tag) for load, duration in plan.steps]
    made: list[Segment] = []
    begin = 0.0

    for number, (load, duration, own_tag) in enumerate([*ramp, *counted]):
        rate = load * direction.load_share
        frames = FOREVER >> 2 if duration is None else frames_within(duration, rate)
        # Record: when each frame of a step is due.
        segment = Segment(
            interval=parts * NANOSECONDS / rate,
            frames=-(-max(0, frames - first) // parts),
            begin=(begin + first / rate) * NANOSECONDS,
            last_call=(begin + _last_call(duration, catch_up, is_burst=plan.is_burst)) * NANOSECONDS,
            catch_up=(math.inf if plan.is_burst else catch_up) * NANOSECONDS,
            tag=own_tag,
            renumbers=number <= len(ramp),
        )
        made.append(segment)
        begin += duration or 0.0

    # Only the last segment may be empty, because that is the end.
    return [*(replace(segment, frames=max(1, segment.frames)) for segment in made[:-1]), made[-1]]


def _last_call(duration: float | None, catch_up: float, *, is_burst: bool) -> float:
    """Seconds from the beginning of a step after which its frames stay unsent."""
    if duration is None:
        return math.inf
    if is_burst:
        # A sender that cannot keep the rate sends what it can in this time.
        return duration + LONGEST_STALL
    return duration + grace_after(duration, catch_up)


def check_schedule(plan: Plan, directions: Sequence[Direction], streams: int) -> None:
    """Checks that losses of a schedule can be located if each direction has at least this many streams."""
    check_numbered(direction.frames for direction in directions)
    frames = sum(load * (duration or 0.0) for load, duration in plan.steps[1:]) / streams
    if frames > RING:
        raise unsupported(
            f"The generator xdp keeps the times of only {RING:,} frames of each sender, but {frames:,.0f} are sent "
            "after the first step. Shorten the time after it (limit), or lower the load."
        )


def schedule_course(
    plan: Plan, counters: Message, start: int, streams: Sequence[tuple[memoryview, ScheduledProgram, int]], intact: int
) -> Message:
    """The ``course`` of a direction with the steps of a schedule: see `Answer`.

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
            f"The port of {counters['name']} refused frames, but it is not known which ones. Measure at a lower load.",
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
        last_lost = max(lost[step]) / NANOSECONDS if lost[step] else None
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

    return {**counted_course(start / NANOSECONDS, counters), "steps": steps}
