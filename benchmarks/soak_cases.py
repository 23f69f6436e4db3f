"""The SUTs that `soak.py` measures, inside and outside of PLRsearch's model family, with their true critical loads."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize, stats
from soak_suts import (
    CAPACITY,
    ByRatio,
    Changing,
    DrawnCapacity,
    SineCapacity,
    SlowerAfterOverload,
    WalkingCapacity,
    WanderingCapacity,
    WithStalls,
)

from lossratio.simulation import PerformanceSpectrum, RareStalls, SmoothKnee, Sut

MIN_LOAD, MAX_LOAD = 1e4, 30e6
TARGET = 1e-7
DRIFT_TIME = 1800.0
"""Seconds in which a SUT that drifts changes by its `change`; the critical load is that at the beginning."""


@dataclass(frozen=True)
class Case:
    """A SUT and the right answers about it."""

    sut: Sut
    """The SUT."""
    critical_load: float | None
    """Its true critical load in frames per second; None if there is none to be found."""
    loss_ratio: Callable[[float], float]
    """The mean loss ratio at a load in frames per second."""


def _of_knee(sut: SmoothKnee, stalls: float = 0.0, interval: float = 60.0) -> Case:
    """The knee's case, with stalls that lose a share of the target; from a share of 1 on, there is no true load."""
    stalling = WithStalls(sut, stalls * TARGET, interval)

    def loss_ratio(load: float) -> float:
        return sut.loss_rate(load) / load + stalls * TARGET

    if stalls >= 1.0:
        return Case(stalling, MIN_LOAD, loss_ratio)

    def excess(load: float) -> float:
        return math.log(max(sut.loss_rate(load), 1e-300) / load / TARGET / (1.0 - stalls))

    load = optimize.brentq(excess, 0.1 * CAPACITY, 1.1 * CAPACITY, xtol=1e-3)
    if stalls:
        return Case(stalling, load, loss_ratio)
    return Case(sut, load, loss_ratio)


def _of_capacities(sut: Sut, quantile: Callable[[np.ndarray], np.ndarray]) -> Case:
    """The load at which the mean of what sharp knees lose is the target; by a sum over their quantiles."""
    edges = np.concatenate([np.geomspace(1e-14, 1e-3, 4001), np.linspace(1e-3, 1.0, 4001)[1:]])
    capacities, shares = CAPACITY * np.maximum(quantile(0.5 * (edges[1:] + edges[:-1])), 0.0), np.diff(edges)

    def loss_ratio(load: float) -> float:
        return float(np.sum(shares * np.maximum(0.0, 1.0 - capacities / load)))

    critical_load = optimize.brentq(lambda load: loss_ratio(load) - TARGET, 0.01 * CAPACITY, 1.2 * CAPACITY, xtol=1e-3)
    return Case(sut, critical_load, loss_ratio)


def _drawn(distribution: Any) -> Case:
    """A sharp knee whose place, as a share, has one of scipy's distributions."""
    return _of_capacities(DrawnCapacity(lambda rng: float(distribution.rvs(random_state=rng))), distribution.ppf)


def _drifting(case: Case, change: float) -> Case:
    """The same SUT with a drift."""
    sut = Changing(case.sut, lambda rng: lambda seconds: 1.0 + change * seconds / DRIFT_TIME)
    return replace(case, sut=sut)


def _waving(case: Case, swing: float, period: float) -> Case:
    """The same SUT, following a sine of so many seconds that begins anywhere in its period."""
    scales = 1.0 + swing * np.sin(np.pi * (np.arange(2000) + 0.5) / 2000 - 0.5 * np.pi)

    def drawn(rng: np.random.Generator) -> Callable[[float], float]:
        phase = rng.uniform(0.0, 2.0 * math.pi)
        return lambda seconds: 1.0 + swing * math.sin(phase + 2.0 * math.pi * seconds / period)

    def loss_ratio(load: float) -> float:
        return float(np.mean([case.loss_ratio(load / scale) for scale in scales]))

    load = optimize.brentq(
        lambda load: math.log(max(loss_ratio(load), 1e-300) / TARGET), 0.3 * CAPACITY, 1.1 * CAPACITY
    )
    return replace(case, sut=Changing(case.sut, drawn), critical_load=load, loss_ratio=loss_ratio)


def _normal(deviation: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda share: 1.0 + deviation * stats.norm.ppf(share)


def _slow_trials(jitter: float, share: float, size: float) -> Case:
    """Some trials are slower, by an exponentially distributed share of the capacity."""
    below = np.linspace(-0.999, 0.05, 200001)
    cumulative = (1.0 - share) * stats.norm.cdf(below, scale=jitter)
    cumulative += share * stats.exponnorm.sf(-below, size / jitter, scale=jitter)
    sut = PerformanceSpectrum(CAPACITY, jitter, tail_share=share, tail_size=size)
    return _of_capacities(sut, lambda asked: 1.0 + np.interp(asked, cumulative, below))


def _slow_level(jitter: float, share: float, size: float) -> Case:
    """Some trials are slower, all by the same share of the capacity."""
    below = np.linspace(-2.0 * size, 0.05, 200001)
    cumulative = (1.0 - share) * stats.norm.cdf(below, scale=jitter) + share * stats.norm.cdf(
        below + size, scale=jitter
    )

    def draw(rng: np.random.Generator) -> float:
        return float(1.0 + jitter * rng.standard_normal() - size * (rng.random() < share))

    return _of_capacities(DrawnCapacity(draw), lambda asked: 1.0 + np.interp(asked, cumulative, below))


def _red(load: float) -> float:
    """The loss ratio of random early detection: it begins 1 % below the capacity, and grows with the square."""
    early = max(0.0, load / CAPACITY - 0.99) ** 2
    return min(1.0, early + max(0.0, 1.0 - CAPACITY / load))


def _of_ratio(ratio: Callable[[float], float]) -> Case:
    """A SUT whose capacity is constant, by its mean loss ratio: frames are lost one by one."""
    load = optimize.brentq(lambda load: math.log(max(ratio(load), 1e-300) / TARGET), 0.3 * CAPACITY, 1.1 * CAPACITY)
    return Case(ByRatio(ratio), load, ratio)


def _of_queues(number: int, apart: float) -> Case:
    """Queues with a knee each, whose shares of the frames differ, from the fullest to the emptiest, by `apart`."""
    shares = np.linspace(1.0 + apart, 1.0, number)
    shares, knee = shares / shares.sum(), SmoothKnee(CAPACITY / number, 1e3)
    return _of_ratio(lambda load: sum(knee.loss_rate(share * load) for share in shares) / load)


def _m_m_1(places: int) -> Callable[[float], float]:
    """The loss ratio of one server with exponential times and so many places (M/M/1/K)."""

    def ratio(load: float) -> float:
        use = load / CAPACITY * (1.0 + 1e-12)
        if use < 1.0:
            return (1.0 - use) * use**places / (1.0 - use ** (places + 1))
        return (1.0 - 1.0 / use) / (1.0 - use ** -(places + 1))

    return ratio


def _rare_stalls(interval: float, stall: float) -> Case:
    """A sharp knee whose stalls lose far more than the target: the critical load is not asked for."""

    def loss_ratio(load: float) -> float:
        return stall / interval + max(0.0, 1.0 - CAPACITY / load)

    return Case(RareStalls(CAPACITY, interval=interval, stall=stall), None, loss_ratio)


CASES = {
    "stretch": _of_knee(SmoothKnee(CAPACITY, 5e4)),
    "erf": _of_knee(SmoothKnee(CAPACITY, 2e5, "erf")),
    "sharp": _of_knee(SmoothKnee(CAPACITY, 500.0)),
    "stalls, half target": _of_knee(SmoothKnee(CAPACITY, 2e4), 0.5),
    "stalls, the target": _of_knee(SmoothKnee(CAPACITY, 2e4), 1.0),
    "stalls, twice target": _of_knee(SmoothKnee(CAPACITY, 2e4), 2.0),
    **{
        f"stalls every {interval} s, {words}": _of_knee(SmoothKnee(CAPACITY, 2e4), share, interval)
        for interval in (20, 300)
        for words, share in (("half target", 0.5), ("the target", 1.0), ("twice target", 2.0))
    },
    "normal 0.4 %": _of_capacities(PerformanceSpectrum(CAPACITY, 0.004), _normal(0.004)),
    "lognormal 0.8 %": _drawn(stats.lognorm(0.008)),
    "rare slow trials": _slow_trials(0.002, 0.02, 0.05),
    "rare slow level": _slow_level(0.002, 0.02, 0.05),
    "heavy tails": _drawn(stats.t(3, 1.0, 0.003)),
    "Student, 3 degrees of freedom, 0.1 %": _drawn(stats.t(3, 1.0, 0.001)),
    "Student, 5 degrees of freedom, 0.3 %": _drawn(stats.t(5, 1.0, 0.003)),
    "Student, 8 degrees of freedom, 0.3 %": _drawn(stats.t(8, 1.0, 0.003)),
    "Laplace 0.3 %": _drawn(stats.laplace(1.0, 0.003)),
    **{
        f"{number} queues, {apart} % apart": _of_queues(number, 0.01 * apart)
        for number in (2, 4, 8, 16)
        for apart in (1, 3)
    },
    "M/M/1/256": _of_ratio(_m_m_1(256)),
    "RED": _of_ratio(_red),
    **{
        name: replace(_of_knee(SmoothKnee(CAPACITY, 5e4)), sut=SlowerAfterOverload(share, seconds))
        for name, share, seconds in (
            ("slower after overload", 0.005, 1.0),
            ("slower for 8 s after overload", 0.005, 8.0),
            ("faster after overload", -0.005, 1.0),
        )
    },
    "background, half target": _of_ratio(lambda load: SmoothKnee(CAPACITY, 2e4).loss_rate(load) / load + 0.5 * TARGET),
    "sine 0.5 %": _of_capacities(SineCapacity(0.005, 300.0), lambda share: 1.0 + 0.005 * np.sin(np.pi * (share - 0.5))),
    "sine 0.5 % of 35 s": _of_capacities(
        SineCapacity(0.005, 35.0), lambda share: 1.0 + 0.005 * np.sin(np.pi * (share - 0.5))
    ),
    "sine 0.5 % of 90 s, smooth knee": _waving(_of_knee(SmoothKnee(CAPACITY, 5e4)), 0.005, 90.0),
    "sine 0.5 % of 30 s, normal 0.2 %": _waving(
        _of_capacities(PerformanceSpectrum(CAPACITY, 0.002), _normal(0.002)), 0.005, 30.0
    ),
    "two modes": _of_capacities(
        DrawnCapacity(lambda rng: 1.0 + 0.0005 * rng.standard_normal() - 0.01 * (rng.random() < 0.3)),
        lambda share: (
            1.0
            + np.where(share < 0.3, -0.01 + 0.0005 * stats.norm.ppf(share / 0.3), 0.0)
            + np.where(share < 0.3, 0.0, 0.0005 * stats.norm.ppf(np.maximum(share - 0.3, 1e-12) / 0.7))
        ),
    ),
    "wandering": _of_capacities(WanderingCapacity(0.004, 0.9), _normal(0.004)),
    "walk of 60 s": _of_capacities(WalkingCapacity(0.004, 60.0), _normal(0.004)),
    "drift, smooth knee": _drifting(_of_knee(SmoothKnee(CAPACITY, 5e4)), -0.01),
    "drift, normal 0.2 %": _drifting(_of_capacities(PerformanceSpectrum(CAPACITY, 0.002), _normal(0.002)), -0.01),
    "rare stalls": _rare_stalls(60.0, 0.01),
}
"""What is measured, by name."""
