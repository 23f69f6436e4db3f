"""Devices that lose frames as hardware and as software do, with their true loss ratio, for `soak.py`.

A device is made of parts: a knee, frames that are lost in batches, pauses that overflow a ring, bit errors, a bucket,
and a capacity that changes from trial to trial or in time. The mean loss ratio in the long run at each load follows
from the parts, and the critical load from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy import optimize, stats

from lossratio.simulation import RunningSut, SmoothKnee, Traffic

CAPACITY = 18e6
"""Frames per second that most devices forward."""
_POINTS = (np.arange(4000) + 0.5) / 4000.0
_TAIL = np.geomspace(1e-12, 1e-4, 400)

Rate = Callable[[float], float]
"""Mean lost frames per second by load in frames per second, at the scale 1."""
Scale = Callable[[int, float], float]
"""Capacity as a share of the usual one, by number of the trial from 0 on, and seconds from the beginning."""
Once = Callable[[Traffic, np.random.Generator], float]
"""Frames that a trial loses once."""


@dataclass(frozen=True)
class Pause:
    """The device stops reading now and then; what its ring does not hold is lost."""

    every: float
    """Mean seconds between pauses."""
    length: float
    """Seconds; the mean of an exponential distribution if it varies."""
    ring: float
    """Frames that the ring holds."""
    varies: bool = False
    """Whether lengths are exponentially distributed."""
    jitter: float | None = None
    """Largest share by which periods differ from the mean; None: pauses come at random."""
    spread: float = 0.0
    """Largest share by which lengths differ from the mean, evenly distributed."""
    share: float = 1.0
    """Share of the frames that the ring gets."""
    together: int = 1
    """Pauses that follow each other at once, like those of a job that wakes up so often."""

    def ratio(self, load: float) -> float:
        """Share of the frames that is lost."""
        full = self.ring / (self.share * load)
        if self.varies:
            lost = self.length * math.exp(-full / self.length)
        else:
            lengths = self.length * (1.0 + self.spread * (2.0 * _POINTS - 1.0))
            lost = float(np.maximum(0.0, lengths - full).mean())
        return self.share * self.together * lost / self.every

    def often(self, load: float) -> float:
        """Losses per second: pauses that overflow the ring; those that follow at once count with them."""
        full = self.ring / (self.share * load)
        if self.varies:
            return math.exp(-full / self.length) / self.every
        lengths = self.length * (1.0 + self.spread * (2.0 * _POINTS - 1.0))
        return float((lengths > full).mean()) / self.every

    def lost(self, traffic: Traffic, rng: np.random.Generator) -> float:
        """Frames lost in a trial."""
        number = int(rng.poisson(traffic.duration / self.every))
        if self.jitter is not None:
            steps = int(traffic.duration / self.every / (1.0 - self.jitter)) + 2
            periods = self.every * (1.0 + self.jitter * rng.uniform(-1.0, 1.0, steps))
            number = int(np.count_nonzero(np.cumsum(periods) - rng.random() * periods[0] < traffic.duration))
        number *= self.together
        lengths = self.length * (1.0 + self.spread * rng.uniform(-1.0, 1.0, number))
        if self.varies:
            lengths = rng.exponential(self.length, number)
        return float(np.maximum(0.0, lengths * self.share * traffic.load - self.ring).sum())


@dataclass(frozen=True)
class Stalls:
    """A fixed number of frames lost now and then, at any load; it has the methods of a `Pause`."""

    every: float
    """Mean seconds between them."""
    frames: float
    """Lost frames."""

    def ratio(self, load: float) -> float:
        """Share of the frames that is lost."""
        return self.frames / self.every / load

    def often(self, load: float) -> float:
        """Losses per second."""
        return 1.0 / self.every

    def lost(self, traffic: Traffic, rng: np.random.Generator) -> float:
        """Frames lost in a trial."""
        return self.frames * float(rng.poisson(traffic.duration / self.every))


@dataclass(frozen=True)
class Device:
    """A device of several parts."""

    knee: Rate
    """Its loss by load."""
    batch: float = 1.0
    """Frames that its knee loses at a time."""
    varied_batch: bool = False
    """Whether batches differ, geometrically distributed."""
    pauses: tuple[Pause | Stalls, ...] = ()
    """Its pauses."""
    errors: float = 0.0
    """Share of the frames lost to bit errors."""
    bucket: float = 0.0
    """Seconds of traffic at capacity that a full bucket of tokens lets through at once."""
    drawn: Callable[[np.ndarray], np.ndarray] | None = None
    """Quantiles of the capacity of a trial, as a share; None: it is constant."""
    scale: Scale = field(default=lambda number, seconds: 1.0)
    """How it changes."""
    exact: bool = False
    """Whether the knee loses its mean in each trial, except for rounding."""
    once: Once = field(default=lambda traffic, rng: 0.0)
    """What a trial loses once, no matter how long it takes, in frames."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A device that was idle."""
        number = -1
        tokens = self.bucket
        before = 0.0

        def lost_frames(traffic: Traffic) -> int:
            nonlocal number, tokens, before
            number += 1
            scale = self.scale(number, traffic.start + 0.5 * traffic.duration)
            if self.drawn is not None:
                scale *= float(self.drawn(rng.random(1))[0])
            mean = scale * self.knee(traffic.load / scale) * traffic.duration
            if self.bucket:
                tokens = min(self.bucket, tokens + traffic.start - before)
                before = traffic.start + traffic.duration
                mean -= tokens * CAPACITY
                tokens = max(0.0, -mean / CAPACITY)
                mean = max(0.0, mean)
            lost = self._counted(mean, rng)
            lost += sum(pause.lost(traffic, rng) for pause in self.pauses)
            lost += float(rng.poisson(self.errors * traffic.frames))
            lost += self.once(traffic, rng)
            return min(math.floor(lost + rng.random()), traffic.frames)

        return lost_frames

    def _counted(self, mean: float, rng: np.random.Generator) -> float:
        if self.exact or mean <= 0.0:
            return max(mean, 0.0)
        batches = int(rng.poisson(mean / self.batch))
        if self.varied_batch and batches:
            return float(rng.negative_binomial(batches, 1.0 / self.batch) + batches)
        return self.batch * batches

    def ratio(self, load: float, scale: float = 1.0) -> float:
        """Mean loss ratio in the long run, where it has changed to a scale."""
        at = load / scale
        overload = self.knee(at) / at
        if self.drawn is not None:
            edges = np.concatenate([[0.0], _TAIL, _POINTS[_POINTS > 1.1e-4], [1.0]])
            middle = 0.5 * (edges[1:] + edges[:-1])
            shares = np.maximum(self.drawn(middle), 1e-3)
            overload = float(np.sum(np.diff(edges) * [self.knee(at / share) / (at / share) for share in shares]))
        return min(1.0, overload + sum(pause.ratio(load) for pause in self.pauses) + self.errors)

    def rarest(self, load: float, scale: float, target: float, trial: float) -> float:
        """Mean seconds of trials of that length between losses that are rare; 0 if the target is lost without them."""
        at = load / scale
        if self.drawn is None and self.knee(at) / at + self.errors > target:
            return 0.0
        often = sum(pause.often(load) for pause in self.pauses)
        if self.drawn is not None:
            shares = np.maximum(self.drawn(_POINTS), 1e-3)
            often += float(np.mean([share * self.knee(at / share) * trial > 1.0 for share in shares])) / trial
        return math.inf if often == 0.0 else 1.0 / often

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """Not asked for here."""
        return None


@dataclass(frozen=True)
class Family:
    """A device, what is asked about it, and what may be said about it."""

    device: Device
    """The device."""
    healthy: bool = False
    """Whether its capacity is constant or varies normally, and frames are lost one by one."""
    traits: frozenset[str] = frozenset()
    """``batches``, ``varies``, ``changes``, ``pauses``, ``long`` (20 s differ from 2 s)."""
    target: float = 1e-7
    """The target loss ratio."""
    capacity: float = CAPACITY
    """About the largest load that it forwards."""
    lowest: float = 0.0
    """The lowest scale of a device that swings."""

    def scale_at(self, seconds: float, trials: int) -> float:
        """Its scale at the end of a search; the lowest one, if it swings."""
        return self.lowest or self.device.scale(trials, seconds)

    def critical_load(self, scale: float) -> float:
        """The load in frames per second at which the mean loss ratio is the target; above it, it is larger."""

        def excess(log_load: float) -> float:
            return math.log(max(self.device.ratio(math.exp(log_load), scale), 1e-300) / self.target)

        high = math.log(1.2 * self.capacity)
        low = high - 0.1
        while excess(low) > 0.0:
            low -= 0.1
            if low < math.log(1e-4 * self.capacity):
                return 1e-4 * self.capacity
        return math.exp(optimize.brentq(excess, low, high, xtol=1e-9))


def knee(spread: float, function: Literal["stretch", "erf"] = "stretch", capacity: float = CAPACITY) -> Rate:
    """A knee that is as wide as that, in frames per second."""
    return SmoothKnee(capacity, spread, function).loss_rate


def sharp(load: float) -> float:
    """A device that loses all above its capacity, and nothing below."""
    return max(0.0, load - CAPACITY)


def queues(shares: Sequence[float], spread: float = 1e3) -> Rate:
    """Queues of equal capacity and unequal shares of the frames."""
    parts = np.array(shares) / np.sum(shares)
    queue = SmoothKnee(CAPACITY / len(parts), spread)
    return lambda load: sum(queue.loss_rate(part * load) for part in parts)


def m_m_1(load: float, places: int = 256) -> float:
    """A queue of so many places, with arrivals and services at random."""
    use = load / CAPACITY * (1.0 + 1e-12)
    if use < 1.0:
        return load * (1.0 - use) * use**places / (1.0 - use ** (places + 1))
    return load * (1.0 - 1.0 / use) / (1.0 - use ** -(places + 1))


def _red(load: float) -> float:
    early = max(0.0, load / CAPACITY - 0.99) ** 2
    return load * min(1.0, early + max(0.0, 1.0 - CAPACITY / load))


def _two_stages(load: float) -> float:
    stage = 3e-6 / (1.0 + math.exp(min(700.0, (16e6 - load) / 1e5)))
    return knee(5e4)(load) + stage * load


def normal(deviation: float) -> Callable[[np.ndarray], np.ndarray]:
    """A capacity that varies normally, with that standard deviation as a share."""
    return lambda share: 1.0 + deviation * stats.norm.ppf(share)


def _modes(share: np.ndarray) -> np.ndarray:
    low = 0.99 + 0.0005 * stats.norm.ppf(np.clip(share / 0.3, 1e-12, 1.0 - 1e-12))
    high = 1.0 + 0.0005 * stats.norm.ppf(np.clip((share - 0.3) / 0.7, 1e-12, 1.0 - 1e-12))
    return np.where(share < 0.3, low, high)


def waiting(batch: int) -> Once:
    """The last frames of a trial wait for others, until a batch is full."""
    return lambda traffic, rng: float(rng.integers(0, batch))


def learning(seconds: float, queue: float) -> Once:
    """The first frames of a trial wait until the device has learned its flows. The queue holds so many of them."""
    return lambda traffic, rng: max(0.0, traffic.load * seconds * rng.uniform(0.8, 1.2) - queue)


def states(*parts: tuple[float, float]) -> Callable[[np.ndarray], np.ndarray]:
    """Capacities, as shares, and how often a trial has each of them."""
    capacities, often = np.array(sorted(parts)).T
    ends = np.cumsum(often)
    return lambda share: capacities[np.minimum(np.searchsorted(ends, share), len(ends) - 1)]


def faster_from(seconds_at: float, before: float) -> Scale:
    """The usual scale from that time in seconds on, and another one before."""
    return lambda number, seconds: 1.0 if seconds >= seconds_at else before


def after(trials: int, before: float) -> Scale:
    """Another scale in so many trials at the beginning."""
    return lambda number, seconds: before if number < trials else 1.0


def step(seconds_at: float, change: float) -> Scale:
    """Another scale from that time in seconds on."""
    return lambda number, seconds: 1.0 + change * (seconds >= seconds_at)


def warming(change: float, time: float) -> Scale:
    """A scale that approaches another one, with a time in seconds."""
    return lambda number, seconds: 1.0 + change * -math.expm1(-seconds / time)


def after_all(*parts: Scale) -> Scale:
    """All of these together."""
    return lambda number, seconds: math.prod(part(number, seconds) for part in parts)


def warming_up(change: float, time: float) -> Scale:
    """A scale that approaches the usual one, with a time in seconds."""
    return lambda number, seconds: 1.0 - change * math.exp(-seconds / time)


def _sine(swing: float, period: float) -> Scale:
    return lambda number, seconds: 1.0 + swing * math.sin(2.0 * math.pi * seconds / period)


_BASE = Device(knee(2e4))
_HEALTHY = {
    "2 queues": Device(queues([1.01, 1.0])),
    "8 queues": Device(queues(np.linspace(1.03, 1.0, 8).tolist())),
    "elephant": Device(queues([1.3, 1.0, 1.0, 1.0])),
    "M/M/1/256": Device(m_m_1),
    "stretch": Device(knee(5e4)),
    "erf": Device(knee(2e5, "erf")),
    "sharp": Device(knee(500.0)),
    "sharper": Device(sharp, exact=True),
    "normal .4 %": Device(sharp, drawn=normal(0.004)),
    "normal .1 %": Device(sharp, drawn=normal(0.001)),
    "normal .05 %, soft knee": Device(knee(2e4), drawn=normal(0.0005)),
}
_MORE_HEALTHY = {
    "4 queues, one at 60 %": Device(queues([1.0 / 0.6, 1.0, 1.0, 1.0])),
    "16 queues by hash": Device(queues(np.random.default_rng(7).uniform(0.9, 1.1, 16).tolist())),
    "M/M/1/1024": Device(lambda load: m_m_1(load, 1024)),
    "lognormal .2 %": Device(sharp, drawn=lambda share: np.exp(0.002 * stats.norm.ppf(share))),
}
_MORE_SOFTWARE: dict[str, tuple[Device, str]] = {
    "batches of 64, sharp knee": (Device(knee(2e3), batch=64.0), "batches"),
    "batches of 128": (Device(knee(1e5), batch=128.0), "batches"),
    "M/M/1, batches of 32": (Device(m_m_1, batch=32.0), "batches"),
    "descheduled, jittered period": (replace(_BASE, pauses=(Pause(2.0, 120e-6, 1024.0, jitter=0.3),)), "pauses"),
    "descheduled often, varied": (replace(_BASE, pauses=(Pause(0.1, 20e-6, 512.0, varies=True),)), "pauses"),
    "two rings": (
        replace(_BASE, pauses=(Pause(3.0, 300e-6, 2048.0, share=0.5), Pause(5.0, 200e-6, 1024.0, share=0.5))),
        "pauses",
    ),
    "cron burst each 45 s": (replace(_BASE, pauses=(Pause(45.0, 150e-6, 2048.0, together=8),)), "pauses"),
    "GC of random length": (replace(_BASE, pauses=(Pause(4.0, 300e-6, 4096.0, spread=0.5),)), "pauses"),
    "GC of varied length": (replace(_BASE, pauses=(Pause(10.0, 100e-6, 4096.0, varies=True),)), "pauses"),
    "interrupts each 100 ms": (replace(_BASE, pauses=(Pause(0.1, 40e-6, 512.0, jitter=0.05),)), "pauses"),
    "pauses and batches of 32": (Device(knee(5e4), batch=32.0, pauses=(Pause(4.0, 300e-6, 4096.0),)), "pauses batches"),
    "bit errors, .6 targets": (replace(_BASE, errors=0.6e-7), ""),
    "bit errors, .9 targets": (replace(_BASE, errors=0.9e-7), ""),
    "bucket of 10 ms, batches of 32": (Device(knee(2e4), batch=32.0, bucket=0.01), "long batches"),
    "bucket of 1 ms": (Device(sharp, bucket=0.001, exact=True), "long"),
    "cold start of 20 s": (replace(_BASE, scale=warming_up(0.03, 8.0)), "changes"),
    "last batch waits": (replace(_BASE, once=waiting(32)), "once"),
    "flows are learned": (replace(_BASE, once=learning(1e-4, 600.0)), "once"),
    "warm-up of a minute": (replace(_BASE, scale=warming_up(0.25, 25.0)), "changes"),
    "slow-down in a minute": (replace(_BASE, scale=warming(-0.05, 25.0)), "changes"),
    "step down and up": (replace(_BASE, scale=after_all(step(80.0, -0.02), step(180.0, 0.015))), "changes"),
    "drift of +.5 %": (replace(_BASE, scale=warming(0.005, 120.0)), "changes"),
    "batches of 32, step of -1 %": (Device(knee(5e4), batch=32.0, scale=step(100.0, -0.01)), "batches changes"),
    "link flap each 10 min": (replace(_BASE, pauses=(Stalls(600.0, 400.0),)), "pauses"),
}
_SOFTWARE: dict[str, tuple[Device, str]] = {
    "batches of 32": (Device(knee(5e4), batch=32.0), "batches"),
    "batches of 256": (Device(knee(5e4), batch=256.0), "batches"),
    "batches of 16 to 64": (Device(knee(5e4), batch=32.0, varied_batch=True), "batches"),
    "8 queues, batches of 64": (Device(queues(np.linspace(1.03, 1.0, 8).tolist()), batch=64.0), "batches"),
    "batches of 32, normal .1 %": (Device(knee(2e4), batch=32.0, drawn=normal(0.001)), "batches varies"),
    "GC pause, ring 4,096": (replace(_BASE, pauses=(Pause(5.0, 250e-6, 4096.0),)), "pauses"),
    "descheduled each 2 s": (replace(_BASE, pauses=(Pause(2.0, 50e-6, 1024.0, varies=True),)), "pauses"),
    "descheduled each 30 s": (replace(_BASE, pauses=(Pause(30.0, 50e-6, 1024.0, varies=True),)), "pauses"),
    "cron job each 60 s": (replace(_BASE, pauses=(Pause(60.0, 300e-6, 4096.0),)), "pauses"),
    "house-keeping each 20 s": (replace(_BASE, pauses=(Pause(20.0, 1e-3, 16384.0),)), "pauses"),
    "timer ticks": (replace(_BASE, pauses=(Pause(0.01, 5e-6, 256.0, varies=True),)), "pauses"),
    "statistics each second": (replace(_BASE, pauses=(Pause(1.0, 80e-6, 1024.0),)), "pauses"),
    "bit errors, .3 targets": (replace(_BASE, errors=0.3e-7), ""),
    "bit errors, .05 targets": (replace(_BASE, errors=0.05e-7), ""),
    "stalls of 18 frames each 20 s": (replace(_BASE, pauses=(Stalls(20.0, 18.0),)), "pauses"),
    "8 cold trials": (replace(_BASE, scale=after(8, 0.95)), "changes"),
    "40 cold trials": (replace(_BASE, scale=after(40, 0.99)), "changes"),
    "step of -1 %": (replace(_BASE, scale=step(100.0, -0.01)), "changes"),
    "step of -.2 %": (replace(_BASE, scale=step(100.0, -0.002)), "changes"),
    "step of +1 %": (replace(_BASE, scale=step(100.0, 0.01)), "changes"),
    "thermal drift of -1 %": (replace(_BASE, scale=warming(-0.01, 100.0)), "changes"),
    "sine of .5 %": (replace(_BASE, scale=_sine(0.005, 300.0)), "changes varies"),
    "policer, bucket of 50 ms": (Device(sharp, bucket=0.05, exact=True), "long"),
    "policer, bucket of 5 ms": (Device(sharp, bucket=0.005, exact=True), "long"),
    "RED": (Device(_red), ""),
    "two stages": (Device(_two_stages), ""),
    "two modes": (Device(sharp, drawn=_modes), "varies"),
    "core that is shared": (Device(knee(2e3), drawn=states((0.8, 0.25), (0.9, 0.1), (1.0, 0.65))), "varies"),
    "paths by a hash": (Device(knee(2e3), drawn=states(*((0.85 + 0.03 * path, 1 / 6) for path in range(6)))), "varies"),
    "flows are offloaded": (replace(_BASE, scale=faster_from(15.0, 0.45)), "changes"),
    "Student's capacities": (Device(sharp, drawn=lambda share: 1.0 + 0.001 * stats.t.ppf(share, 5)), "varies"),
}


FAMILIES = {
    **{
        name: Family(device, True, frozenset({"varies"} if device.drawn is not None else ()))
        for name, device in (*_HEALTHY.items(), *_MORE_HEALTHY.items())
    },
    "slow device, target 1e-6": Family(Device(knee(3e3, capacity=1e6)), True, target=1e-6, capacity=1e6),
    **{
        name: Family(device, False, frozenset(traits.split()), lowest=0.995 if "sine" in name else 0.0)
        for name, (device, traits) in (*_SOFTWARE.items(), *_MORE_SOFTWARE.items())
    },
}
"""What is measured, by name."""


def _collapse(cost: float) -> Rate:
    """A knee that forwards less the more it is offered above its capacity, by that many frames for each frame."""
    below = knee(2e4)

    def lost(load: float) -> float:
        return max(below(load), load - max(0.0, CAPACITY - cost * max(0.0, load - CAPACITY)))

    return lost


def _logistic(load: float) -> float:
    return 0.02 * load / (1.0 + math.exp(min(700.0, (CAPACITY - load) / 1.2e5))) + sharp(load)


def _steep(load: float) -> float:
    return load * min(1.0, 1e-7 * (load / (0.93 * CAPACITY)) ** 60) + sharp(load)


def _paused(*pauses: Pause | Stalls) -> Family:
    return Family(replace(_BASE, pauses=pauses), False, frozenset({"pauses"}))


def _changed(scale: Scale, lowest: float = 0.0) -> Family:
    return Family(replace(_BASE, scale=scale), False, frozenset({"changes"}), lowest=lowest)


# Table: a kind on a line.
KINDS = {
    "collapse of .5": Family(Device(_collapse(0.5)), True),
    "collapse of 3": Family(Device(_collapse(3.0)), True),
    "logistic": Family(Device(_logistic), True),
    "power of 60": Family(Device(_steep), True),
    "uneven queues": Family(Device(queues([1.0, 0.5, 0.7, 1.4])), True),
    "2 Mfps, target 1e-6": Family(Device(knee(8e3, capacity=2e6)), True, target=1e-6, capacity=2e6),
    "uniform capacity": Family(Device(sharp, drawn=lambda share: 0.99 + 0.01 * share), False, frozenset({"varies"})),
    "batches of 24": Family(Device(knee(3e4), batch=24.0), False, frozenset({"batches"})),
    "batches of 200": Family(Device(knee(2e5, "erf"), batch=200.0), False, frozenset({"batches"})),
    "pause each 12 s": _paused(Pause(12.0, 180e-6, 2048.0)),
    "pause each 7 s, jittered": _paused(Pause(7.0, 400e-6, 4096.0, jitter=0.2)),
    "pause each .4 s": _paused(Pause(0.4, 120e-6, 1024.0)),
    "two pauses": _paused(Pause(9.0, 150e-6, 2048.0), Pause(3.0, 70e-6, 1024.0)),
    "stalls of 40 each 15 s": _paused(Stalls(15.0, 40.0)),
    "stalls of 9 each 10 s": _paused(Stalls(10.0, 9.0)),
    "bit errors, .4 targets": Family(replace(_BASE, errors=0.4e-7)),
    "policer, bucket of 20 ms": Family(Device(sharp, bucket=0.02, exact=True), False, frozenset({"long"})),
    "policer, bucket of 200 ms": Family(Device(sharp, bucket=0.2, exact=True), False, frozenset({"long"})),
    "faster at 25 s": _changed(faster_from(25.0, 0.7)),
    "slower at 150 s": _changed(step(150.0, -0.015)),
    "saw of .4 %": _changed(lambda number, seconds: 1.0 - 0.004 * (seconds / 40.0 % 1.0), 0.996),
    "40 frames once": Family(replace(_BASE, once=lambda traffic, rng: 40.0), False, frozenset({"once"})),
}
"""Kinds that were written after the rules of the search by counts."""
