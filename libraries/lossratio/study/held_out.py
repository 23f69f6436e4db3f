"""SUT families for judging searches: nobody may improve a controller on them.

Other shapes, other parameters and other loads than those of `lossratio.study.families`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lossratio.simulation import (
    BackgroundLoss,
    Buffer,
    CapacityDrift,
    Overload,
    PerformanceSpectrum,
    Policer,
    RareStalls,
    SharpKnee,
    SmoothKnee,
    Sut,
    TwoStates,
)
from lossratio.study.series import Series
from lossratio.study.suts import Draw, Family, log_uniform

MAX_LOADS = (148_809.5, 1_488_095.0, 8_127_438.0, 59_523_810.0)
"""64-byte frames on 100 Mbit/s, 1 and 40 Gbit/s, and 1518-byte frames on 100 Gbit/s, in frames per second."""

MIN_LOAD = 300.0
"""Frames per second."""


def _capacity(draw: Draw, max_load: float) -> float:
    return max_load * log_uniform(draw, 0.01, 0.99)


def _plain_knee(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return SharpKnee(_capacity(draw, max_load), overload)


def _cliff(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return SharpKnee(_capacity(draw, max_load), Overload(dip=draw.uniform(0.2, 0.7)))


def _long_burst(draw: Draw, max_load: float, overload: Overload) -> Sut:
    rate = _capacity(draw, max_load)
    return Policer(rate, rate * log_uniform(draw, 0.02, 0.2))


def _large_buffer(draw: Draw, max_load: float, overload: Overload) -> Sut:
    capacity = _capacity(draw, max_load)
    return Buffer(capacity, capacity * log_uniform(draw, 0.02, 0.2), overload)


def _strong_jitter(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return PerformanceSpectrum(_capacity(draw, max_load), log_uniform(draw, 0.008, 0.025), overload=overload)


def _outliers(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return PerformanceSpectrum(
        _capacity(draw, max_load),
        jitter=log_uniform(draw, 0.0003, 0.002),
        tail_share=draw.uniform(0.01, 0.1),
        tail_size=log_uniform(draw, 0.03, 0.3),
        overload=overload,
    )


def _jitter_and_outliers(draw: Draw, max_load: float, overload: Overload) -> PerformanceSpectrum:
    return PerformanceSpectrum(
        _capacity(draw, max_load),
        jitter=log_uniform(draw, 0.002, 0.01),
        tail_share=draw.uniform(0.1, 0.4),
        tail_size=log_uniform(draw, 0.002, 0.02),
        overload=overload,
    )


def _wide_knee(draw: Draw, max_load: float, overload: Overload) -> Sut:
    mrr = _capacity(draw, max_load)
    return SmoothKnee(mrr, mrr * log_uniform(draw, 0.01, 0.04))


def _narrow_erf_knee(draw: Draw, max_load: float, overload: Overload) -> Sut:
    mrr = _capacity(draw, max_load)
    return SmoothKnee(mrr, mrr * log_uniform(draw, 0.001, 0.01), "erf")


def _noisy_neighbour(draw: Draw, max_load: float, overload: Overload) -> Sut:
    fast = _capacity(draw, max_load)
    slow = fast * (1.0 - log_uniform(draw, 0.01, 0.1))
    return TwoStates(fast, slow, log_uniform(draw, 2.0, 30.0), log_uniform(draw, 0.4, 4.0), overload)


def _energy_modes(draw: Draw, max_load: float, overload: Overload) -> Sut:
    fast = _capacity(draw, max_load)
    slow = fast * (1.0 - log_uniform(draw, 0.005, 0.03))
    return TwoStates(fast, slow, log_uniform(draw, 30.0, 300.0), log_uniform(draw, 30.0, 300.0), overload)


def _random_loss(draw: Draw, max_load: float, overload: Overload) -> Sut:
    capacity = _capacity(draw, max_load)
    return BackgroundLoss(capacity, log_uniform(draw, 0.0001, 0.02) / capacity, overload)


def _jittery_cliff(draw: Draw, max_load: float, overload: Overload) -> Sut:
    cliff = Overload(drop_cost=draw.uniform(0.0, 0.2), dip=draw.uniform(0.1, 0.5))
    return PerformanceSpectrum(_capacity(draw, max_load), log_uniform(draw, 0.001, 0.01), overload=cliff)


def _collapsing_modes(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return _energy_modes(draw, max_load, Overload(drop_cost=draw.uniform(0.4, 0.9), dip=draw.uniform(0.0, 0.1)))


def _queued_stalls(draw: Draw, max_load: float, overload: Overload) -> Sut:
    capacity, stall = _capacity(draw, max_load), log_uniform(draw, 1e-4, 5e-3)
    queue = capacity * stall * draw.uniform(0.0, 2.0)
    return RareStalls(capacity, log_uniform(draw, 50.0, 500.0), stall, queue, overload)


def _lossy_worker(draw: Draw, max_load: float, overload: Overload) -> Sut:
    worker = _jitter_and_outliers(draw, max_load, overload)
    link = BackgroundLoss(worker.capacity * draw.uniform(1.0, 1.1), log_uniform(draw, 0.0002, 0.005) / worker.capacity)
    return Series((link, worker))


def _two_workers(draw: Draw, max_load: float, overload: Overload) -> Sut:
    first = PerformanceSpectrum(_capacity(draw, max_load), log_uniform(draw, 0.001, 0.01), overload=overload)
    second = PerformanceSpectrum(first.capacity * draw.uniform(0.98, 1.02), log_uniform(draw, 0.001, 0.01), 0.1, 0.01)
    return Series((first, second))


def _warming_up(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return CapacityDrift(_capacity(draw, max_load), -log_uniform(draw, 2e-6, 2e-5), overload)


HELD_OUT_FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        name: Family(name, group, make, MAX_LOADS, MIN_LOAD)
        for name, group, make in (
            ("plain knee", "quiet", _plain_knee),
            ("cliff", "quiet", _cliff),
            ("long burst", "quiet", _long_burst),
            ("large buffer", "quiet", _large_buffer),
            ("strong jitter", "jittery", _strong_jitter),
            ("outliers", "jittery", _outliers),
            ("jitter and outliers", "mix", _jitter_and_outliers),
            ("jittery cliff", "jittery", _jittery_cliff),
            ("wide knee", "mix", _wide_knee),
            ("narrow erf knee", "mix", _narrow_erf_knee),
            ("noisy neighbour", "mix", _noisy_neighbour),
            ("energy modes", "mix", _energy_modes),
            ("collapsing modes", "mix", _collapsing_modes),
            ("random loss", "mix", _random_loss),
            ("queued stalls", "mix", _queued_stalls),
            ("lossy worker", "mix", _lossy_worker),
            ("two workers", "mix", _two_workers),
            ("warming up", "mix", _warming_up),
        )
    }
)
"""All held-out families by name."""
