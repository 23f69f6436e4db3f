"""The agent's answers, read and checked.

Readers of counters take the names of the directions that an answer must cover, in their order, because loss in a
missing direction would go unnoticed. A reader raises a KeyError, TypeError or ValueError if it is not such an answer.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from lossratio import trials
from lossratio.agent import Plan
from lossratio.traffic.probe import Arrival, ProbeAnswer

_ALWAYS = ("unsent_frames", "generator_drop_frames", "late_frames", "load_ratio", "elapsed_s")
"""Counters that every generator reports, although records can do without them."""
_OBSERVED = ("certain_after", "ended", "most_missing")
_BESIDE_COUNTERS = ("examination", "course")
"""Fields of a direction's answer that are not counters of its trial."""


@dataclass(frozen=True)
class AgentClock:
    """The agent's monotonic clock, as the controller sees it."""

    behind: float
    """Seconds to add to its times to get times of the controller's monotonic clock."""
    error: float
    """Seconds by which this may be wrong."""


def read_counters(
    answer: Mapping[str, Any], names: Sequence[str]
) -> tuple[trials.DirectionCounters, ...]:
    """The counters of an answer to a plan."""
    directions = answer["directions"]
    _check_names([direction["name"] for direction in directions], names)
    read = []

    for direction in directions:
        counted = {
            name: direction[name] for name in (*_ALWAYS, *direction) if name not in _BESIDE_COUNTERS
        }
        counters = trials.read_record(trials.DirectionCounters, json.dumps(counted))
        if direction["examination"] is not None:
            seen = json.dumps(direction["examination"])
            examination = trials.read_record(trials.Examination, seen)
            counters = trials.with_examination(counters, examination)
        read.append(counters)

    return tuple(read)


@dataclass(frozen=True)
class Answer:
    """What a generator counted and observed: see `lossratio.agent.core.plan.Answer`."""

    directions: tuple[trials.DirectionCounters, ...]
    """The counters of each direction."""
    latency: tuple[trials.LatencyCounters, ...] = ()
    """The latency of each direction, if it was measured."""
    timelines: tuple[trials.Timeline, ...] = ()
    """The course of each direction's traffic in time, if losses were located."""
    certain_after: float | None = None
    """Seconds of traffic until its loss ratio was certain to be above the limit; None: it never was."""
    ended: bool = False
    """Whether the trial then ended."""
    most_missing: Mapping[str, int] = field(default_factory=dict)
    """The maximum number of frames of each direction that were in flight or lost at a check."""
    late_by_direction: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Late frames of each direction, by name, if they were waited for: of the latest traffic, the previous one, and so
    on. They are not included in the received ones."""

    @property
    def sent(self) -> int:
        """Frames sent, over all directions."""
        return sum(direction.sent_frames for direction in self.directions)

    @property
    def received(self) -> int:
        """Frames received in time, over all directions."""
        return sum(direction.received_frames for direction in self.directions)

    @property
    def late(self) -> int:
        """Frames received late, over all directions."""
        return sum(late[0] for late in self.late_by_direction.values())

    @property
    def lost(self) -> int:
        """Frames sent but received neither in time nor late, over all directions."""
        return self.sent - self.received - self.late

    @property
    def unsent(self) -> int:
        """Frames that the generator could not send in time, over all directions."""
        return sum(direction.unsent_frames for direction in self.directions)

    @property
    def were_in_flight(self) -> int:
        """The maximum number of frames of one direction that were missing at a check but came back after all."""
        return max(self.most_missing[each.name] - each.lost for each in self.directions)


def read_answer(answer: Mapping[str, Any], names: Sequence[str], plan: Plan) -> Answer:
    """An answer to a plan, without timelines."""
    if not plan.steps:
        seen = _record({"late_by_direction": answer["late"]})
        _check_names(sorted(seen.late_by_direction), sorted(names))
        if not all(seen.late_by_direction.values()):
            raise ValueError("the latest traffic is missing")
        return seen

    fields = {name: answer[name] for name in _OBSERVED}
    if plan.latency:
        fields["latency"] = answer["latency"]
    seen = _record(fields)
    if seen.ended and seen.certain_after is None:
        raise ValueError("it ended early without a reason")
    if plan.above is not None:
        _check_names(sorted(seen.most_missing), sorted(names))
    if plan.latency:
        _check_names([direction.direction for direction in seen.latency], names)
    return replace(seen, directions=read_counters(answer, names))


def _record(fields: Mapping[str, Any]) -> Answer:
    """An answer with these fields, without counters."""
    return trials.read_record(Answer, json.dumps({"directions": [], **fields}))


def read_timelines(
    answer: Mapping[str, Any], counters: Sequence[trials.DirectionCounters], clock: AgentClock
) -> tuple[trials.Timeline, ...]:
    """The timelines of an answer to a plan that locates losses."""
    timelines = []
    for direction, counted in zip(answer["directions"], counters, strict=True):
        course = direction["course"]
        steps = [
            {**step, "lost": counted.lost if step["lost"] is None else step["lost"]}
            for step in course["steps"]
        ]
        seen = {
            "name": counted.name,
            "began": course["began"] + clock.behind,
            "clock_error": clock.error,
        }
        timelines.append(
            trials.read_record(trials.Timeline, json.dumps({**course, **seen, "steps": steps}))
        )

    return tuple(timelines)


def with_late_of_earlier(
    directions: Sequence[trials.DirectionCounters], late: Mapping[str, Sequence[int]]
) -> tuple[trials.DirectionCounters, ...]:
    """Counters, with frames of earlier traffic that came after them; `late` is `Answer.late_by_direction`."""
    changed = []
    for each in directions:
        before = (each.late_frames, *each.earlier_late_frames)
        latest, *earlier = by_traffic((before, late[each.name][1:]))
        changed.append(replace(each, late_frames=latest, earlier_late_frames=tuple(earlier)))
    return tuple(changed)


def by_traffic(counts: Iterable[Sequence[int]]) -> list[int]:
    """The sums of some directions' counts for successive traffic: the latest, the previous one, and so on."""
    return [sum(each) for each in zip_longest(*counts, fillvalue=0)]


def read_probe(answer: Mapping[str, Any]) -> ProbeAnswer:
    """An answer to ``probe``."""
    arrivals = tuple(
        Arrival(str(port), bytes.fromhex(head), int(length), int(count))
        for port, head, length, count in answer["arrivals"]
    )
    unsent = tuple(
        (str(port), int(length), str(reason)) for port, length, reason in answer["unsent"]
    )
    return ProbeAnswer(arrivals, unsent, bool(answer["is_storm"]))


def _check_names(answered: Sequence[str], names: Sequence[str]) -> None:
    if answered != list(names):
        raise ValueError(f"it is about the directions {answered} instead of {list(names)}")
