"""The agent's answers, from JSON to the types that the rest of the library speaks in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossratio.trials import DirectionCounters, Examination, LatencyCounters, LatencyOutput, with_examination


@dataclass(frozen=True)
class StoppedTraffic:
    """What traffic counted that was started and stopped apart from trials.

    Attributes:
        directions: The counters of each direction; what it received until the wait for frames in flight was over.
        late_by_direction: Frames that each direction, by its name, received only after that. They are not among those
            received.
    """

    directions: tuple[DirectionCounters, ...]
    late_by_direction: Mapping[str, int]

    @property
    def sent(self) -> int:
        """Frames sent, over all directions."""
        return sum(each.sent for each in self.directions)

    @property
    def received(self) -> int:
        """Frames received in time, over all directions."""
        return sum(each.received for each in self.directions)

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
        return sum(each.unsent for each in self.directions)


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
    seen = direction["examination"]
    if seen is None:
        return counters
    return with_examination(counters, Examination(**{name: _count(count) for name, count in seen.items()}))


def _check_names(directions: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    told = [direction["name"] for direction in directions]
    if told != list(names):
        raise ValueError(f"it is about {told}, and was to be about {list(names)}")


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
        resolution=direction["resolution_us"],
        hdr=direction["hdr"],
        histogram=tuple((float(edge), int(count)) for edge, count in direction["histogram"]),
        error=direction["error"],
    )
