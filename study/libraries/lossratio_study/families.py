"""The families of SUTs on which searches are compared, and the shapes of which families are made.

`FAMILIES` are for the development of controllers. `HELD_OUT_FAMILIES` are for judging controllers, and must not be used
to improve them: they have other parameters, other combinations and other loads. `HARD_FAMILIES` break the assumptions
of a search: that a SUT forwards something, and does not change. On these SUTs, a search must end soon, with a result
that its trials bear out. Few of them have a truth.

A shape draws the parameters of a model from ranges. A parameter whose range covers orders of magnitude is drawn with a
uniform logarithm. Capacities are shares of the largest load. Sizes and bursts are seconds of traffic at the capacity.
Gaps, jitters and spreads are shares of the capacity.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from lossratio import simulation
from lossratio.simulation import Overload, PerformanceSpectrum, RareStalls, RunningSut, Sut, Traffic, WithoutTruth
from lossratio_study.suts import Draw, Family, Series, log_uniform, named

Range = tuple[float, float]
SutT = TypeVar("SutT", bound=Sut)
Make = Callable[[Draw, float, Overload], Sut]
"""Draws a SUT for a largest load in frames per second, with the given behaviour in overload."""


def _at(capacity: Range, make: Callable[[Draw, float, Overload], SutT]) -> Callable[[Draw, float, Overload], SutT]:
    """A shape that is made for a drawn capacity, in frames per second, in place of a largest load."""

    def made(draw: Draw, max_load: float, overload: Overload) -> SutT:
        return make(draw, max_load * log_uniform(draw, *capacity), overload)

    return made


def sharp_knee(capacity: Range) -> Make:
    """Forwards all frames up to its capacity."""

    def made(draw: Draw, drawn: float, overload: Overload) -> Sut:
        return simulation.SharpKnee(drawn, overload)

    return _at(capacity, made)


def overloaded(make: Make, drop_cost: Range = (0.0, 0.0), dip: Range = (0.0, 0.0)) -> Make:
    """Another shape with its own behaviour in overload."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        own = Overload(drop_cost=draw.uniform(*drop_cost), dip=draw.uniform(*dip))
        return make(draw, max_load, own)

    return made


def policer(rate: Range, burst: Range) -> Make:
    """A token bucket: passes a rate and a burst."""

    def made(draw: Draw, drawn: float, overload: Overload) -> Sut:
        return simulation.Policer(drawn, drawn * log_uniform(draw, *burst))

    return _at(rate, made)


def buffer(capacity: Range, size: Range) -> Make:
    """A queue: delays a burst."""

    def made(draw: Draw, drawn: float, overload: Overload) -> Sut:
        return simulation.Buffer(drawn, drawn * log_uniform(draw, *size), overload)

    return _at(capacity, made)


def spectrum(
    capacity: Range, jitter: Range, tail_share: Range | None = None, tail_size: Range = (1.0, 1.0)
) -> Callable[[Draw, float, Overload], PerformanceSpectrum]:
    """Has another capacity in each trial, and a much smaller capacity in a share of the trials."""

    def made(draw: Draw, drawn: float, overload: Overload) -> PerformanceSpectrum:
        spread = log_uniform(draw, *jitter)
        if tail_share is None:
            return PerformanceSpectrum(drawn, spread, overload=overload)
        share = draw.uniform(*tail_share)
        size = log_uniform(draw, *tail_size)
        return PerformanceSpectrum(drawn, jitter=spread, tail_share=share, tail_size=size, overload=overload)

    return _at(capacity, made)


def smooth_knee(mrr: Range, spread: Range, function: Literal["stretch", "erf"] = "stretch") -> Make:
    """Loses some frames far below its largest forwarding rate."""

    def made(draw: Draw, drawn: float, overload: Overload) -> Sut:
        return simulation.SmoothKnee(drawn, drawn * log_uniform(draw, *spread), function)

    return _at(mrr, made)


def two_states(capacity: Range, gap: Range, fast_spell: Range, slow_spell: Range) -> Make:
    """Has slow spells; their lengths are in seconds."""

    def made(draw: Draw, fast: float, overload: Overload) -> Sut:
        slow = fast * (1.0 - log_uniform(draw, *gap))
        return simulation.TwoStates(
            fast, slow, log_uniform(draw, *fast_spell), log_uniform(draw, *slow_spell), overload
        )

    return _at(capacity, made)


def background_loss(capacity: Range, lost_per_second: Range) -> Make:
    """Loses this number of frames per second at its capacity, and the same share of frames at any load."""

    def made(draw: Draw, drawn: float, overload: Overload) -> Sut:
        return simulation.BackgroundLoss(drawn, log_uniform(draw, *lost_per_second) / drawn, overload)

    return _at(capacity, made)


def stalls(capacity: Range, interval: Range, stall: Range, queued_share: Range = (0.0, 0.0)) -> Make:
    """Stalls at times; a queue holds the traffic of a share of the stall. Times are in seconds."""

    def made(draw: Draw, drawn: float, overload: Overload) -> Sut:
        every = log_uniform(draw, *interval)
        length = log_uniform(draw, *stall)
        return RareStalls(drawn, every, length, drawn * length * draw.uniform(*queued_share), overload)

    return _at(capacity, made)


def drift(capacity: Range, rate: Range, signs: tuple[float, ...]) -> Make:
    """Becomes steadily faster or slower, by a share of its capacity per second."""

    def made(draw: Draw, drawn: float, overload: Overload) -> Sut:
        sign = float(draw.choice(signs))
        return simulation.CapacityDrift(drawn, sign * log_uniform(draw, *rate), overload)

    return _at(capacity, made)


MAX_LOADS = (14_880_952.0, 37_202_381.0)
"""64-byte frames on 10 and 25 Gbit/s, in frames per second."""
MIN_LOAD = 9001.0
"""The minimum load of FD.io CSIT, in frames per second."""
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
    return Series((jitter, simulation.SmoothKnee(mrr, mrr * log_uniform(draw, 0.001, 0.01))))


# Table: name, group and shape of each family.
_FAMILIES: tuple[tuple[str, str, Make], ...] = (
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

FAMILIES: Mapping[str, Family] = named(
    *(Family(name, group, make, MAX_LOADS, MIN_LOAD) for name, group, make in _FAMILIES)
)
"""All families by name."""

HELD_OUT_CAPACITY = (0.01, 0.99)
"""Shares of the largest load."""
_jitter_and_outliers = spectrum(HELD_OUT_CAPACITY, (0.002, 0.01), tail_share=(0.1, 0.4), tail_size=(0.002, 0.02))
_energy_modes = two_states(HELD_OUT_CAPACITY, (0.005, 0.03), (30.0, 300.0), (30.0, 300.0))


def _lossy_worker(draw: Draw, max_load: float, overload: Overload) -> Sut:
    worker = _jitter_and_outliers(draw, max_load, overload)
    link = simulation.BackgroundLoss(
        worker.capacity * draw.uniform(1.0, 1.1), log_uniform(draw, 0.0002, 0.005) / worker.capacity
    )
    return Series((link, worker))


def _two_workers(draw: Draw, max_load: float, overload: Overload) -> Sut:
    first = spectrum(HELD_OUT_CAPACITY, (0.001, 0.01))(draw, max_load, overload)
    second = PerformanceSpectrum(first.capacity * draw.uniform(0.98, 1.02), log_uniform(draw, 0.001, 0.01), 0.1, 0.01)
    return Series((first, second))


_HELD_OUT_LOADS = (148_809.5, 1_488_095.0, 8_127_438.0, 59_523_810.0)
"""64-byte frames on 100 Mbit/s, 1 and 40 Gbit/s, and 1518-byte frames on 100 Gbit/s."""

# Table: as above.
_HELD_OUT_FAMILIES: tuple[tuple[str, str, Make], ...] = (
    ("plain knee", "quiet", sharp_knee(HELD_OUT_CAPACITY)),
    ("cliff", "quiet", overloaded(sharp_knee(HELD_OUT_CAPACITY), dip=(0.2, 0.7))),
    ("long burst", "quiet", policer(HELD_OUT_CAPACITY, (0.02, 0.2))),
    ("large buffer", "quiet", buffer(HELD_OUT_CAPACITY, (0.02, 0.2))),
    ("strong jitter", "jittery", spectrum(HELD_OUT_CAPACITY, (0.008, 0.025))),
    ("outliers", "jittery", spectrum(HELD_OUT_CAPACITY, (0.0003, 0.002), (0.01, 0.1), (0.03, 0.3))),
    ("jitter and outliers", "mix", _jitter_and_outliers),
    ("jittery cliff", "jittery", overloaded(spectrum(HELD_OUT_CAPACITY, (0.001, 0.01)), (0.0, 0.2), (0.1, 0.5))),
    ("wide knee", "mix", smooth_knee(HELD_OUT_CAPACITY, (0.01, 0.04))),
    ("narrow erf knee", "mix", smooth_knee(HELD_OUT_CAPACITY, (0.001, 0.01), "erf")),
    ("noisy neighbour", "mix", two_states(HELD_OUT_CAPACITY, (0.01, 0.1), (2.0, 30.0), (0.4, 4.0))),
    ("energy modes", "mix", _energy_modes),
    ("collapsing modes", "mix", overloaded(_energy_modes, (0.4, 0.9), (0.0, 0.1))),
    ("random loss", "mix", background_loss(HELD_OUT_CAPACITY, (0.0001, 0.02))),
    ("queued stalls", "mix", stalls(HELD_OUT_CAPACITY, (50.0, 500.0), (1e-4, 5e-3), queued_share=(0.0, 2.0))),
    ("lossy worker", "mix", _lossy_worker),
    ("two workers", "mix", _two_workers),
    ("warming up", "mix", drift(HELD_OUT_CAPACITY, (2e-6, 2e-5), (-1.0,))),
)

HELD_OUT_FAMILIES: Mapping[str, Family] = named(
    *(Family(name, group, make, _HELD_OUT_LOADS, 300.0) for name, group, make in _HELD_OUT_FAMILIES)
)
"""All held-out families by name."""

HARD_CAPACITY = (0.03, 0.9)
"""Shares of the largest load."""


@dataclass(frozen=True)
class Inconstant(WithoutTruth):
    """A SUT whose capacity depends on time and on earlier trials, and that also loses frames below its capacity."""

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
    """Minimum number of frames that each trial loses."""

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
        model = self._model
        end = traffic.start + traffic.duration
        if not traffic.continues:
            self._trials += 1
            self._remembers = traffic.start < self._remembers_until
            self._excess = float(model.frames)
            self._lost = 0

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


@dataclass(frozen=True)
class Discards(WithoutTruth):
    """A SUT that loses frames by chance far below its capacity, from a few loads on."""

    capacity: float
    """Frames per second."""
    levels: tuple[tuple[float, float], ...]
    """Loads, in frames per second, and the share of frames that is lost above each of them."""
    ramps: bool = False
    """Whether a share applies at the capacity, and grows in proportion from 0 at the level's load."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT that is always the same."""

        def lost(traffic: Traffic) -> int:
            shares = [self._share(traffic.load, *level) for level in self.levels if traffic.load > level[0]]
            by_chance = int(rng.binomial(traffic.frames, max(shares, default=0.0)))
            excess = traffic.frames - by_chance - self.capacity * traffic.duration
            return min(traffic.frames, by_chance + max(0, int(excess)))

        return lost

    def _share(self, load: float, start: float, share: float) -> float:
        return share * min(1.0, (load - start) / (self.capacity - start)) if self.ramps else share


def _discards(levels: int, start: tuple[float, float], share: tuple[float, float], *, ramps: bool = False) -> Make:
    """A SUT that discards frames from some loads on. The loads are shares of its capacity."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        capacity = max_load * log_uniform(draw, *HARD_CAPACITY)
        loads = sorted(capacity * draw.uniform(*start) for _ in range(levels))
        shares = sorted(log_uniform(draw, *share) for _ in range(levels))
        return Discards(capacity, tuple(zip(loads, shares, strict=True)), ramps)

    return made


def _inconstant(frames: int = 0, **ranges: tuple[float, float]) -> Make:
    """A SUT whose parameters are drawn from ranges. A parameter that may be negative has a random sign."""

    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        drawn: dict[str, Any] = {name: log_uniform(draw, *limits) for name, limits in ranges.items()}
        if "per_trial" in drawn:
            drawn["per_trial"] *= float(draw.choice((-1.0, 1.0)))
        most = max_load * log_uniform(draw, *HARD_CAPACITY)
        if "plateau" in drawn:
            drawn["plateau"] *= most
        return Inconstant(most, frames=frames, **drawn)

    return made


def _dead(draw: Draw, max_load: float, overload: Overload) -> Sut:
    return Inconstant(max_load * draw.uniform(0.5, 1.0), share=1.0)


# Table: as above, with the loads of each family.
HARD_FAMILIES: Mapping[str, Family] = named(
    Family("dead", "quiet", _dead, MAX_LOADS, MIN_LOAD),
    Family("always lossy", "quiet", _inconstant(share=(0.001, 0.5)), MAX_LOADS, MIN_LOAD),
    Family("one frame per trial", "quiet", _inconstant(frames=1), MAX_LOADS, MIN_LOAD),
    Family("plateau", "quiet", _inconstant(share=(1e-4, 0.02), plateau=(0.1, 0.9)), MAX_LOADS, MIN_LOAD),
    Family("cold start", "mix", _inconstant(less=(0.02, 0.3), warm_up=(10.0, 60.0)), MAX_LOADS, MIN_LOAD),
    Family("overload memory", "mix", _inconstant(less=(0.02, 0.3), memory=(5.0, 60.0)), MAX_LOADS, MIN_LOAD),
    Family("trial drift", "mix", _inconstant(per_trial=(3e-4, 5e-3)), MAX_LOADS, MIN_LOAD),
    Family("period", "mix", _inconstant(every=(5.0, 20.0), stall=(0.02, 0.1)), MAX_LOADS, MIN_LOAD),
    Family("flapping", "mix", two_states(HARD_CAPACITY, (0.1, 0.5), (5.0, 40.0), (5.0, 40.0)), MAX_LOADS, MIN_LOAD),
    Family("quantised", "quiet", sharp_knee((0.1, 0.9)), (200.0,), 2.0),
    Family("early discard", "mix", _discards(1, (0.2, 0.95), (1e-6, 1e-3), ramps=True), MAX_LOADS, MIN_LOAD),
    Family("faint plateau", "mix", _discards(1, (0.1, 0.98), (1e-8, 1e-4)), MAX_LOADS, MIN_LOAD),
    Family("faint plateaus", "mix", _discards(3, (0.1, 0.98), (1e-8, 1e-2)), MAX_LOADS, MIN_LOAD),
    Family("generator-limited", "quiet", sharp_knee((0.7, 1.5)), MAX_LOADS, MIN_LOAD, generator=0.8),
)
"""All hard families by name."""
