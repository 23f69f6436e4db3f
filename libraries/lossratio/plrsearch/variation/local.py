"""The critical load from trials near it: a regression of the logarithm of the loss ratio on that of the load.

The regression needs no function for the whole curve. It assumes that the curve is nearly straight near the target. The
error of shape is 5 % for each nat between the loss ratio of a trial and the target, and it is similar for similar
ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from lossratio.plrsearch.model import Array, CriticalLoadQuestion, TrialCounts, merged
from lossratio.plrsearch.quadrature import Distribution

_FAR = 2e4
"""A load is near the critical one if its loss ratio is at most this many times the target."""
_SHAPE, _USUAL_SHAPE = 0.1, 0.05
"""Error of shape for each nat from the target: largest, and usual. Beyond the latter, there is no line."""
_LIKE = 2.0
"""Nats within which errors of shape are similar."""
_LEAST_LOST = 5.0
"""Minimum number of lost frames for a regression."""
_LEAST_SLOPE = 0.5
"""Smallest credible slope of a regression. A smaller slope is a floor, such as bit errors, and not a knee."""
_BEYOND = 3.0
"""Standard deviations beyond chance."""
_NO_LINE = 3.0
"""Chi-squared per degree of freedom above which there is no line."""
_ROUGH = 0.02
"""If the standard deviation of the critical load's logarithm is above this, a line shows less than the loads with and
without loss."""
_CLOSE = 0.97
"""The share of the forwarding rate below which a few lost frames do not show where losses begin, because they need not
come from the load."""
_ROUNDS = 40
_STEP = 1.0
"""Maximum number of nats by which a round changes a loss ratio."""
_BELOW = 0.05
"""How far the critical load may be below the highest load without loss, as a share of it."""
_END = 0.03
"""Probability of each of the two loads between which the critical load lies."""
_BEFORE = 0.04
"""Probability that it is lower than the highest load without loss."""
_PARTS = 201
"""Number of points of equal probability that represent the distribution."""


@dataclass(frozen=True)
class LocalFit(Distribution):
    """The critical load by a straight line, or between a load where nothing is lost and a load where much is lost."""

    log_target_load: float = 0.0
    """Logarithm of the load at which the line reaches the target."""
    slope: float = np.inf
    """Nats of loss ratio for each nat of load; infinite if the knee is too sharp for a line."""
    is_line: bool = False
    """Whether there is a line."""
    quiet: float = 0.0
    """The highest load below the loss that loses no more than the target, in frames per second, or the minimum load."""
    above: float = 0.0
    """The highest load that lost no more than the target although a lower load lost more; 0: there is no such load."""
    lossy: float = 0.0
    """The lowest load above `quiet` that loses more than the target, in frames per second."""
    shape_stdev: float = 0.0
    """The part of the standard deviation, as a share of the load, that comes from the error of the line's shape."""
    name: str = "local"
    """Instead of a fitting function's name."""

    @classmethod
    def of(
        cls,
        counts: TrialCounts,
        question: CriticalLoadQuestion,
        *,
        may_have_line: bool = True,
        is_final: bool = False,
    ) -> LocalFit:
        """The fit to trials whose counts and exposures are divided by the batch.

        If no more trials follow, and there is no line, the critical load may also be just below a load without loss,
        where trials show too little.

        Args:
            counts: The trials.
            question: Target and limits.
            may_have_line: Whether losses come from the load. If not, there is no line.
            is_final: Whether no more trials follow.
        """
        sums, _ = merged(counts)
        sent = sums.sent
        target = question.target_loss_ratio
        if not len(sums):
            least = question.min_load
            return cls.between(least, least, question.max_load, question)
        low, lossy, high, sure, least = _bracket(sums, question)
        quiet = sums.load[(sums.lost <= target * sent) & (sums.load > high)]
        above = float(quiet.max(initial=0.0))
        far = sums.load[sums.lost > np.maximum(_FAR * target * sent, 1.0)]
        near = sums.load < far.min(initial=np.inf)
        counted = near & (sums.lost > 0.0)
        shares = (np.arange(_PARTS) + 0.5) / _PARTS
        mass = np.full(_PARTS, 1.0 / _PARTS)

        has_losses = np.count_nonzero(counted) >= 2 and sums.lost[near].sum() >= _LEAST_LOST
        if may_have_line and has_losses:
            line = _line(np.log(sums.load[near]), sums.lost[near], sent[near], np.log(target))
            if line is not None:
                middle, stdev, shape, slope = line
                nats = np.clip(middle + stdev * scipy.special.ndtri(shares), -700.0, 700.0)
                loads = np.exp(nats)
                if sure <= np.exp(middle) <= high and stdev < _ROUGH:
                    loads = np.clip(loads, sure, high)
                    ends = (low, above, lossy)
                    return cls(question, loads, mass, 1, middle, slope, True, *ends, shape)

        end = least if is_final else low
        return replace(cls.between(end, low, high, question), above=above, lossy=lossy)

    @classmethod
    def between(
        cls, least: float, low: float, high: float, question: CriticalLoadQuestion
    ) -> LocalFit:
        """Without a line: most probably between the second and the third load, in frames per second.

        The 95 % interval begins at the first load.
        """
        shares = (np.arange(_PARTS) + 0.5) / _PARTS
        mass = np.full(_PARTS, 1.0 / _PARTS)
        middle = float(np.log(0.5 * (low + high)))
        before = _BEFORE if least < low else _END
        loads = np.interp(shares, (_END, before, 1.0 - _END), (least, low, high))
        return cls(question, loads, mass, 1, middle, quiet=low)

    @property
    def high(self) -> float:
        """The highest critical load, in frames per second."""
        return float(self.critical_load[-1])

    @property
    def is_known(self) -> bool:
        """Whether there is a line, or a load without loss below one with loss."""
        question = self.question
        has_quiet = self.quiet > question.min_load
        has_loss = bool(self.critical_load[0] < question.max_load)
        return self.is_line or (has_quiet and has_loss)

    def is_wide(self, share: float) -> bool:
        """Whether there is no line, and loads with and without loss are farther apart than a share of the load."""
        has_loss = bool(self.critical_load[0] < self.question.max_load)
        return has_loss and not self.is_line and self.quiet < (1.0 - share) * self.lossy

    def load_of(self, targets: float) -> float:
        """The load in frames per second at which the line loses this many targets."""
        if not self.is_line:
            return float(np.exp(self.log_target_load))
        return float(np.exp(self.log_target_load + np.log(targets) / self.slope))

    def loss_ratio(self, loads: Sequence[float]) -> Array:
        """The mean loss ratio of the line at loads in frames per second; without a line, that of a sharp knee."""
        load = np.log(np.asarray(loads, dtype=float))
        if not self.is_line:
            return np.asarray(np.maximum(0.0, -np.expm1(self.log_target_load - load)))
        log_ratio = np.log(self.question.target_loss_ratio) + self.slope * (
            load - self.log_target_load
        )
        return np.asarray(np.exp(np.minimum(log_ratio, 0.0)))


def _bracket(
    counts: TrialCounts, question: CriticalLoadQuestion
) -> tuple[float, float, float, float, float]:
    """The highest load that loses at most the target, the lowest higher load that loses more, and both for certain.

    At the fourth load, less is certainly lost. Up to the third load, the trials above the first load together certainly
    lose more. From the fifth load up to the first load, the trials together certainly lose less, or this load is lower
    by a share. Lower loads that lose more count more than higher loads that do not, because some losses are rare. For
    the second load, a few lost frames far below the forwarding rate do not count.
    """
    load = counts.load
    lost = counts.lost
    allowed = question.target_loss_ratio * counts.sent
    error = _BEYOND * np.sqrt(allowed)
    high = float(load[lost > allowed + error + _BEYOND].min(initial=np.inf))
    least = question.min_load
    if high <= least:
        return least, least, least, least, least
    below = load < high
    low = float(load[below & (lost <= allowed)].max(initial=question.min_load))
    sure = float(load[below & (lost < allowed - error)].max(initial=question.min_load))
    if not np.any(lost > allowed):
        most = question.max_load
        return most, most, most, sure, most

    up_to = (load <= low)[::-1]
    together = np.cumsum(allowed[::-1][up_to])
    is_less = np.cumsum(lost[::-1][up_to]) < together - _BEYOND * np.sqrt(together)
    surely_less = float(load[::-1][up_to][is_less].max(initial=0.0))
    least = max(surely_less, (1.0 - _BELOW) * low, question.min_load)

    above = load > low
    forwarded = counts.forwarding_rate[counts.is_overload]
    is_far = load < _CLOSE * float(forwarded.min(initial=np.inf))
    is_lossy = lost > allowed + np.where(is_far, _BEYOND, 0.0)
    lossy = float(load[above & is_lossy].min(initial=question.max_load))
    lost_together = np.cumsum(lost[above])
    together = np.cumsum(allowed[above])
    surely = lost_together > together + _BEYOND * np.sqrt(together) + _BEYOND
    high = float(load[above][surely].min(initial=question.max_load))
    return low, lossy, max(high, low), sure, least


def _line(
    log_load: Array, lost: Array, sent: Array, log_target: float
) -> tuple[float, float, float, float] | None:
    """Logarithm of the load with the target, its standard deviation, the part due to the shape, and the slope.

    None if the loss does not rise.

    Generalized least squares in rounds (a Poisson regression with correlated errors of shape).
    """
    weight = np.maximum(lost, 0.5)
    centre = float(np.average(log_load, weights=weight))
    x = log_load - centre
    design = np.stack([np.ones_like(x), x], axis=1)
    log_ratio = np.log((lost + 0.3) / sent)
    spread = np.average((x - np.average(x, weights=weight)) ** 2, weights=weight)
    shared = np.average(x * (log_ratio - np.average(log_ratio, weights=weight)), weights=weight)
    slope = max(shared / max(spread, 1e-18), _LEAST_SLOPE)
    known = np.array([np.average(log_ratio, weights=weight), slope])
    inverse = np.eye(2)
    wider = 1.0

    for _ in range(_ROUNDS):
        eta = design @ known
        mean = np.maximum(sent * np.exp(np.minimum(eta, 0.0)), 1e-12)
        nats = eta - log_target
        likeness = np.exp(-np.abs(nats[:, None] - nats[None, :]) / _LIKE)
        by_shape = _SHAPE**2 * np.outer(nats, nats) * likeness
        covariance = np.diag(1.0 / mean) + by_shape
        left = np.clip((lost - mean) / mean, -_STEP, None)
        solved = np.linalg.solve(covariance, np.column_stack([design, left]))
        inverse = np.linalg.pinv(design.T @ solved[:, :2])
        move = inverse @ (design.T @ solved[:, 2])
        move *= min(1.0, _STEP / max(float(np.abs(design @ move).max()), 1e-300))
        known = known + move
        if float(np.abs(design @ move).max()) < 1e-6:
            break

    if known[1] < _LEAST_SLOPE or not np.all(np.isfinite(known)):
        return None
    seen = mean > 1.0
    if np.count_nonzero(seen) > 2:
        noise = 1.0 / mean[seen] + (_USUAL_SHAPE * nats[seen]) ** 2
        chi_squared = float(np.sum(((lost - mean)[seen] / mean[seen]) ** 2 / noise))
        wider = max(1.0, chi_squared / (np.count_nonzero(seen) - 2))
    if wider > _NO_LINE:
        return None
    middle = (log_target - known[0]) / known[1]
    pull = np.array([1.0, middle]) / known[1]
    stdev = float(np.sqrt(wider * max(pull @ inverse @ pull, 0.0)))
    share = solved[:, :2] @ inverse @ pull
    shape = float(np.sqrt(wider * max(share @ by_shape @ share, 0.0)))
    return centre + middle, stdev, min(shape, stdev), float(known[1])
