"""Bounds of a loss ratio from counts alone, without any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from lossratio.plrsearch.counts import Array

TAIL = 0.025
"""Probability beyond each bound; together, the bounds are a 95 % interval."""
_UNSEEN = 2.0
"""How many further trials with loss may differ by their mean from those that are seen."""
_MOST_FRAMES = 1e18
"""If more frames than this are needed, no number is stated, because the loss ratio so far is (nearly) the target, or
above it."""


@dataclass(frozen=True)
class LossBounds:
    """A loss ratio with its 95 % interval, from counts alone.

    Losses come in bursts. As in a quasi-binomial model, counts are divided by their burst size before Clopper and
    Pearson's bounds are taken. If few trials have bursts, the upper bound depends on the trials rather than on the
    frames. It is at least the product of two bounds: one for the share of trials with loss (Clopper and Pearson), and
    one for the loss of such trials. These losses have a gamma distribution, with the variance that they show, and with
    two further trials that differ by the mean. Its variance is at most that of an exponential distribution. The bounds
    do not cover bursts that are rarer than the trials.
    """

    trials: int
    """How many trials."""
    lossy: int
    """Number of trials in which frames were lost."""
    frames: float
    """Frames that they sent."""
    lost: float
    """Frames that they lost."""
    burst: float
    """Frames that are lost together: Pearson's chi-squared per degree of freedom, and at least 1."""
    least: float
    """Lower end of the interval of the loss ratio."""
    most: float
    """Its upper end."""
    known: float = 1.0
    """Number of frames that are known to be lost together. Such losses are not rare bursts."""

    @property
    def ratio(self) -> float:
        """Lost frames by sent ones; 0 if there are no trials."""
        return self.lost / max(self.frames, 1.0)

    @classmethod
    def of(
        cls, frames: Array, lost: Array, looks: int = 1, batch: float = 1.0, *, known: bool = False
    ) -> LossBounds:
        """The bounds of trials with these numbers of sent and lost frames; 0 to 1 if there are no trials.

        Args:
            frames: Sent frames of each trial.
            lost: Lost frames of each trial.
            looks: How many lower bounds are checked. All of them hold at once (Bonferroni).
            batch: Minimum number of frames that are lost together.
            known: Whether the batch is known beforehand. If so, only scatter beyond chance increases it.
        """
        total = float(frames.sum())
        all_lost = float(lost.sum())
        lossy = int(np.count_nonzero(lost))
        burst = max(batch, all_lost)
        if len(frames) > 1 and all_lost:
            expected = frames * (all_lost / total)
            freedom = len(frames) - 1.0
            chi_squared = float(np.sum((lost - expected) ** 2 / expected))
            burst = max(batch, chi_squared / freedom)
            if known and scipy.special.chdtrc(freedom, chi_squared / batch) > TAIL:
                burst = batch

        least, _ = _clopper_pearson(all_lost / burst, total / burst, TAIL / looks)
        if least < 1.0 / _MOST_FRAMES:
            # A small part of a batch gives no bound.
            least = 0.0
        return cls(
            len(frames),
            lossy,
            total,
            all_lost,
            burst,
            least,
            _most(len(frames), lossy, total, all_lost, burst, batch if known else 1.0),
            batch if known else 1.0,
        )

    def largest_burst(self, target: float) -> float | None:
        """How many frames may be lost at once if the upper bound is within the target; None: the bound is above."""
        if self.most > target:
            return None
        counts = self.trials, self.lossy, self.frames, self.lost
        return _turning_point(
            lambda burst: _most(*counts, burst, self.known) > target,
            self.burst,
            max(self.frames, 1.0),
        )[0]

    def missing_frames(self, target: float) -> float | None:
        """How many more frames, with the loss so far, would show that the loss ratio is below the target.

        None: no number of frames would, because the loss ratio so far is not below the target.
        """
        sent = max(self.frames, 1.0)

        def shows(factor: float) -> bool:
            counts = factor * self.trials, factor * self.lossy, factor * sent, factor * self.lost
            return _most(*counts, self.burst, self.known) <= target

        if shows(1.0):
            return 0.0
        most = _MOST_FRAMES / sent
        if shows(most):
            return _turning_point(shows, 1.0, most)[1] * sent - self.frames
        return None


def _turning_point(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Two numbers that differ by a thousandth. The condition fails for the first number, and holds for the second."""
    while high > low * 1.001:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _most(
    trials: float, lossy: float, frames: float, lost: float, burst: float, known: float
) -> float:
    """Upper bound of the loss ratio; see `LossBounds`."""
    most = _clopper_pearson(lost / burst, frames / burst)[1]
    if burst <= known or not 0.0 < lossy < trials:
        return most
    share = float(scipy.special.betaincinv(lossy + 1.0, trials - lossy, 1.0 - 2.0 * TAIL))
    # The burst is the mean square of the lost frames by their mean, so it shows how much trials with loss differ.
    variance = max(burst * lossy / lost - 1.0 + lossy / trials, 0.0)
    shape = lossy / min(variance + _UNSEEN / lossy, 1.0)
    lost_by_one = lost / lossy * shape / float(scipy.special.gammaincinv(shape, 2.0 * TAIL))
    return min(1.0, max(most, share * lost_by_one * trials / frames))


def _clopper_pearson(lost: float, frames: float, tail: float = TAIL) -> tuple[float, float]:
    """Bounds of a binomial share (Clopper and Pearson 1934), whose counts need not be whole."""
    passed = frames - lost
    least = float(scipy.special.betaincinv(lost, passed + 1.0, tail)) if lost > 0.0 else 0.0
    most = float(scipy.special.betaincinv(lost + 1.0, passed, 1.0 - tail)) if passed > 0.0 else 1.0
    return least, most
