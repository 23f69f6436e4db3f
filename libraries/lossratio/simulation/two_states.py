"""A SUT that changes to and fro between a fast and a slow state (energy modes, a noisy neighbour)."""

from __future__ import annotations

import numpy as np
from pydantic import model_validator
from pydantic.dataclasses import dataclass
from scipy import special, stats

from lossratio.simulation.overload import GRACEFUL, Overload
from lossratio.simulation.quantities import STRICT, FrameRate, Seconds
from lossratio.simulation.sut import RunningSut, Traffic, random_rounding, smallest_exceeding_load

MOST_SPELLS = 200.0
"""In a trial of more spells than this (on average), the distribution of the slow time is not computed."""


@dataclass(frozen=True, config=STRICT)
class TwoStates:
    """A sharp knee with two capacities: spells of exponentially distributed length, also beyond the end of a trial.

    Attributes:
        fast: Capacity in the fast state, in frames per second.
        slow: Capacity in the slow state, in frames per second.
        fast_spell: Mean time in the fast state, in seconds.
        slow_spell: Mean time in the slow state, in seconds.
        overload: What is forwarded of more load than the capacity.
    """

    fast: FrameRate
    slow: FrameRate
    fast_spell: Seconds
    slow_spell: Seconds
    overload: Overload = GRACEFUL

    @model_validator(mode="after")
    def _slow_is_slower(self) -> TwoStates:
        if not self.slow < self.fast:
            raise ValueError("slow must be below fast")
        return self

    @property
    def slow_share(self) -> float:
        """Share of time in the slow state."""
        return self.slow_spell / (self.fast_spell + self.slow_spell)

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A SUT in one of the states, drawn by the share of time that it is in them."""
        spells = _Spells(self, rng)

        def lost_frames(traffic: Traffic) -> int:
            slow = spells.slow_time(traffic.start, traffic.start + traffic.duration) / traffic.duration
            return random_rounding(traffic.frames * self._loss_ratio(traffic.load, slow), rng)

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """From the quantile of the share of a trial that is slow; None for trials of very many spells."""
        if duration / min(self.fast_spell, self.slow_spell) > MOST_SPELLS:
            return None
        slow = _slow_share_quantile(self, duration, exceed_ratio)
        return smallest_exceeding_load(lambda load: float(self._loss_ratio(load, slow) > loss_ratio), 0.0)

    def _loss_ratio(self, load: float, slow: float) -> float:
        """Share of frames lost when a share `slow` of the trial finds the slow state."""
        lost_fast = self.overload.loss_ratio(load, self.fast)
        return lost_fast + slow * (self.overload.loss_ratio(load, self.slow) - lost_fast)


class _Spells:
    """The states over time, drawn as far as they are asked for; times only go forward."""

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
    """The smallest share of a trial's time that is slow in more than it with no more than the given probability."""
    spacings, weights = _slow_spacings(sut, duration)
    counts = spacings.shape[0]
    slow = np.arange(counts + 1)[np.newaxis, :]
    fast = np.arange(1, counts + 1)[:, np.newaxis] - slow
    mixed = (slow > 0) & (fast > 0)
    shares = weights[:, np.newaxis] * spacings
    always = float(np.sum(shares[fast == 0]))
    alpha, beta, share = (np.broadcast_to(each, mixed.shape)[mixed] for each in (slow, fast, shares))

    def exceed_probability(limit: float) -> float:
        return always + float(np.sum(share * special.betaincc(alpha, beta, limit)))

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
    """The chain seen at the events of a Poisson process faster than both spells (uniformisation).

    Given n events, they cut the trial into n + 1 spacings of Dirichlet-distributed length, each in one state; the sum
    of k of them has a beta distribution.

    Returns:
        Row n, column k: the probability of k slow spacings given n events; and the probability of n events.
    """
    rate = 1.0 / min(sut.fast_spell, sut.slow_spell)
    most = int(stats.poisson.isf(1e-15, rate * duration)) + 1
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
    return spacings, stats.poisson.pmf(np.arange(most + 1), rate * duration)
