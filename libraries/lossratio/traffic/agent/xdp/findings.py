"""Findings of the receiving programs, in the words of the agent's answers."""

from __future__ import annotations

from typing import Sequence

from ..core.protocol import Message
from . import histogram
from .receive_program import ReceivedFrames

_MICROSECOND = 1000.0


def merged(parts: Sequence[ReceivedFrames]) -> ReceivedFrames:
    """What arrived of a direction, from what arrived of its streams."""
    values = {name: [getattr(part, name) for part in parts] for name in vars(parts[0])}
    sums = {name: sum(column) for name, column in values.items() if name not in ("histogram", "latency_least")}
    least = [value for value in values["latency_least"] if value is not None]
    return ReceivedFrames(
        **{**sums, "displacement": max(values["displacement"]), "latency_most": max(values["latency_most"])},
        latency_least=min(least, default=None),
        histogram=tuple(map(sum, zip(*values["histogram"]))),
    )


def times_of(received: ReceivedFrames) -> Message:
    """The findings about time and order that each trial has: latencies and jitter in microseconds, and displacement."""
    answer: Message = {"displacement": received.displacement}
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
