"""SUTs that let a burst pass: a policer's bucket of tokens, and a queue in front of a capacity.

Both pass ``rate * T + burst`` frames in a trial of T seconds, if the bucket is full or the queue is empty when the
trial begins. If too little time has passed since the trial before, they pass fewer.
"""

from __future__ import annotations

import math

import numpy as np
from pydantic.dataclasses import dataclass

from lossratio.simulation.sut import (
    GRACEFUL,
    STRICT,
    FrameRate,
    Frames,
    Overload,
    RunningSut,
    Traffic,
    random_rounding,
    smallest_exceeding_load,
)


class _Bucket:
    """A bucket that fills at a rate up to its size, and is emptied by traffic. It is full at first."""

    def __init__(self, rate: float, size: float) -> None:
        self._rate = rate
        self._size = size
        self._level = size
        self._time = 0.0

    def level_at(self, time: float) -> float:
        return min(self._size, self._level + self._rate * (time - self._time))

    def take(self, traffic: Traffic) -> None:
        gain = self._rate * traffic.duration - traffic.frames
        self._level = min(self._size, max(0.0, self.level_at(traffic.start) + gain))
        self._time = traffic.start + traffic.duration


@dataclass(frozen=True, config=STRICT)
class Policer:
    """A token bucket: passes whole frames while it has tokens, and drops the rest.

    A full bucket passes ``rate * T + burst`` frames in T seconds, and is full again after ``burst / rate`` seconds
    without traffic (measured on Linux's ``limit rate over N/second burst B packets drop``).

    Attributes:
        rate: Tokens per second, in frames per second.
        burst: Tokens that a full bucket holds, in frames.
    """

    rate: FrameRate
    burst: Frames = 0.0

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A policer with a full bucket."""
        bucket = _Bucket(self.rate, self.burst)

        def lost_frames(traffic: Traffic) -> int:
            tokens = bucket.level_at(traffic.start) + self.rate * traffic.duration
            bucket.take(traffic)
            # The sum's rounding error must not cost a token.
            return max(0, traffic.frames - math.floor(tokens * (1.0 + 1e-12)))

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """``(rate + burst / duration) / (1 - loss_ratio)``: the bucket is full when the trial begins."""
        return (self.rate + self.burst / duration) / (1.0 - loss_ratio)


@dataclass(frozen=True, config=STRICT)
class Buffer:
    """A queue in front of a capacity: it hides the loss of short trials.

    No frame is lost while the queue fills. Queued frames come out at the rate of the capacity, also after the end of
    the trial (the measurer waits for them).

    Attributes:
        capacity: Greatest forwarding rate, in frames per second.
        size: Frames that the queue holds.
        overload: The behaviour while the queue is full.
    """

    capacity: FrameRate
    size: Frames
    overload: Overload = GRACEFUL

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT with an empty queue."""
        room = _Bucket(self.capacity, self.size)

        def lost_frames(traffic: Traffic) -> int:
            lost = traffic.frames * self._loss_ratio(traffic.load, traffic.duration, room.level_at(traffic.start))
            room.take(traffic)
            return random_rounding(lost, rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """``capacity + size / duration`` for a goal without loss, else by bisection. The queue is empty at first."""
        return smallest_exceeding_load(
            lambda load: float(self._loss_ratio(load, duration, self.size) > loss_ratio), exceed_ratio
        )

    def _loss_ratio(self, load: float, duration: float, room: float) -> float:
        if (load - self.capacity) * duration <= room:
            return 0.0
        filling = room / (load - self.capacity)
        return (1.0 - filling / duration) * self.overload.loss_ratio(load, self.capacity)
