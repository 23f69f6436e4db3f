"""The agent's answers, read and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lossratio.trials import (
    DirectionCounters,
    Examination,
    LatencyCounters,
    LatencyOutput,
    Outage,
    Silence,
    StepCounters,
    StreamCounters,
    Timeline,
    with_examination,
)

_OF_EVERY_FRAME = (
    *("flows_with_loss", "displacement", "extent", "late_offset"),
    *("latency_median", "latency_99", "latency_most", "jitter"),
)
"""Fields that a generator reports which looks at every frame."""


@dataclass(frozen=True)
class AgentClock:
    """The agent's clock that cannot be set, as the controller sees it.

    Attributes:
        behind: Seconds to add to its times, so that they are those of the controller's own such clock.
        error: Seconds by which that may be wrong.
    """

    behind: float
    error: float


@dataclass(frozen=True)
class StoppedTraffic:
    """Counters of traffic that was started and stopped apart from trials.

    Attributes:
        directions: The counters of each direction; what it received until the wait for frames in flight was over.
        late_by_direction: Frames that each direction, by its name, received only after that. They are not among those
            received.
        timelines: The course of each direction's traffic in time, if the traffic was watched; otherwise empty.
    """

    directions: tuple[DirectionCounters, ...]
    late_by_direction: Mapping[str, int]
    timelines: tuple[Timeline, ...] = ()

    @property
    def sent(self) -> int:
        """Frames sent, over all directions."""
        return sum(direction.sent for direction in self.directions)

    @property
    def received(self) -> int:
        """Frames received in time, over all directions."""
        return sum(direction.received for direction in self.directions)

    @property
    def late(self) -> int:
        """Frames received late, over all directions."""
        return sum(self.late_by_direction.values())

    @property
    def lost(self) -> int:
        """Frames sent, and received neither in time nor late, over all directions."""
        return self.sent - self.received - self.late

    @property
    def unsent(self) -> int:
        """Frames that the generator could not send in time, over all directions."""
        return sum(direction.unsent for direction in self.directions)


def read_counters(answer: Mapping[str, Any], names: Sequence[str]) -> tuple[DirectionCounters, ...]:
    """The counters of an answer to ``trial``, ``latency`` or ``stop``.

    Args:
        answer: The answer.
        names: The directions that it must be about, in their order: loss in one that is missing would go unnoticed.

    Raises:
        KeyError, TypeError, ValueError: If it is no such answer.
    """
    directions = answer["directions"]
    _check_names(directions, names)
    return tuple(_direction_counters(direction) for direction in directions)


@dataclass(frozen=True)
class WatchedTrial:
    """A trial whose counters were watched.

    Attributes:
        directions: The counters of each direction.
        certain_after: Seconds of traffic until its loss ratio was certain to be above the limit; None: it never was.
        ended: Whether it ended then.
        most_missing: The most frames of each direction that were on their way, or lost, when somebody looked.
    """

    directions: tuple[DirectionCounters, ...]
    certain_after: float | None
    ended: bool
    most_missing: Mapping[str, int]

    @property
    def were_in_flight(self) -> int:
        """The most frames of one direction that were missing when somebody looked, and came back after all."""
        return max(self.most_missing[each.name] - (each.sent - each.received) for each in self.directions)


def read_watched(answer: Mapping[str, Any], names: Sequence[str]) -> WatchedTrial:
    """An answer to ``watched_trial``.

    Args:
        answer: The answer.
        names: The directions that it must be about, in their order.

    Raises:
        KeyError, TypeError, ValueError: If it is none.
    """
    certain_after = None if answer["certain_after"] is None else float(answer["certain_after"])
    if answer["ended"] and certain_after is None:
        raise ValueError("it ended early for no reason")
    missing = {name: _count(answer["most_missing"][name]) for name in names}
    return WatchedTrial(read_counters(answer, names), certain_after, bool(answer["ended"]), missing)


def read_stop(answer: Mapping[str, Any], names: Sequence[str]) -> StoppedTraffic:
    """An answer to ``stop``.

    Args:
        answer: The answer.
        names: The directions that it must be about, in their order.

    Raises:
        KeyError, TypeError, ValueError: If it is none.
    """
    late = {direction["name"]: _count(direction["late"]) for direction in answer["directions"]}
    return StoppedTraffic(read_counters(answer, names), late)


def read_timelines(
    answer: Mapping[str, Any], counters: Sequence[DirectionCounters], clock: AgentClock
) -> tuple[Timeline, ...]:
    """The timelines of an answer to ``schedule``, or to ``stop`` if the traffic was watched.

    Args:
        answer: The answer.
        counters: Its counters. If losses were not located, but counted, they are these.
        clock: The agent's clock.

    Raises:
        KeyError, TypeError, ValueError: If it is no such answer.
    """
    return tuple(
        _timeline(direction["course"], counted, clock)
        for direction, counted in zip(answer["directions"], counters, strict=True)
    )


def read_late(answer: Mapping[str, Any], names: Sequence[str]) -> int:
    """An answer to ``late``: frames over all directions.

    Args:
        answer: The answer.
        names: The directions that it must be about.

    Raises:
        KeyError, TypeError, ValueError: If it is none.
    """
    return sum(_count(answer["late"][name]) for name in names)


def read_latency(answer: Mapping[str, Any], names: Sequence[str]) -> LatencyOutput:
    """An answer to ``latency``.

    Args:
        answer: The answer.
        names: The directions that it must be about, in their order.

    Raises:
        KeyError, TypeError, ValueError: If it is none.
    """
    _check_names(answer["latency"], names)
    return LatencyOutput(read_counters(answer, names), tuple(_latency(direction) for direction in answer["latency"]))


def _direction_counters(direction: Mapping[str, Any]) -> DirectionCounters:
    counters = DirectionCounters(
        name=direction["name"],
        intended=_count(direction["intended"]),
        sent=_count(direction["sent"]),
        received=_count(direction["received"]),
        unsent=_count(direction["unsent"]),
        generator_drops=_count(direction["generator_drops"]),
        late=_count(direction["late_of_trial_before"]),
        elapsed=direction["elapsed"],
        load_share=direction["load_share"],
        lateness=direction.get("worst_lateness"),
        stretch=direction.get("stretch"),
    )
    looked_at: dict[str, Any] = {name: direction.get(name) for name in _OF_EVERY_FRAME}
    counters = replace(counters, **looked_at)
    counters = replace(counters, streams=tuple(map(_stream_counters, direction.get("streams", ()))))
    seen = direction["examination"]
    if seen is None:
        return counters
    counts = {name: _count(count) for name, count in seen.items()}
    return with_examination(counters, Examination(**counts, has_foreign=direction.get("counts_foreign", False)))


def _stream_counters(stream: Mapping[str, Any]) -> StreamCounters:
    counts: dict[str, Any] = {name: None if count is None else _count(count) for name, count in stream.items()}
    return StreamCounters(**counts)


def _check_names(directions: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    answered = [direction["name"] for direction in directions]
    if answered != list(names):
        raise ValueError(f"it is about {answered}, and must be about {list(names)}")


def _count(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no count")
    return value


def _latency(direction: Mapping[str, Any]) -> LatencyCounters:
    return LatencyCounters(
        name=direction["name"],
        sent=direction["sent"],
        received=direction["received"],
        out_of_order=direction["out_of_order"],
        duplicates=direction["duplicates"],
        minimum=direction["min_us"],
        average=direction["average_us"],
        maximum=direction["max_us"],
        jitter=direction["jitter_us"],
        middle=direction.get("middle_us"),
        resolution=direction["resolution_us"],
        hdr=direction["hdr"],
        histogram=tuple((float(edge), int(count)) for edge, count in direction["histogram"]),
        error=direction["error"],
    )


def _timeline(course: Mapping[str, Any], counters: DirectionCounters, clock: AgentClock) -> Timeline:
    return Timeline(
        name=counters.name,
        began=course["began"] + clock.behind,
        clock_error=clock.error,
        resolution=course["resolution"],
        rate=course["rate"],
        steps=tuple(_step(step, counters) for step in course["steps"]),
        outages=tuple(Outage(_count(frames), *times) for frames, *times in course["outages"]),
        outage_count=_count(course["outage_count"]),
        silences=tuple(Silence(*times) for times in course["silences"]),
    )


def _step(step: Mapping[str, Any], counters: DirectionCounters) -> StepCounters:
    lost = counters.sent - counters.received if step["lost"] is None else step["lost"]
    return StepCounters(
        start=step["start"],
        elapsed=step["elapsed"],
        intended=_count(step["intended"]),
        sent=_count(step["sent"]),
        lost=_count(lost),
        last_lost=step["last_lost"],
    )
