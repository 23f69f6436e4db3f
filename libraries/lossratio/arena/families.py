"""The SUT families that searches are compared on while they are developed."""

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
from lossratio.simulation import Overload, RareStalls, SmoothKnee, Sut

MAX_LOADS = (14_880_952.0, 37_202_381.0)
"""64-byte frames on 10 and 25 Gbit/s, in frames per second."""

MIN_LOAD = 9001.0
"""FD.io CSIT's, in frames per second."""

CAPACITY = (0.03, 0.95)
"""Shares of the largest load."""

_slow_tail = spectrum(CAPACITY, (0.001, 0.004), tail_share=(0.05, 0.25), tail_size=(0.005, 0.05))
_stalls = stalls(CAPACITY, (60.0, 1000.0), (1e-4, 0.02))


def _noisy_worker(draw: Draw, max_load: float, overload: Overload) -> Sut:
    worker = _slow_tail(draw, max_load, overload)
    return Series((worker, RareStalls(worker.capacity * draw.uniform(1.0, 1.05), log_uniform(draw, 60.0, 1e3), 0.001)))


def _jittery_smooth_knee(draw: Draw, max_load: float, overload: Overload) -> Sut:
    jitter = spectrum(CAPACITY, (0.001, 0.005), (0.05, 0.05), (0.05, 0.05))(draw, max_load, overload)
    mrr = jitter.capacity * draw.uniform(0.98, 1.05)
    return Series((jitter, SmoothKnee(mrr, mrr * log_uniform(draw, 0.001, 0.01))))


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        name: Family(name, group, make, MAX_LOADS, MIN_LOAD)
        for name, group, make in (
            ("sharp knee", "quiet", sharp_knee(CAPACITY)),
            ("collapse", "quiet", overloaded(sharp_knee(CAPACITY), drop_cost=(0.5, 0.9), dip=(0.05, 0.3))),
            ("policer", "quiet", policer(CAPACITY, (1e-4, 0.02))),
            ("buffer", "quiet", buffer(CAPACITY, (1e-4, 0.02))),
            ("slight jitter", "jittery", spectrum(CAPACITY, (0.0005, 0.003))),
            ("jitter", "jittery", spectrum(CAPACITY, (0.003, 0.01))),
            ("jittery collapse", "jittery", overloaded(spectrum(CAPACITY, (0.001, 0.005)), (0.3, 0.8), (0.0, 0.2))),
            ("slow tail", "mix", _slow_tail),
            ("smooth knee", "mix", smooth_knee(CAPACITY, (0.002, 0.02))),
            ("smooth knee erf", "mix", smooth_knee(CAPACITY, (0.005, 0.03), "erf")),
            ("fast flicker", "mix", two_states(CAPACITY, (0.003, 0.03), (0.5, 5.0), (0.1, 1.0))),
            ("slow flicker", "mix", two_states(CAPACITY, (0.003, 0.05), (20.0, 100.0), (5.0, 50.0))),
            ("background loss", "mix", background_loss(CAPACITY, (0.0003, 0.015))),
            ("stalls", "mix", _stalls),
            ("collapsing stalls", "mix", overloaded(_stalls, (0.3, 0.8), (0.0, 0.2))),
            ("noisy worker", "mix", _noisy_worker),
            ("jittery smooth knee", "mix", _jittery_smooth_knee),
            ("drift", "mix", drift(CAPACITY, (1e-6, 3e-5), (-1.0, 1.0))),
        )
    }
)
"""All families by name."""
