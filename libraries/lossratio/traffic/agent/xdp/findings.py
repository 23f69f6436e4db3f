"""Findings of the receiving programs, in the words of the agent's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from ..core.configuration import Configuration, Direction
from ..core.generator import integrity_of, unknown_latency
from ..core.protocol import Message
from . import histogram

MAXIMA = ("displacement", "extent", "late_offset", "latency_most")
"""Findings of which a direction has the largest of its frames, and not their sum."""

_MICROSECOND = 1000.0


@dataclass(frozen=True)
class ReceivedFrames:
    """What arrived of a stream."""

    arrived: int
    """Frames with its tag."""
    wrong_length: int
    """Frames of a length that was never sent."""
    wrong_mac: int
    """Frames with another destination MAC address than the port's."""
    corrupted: int
    """Frames with other contents."""
    readdressed: int
    """Frames with other IP addresses."""
    duplicated: int
    """Further copies of intact frames."""
    stale: int
    """Frames that so many later ones had overtaken that it is not known whether they are copies."""
    intact: int
    """Frames that arrived as they were sent, each counted once."""
    reordered: int
    """Frames among these with a lower number than one before them (RFC 4737, type-P-reordered)."""
    displacement: int
    """By how many numbers a frame was behind the highest one at most."""
    extent: int
    """How many frames had come, at most, from the first one with a higher number than a reordered frame on to that
    frame (RFC 4737, reordering extent). It is not known of a frame that was missing before the 16
    latest gaps in the numbers."""
    late_offset: int
    """Nanoseconds between these two arrivals at most (RFC 4737, late-time offset)."""
    latency_sum: int
    """Nanoseconds, over all intact frames."""
    latency_least: int | None
    """Nanoseconds; None: there was no frame."""
    latency_most: int
    """Nanoseconds."""
    jitter_sum: int
    """Sum of the differences (absolute) between latencies of frames that followed one another, in nanoseconds (RFC
    3393, selected by consecutive numbers)."""
    jitter_count: int
    """How many such differences there were."""
    unstamped: int
    """Frames that a card was to stamp, and did not."""
    histogram: Sequence[int]
    """How many latencies are in each interval: see `lossratio.traffic.agent.xdp.histogram`."""


def merged(parts: Sequence[ReceivedFrames]) -> ReceivedFrames:
    """What arrived of a direction, from what arrived of its streams."""
    values = {name: [getattr(part, name) for part in parts] for name in vars(parts[0])}
    sums = {name: sum(column) for name, column in values.items() if name not in ("histogram", "latency_least")}
    least = [value for value in values["latency_least"] if value is not None]
    return ReceivedFrames(
        **{**sums, **{name: max(values[name]) for name in MAXIMA}},
        latency_least=min(least, default=None),
        histogram=histogram.added(values["histogram"]),
    )


def integrity(configuration: Configuration) -> Message:
    """Properties of received frames that are checked, and those that are not; see `Generator.facts`."""
    has_vlan = any(direction.frames.tag_place.behind_vlan for direction in configuration.directions)
    # The kernel or a card takes it off before a program sees the frame, and so might the DUT.
    unseen = ["whether frames came back without their VLAN's tag"] if has_vlan else []
    return integrity_of(configuration, not_checked=unseen)


def examination_of(direction: Direction, received: ReceivedFrames, strayed: int) -> Message:
    """The ``examination`` of a direction; see `Generator.trial`. Strayed are frames of other streams at its port."""
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
        "displacement_frames": received.displacement,
        "extent_frames": received.extent,
        "late_offset_us": received.late_offset / _MICROSECOND,
    }
    if received.intact and received.latency_least is not None:
        values = list(histogram.filled(received.histogram, received.latency_least, received.latency_most))
        answer.update(
            latency_median_us=histogram.percentile(values, 50) / _MICROSECOND,
            latency_99_us=histogram.percentile(values, 99) / _MICROSECOND,
            latency_most_us=received.latency_most / _MICROSECOND,
            jitter_us=received.jitter_sum / max(1, received.jitter_count) / _MICROSECOND,
        )
    return answer


def latency_of(name: str, sent: int, received: ReceivedFrames, *, is_numbered: bool) -> Message:
    """The latency of a direction, as `Generator.latency` returns it, by the frames sent and received."""
    answer: Message = {
        **unknown_latency(name, 1 / _MICROSECOND),
        "sent_frames": sent,
        "received_frames": received.intact,
        "out_of_order_frames": received.reordered,
        "duplicate_frames": received.duplicated,
        "interval_ratio": 1 / (1 << histogram.SUB_BITS),
    }
    if not is_numbered:
        return {**answer, "error": "The frames have no room for sequence numbers."}
    if not received.intact or received.latency_least is None:
        return {**answer, "error": f"None of {sent} frames came back intact."}
    return {
        **answer,
        "least_us": received.latency_least / _MICROSECOND,
        "mean_us": received.latency_sum / received.intact / _MICROSECOND,
        "most_us": received.latency_most / _MICROSECOND,
        "jitter_us": received.jitter_sum / max(1, received.jitter_count) / _MICROSECOND,
        "histogram": [
            [value / _MICROSECOND, count]
            for value, count in histogram.filled(received.histogram, received.latency_least, received.latency_most)
        ],
    }
