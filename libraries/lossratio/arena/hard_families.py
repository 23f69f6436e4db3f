"""Families of SUTs that break the suppositions of a search: that a SUT forwards something, and does not change.

They are for robustness: a search must end soon, with a result that its trials bear out. Few of them have a truth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossratio.arena.families import MAX_LOADS, MIN_LOAD, Make, sharp_knee, two_states
from lossratio.arena.suts import Draw, Family, log_uniform, named
from lossratio.simulation import Overload, RunningSut, Sut, Traffic, WithoutTruth

CAPACITY = (0.03, 0.9)
"""Shares of the largest load."""


@dataclass(frozen=True)
class Inconstant(WithoutTruth):
    """A SUT whose capacity depends on time and on the trials before, and that loses frames below it, too."""

    capacity: float
    """Frames per second, of a SUT that is warm, rested and new."""
    less: float = 0.0
    """The share of the capacity that is missing while the SUT is cold, or remembers a loss."""
    warm_up: float = 0.0
    """Seconds in which a cold SUT becomes warm, steadily; 0: it is warm at once."""
    memory: float = 0.0
    """Seconds for which the SUT remembers a trial with loss."""
    per_trial: float = 0.0
    """Growth of the capacity with each trial, as a share; below 0: it shrinks."""
    every: float = 0.0
    """Seconds from one stall to the next; 0: there are no stalls."""
    stall: float = 0.0
    """Seconds of a stall, in which each frame is lost."""
    share: float = 0.0
    """The share of frames that is lost above the load `plateau`."""
    plateau: float = 0.0
    """Frames per second."""
    frames: int = 0
    """Frames that each trial loses at least."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT that is cold, rested and new."""
        return _Inconstant(self)


class _Inconstant:
    def __init__(self, model: Inconstant) -> None:
        self._model = model
        self._trials = 0
        self._remembers_until = 0.0
        self._remembers = False
        self._excess = 0.0
        self._lost = 0

    def __call__(self, traffic: Traffic) -> int:
        model, end = self._model, traffic.start + traffic.duration
        if not traffic.continues:
            self._trials += 1
            self._remembers = traffic.start < self._remembers_until
            self._excess, self._lost = float(model.frames), 0
        missing = model.less if self._remembers else 0.0
        if traffic.start < model.warm_up:
            missing = model.less * (1.0 - traffic.start / model.warm_up)
        capacity = model.capacity * (1.0 - missing) * (1.0 + model.per_trial) ** (self._trials - 1)
        excess = max(traffic.frames - capacity * traffic.duration, 0.0)
        if traffic.load > model.plateau:
            excess = max(excess, model.share * traffic.frames)
        if model.every:
            excess += traffic.load * (self._stalled(end) - self._stalled(traffic.start))
        self._excess += excess
        lost = min(traffic.frames, int(self._excess) - self._lost)
        self._lost += lost
        if lost:
            self._remembers_until = end + model.memory
        return lost

    def _stalled(self, time: float) -> float:
        """Seconds of stalls before a time; each is at the end of its period."""
        whole, rest = divmod(time, self._model.every)
        return float(whole * self._model.stall + max(0.0, rest - (self._model.every - self._model.stall)))


def _inconstant(frames: int = 0, **ranges: tuple[float, float]) -> Make:
    """A SUT whose parameters are drawn from ranges; a parameter that may be negative has any sign."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        drawn: dict[str, Any] = {name: log_uniform(draw, *limits) for name, limits in ranges.items()}
        if "per_trial" in drawn:
            drawn["per_trial"] *= float(draw.choice((-1.0, 1.0)))
        most = max_load * log_uniform(draw, *CAPACITY)
        if "plateau" in drawn:
            drawn["plateau"] *= most
        return Inconstant(most, frames=frames, **drawn)

    return made


def _dead(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return Inconstant(max_load * draw.uniform(0.5, 1.0), share=1.0)


HARD_FAMILIES: Mapping[str, Family] = named(
    Family("dead", "quiet", _dead, MAX_LOADS, MIN_LOAD),
    Family("always lossy", "quiet", _inconstant(share=(0.001, 0.5)), MAX_LOADS, MIN_LOAD),
    Family("one frame per trial", "quiet", _inconstant(frames=1), MAX_LOADS, MIN_LOAD),
    Family("plateau", "quiet", _inconstant(share=(1e-4, 0.02), plateau=(0.1, 0.9)), MAX_LOADS, MIN_LOAD),
    Family("cold start", "mix", _inconstant(less=(0.02, 0.3), warm_up=(10.0, 60.0)), MAX_LOADS, MIN_LOAD),
    Family("overload memory", "mix", _inconstant(less=(0.02, 0.3), memory=(5.0, 60.0)), MAX_LOADS, MIN_LOAD),
    Family("trial drift", "mix", _inconstant(per_trial=(3e-4, 5e-3)), MAX_LOADS, MIN_LOAD),
    Family("period", "mix", _inconstant(every=(5.0, 20.0), stall=(0.02, 0.1)), MAX_LOADS, MIN_LOAD),
    Family("flapping", "mix", two_states(CAPACITY, (0.1, 0.5), (5.0, 40.0), (5.0, 40.0)), MAX_LOADS, MIN_LOAD),
    Family("quantised", "quiet", sharp_knee((0.1, 0.9)), (200.0,), 2.0),
    Family("generator-limited", "quiet", sharp_knee((0.7, 1.5)), MAX_LOADS, MIN_LOAD, generator=0.8),
)
"""All hard families by name."""
