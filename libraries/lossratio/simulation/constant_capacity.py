"""SUTs whose capacity does not vary: knees, buckets that pass a burst, constant losses, and tables of connections.

Knees are sharp or smooth: the forwarding rate follows the load up to a capacity, then bends. Buckets are a policer's
tokens, and a queue in front of a capacity. Both pass ``rate * T + burst`` frames in a trial of T seconds, if the bucket
is full or the queue is empty when the trial begins. If too little time has passed since the previous trial, they pass
fewer frames. A constant loss takes each frame with the same small or large probability, at all loads or in a band of
them.
"""

import math
from typing import Literal

import numpy as np
import scipy
from pydantic import model_validator

from lossratio.simulation import sut
from lossratio.simulation.losses import LocatingSut, Loss
from lossratio.simulation.sut import (
    GRACEFUL,
    Overload,
    RunningSut,
    SutWithoutMemory,
    Traffic,
    sut_model,
)


@sut_model
class SharpKnee(SutWithoutMemory):
    """Forwards everything up to its capacity."""

    capacity: sut.FrameRate
    """Greatest forwarding rate, in frames per second."""
    overload: Overload = GRACEFUL
    """The behaviour at loads above the capacity."""

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """The capacity for a goal without loss, or ``capacity / (1 - loss_ratio)`` if overload costs nothing."""
        return self.overload.lossy_load(self.capacity, loss_ratio)

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        return self.overload.lost_frames(traffic, self.capacity, rng)


@sut_model
class SmoothKnee(SutWithoutMemory):
    """Loses some frames far below its largest forwarding rate: a fitting function of PLRsearch, with Poisson counts.

    Source: draft-vpolak-bmwg-plrsearch-02, section 5.3, in a form without cancellation.
    """

    mrr: sut.FrameRate
    """Forwarding rate that the SUT approaches in overload, in frames per second."""
    spread: sut.FrameRate
    """Width of the knee, in frames per second."""
    function: Literal["stretch", "erf"] = "stretch"
    """Shape of the knee."""

    def loss_rate(self, load: float) -> float:
        """Mean frames lost per second at a load in frames per second."""
        origin = self.mrr / self.spread
        if self.function == "stretch":
            ratio = math.exp(-origin)
            shifted = (
                (load - self.mrr) / self.spread
                + math.log(-math.expm1(-load / self.spread))
                - math.log1p(ratio)
            )
            rate = self.spread * (1.0 + ratio) * float(np.logaddexp(0.0, shifted))
        else:
            lost = _erfc_integral((self.mrr - load) / self.spread) - _erfc_integral(origin)
            rate = self.spread * lost / float(scipy.special.erfc(-origin))
        return min(load, max(0.0, rate))

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """By bisection of the Poisson distribution of lost frames; None for an exceed ratio of 0."""
        if exceed_ratio == 0.0:
            return None
        return sut.smallest_exceeding_load(
            lambda load: float(
                scipy.stats.poisson.sf(
                    math.floor(loss_ratio * load * duration), self.loss_rate(load) * duration
                )
            ),
            exceed_ratio,
        )

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        return min(
            traffic.frames, int(rng.poisson(self.loss_rate(traffic.load) * traffic.duration))
        )


def _erfc_integral(lower: float) -> float:
    if lower <= 0.0:
        return math.exp(-lower * lower) / math.sqrt(math.pi) - lower * float(
            scipy.special.erfc(lower)
        )
    return math.exp(-lower * lower) * (
        1.0 / math.sqrt(math.pi) - lower * float(scipy.special.erfcx(lower))
    )


class Bucket:
    """A bucket that fills at a rate up to its size, and is emptied by traffic. It is full at first."""

    def __init__(self, rate: float, size: float) -> None:
        self._rate = rate
        self._size = size
        self._level = size
        self._time = 0.0

    def level_at(self, time: float) -> float:
        """Frames in the bucket at a time in seconds, after the traffic so far."""
        return min(self._size, self._level + self._rate * (time - self._time))

    def take(self, traffic: Traffic) -> None:
        """Removes the frames that traffic takes."""
        gain = self._rate * traffic.duration - traffic.frames
        self._level = min(self._size, max(0.0, self.level_at(traffic.start) + gain))
        self._time = traffic.start + traffic.duration

    def losses(self, traffic: Traffic, share: float | None = None) -> list[Loss]:
        """Removes what traffic takes, and returns the losses: single frames, or a share of all from the first loss on.

        Without a share, frames are lost if there is no whole token for them. With the level b, the rate R and the load
        L, frame k (from 1 on) arrives at ``(k - 1) / L``. It passes while ``b + R (k - 1) / L >= k``, so the longest
        burst without loss has ``floor((b - R/L) / (1 - R/L))`` frames.
        """
        # The very first frame needs a whole token.
        level = max(1.0, self.level_at(traffic.start))
        gain = self._rate / traffic.load
        end = traffic.start + traffic.duration
        if gain >= 1.0:
            self._level = min(self._size, level + (gain - 1.0) * traffic.frames)
            self._time = end
            return []

        def lost_frame(number: int) -> int:
            return sut.whole_tokens((number - 1 + level - gain) / (1.0 - gain)) + 1

        passed = sut.whole_tokens(level + gain * (traffic.frames - 1))
        lost = max(0, traffic.frames - passed)
        self._level = level + gain * traffic.frames - (traffic.frames - lost)
        self._time = end
        if not lost:
            return []
        first = lost_frame(1) - 1
        last = min(traffic.frames, lost_frame(lost)) - 1
        return [
            Loss(first, last, lost if share is None else max(1, round((last - first + 1) * share)))
        ]


@sut_model
class Policer:
    """A token bucket: passes whole frames while it has tokens, and drops the rest.

    A full bucket passes ``rate * T + burst`` frames in T seconds, and is full again after ``burst / rate`` seconds
    without traffic (measured on Linux's ``limit rate over N/second burst B packets drop``).
    """

    rate: sut.FrameRate
    """Tokens per second, in frames per second."""
    burst: sut.Frames = 0.0
    """Tokens that a full bucket holds, in frames."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A policer with a full bucket."""
        return _RunningPolicer(self)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """``(rate + burst / duration) / (1 - loss_ratio)``: the bucket is full when the trial begins."""
        return (self.rate + self.burst / duration) / (1.0 - loss_ratio)


class _RunningPolicer(LocatingSut):
    def __init__(self, model: Policer) -> None:
        self._rate = model.rate
        self._bucket = Bucket(model.rate, model.burst)

    def __call__(self, traffic: Traffic) -> int:
        """Lost frames of a long trial, in which a single frame does not matter."""
        tokens = self._bucket.level_at(traffic.start) + self._rate * traffic.duration
        self._bucket.take(traffic)
        return max(0, traffic.frames - sut.whole_tokens(tokens))

    def losses(self, traffic: Traffic) -> list[Loss]:
        return self._bucket.losses(traffic)


@sut_model
class Buffer:
    """A queue in front of a capacity: it hides the loss of short trials.

    No frame is lost while the queue fills. Queued frames come out at the rate of the capacity, even after the end of
    the trial (the measurer waits for them).
    """

    capacity: sut.FrameRate
    """Greatest forwarding rate, in frames per second."""
    size: sut.Frames
    """Frames that the queue holds."""
    overload: Overload = GRACEFUL
    """The behaviour while the queue is full."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT with an empty queue."""
        return _RunningBuffer(self, rng)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """``capacity + size / duration`` for a goal without loss, else by bisection. The queue is empty at first."""
        return sut.smallest_exceeding_load(
            lambda load: float(self.loss_ratio(load, duration, self.size) > loss_ratio),
            exceed_ratio,
        )

    def loss_ratio(self, load: float, duration: float, room: float) -> float:
        """Share of frames lost in a trial that begins with room for some frames in the queue."""
        if (load - self.capacity) * duration <= room:
            return 0.0
        filling = room / (load - self.capacity)
        return (1.0 - filling / duration) * self.overload.loss_ratio(load, self.capacity)


class _RunningBuffer(LocatingSut):
    def __init__(self, model: Buffer, rng: np.random.Generator) -> None:
        self._model = model
        self._rng = rng
        self._room = Bucket(model.capacity, model.size)

    def __call__(self, traffic: Traffic) -> int:
        """Lost frames of a long trial, in which a single frame does not matter."""
        room = self._room.level_at(traffic.start)
        lost = traffic.frames * self._model.loss_ratio(traffic.load, traffic.duration, room)
        self._room.take(traffic)
        return sut.random_rounding(lost, self._rng)

    def losses(self, traffic: Traffic) -> list[Loss]:
        return self._room.losses(
            traffic, self._model.overload.loss_ratio(traffic.load, self._model.capacity)
        )


@sut_model
class ConstantLoss:
    """Loses each frame with the same probability, at any load: 0 is a perfect SUT, 1 a black hole."""

    loss_ratio: sut.Ratio = 0.0
    """The probability."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT without memory."""
        return lambda traffic: int(rng.binomial(traffic.frames, self.loss_ratio))

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Infinite or 0.

        For a goal without loss, the load at which trials have so few frames that enough trials lose nothing.
        """
        if self.loss_ratio in (0.0, 1.0):
            if self.loss_ratio <= loss_ratio:
                return math.inf
            return 0.0
        return _truth(self.loss_ratio, math.inf, GRACEFUL, (loss_ratio, duration, exceed_ratio))


@sut_model
class BackgroundLoss(SutWithoutMemory):
    """A sharp knee that also loses each remaining frame with the same small probability."""

    capacity: sut.FrameRate
    """Greatest forwarding rate, in frames per second."""
    loss_ratio: sut.ProperRatio
    """The probability."""
    overload: Overload = GRACEFUL
    """The behaviour at loads above the capacity."""

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """By bisection of the binomial distribution of lost frames; None for an exceed ratio of 0."""
        return _truth(
            self.loss_ratio, self.capacity, self.overload, (loss_ratio, duration, exceed_ratio)
        )

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        dropped = self.overload.lost_frames(traffic, self.capacity, rng)
        return dropped + int(rng.binomial(traffic.frames - dropped, self.loss_ratio))


@sut_model
class LossInversion(SutWithoutMemory):
    """A sharp knee with a band of lossy loads below it: a higher load may lose less than a lower one."""

    capacity: sut.FrameRate
    """Greatest forwarding rate, in frames per second."""
    band_start: sut.FrameRate
    """Smallest load of the band, in frames per second."""
    band_end: sut.FrameRate
    """Smallest load above the band, in frames per second; at most the capacity."""
    loss_ratio: sut.Ratio
    """Probability of losing a frame in the band."""
    overload: Overload = GRACEFUL
    """The behaviour at loads above the capacity."""

    @model_validator(mode="after")
    def _in_order(self) -> "LossInversion":
        if not self.band_start < self.band_end <= self.capacity:
            raise ValueError("band_start must be below band_end, and band_end at most the capacity")
        return self

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """The start of the band if the band exceeds the goal (the conservative side of the inversion), or the knee."""
        if (
            _binomial_exceeds(self.band_start * duration, self.loss_ratio, loss_ratio)
            > exceed_ratio
        ):
            return self.band_start
        return self.overload.lossy_load(self.capacity, loss_ratio)

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        if self.band_start <= traffic.load < self.band_end:
            return int(rng.binomial(traffic.frames, self.loss_ratio))
        return self.overload.lost_frames(traffic, self.capacity, rng)


def _truth(
    probability: float, capacity: float, overload: Overload, goal: tuple[float, float, float]
) -> float | None:
    """The truth of a knee that also loses each remaining frame with a probability; None: it has none.

    `goal` has the goal's loss ratio, trial duration in seconds, and exceed ratio.
    """
    loss_ratio, duration, exceed_ratio = goal
    knee = overload.lossy_load(capacity, loss_ratio)
    if probability == 0.0:
        return knee
    if exceed_ratio == 0.0:
        return None
    if loss_ratio == 0.0:
        return min(knee, math.log1p(-exceed_ratio) / math.log1p(-probability) / duration)

    def exceed_probability(load: float) -> float:
        dropped = overload.loss_ratio(load, capacity)
        if dropped > loss_ratio:
            return 1.0
        allowed = (loss_ratio - dropped) / (1.0 - dropped)
        return _binomial_exceeds(load * (1.0 - dropped) * duration, probability, allowed)

    return sut.smallest_exceeding_load(exceed_probability, exceed_ratio)


def _binomial_exceeds(frames: float, probability: float, loss_ratio: float) -> float:
    return float(
        scipy.stats.binom.sf(math.floor(loss_ratio * frames), math.ceil(frames), probability)
    )


@sut_model
class ConnectionTable:
    """A firewall or NAT with a limited rate of new connections and a limited table, which is empty before each trial.

    A bucket of tokens, one for each connection, is full when a trial begins (measured on Linux's ``ct state new limit
    rate over N/second burst B packets drop``).
    """

    rate: sut.FrameRate
    """Tokens per second."""
    burst: sut.Frames = 0.0
    """Tokens that a full bucket holds."""
    room: sut.Frames = 1e9
    """Entries of the table."""
    scan: sut.Delay = 0.0
    """Additional seconds that a new connection takes per existing entry, as in a table that is searched."""
    timeout: sut.Seconds = 1e9
    """Time after which an unanswered entry is forgotten. Answers come as fast as connections did."""
    kept: sut.Frames = 0.0
    """Entries that remain although the device should have forgotten them."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A device with a table that was emptied."""
        return self._lost

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """Connections established in a trial, divided by its duration and by the share that must be established."""
        if duration >= self.timeout:
            return 0.0
        return self._most(duration) / duration / (1.0 - loss_ratio)

    def _most(self, duration: float) -> float:
        """The maximum number of connections that are established in this many seconds."""
        # The n-th connection takes 1 / rate + scan * n seconds.
        root = math.sqrt(1.0 + 2.0 * self.scan * self.rate**2 * duration)
        if not self.scan:
            served = self.rate * duration
        else:
            served = (root - 1.0) / (self.scan * self.rate)

        return min(self.burst + served, self.room - self.kept)

    def _lost(self, traffic: Traffic) -> int:
        if traffic.duration >= self.timeout:
            return traffic.frames
        return max(0, traffic.frames - sut.whole_tokens(self._most(traffic.duration)))
