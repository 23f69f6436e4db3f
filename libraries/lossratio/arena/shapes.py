"""Shapes of SUTs, from which families are made: each draws the parameters of a model from ranges.

Where a parameter may differ by orders of magnitude, its logarithm is drawn evenly. Capacities are shares of the largest
load, sizes and bursts are seconds of traffic at the capacity, and gaps, jitters and spreads are shares of the capacity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from lossratio.arena.suts import Draw, log_uniform
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

Range = tuple[float, float]
Make = Callable[[Draw, float, Overload], Sut]
"""Draws a SUT for a largest load in frames per second, with the given behaviour in overload."""


def sharp_knee(capacity: Range) -> Make:
    """Forwards all up to its capacity."""
    return lambda draw, max_load, overload: SharpKnee(max_load * log_uniform(draw, *capacity), overload)


def overloaded(make: Make, drop_cost: Range = (0.0, 0.0), dip: Range = (0.0, 0.0)) -> Make:
    """Another shape with an overload behaviour of its own."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        return make(draw, max_load, Overload(drop_cost=draw.uniform(*drop_cost), dip=draw.uniform(*dip)))

    return made


def policer(rate: Range, burst: Range) -> Make:
    """Passes a rate and a burst."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        drawn = max_load * log_uniform(draw, *rate)
        return Policer(drawn, drawn * log_uniform(draw, *burst))

    return made


def buffer(capacity: Range, size: Range) -> Make:
    """Keeps a burst for later."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        drawn = max_load * log_uniform(draw, *capacity)
        return Buffer(drawn, drawn * log_uniform(draw, *size), overload)

    return made


def spectrum(
    capacity: Range, jitter: Range, tail_share: Range | None = None, tail_size: Range = (1.0, 1.0)
) -> Callable[[Draw, float, Overload], PerformanceSpectrum]:
    """Has another capacity in each trial; in a share of them a much smaller one."""

    def made(draw: Draw, max_load: float, overload: Overload) -> PerformanceSpectrum:
        drawn, spread = max_load * log_uniform(draw, *capacity), log_uniform(draw, *jitter)
        if tail_share is None:
            return PerformanceSpectrum(drawn, spread, overload=overload)
        share, size = draw.uniform(*tail_share), log_uniform(draw, *tail_size)
        return PerformanceSpectrum(drawn, jitter=spread, tail_share=share, tail_size=size, overload=overload)

    return made


def smooth_knee(mrr: Range, spread: Range, function: Literal["stretch", "erf"] = "stretch") -> Make:
    """Loses some frames long before its limit."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        drawn = max_load * log_uniform(draw, *mrr)
        return SmoothKnee(drawn, drawn * log_uniform(draw, *spread), function)

    return made


def two_states(capacity: Range, gap: Range, fast_spell: Range, slow_spell: Range) -> Make:
    """Is slower for a while, again and again; spells in seconds."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        fast = max_load * log_uniform(draw, *capacity)
        slow = fast * (1.0 - log_uniform(draw, *gap))
        return TwoStates(fast, slow, log_uniform(draw, *fast_spell), log_uniform(draw, *slow_spell), overload)

    return made


def background_loss(capacity: Range, lost_per_second: Range) -> Make:
    """Loses so many frames per second at its capacity, and as large a share of them at any load."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        drawn = max_load * log_uniform(draw, *capacity)
        return BackgroundLoss(drawn, log_uniform(draw, *lost_per_second) / drawn, overload)

    return made


def stalls(capacity: Range, interval: Range, stall: Range, queued_share: Range = (0.0, 0.0)) -> Make:
    """Stops for a moment now and then; a queue takes the traffic of a share of that moment. Times in seconds."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        drawn, every = max_load * log_uniform(draw, *capacity), log_uniform(draw, *interval)
        length = log_uniform(draw, *stall)
        return RareStalls(drawn, every, length, drawn * length * draw.uniform(*queued_share), overload)

    return made


def drift(capacity: Range, rate: Range, signs: tuple[float, ...]) -> Make:
    """Becomes faster or slower all the time, by a share of its capacity per second."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        drawn = max_load * log_uniform(draw, *capacity)
        return CapacityDrift(drawn, float(draw.choice(signs)) * log_uniform(draw, *rate), overload)

    return made
