"""SUTs whose capacity varies: from trial to trial, for moments, once, steadily, or between a fast and a slow state.

Other SUTs have no capacity for a known time: after a reset, or after an overload.
"""

import math

import numpy as np
import scipy
from pydantic import model_validator

from lossratio.simulation import sut
from lossratio.simulation.constant_capacity import Bucket, Buffer
from lossratio.simulation.losses import LocatingSut, Loss, spread
from lossratio.simulation.sut import (
    GRACEFUL,
    Overload,
    RunningSut,
    SutWithoutMemory,
    Traffic,
    WithoutTruth,
    sut_model,
)


@sut_model
class PerformanceSpectrum:
    """Each trial has another capacity: normal noise, and some slow trials (the spectrum's tail)."""

    capacity: sut.FrameRate
    """Greatest forwarding rate without noise, in frames per second."""
    jitter: sut.PositiveRatio
    """Standard deviation of the noise, as a share of the capacity."""
    tail_share: sut.ProperRatio = 0.0
    """Share of trials that are slow."""
    tail_size: sut.PositiveRatio = 0.05
    """Mean loss of capacity of a slow trial (exponentially distributed), as a share of the capacity."""
    overload: Overload = GRACEFUL
    """The behaviour at loads above the capacity."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT that draws a capacity for each trial."""
        capacity = self.capacity

        def lost_frames(traffic: Traffic) -> int:
            nonlocal capacity
            if not traffic.continues:
                noise = rng.normal(scale=self.jitter)
                if rng.random() < self.tail_share:
                    noise -= rng.exponential(self.tail_size)
                capacity = self.capacity * max(0.0, 1.0 + noise)
            return self.overload.lost_frames(traffic, capacity, rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """The capacity's quantile, by bisection of its distribution; None for an exceed ratio of 0."""
        if exceed_ratio == 0.0:
            return None
        quantile = sut.smallest_exceeding_load(self._slower_probability, exceed_ratio)
        return self.overload.lossy_load(quantile, loss_ratio)

    def _slower_probability(self, rate: float) -> float:
        below = rate / self.capacity - 1.0
        usual = float(scipy.stats.norm.cdf(below, scale=self.jitter))
        slow = float(
            scipy.stats.exponnorm.sf(-below, self.tail_size / self.jitter, scale=self.jitter)
        )
        return (1.0 - self.tail_share) * usual + self.tail_share * slow


@sut_model
class RareStalls(SutWithoutMemory):
    """A sharp knee that stalls at times. The longer a trial is, the likelier is a stall in it.

    Stalls come independently of each other, and their lengths have an exponential distribution. A stalled SUT loses the
    frames for which its queue has no room.
    """

    capacity: sut.FrameRate
    """Greatest forwarding rate, in frames per second."""
    interval: sut.Seconds
    """Mean time between stalls, in seconds."""
    stall: sut.Seconds
    """Mean length of a stall, in seconds."""
    queue: sut.Frames = 0.0
    """Frames that the queue holds during a stall."""
    overload: Overload = GRACEFUL
    """The behaviour at loads above the capacity."""

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """By bisection of the compound Poisson distribution of stalled time; None for an exceed ratio of 0."""
        if exceed_ratio == 0.0:
            return None
        return sut.smallest_exceeding_load(
            lambda load: self._exceed_probability(load, duration, loss_ratio), exceed_ratio
        )

    def _lossy_stalls(self, load: float, duration: float) -> float:
        """Mean number of stalls that lose frames: an exponential length beyond any limit is exponential again."""
        return duration / self.interval * math.exp(-self.queue / (load * self.stall))

    def _exceed_probability(self, load: float, duration: float, loss_ratio: float) -> float:
        dropped = self.overload.loss_ratio(load, self.capacity)
        if dropped > loss_ratio:
            return 1.0
        allowed = duration * (loss_ratio - dropped) / (1.0 - dropped)
        stalls = self._lossy_stalls(load, duration)
        counts = np.arange(1, int(scipy.stats.poisson.isf(1e-15, stalls)) + 2)
        return float(
            np.sum(
                scipy.stats.poisson.pmf(counts, stalls)
                * scipy.stats.gamma.sf(allowed, counts, scale=self.stall)
            )
        )

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        dropped = self.overload.lost_frames(traffic, self.capacity, rng)
        stalls = rng.poisson(self._lossy_stalls(traffic.load, traffic.duration))
        stalled = min(traffic.duration, float(np.sum(rng.exponential(self.stall, stalls))))
        return dropped + sut.random_rounding(
            (traffic.frames - dropped) * stalled / traffic.duration, rng
        )


@sut_model
class CapacityStep(SutWithoutMemory, WithoutTruth):
    """A sharp knee whose capacity changes once. It has no truth that holds for a whole search."""

    before: sut.FrameRate
    """Capacity before the change, in frames per second."""
    after: sut.FrameRate
    """Capacity after the change, in frames per second."""
    at: sut.Seconds
    """Time of the change, in seconds on the virtual clock."""
    overload: Overload = GRACEFUL
    """The behaviour at loads above the capacity."""

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        early = min(1.0, max(0.0, (self.at - traffic.start) / traffic.duration))
        lost = early * self.overload.loss_ratio(traffic.load, self.before)
        lost += (1.0 - early) * self.overload.loss_ratio(traffic.load, self.after)
        return sut.random_rounding(traffic.frames * lost, rng)


@sut_model
class CapacityDrift(SutWithoutMemory, WithoutTruth):
    """A sharp knee whose capacity grows or shrinks exponentially. It has no truth that holds for a whole search."""

    capacity: sut.FrameRate
    """Capacity at the beginning, in frames per second."""
    per_second: sut.RelativeChange
    """Relative change per second; -0.0001 loses about 0.6 % a minute."""
    overload: Overload = GRACEFUL
    """The behaviour at loads above the capacity."""

    def capacity_at(self, time: float) -> float:
        """The capacity in frames per second at a time in seconds on the virtual clock."""
        return self.capacity * math.exp(time * math.log1p(self.per_second))

    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        first = self.capacity_at(traffic.start)
        last = self.capacity_at(traffic.start + traffic.duration)
        low, high = min(first, last), max(first, last)
        if traffic.load <= low:
            return 0

        if low == high:
            share = 1.0
            mean = low
        else:
            until = min(high, traffic.load)
            growth = math.log1p((until - low) / low)
            share = growth / math.log1p((high - low) / low)
            # The loss ratio is linear in the capacity, so the mean capacity of the overloaded part gives the mean loss.
            mean = (until - low) / growth

        return sut.random_rounding(
            traffic.frames * share * self.overload.loss_ratio(traffic.load, mean), rng
        )


MOST_SPELLS = 200.0
"""Mean number of spells in a trial above which the distribution of the slow time is not computed."""


@sut_model
class TwoStates:
    """A sharp knee with a fast and a slow state. The lengths of spells are exponentially distributed."""

    fast: sut.FrameRate
    """Capacity in the fast state, in frames per second."""
    slow: sut.FrameRate
    """Capacity in the slow state, in frames per second."""
    fast_spell: sut.Seconds
    """Mean time in the fast state, in seconds."""
    slow_spell: sut.Seconds
    """Mean time in the slow state, in seconds."""
    overload: Overload = GRACEFUL
    """The behaviour at loads above the capacity."""

    @model_validator(mode="after")
    def _slow_is_slower(self) -> "TwoStates":
        if not self.slow < self.fast:
            raise ValueError("'slow' must be below 'fast'")
        return self

    @property
    def slow_share(self) -> float:
        """Share of time in the slow state."""
        return self.slow_spell / (self.fast_spell + self.slow_spell)

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT in one of the states, which is drawn by its share of time."""
        spells = _Spells(self, rng)

        def lost_frames(traffic: Traffic) -> int:
            slow = (
                spells.slow_time(traffic.start, traffic.start + traffic.duration) / traffic.duration
            )
            return sut.random_rounding(traffic.frames * self._loss_ratio(traffic.load, slow), rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """From the quantile of the slow share of a trial; None for trials of very many spells."""
        if duration / min(self.fast_spell, self.slow_spell) > MOST_SPELLS:
            return None
        slow = _slow_share_quantile(self, duration, exceed_ratio)
        return sut.smallest_exceeding_load(
            lambda load: float(self._loss_ratio(load, slow) > loss_ratio), 0.0
        )

    def _loss_ratio(self, load: float, slow: float) -> float:
        """Share of frames lost if the SUT is in the slow state for a share `slow` of the trial."""
        lost_fast = self.overload.loss_ratio(load, self.fast)
        return lost_fast + slow * (self.overload.loss_ratio(load, self.slow) - lost_fast)


class _Spells:
    """The states over time, drawn up to the latest requested time. Times only go forward."""

    def __init__(self, sut: TwoStates, rng: np.random.Generator) -> None:
        self._means = {True: sut.slow_spell, False: sut.fast_spell}
        self._rng = rng
        self._slow = bool(rng.random() < sut.slow_share)
        self._end = rng.exponential(self._means[self._slow])

    def slow_time(self, start: float, end: float) -> float:
        total = 0.0
        while self._end < end:
            total += max(0.0, self._end - start) if self._slow else 0.0
            start = max(start, self._end)
            self._slow = not self._slow
            self._end += self._rng.exponential(self._means[self._slow])
        return total + (end - start if self._slow else 0.0)


def _slow_share_quantile(sut: TwoStates, duration: float, exceed_ratio: float) -> float:
    """The smallest share of a trial's time that the slow state exceeds with at most the given probability."""
    spacings, weights = _slow_spacings(sut, duration)
    counts = spacings.shape[0]
    slow = np.arange(counts + 1)[np.newaxis, :]
    fast = np.arange(1, counts + 1)[:, np.newaxis] - slow
    mixed = (slow > 0) & (fast > 0)
    shares = weights[:, np.newaxis] * spacings
    always = float(np.sum(shares[fast == 0]))
    alpha, beta, share = (
        np.broadcast_to(array, mixed.shape)[mixed] for array in (slow, fast, shares)
    )

    def exceed_probability(limit: float) -> float:
        return always + float(np.sum(share * scipy.special.betaincc(alpha, beta, limit)))

    if always > exceed_ratio:
        return 1.0
    low, high = 0.0, 1.0
    if exceed_probability(low) <= exceed_ratio:
        return low
    while high - low > 1e-12:
        middle = (low + high) / 2.0
        if exceed_probability(middle) > exceed_ratio:
            low = middle
        else:
            high = middle
    return high


def _slow_spacings(sut: TwoStates, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """The chain of states at the events of a Poisson process that is faster than both spells (uniformisation).

    n events cut the trial into n + 1 spacings of Dirichlet-distributed length, each in one state. The sum of k spacings
    has a beta distribution.
    """
    rate = 1.0 / min(sut.fast_spell, sut.slow_spell)
    most = int(scipy.stats.poisson.isf(1e-15, rate * duration)) + 1
    slows_down, speeds_up = 1.0 / (sut.fast_spell * rate), 1.0 / (sut.slow_spell * rate)
    spacings = np.zeros((most + 1, most + 2))
    in_slow, in_fast = np.zeros(most + 2), np.zeros(most + 2)
    in_slow[1], in_fast[0] = sut.slow_share, 1.0 - sut.slow_share
    spacings[0] = in_slow + in_fast
    for events in range(1, most + 1):
        into_slow = in_slow * (1.0 - speeds_up) + in_fast * slows_down
        in_fast = in_slow * speeds_up + in_fast * (1.0 - slows_down)
        in_slow = np.concatenate(([0.0], into_slow[:-1]))
        spacings[events] = in_slow + in_fast
    return spacings, scipy.stats.poisson.pmf(np.arange(most + 1), rate * duration)


@sut_model
class Device:
    """A sharp knee with a queue in front of it, and known recovery times after an overload and after a reset."""

    capacity: sut.FrameRate
    """Greatest forwarding rate, in frames per second."""
    size: sut.Frames = 0.0
    """Frames that the queue holds: no frame is lost while it fills."""
    recovery: sut.Delay = 0.0
    """Seconds for which, after an overload that lost frames, the SUT still loses frames although the load is no longer
    above the capacity."""
    recovery_loss: sut.PositiveRatio = 0.5
    """Share of the frames that it loses in this time."""
    downtime: sut.Delay = 0.0
    """Seconds without forwarding after a reset."""
    resets: tuple[sut.Seconds, ...] = ()
    """Times of spontaneous resets, in seconds on the virtual clock."""
    overload: Overload = GRACEFUL
    """The behaviour while the queue is full."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT that forwards, with an empty queue."""
        return _RunningDevice(self)

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """The same as for a buffer; None if the SUT resets by itself."""
        if self.resets:
            return None
        buffer = Buffer(self.capacity, self.size, self.overload)
        return buffer.truth(loss_ratio=loss_ratio, duration=duration, exceed_ratio=exceed_ratio)


class _RunningDevice(LocatingSut):
    def __init__(self, model: Device) -> None:
        self._model = model
        self._room = Bucket(model.capacity, model.size)
        self._resets = list(model.resets)
        self._recovered = 0.0

    def reset(self, time: float) -> None:
        self._resets.append(time)

    def losses(self, traffic: Traffic) -> list[Loss]:
        losses: list[Loss] = []
        place = 0
        for reset in sorted(self._resets):
            first, last = _numbers(traffic, reset, reset + self._model.downtime)
            first = max(place, first)
            if first <= last:
                losses += [
                    *self._losses_in_operation(traffic, place, first),
                    *spread(last - first + 1, first, last),
                ]
                place = last + 1
        return losses + self._losses_in_operation(traffic, place, traffic.frames)

    def _losses_in_operation(self, whole: Traffic, first: int, end: int) -> list[Loss]:
        """Losses of the frames from one number up to, but excluding, another."""
        if first == end:
            return []
        load = whole.load
        frames = end - first
        traffic = Traffic(whole.start + first / load, frames / load, frames)
        losses = self._room.losses(
            traffic, self._model.overload.loss_ratio(load, self._model.capacity)
        )
        if losses:
            self._recovered = traffic.start + traffic.duration + self._model.recovery
        else:
            _, last = _numbers(traffic, traffic.start, self._recovered)
            losses = spread(math.ceil(max(0, last + 1) * self._model.recovery_loss), 0, last)
        return [Loss(first + loss.first, first + loss.last, loss.frames) for loss in losses]


def _numbers(traffic: Traffic, start: float, end: float) -> tuple[int, int]:
    """Numbers of the first and the last frame that arrive from one time on, but before another."""
    # A product's rounding error must not move a frame.
    first, after = (
        math.ceil((time - traffic.start) * traffic.load - 1e-6) for time in (start, end)
    )
    return max(0, first), min(traffic.frames, after) - 1
