"""Findings of the receiving programs, in the words of the agent's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from ..core.configuration import Configuration, Direction
from ..core.protocol import Message
from . import histogram

MAXIMA = ("displacement", "extent", "late_offset", "latency_most")
"""Findings that are the largest one of all frames, and no sum."""

_MICROSECOND = 1000.0


@dataclass(frozen=True)
class ReceivedFrames:
    """What arrived of a stream.

    Attributes:
        arrived: Frames with its tag.
        wrong_length: Frames of a length that was never sent.
        wrong_mac: Frames with another destination MAC address than the port's.
        corrupted: Frames with other contents.
        readdressed: Frames with other IP addresses.
        duplicated: Further copies of intact frames.
        stale: Frames that so many later ones had overtaken that it is not known whether they are copies.
        intact: Frames that arrived as they were sent, each counted once.
        reordered: Frames among these with a lower number than one before them (RFC 4737, type-P-reordered).
        displacement: By how many numbers a frame was behind the highest one at most.
        extent: How many frames had come, at most, from the first one with a higher number than a reordered frame on to
            that frame (RFC 4737, reordering extent). Of a frame that was missing before the 16 latest gaps in the
            numbers it is not known.
        late_offset: Nanoseconds between these two arrivals at most (RFC 4737, late-time offset).
        latency_sum: Nanoseconds, over all intact frames.
        latency_least: Nanoseconds; None: there was no frame.
        latency_most: Nanoseconds.
        jitter_sum: Sum of the differences (absolute) between latencies of frames that followed one another, in
            nanoseconds (RFC 3393, selected by consecutive numbers).
        jitter_count: How many such differences there were.
        histogram: How many latencies are in each interval: see `lossratio.traffic.agent.xdp.histogram`.
    """

    arrived: int
    wrong_length: int
    wrong_mac: int
    corrupted: int
    readdressed: int
    duplicated: int
    stale: int
    intact: int
    reordered: int
    displacement: int
    extent: int
    late_offset: int
    latency_sum: int
    latency_least: int | None
    latency_most: int
    jitter_sum: int
    jitter_count: int
    histogram: tuple[int, ...]


def merged(parts: Sequence[ReceivedFrames]) -> ReceivedFrames:
    """What arrived of a direction, from what arrived of its streams."""
    values = {name: [getattr(part, name) for part in parts] for name in vars(parts[0])}
    sums = {name: sum(column) for name, column in values.items() if name not in ("histogram", "latency_least")}
    least = [value for value in values["latency_least"] if value is not None]
    return ReceivedFrames(
        **{**sums, **{name: max(values[name]) for name in MAXIMA}},
        latency_least=min(least, default=None),
        histogram=tuple(map(sum, zip(*values["histogram"]))),
    )


def integrity_of(configuration: Configuration) -> Message:
    """Properties of received frames that are checked, and those that are not; see `Generator.facts`."""
    if not configuration.examines:
        return {"in_trials": False, "checked": [], "not_checked": ["anything: it was not asked for"]}
    of_all = ["length", "destination MAC address", "direction"]
    of_numbered = ["contents", "IP addresses", "duplicates", "order"]
    if not all(direction.frames.is_numbered for direction in configuration.directions):
        left_out = [f"{checked} (no room for sequence numbers)" for checked in of_numbered]
        return {"in_trials": True, "checked": of_all, "not_checked": left_out}
    has_vlan = any(direction.frames.tag_place.behind_vlan for direction in configuration.directions)
    # The kernel or a card takes it off before a program sees the frame, and so might the DUT.
    unseen = ["whether frames came back without their VLAN's tag"] if has_vlan else []
    return {"in_trials": True, "checked": [*of_all, *of_numbered], "not_checked": unseen}


def examination_of(direction: Direction, received: ReceivedFrames, strayed: int) -> Message:
    """The ``examination`` of a direction; see `Generator.trial`.

    Args:
        direction: The direction.
        received: The frames that arrived.
        strayed: Frames of other streams that arrived where this one's should.
    """
    return {
        "examined": received.arrived - received.stale if direction.frames.is_numbered else 0,
        "duplicated": received.duplicated,
        "reordered": received.reordered,
        "corrupted": received.corrupted,
        "readdressed": received.readdressed,
        "wrong_length": received.wrong_length,
        "wrong_mac": received.wrong_mac,
        "strayed": strayed,
    }


def times_of(received: ReceivedFrames) -> Message:
    """The findings about time and order that each trial has: times in microseconds, and how far frames were behind."""
    answer: Message = {
        "displacement": received.displacement,
        "extent": received.extent,
        "late_offset": received.late_offset / _MICROSECOND,
    }
    if received.intact and received.latency_least is not None:
        answer.update(
            latency_median=histogram.percentile(received.histogram, 50) / _MICROSECOND,
            latency_99=histogram.percentile(received.histogram, 99) / _MICROSECOND,
            latency_most=received.latency_most / _MICROSECOND,
            jitter=received.jitter_sum / max(1, received.jitter_count) / _MICROSECOND,
        )
    return answer


def latency_of(name: str, sent: int, received: ReceivedFrames, *, is_numbered: bool) -> Message:
    """The latency of a direction, as `Generator.latency` returns it.

    Args:
        name: The direction.
        sent: Frames sent.
        received: The frames that arrived.
        is_numbered: Whether its frames have sequence numbers.
    """
    answer: Message = {
        "name": name,
        "sent": sent,
        "received": received.intact,
        "out_of_order": received.reordered,
        "duplicates": received.duplicated,
        "min_us": None,
        "average_us": None,
        "max_us": None,
        "jitter_us": None,
        "hdr": None,
        "histogram": [],
        "resolution_us": 1 / _MICROSECOND,
        "error": None,
    }
    if not is_numbered:
        return {**answer, "error": "The frames have no room for sequence numbers."}
    if not received.intact or received.latency_least is None:
        return {**answer, "error": f"None of {sent} frames came back intact."}
    return {
        **answer,
        "min_us": received.latency_least / _MICROSECOND,
        "average_us": received.latency_sum / received.intact / _MICROSECOND,
        "max_us": received.latency_most / _MICROSECOND,
        "jitter_us": received.jitter_sum / max(1, received.jitter_count) / _MICROSECOND,
        "histogram": [[edge / _MICROSECOND, count] for edge, count in histogram.filled(received.histogram)],
    }
