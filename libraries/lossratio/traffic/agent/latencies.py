"""From the times at which latency frames left and came back to their latencies."""

from __future__ import annotations

import numpy as np

from .protocol import Message
from .stamps import Stamps

RESOLUTION_NS = 100
"""Width of the histogram's intervals, in nanoseconds; the kernel's own times are finer, and less exact."""

_MICROSECOND = 1000.0
_CLOCK_WAS_SET = "The system's clock was set while frames were on their way. Measure again when it is in order."


def summarize(name: str, left: Stamps, arrived: Stamps, *, clock_was_set: bool) -> Message:
    """The latency of one direction, as a reply to ``latency`` has it.

    Args:
        name: The direction.
        left: The frames as they left, each once.
        arrived: The frames as they came back.
        clock_was_set: Whether the clock of these times was set meanwhile.
    """
    numbers, first = np.unique(arrived.numbers, return_index=True)
    in_order = np.sort(first)
    firsts = arrived.numbers[in_order]
    answer: Message = {
        "name": name,
        "sent": len(left.numbers),
        "received": len(numbers),
        "out_of_order": int(np.count_nonzero(firsts < np.maximum.accumulate(firsts))) if len(firsts) else 0,
        "duplicates": len(arrived.numbers) - len(numbers),
        "min_us": None,
        "average_us": None,
        "max_us": None,
        "jitter_us": None,
        "hdr": None,
        "histogram": [],
        "resolution_us": RESOLUTION_NS / _MICROSECOND,
        "error": _CLOCK_WAS_SET if clock_was_set else _fault(left, arrived),
    }
    if answer["error"] is not None:
        return answer
    sent_at = dict(zip(left.numbers.tolist(), left.times.tolist()))
    if not set(numbers.tolist()) <= sent_at.keys():
        return {**answer, "error": "Latency frames came back that never left. Something repeats earlier frames."}
    latencies = arrived.times[first] - np.array([sent_at[number] for number in numbers.tolist()], dtype=np.int64)
    if int(latencies.min()) < 0:
        return {**answer, "error": f"Frames seem to have arrived before they left. {_CLOCK_WAS_SET}"}
    intervals, counts = np.unique(latencies // RESOLUTION_NS, return_counts=True)
    differences = np.abs(np.diff(latencies))
    return {
        **answer,
        "min_us": float(latencies.min()) / _MICROSECOND,
        "average_us": float(latencies.mean()) / _MICROSECOND,
        "max_us": float(latencies.max()) / _MICROSECOND,
        "jitter_us": float(differences.mean()) / _MICROSECOND if len(differences) else 0.0,
        "histogram": [
            [interval * RESOLUTION_NS / _MICROSECOND, count]
            for interval, count in zip(intervals.tolist(), counts.tolist())
        ],
    }


def _fault(left: Stamps, arrived: Stamps) -> str | None:
    if left.overlooked or arrived.overlooked:
        return "More latency frames came back than can be, or left: something repeats them."
    if not len(arrived.numbers):
        return f"None of {len(left.numbers)} latency frames came back."
    return None
