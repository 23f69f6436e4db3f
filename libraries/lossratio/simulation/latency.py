"""Latency of a simulated SUT: a fixed delay, and a random wait in a queue."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from lossratio.trials import LatencyCounters

BASE_DELAY = 10e-6
"""Seconds that a frame takes through an idle simulated SUT."""

QUEUE_FRAMES = 1024
"""Frames that wait in a simulated SUT at most."""

LATENCY_RATE = 1000.0
"""Latency frames per second at most, in each direction."""

LATENCY_SHARE = 0.1
"""Share of a direction's frames that are latency frames at most."""

RESOLUTION = 0.1
"""Width of the histogram's intervals, in microseconds."""

_MICROSECOND = 1e-6


def simulated_latency(
    name: str, load: float, capacity: float | None, sent: int, received: int, rng: np.random.Generator
) -> LatencyCounters:
    """The latency of one direction.

    Frames arrive at random (as a Poisson process) and are served one after the other, all in the same time: the queue
    M/D/1, empty at first. The model is for trying out reports. It represents no device.

    Args:
        name: The direction.
        load: Frames per second that reach the SUT.
        capacity: Frames per second that it can forward; None: it has no queue.
        sent: Latency frames sent.
        received: How many of them came back.
        rng: Draws the random numbers.
    """
    delays = (BASE_DELAY + _waits(load, capacity, received, rng)) / _MICROSECOND
    if not received:
        error = f"None of {sent} latency frames came back."
        return LatencyCounters(name, sent, 0, 0, 0, None, None, None, None, RESOLUTION, error=error)
    intervals = Counter(int(delay / RESOLUTION) for delay in delays.tolist())
    return LatencyCounters(
        name=name,
        sent=sent,
        received=received,
        out_of_order=0,
        duplicates=0,
        minimum=float(delays.min()),
        average=float(delays.mean()),
        maximum=float(delays.max()),
        jitter=float(np.abs(np.diff(delays)).mean()) if received > 1 else 0.0,
        resolution=RESOLUTION,
        histogram=tuple((interval * RESOLUTION, count) for interval, count in sorted(intervals.items())),
    )


def _waits(load: float, capacity: float | None, frames: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Seconds that each frame waits: Lindley's recursion, limited to the wait of a full queue."""
    if capacity is None or not frames:
        return np.zeros(frames)
    service = 1.0 / capacity
    steps = service - rng.exponential(1.0 / load, frames)
    steps[0] = 0.0
    sums = np.cumsum(steps)
    waits: NDArray[np.float64] = sums - np.minimum.accumulate(sums)
    longest = QUEUE_FRAMES * service
    return waits.clip(max=longest)
