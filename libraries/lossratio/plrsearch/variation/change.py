"""Whether the SUT changed during the search, so that earlier trials say nothing about its present state.

The mean loss ratio does not fall with the load. A curve that only rises (isotonic regression) explains trials of a SUT
that stays the same, no matter what its loss looks like. If the SUT changes, the trials before the change are above that
curve and the trials after it are below, or the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, TrialCounts

_BY_CHANCE = 5e-3
"""Probability of reporting a change of a SUT that stays the same, for all places of a change together."""
_LEAST = 4
"""Minimum number of trials before and after a change that can be compared with the curve."""
_MOST = 4
"""Number of changes that are looked for, one after the other."""


@dataclass(frozen=True)
class Change:
    """The last change of the SUT."""

    trials: int
    """Number of trials before it."""
    time: float
    """Seconds from the beginning of the search to the middle of the first trial after it."""
    loses_more: bool
    """Whether the SUT has lost more since then."""

    @classmethod
    def of(cls, counts: TrialCounts) -> Change | None:
        """The last change that the order of the trials shows beyond chance; None if there is none."""
        found = None
        for _ in range(_MOST):
            begin = 0 if found is None else found.trials
            later = _first(counts.at(np.arange(begin, len(counts))))
            if later is None:
                break
            at, loses_more = later
            found = cls(begin + at, float(counts.time[begin + at]), loses_more)
        return found

    def after(self, counts: TrialCounts) -> TrialCounts:
        """The trials after it."""
        return counts.at(np.arange(self.trials, len(counts)))

    def __str__(self) -> str:
        """What changed, in one line."""
        way = "more" if self.loses_more else "fewer"
        return (
            f"Since {self.time:,.0f} s after the beginning, trials lose {way} frames than before at the same loads, so "
            f"the {self.trials} trials before are not counted"
        )


def _first(counts: TrialCounts) -> tuple[int, bool] | None:
    """After how many trials the SUT changed, and whether it has lost more since then.

    The question is whether the first k trials are the trials that are farthest above the curve, or below it. If the
    order does not matter, their number among the k farthest trials is hypergeometric.
    """
    distance, comparable = _from_rising_curve(counts)
    used = np.flatnonzero(comparable)
    if len(used) < 2 * _LEAST:
        return None

    before = np.arange(_LEAST, len(used) - _LEAST + 1)
    number = len(used)
    # Standard deviations are rounded, because smaller differences do not count. Equal values all have the last place.
    whole = np.rint(distance[used])
    chances = []
    for values in (-whole, whole):
        place = np.searchsorted(np.sort(values), values, side="right") - 1
        together = np.array([np.count_nonzero(place[:trials] < trials) for trials in before])
        chances.append(_chance(together, before, number))
    chance = np.array(chances)
    falls, best = np.unravel_index(int(np.argmin(chance)), chance.shape)

    if chance[falls, best] * number > _BY_CHANCE:
        return None
    return int(used[before[best]]), bool(falls)


def _chance(together: NDArray[np.int_], drawn: NDArray[np.int_], number: int) -> Array:
    """The approximate probability of at least so many special items in as many draws; 1 if that is usual."""
    log_choose = scipy.special.gammaln
    # Formula: the logarithm of a hypergeometric probability.
    parts = (
        2.0 * (log_choose(drawn + 1.0) + log_choose(number - drawn + 1.0))
        - log_choose(together + 1.0)
        - 2.0 * log_choose(drawn - together + 1.0)
        - log_choose(np.maximum(number - 2.0 * drawn + together, 0.0) + 1.0)
        - log_choose(number + 1.0)
    )
    return np.where(together > drawn**2 / number, np.exp(parts), 1.0)


def _from_rising_curve(counts: TrialCounts) -> tuple[Array, Array]:
    """How far each trial is above the curve, in standard deviations, and whether its pool has other trials.

    Each pool has its own standard deviation, which is at least the one that chance causes. Otherwise, if the capacity
    varies, trials in overload would always be the farthest. The same would hold for rare losses at loads that are tried
    only at one time. The curve comes from pooling adjacent violators: loads whose loss ratio would fall share one
    ratio.
    """
    order = np.argsort(counts.load, kind="stable")
    frames = counts.load * counts.exposure
    pools: list[tuple[float, float, int]] = []
    _, sizes = np.unique(counts.load, return_counts=True)
    ends = np.cumsum(sizes)
    lost_until = np.append(0.0, np.cumsum(counts.lost[order]))
    sent_until = np.append(0.0, np.cumsum(frames[order]))

    for end, size in zip(ends.tolist(), sizes.tolist(), strict=True):
        lost = float(lost_until[end] - lost_until[end - size])
        sent = float(sent_until[end] - sent_until[end - size])
        while pools and pools[-1][0] * sent >= lost * pools[-1][1]:
            before = pools.pop()
            lost, sent, size = lost + before[0], sent + before[1], size + before[2]
        pools.append((lost, sent, size))

    trials = [size for *_, size in pools]
    ratio = np.repeat([lost / sent for lost, sent, _ in pools], trials)
    pool = np.repeat(np.arange(len(pools)), trials)
    expected = ratio * frames[order]
    distance = (counts.lost[order] - expected) / np.sqrt(np.maximum(expected, 1e-300))
    variance = np.bincount(pool, distance**2) / np.maximum(np.bincount(pool) - 1.0, 1.0)
    beside = np.repeat([size > 1 and lost > 0.0 for lost, _, size in pools], trials)

    standardized = np.empty(len(counts))
    comparable = np.empty(len(counts), dtype=bool)
    standardized[order] = distance / np.sqrt(np.maximum(variance, 1.0))[pool]
    comparable[order] = beside
    return standardized, comparable
