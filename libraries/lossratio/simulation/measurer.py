"""A measurer without a network: a SUT model on a virtual clock, faults of the frames that it forwards, and latencies.

A latency is a fixed delay and a random wait in a queue.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from lossratio.errors import SearchError
from lossratio.simulation.sut import STRICT, Ratio, RunningSut, Sut, Traffic
from lossratio.trials import (
    DirectionCounters,
    Examination,
    LatencyCounters,
    TrialInput,
    TrialOutput,
    output_from_counters,
    with_examination,
)

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


@dataclass(frozen=True, config=STRICT)
class FrameFaults:
    """Faults of forwarded frames, drawn independently for each frame.

    Attributes:
        duplicated: Share of the frames that come out twice.
        corrupted: Share of the frames that come out with other contents.
    """

    duplicated: Ratio = 0.0
    corrupted: Ratio = 0.0

    def examined(self, counters: DirectionCounters, rng: np.random.Generator) -> DirectionCounters:
        """The counters of a generator that examines all frames, with these faults.

        Args:
            counters: The counters without faults.
            rng: Draws the faults.
        """
        corrupted = int(rng.binomial(counters.received, self.corrupted))
        copies = int(rng.binomial(counters.received - corrupted, self.duplicated))
        arrived = counters.received + copies
        examination = Examination(examined=arrived, duplicated=copies, corrupted=corrupted)
        return with_examination(replace(counters, received=arrived), examination)


def faults_from(data: object) -> FrameFaults:
    """Reads faults from data such as ``{"duplicated": "1 %"}``.

    Raises:
        ValueError: If a field is unknown or out of range.
    """
    try:
        return TypeAdapter(FrameFaults).validate_python(data)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise ValueError(
            f"The SUT's faults cannot be read: {problems}. "
            "The faults are 'duplicated' and 'corrupted': shares of the frames."
        ) from error


class SimulatedMeasurer:
    """Performs trials on a simulated SUT, on a virtual clock: an hour of traffic takes milliseconds.

    One seed makes everything repeatable: the same trials in the same order give the same counters.

    Attributes:
        now: Seconds on the virtual clock: the sum of all trials so far.
    """

    def __init__(
        self,
        sut: Sut | Sequence[Sut],
        *,
        seed: int,
        overhead: float = 0.0,
        count_overhead: bool = False,
        settle: float = 0.0,
        max_rate: float | None = None,
        directions: int | None = None,
        faults: FrameFaults | None = None,
    ) -> None:
        """Starts the SUT at time 0.

        Args:
            sut: One SUT that carries all directions together, or one SUT for each direction.
            seed: Seed of all random numbers.
            overhead: Seconds that each trial takes besides its traffic.
            count_overhead: Whether the effective duration includes the overhead, as FD.io CSIT's does.
            settle: Seconds without traffic after each trial, for frames in flight; never in the effective duration.
            max_rate: Frames per second and direction that the generator can send. Frames above that are unsent, not
                lost.
            directions: Transmitting directions; None: 1, or the number of SUTs.
            faults: Faults of the frames that the SUTs forward; None: frames are not examined.

        Raises:
            SearchError: If a time is negative, a rate or a number is not positive, or SUTs and directions do not match.
        """
        suts = tuple(sut) if isinstance(sut, Sequence) else (sut,)
        self._directions = len(suts) if directions is None else directions
        if self._directions < 1 or len(suts) not in (1, self._directions):
            raise SearchError(
                f"{len(suts)} SUTs do not serve {self._directions} directions: give one SUT, or one for each direction."
            )
        if min(overhead, settle) < 0:
            raise SearchError(f"overhead and settle must not be negative, as {overhead!r} or {settle!r} is.")
        if max_rate is not None and not max_rate > 0:
            raise SearchError(f"max_rate must be positive, not {max_rate!r}; None is a generator without limit.")
        self.now = 0.0
        self._overhead = overhead
        self._count_overhead = count_overhead
        self._settle = settle
        self._max_rate = math.inf if max_rate is None else max_rate
        self._rng = np.random.default_rng(seed)
        self._faults = faults
        self._suts: tuple[RunningSut, ...] = tuple(model.start(self._rng) for model in suts)

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial, and advances the virtual clock."""
        intended = _whole_frames(trial.load * trial.duration)
        sent = min(intended, _whole_frames(self._max_rate * trial.duration)) if self._max_rate < math.inf else intended
        elapsed = trial.duration + self._settle + self._overhead
        counters = [
            DirectionCounters(
                name=f"port{number}>port{number ^ 1}",
                intended=intended,
                sent=sent,
                received=sent - lost,
                unsent=intended - sent,
                elapsed=trial.duration,
            )
            for number, lost in enumerate(self._lost(sent, trial.duration))
        ]
        if self._faults is not None:
            counters = [self._faults.examined(direction, self._rng) for direction in counters]
        self.now += elapsed
        effective = trial.duration + self._overhead if self._count_overhead else None
        return output_from_counters(trial, counters, effective_duration=effective, elapsed=elapsed)

    def _lost(self, sent: int, duration: float) -> list[int]:
        """Frames lost in each direction. A SUT that carries all directions does not distinguish them."""
        if len(self._suts) == self._directions:
            return [sut(Traffic(self.now, duration, sent)) for sut in self._suts]
        lost = self._suts[0](Traffic(self.now, duration, sent * self._directions))
        shares = []
        for others in range(self._directions - 1, -1, -1):
            drawn = int(self._rng.binomial(lost, 1.0 / (1.0 + others)))
            shares.append(max(lost - sent * others, min(sent, drawn)))
            lost -= shares[-1]
        return shares


def _whole_frames(frames: float) -> int:
    # The product's rounding error must not become a frame.
    return math.ceil(frames * (1.0 - 1e-12))


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
