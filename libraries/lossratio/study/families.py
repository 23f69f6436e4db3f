"""The SUT families that searches are compared on while they are developed."""

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

MAX_LOADS = (14_880_952.0, 37_202_381.0)
"""64-byte frames on 10 and 25 Gbit/s, in frames per second."""

MIN_LOAD = 9001.0
"""FD.io CSIT's, in frames per second."""


def _capacity(draw: Draw, max_load: float) -> float:
    return max_load * log_uniform(draw, 0.03, 0.95)


def _sharp_knee(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return SharpKnee(_capacity(draw, max_load), overload)


def _collapse(draw: Draw, max_load: float, overload: Overload) -> Sut:
    collapse = Overload(drop_cost=draw.uniform(0.5, 0.9), dip=draw.uniform(0.05, 0.3))
    return SharpKnee(_capacity(draw, max_load), collapse)


def _policer(draw: Draw, max_load: float, overload: Overload) -> Sut:
    rate = _capacity(draw, max_load)
    return Policer(rate, rate * log_uniform(draw, 1e-4, 0.02))


def _buffer(draw: Draw, max_load: float, overload: Overload) -> Sut:
    capacity = _capacity(draw, max_load)
    return Buffer(capacity, capacity * log_uniform(draw, 1e-4, 0.02), overload)


def _slight_jitter(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return PerformanceSpectrum(_capacity(draw, max_load), log_uniform(draw, 0.0005, 0.003), overload=overload)


def _jitter(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return PerformanceSpectrum(_capacity(draw, max_load), log_uniform(draw, 0.003, 0.01), overload=overload)


def _slow_tail(draw: Draw, max_load: float, overload: Overload) -> PerformanceSpectrum:
    return PerformanceSpectrum(
        _capacity(draw, max_load),
        jitter=log_uniform(draw, 0.001, 0.004),
        tail_share=draw.uniform(0.05, 0.25),
        tail_size=log_uniform(draw, 0.005, 0.05),
        overload=overload,
    )


def _smooth_knee(draw: Draw, max_load: float, overload: Overload) -> Sut:
    mrr = _capacity(draw, max_load)
    return SmoothKnee(mrr, mrr * log_uniform(draw, 0.002, 0.02))


def _smooth_knee_erf(draw: Draw, max_load: float, overload: Overload) -> Sut:
    mrr = _capacity(draw, max_load)
    return SmoothKnee(mrr, mrr * log_uniform(draw, 0.005, 0.03), "erf")


def _fast_flicker(draw: Draw, max_load: float, overload: Overload) -> Sut:
    fast = _capacity(draw, max_load)
    slow = fast * (1.0 - log_uniform(draw, 0.003, 0.03))
    return TwoStates(fast, slow, log_uniform(draw, 0.5, 5.0), log_uniform(draw, 0.1, 1.0), overload)


def _slow_flicker(draw: Draw, max_load: float, overload: Overload) -> Sut:
    fast = _capacity(draw, max_load)
    slow = fast * (1.0 - log_uniform(draw, 0.003, 0.05))
    return TwoStates(fast, slow, log_uniform(draw, 20.0, 100.0), log_uniform(draw, 5.0, 50.0), overload)


def _background_loss(draw: Draw, max_load: float, overload: Overload) -> Sut:
    capacity = _capacity(draw, max_load)
    # So many frames lost per second at the capacity.
    return BackgroundLoss(capacity, log_uniform(draw, 0.0003, 0.015) / capacity, overload)


def _jittery_collapse(draw: Draw, max_load: float, overload: Overload) -> Sut:
    collapse = Overload(drop_cost=draw.uniform(0.3, 0.8), dip=draw.uniform(0.0, 0.2))
    return PerformanceSpectrum(_capacity(draw, max_load), log_uniform(draw, 0.001, 0.005), overload=collapse)


def _collapsing_stalls(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return _stalls(draw, max_load, Overload(drop_cost=draw.uniform(0.3, 0.8), dip=draw.uniform(0.0, 0.2)))


def _stalls(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return RareStalls(
        _capacity(draw, max_load), log_uniform(draw, 60.0, 1000.0), log_uniform(draw, 1e-4, 0.02), overload=overload
    )


def _noisy_worker(draw: Draw, max_load: float, overload: Overload) -> Sut:
    worker = _slow_tail(draw, max_load, overload)
    stalls = RareStalls(worker.capacity * draw.uniform(1.0, 1.05), log_uniform(draw, 60.0, 1000.0), 0.001)
    return Series((worker, stalls))


def _jittery_smooth_knee(draw: Draw, max_load: float, overload: Overload) -> Sut:
    jitter = PerformanceSpectrum(_capacity(draw, max_load), log_uniform(draw, 0.001, 0.005), 0.05, overload=overload)
    mrr = jitter.capacity * draw.uniform(0.98, 1.05)
    return Series((jitter, SmoothKnee(mrr, mrr * log_uniform(draw, 0.001, 0.01))))


def _drift(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return CapacityDrift(_capacity(draw, max_load), draw.choice((-1.0, 1.0)) * log_uniform(draw, 1e-6, 3e-5), overload)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        name: Family(name, group, make, MAX_LOADS, MIN_LOAD)
        for name, group, make in (
            ("sharp knee", "quiet", _sharp_knee),
            ("collapse", "quiet", _collapse),
            ("policer", "quiet", _policer),
            ("buffer", "quiet", _buffer),
            ("slight jitter", "jittery", _slight_jitter),
            ("jitter", "jittery", _jitter),
            ("jittery collapse", "jittery", _jittery_collapse),
            ("slow tail", "mix", _slow_tail),
            ("smooth knee", "mix", _smooth_knee),
            ("smooth knee erf", "mix", _smooth_knee_erf),
            ("fast flicker", "mix", _fast_flicker),
            ("slow flicker", "mix", _slow_flicker),
            ("background loss", "mix", _background_loss),
            ("stalls", "mix", _stalls),
            ("collapsing stalls", "mix", _collapsing_stalls),
            ("noisy worker", "mix", _noisy_worker),
            ("jittery smooth knee", "mix", _jittery_smooth_knee),
            ("drift", "mix", _drift),
        )
    }
)
"""All families by name."""
