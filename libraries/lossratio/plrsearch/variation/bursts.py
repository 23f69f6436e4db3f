"""Bursts of lost frames that do not come from the load: e.g. a SUT that stalls once a minute, at any load.

A burst adds its frames to what the curve loses in a trial. Their sizes are taken as exponentially distributed, so the
probability of a count is known: a burst is seen in a trial that loses few frames without it, and not in overload.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, TrialCounts, critical_load
from lossratio.plrsearch.quadrature import Posterior

_FAR = 1000.0
"""Largest loss ratio of trials that may show bursts, in targets."""
_SEEN = 6.0
"""Nats by which bursts have to explain the counts better: chance alone does in fewer than one of 1,000 searches."""
_MOST_TRIALS = 0.25
"""Share of trials with a burst that is too large: what comes in so many is no burst."""
_ALL = 3
"""Trials at a load of which not all have a burst, or it is the curve that is wrong there."""
_LEAST_RATIO, _MOST_RATIO = 0.05, 100.0
"""Loss ratios of bursts that are considered, in targets."""
_BEYOND = 10.0
"""How far above the maximum load critical loads without bursts are known, as a factor: with bursts they are lower."""
_SHARES, _SIZES = 24, 40
_TINY = 1e-250
_PARTS = 41
"""Loss ratios, equally probable, that stand for what is known about it: 97.6 % of it is between first and last. With 40
of them rounding would decide where 1 or 20 lose the target: the interval's end and the median are there."""


@dataclass(frozen=True)
class Bursts:
    """What trials show about bursts."""

    gain: float
    """Nats by which they explain the counts better than chance."""
    share: float
    """The likeliest share of trials with a burst."""
    size: float
    """The likeliest mean size of a burst, in frames."""
    seen: NDArray[np.bool_]
    """Which trials probably have one."""
    ratio: Array
    """Loss ratios by bursts that are equally probable, in order; shares and sizes are scale-free before the trials."""
    more: bool
    """Whether the largest ratios that are considered are among them, so that it may be more."""

    @classmethod
    def of(
        cls, posterior: Posterior, counts: TrialCounts, below: float | None = None
    ) -> Bursts | None:
        """What the counts (below a load) show beside a posterior's likeliest curve; None: chance explains them."""
        rate = posterior.mode.log_loss_rate(counts.load)
        target = posterior.question.target_loss_ratio
        near = (np.exp(rate) <= _FAR * target * counts.load) & (counts.load < (below or np.inf))
        if not counts.lost[near].any():
            return None

        mean = np.maximum(np.exp(rate) * counts.exposure, 1e-9)[near]
        sent = float(np.mean((counts.load * counts.exposure)[near]))
        share = np.geomspace(0.5 / near.sum(), _MOST_TRIALS, _SHARES)
        least = max(_LEAST_RATIO * target * sent / _MOST_TRIALS, 1.0)
        size = np.geomspace(least, max(_MOST_RATIO * target * sent / share[0], 2.0 * least), _SIZES)
        likelier = _likelier(counts.lost[near], mean, size)
        gains = np.logaddexp(
            np.log1p(-share)[:, None, None], np.log(share)[:, None, None] + likelier
        ).sum(axis=-1)
        ratio = share[:, None] * size / sent
        gains[(ratio < _LEAST_RATIO * target) | (ratio > _MOST_RATIO * target)] = -np.inf
        best = np.unravel_index(int(np.argmax(gains)), gains.shape)
        if gains[best] <= _SEEN or best[0] == _SHARES - 1:
            return None

        seen = np.zeros(len(counts), dtype=bool)
        seen[near] = likelier[best[1]] > np.log(1.0 / share[best[0]] - 1.0)
        _, group, trials = np.unique(counts.load, return_inverse=True, return_counts=True)
        if np.any((trials >= _ALL) & (np.bincount(group, seen) == trials)):
            return None

        order = np.argsort(ratio, axis=None)
        known = np.cumsum(np.exp(gains - gains[best]).ravel()[order])
        parts = np.searchsorted(known, known[-1] * (np.arange(_PARTS) + 0.5) / _PARTS)
        known_ratio = ratio.ravel()[order][parts]
        more = bool(known_ratio[-1] > 0.5 * _MOST_RATIO * target)

        return cls(
            float(gains[best]), float(share[best[0]]), float(size[best[1]]), seen, known_ratio, more
        )

    def added(self, posterior: Posterior) -> Posterior:
        """The posterior of the critical load at which curve and bursts together lose the target.

        It changes by as much as that of the likeliest curve does.
        """
        question, curves = posterior.question, posterior.curves
        beyond = replace(question, max_load=_BEYOND * question.max_load)
        left = question.target_loss_ratio - np.append(self.ratio, 0.0)
        some = left > 0.0
        share = np.zeros(len(left))
        share[some] = critical_load(
            curves.at(np.full(some.sum(), posterior.likeliest)), beyond, left[some]
        )
        loads = np.outer(share[:-1] / share[-1], critical_load(curves, beyond)).ravel()
        loads = np.clip(loads, question.min_load, question.max_load)
        mass = np.tile(posterior.mass / _PARTS, _PARTS)
        which = np.tile(np.arange(len(posterior.mass)), _PARTS)
        return replace(posterior, critical_load=loads, mass=mass, order=1, curves=curves.at(which))

    def __str__(self) -> str:
        """What they lose, in words."""
        return (
            f"bursts of some {self.size:,.2g} frames in about one of {1.0 / self.share:,.2g} trials explain their "
            f"counts better, by {self.gain:.3g} nats, and lose a ratio of {self.ratio[0]:.2g} to {self.ratio[-1]:.2g}"
            f"{' or more' if self.more else ''} at any load"
        )


def _likelier(lost: Array, mean: Array, size: Array) -> Array:
    """Nats by which each count is likelier with a burst, by mean size: Poisson's count with an exponential addition."""
    size = size[:, None]
    without = lost * np.log(mean) - mean - scipy.special.gammaln(lost + 1.0)
    beyond = scipy.special.gammaincc(lost + 1.0, mean * (1.0 + 1.0 / size))
    burst = (
        mean / size
        - np.log(size)
        - (lost + 1.0) * np.log1p(1.0 / size)
        + np.log(np.maximum(beyond, _TINY))
    )
    # A burst that is far smaller than chance's scatter changes no count.
    return np.asarray(np.where(beyond > _TINY, burst - without, 0.0))
