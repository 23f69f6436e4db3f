"""SUT families for judging searches: nobody may improve a controller on them.

Other parameters, other combinations and other loads than those of `lossratio.arena.families`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lossratio.arena.series import Series
from lossratio.arena.shapes import (
    background_loss,
    buffer,
    drift,
    overloaded,
    policer,
    sharp_knee,
    smooth_knee,
    spectrum,
    stalls,
    two_states,
)
from lossratio.arena.suts import Draw, Family, log_uniform
from lossratio.simulation import BackgroundLoss, Overload, PerformanceSpectrum, Sut

MAX_LOADS = (148_809.5, 1_488_095.0, 8_127_438.0, 59_523_810.0)
"""64-byte frames on 100 Mbit/s, 1 and 40 Gbit/s, and 1518-byte frames on 100 Gbit/s, in frames per second."""

MIN_LOAD = 300.0
"""Frames per second."""

CAPACITY = (0.01, 0.99)
"""Shares of the largest load."""

_jitter_and_outliers = spectrum(CAPACITY, (0.002, 0.01), tail_share=(0.1, 0.4), tail_size=(0.002, 0.02))
_energy_modes = two_states(CAPACITY, (0.005, 0.03), (30.0, 300.0), (30.0, 300.0))


def _lossy_worker(draw: Draw, max_load: float, overload: Overload) -> Sut:
    worker = _jitter_and_outliers(draw, max_load, overload)
    link = BackgroundLoss(worker.capacity * draw.uniform(1.0, 1.1), log_uniform(draw, 0.0002, 0.005) / worker.capacity)
    return Series((link, worker))


def _two_workers(draw: Draw, max_load: float, overload: Overload) -> Sut:
    first = spectrum(CAPACITY, (0.001, 0.01))(draw, max_load, overload)
    second = PerformanceSpectrum(first.capacity * draw.uniform(0.98, 1.02), log_uniform(draw, 0.001, 0.01), 0.1, 0.01)
    return Series((first, second))


HELD_OUT_FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        name: Family(name, group, make, MAX_LOADS, MIN_LOAD)
        for name, group, make in (
            ("plain knee", "quiet", sharp_knee(CAPACITY)),
            ("cliff", "quiet", overloaded(sharp_knee(CAPACITY), dip=(0.2, 0.7))),
            ("long burst", "quiet", policer(CAPACITY, (0.02, 0.2))),
            ("large buffer", "quiet", buffer(CAPACITY, (0.02, 0.2))),
            ("strong jitter", "jittery", spectrum(CAPACITY, (0.008, 0.025))),
            ("outliers", "jittery", spectrum(CAPACITY, (0.0003, 0.002), (0.01, 0.1), (0.03, 0.3))),
            ("jitter and outliers", "mix", _jitter_and_outliers),
            ("jittery cliff", "jittery", overloaded(spectrum(CAPACITY, (0.001, 0.01)), (0.0, 0.2), (0.1, 0.5))),
            ("wide knee", "mix", smooth_knee(CAPACITY, (0.01, 0.04))),
            ("narrow erf knee", "mix", smooth_knee(CAPACITY, (0.001, 0.01), "erf")),
            ("noisy neighbour", "mix", two_states(CAPACITY, (0.01, 0.1), (2.0, 30.0), (0.4, 4.0))),
            ("energy modes", "mix", _energy_modes),
            ("collapsing modes", "mix", overloaded(_energy_modes, (0.4, 0.9), (0.0, 0.1))),
            ("random loss", "mix", background_loss(CAPACITY, (0.0001, 0.02))),
            ("queued stalls", "mix", stalls(CAPACITY, (50.0, 500.0), (1e-4, 5e-3), queued_share=(0.0, 2.0))),
            ("lossy worker", "mix", _lossy_worker),
            ("two workers", "mix", _two_workers),
            ("warming up", "mix", drift(CAPACITY, (2e-6, 2e-5), (-1.0,))),
        )
    }
)
"""All held-out families by name."""
