"""Whether capacities may have heavier tails than a normal distribution's, and how low the critical load is then.

A loss ratio of 1e-7 is deep in the tail: with Student's distribution of 5 degrees of freedom it is four times as far
from the middle. So the likelihoods of some such distributions are compared with the normal one's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from lossratio.plrsearch.model import Array, Curves, critical_load
from lossratio.plrsearch.quadrature import Posterior

_FREEDOM = np.array([[3.0], [4.0], [5.0], [7.0], [10.0]])
"""Degrees of freedom of Student's distributions; half an hour does not exclude the last one of a normal capacity."""
_EXCLUDED, _SEEN = -2.0, 4.0
"""Nats by which one is likelier than the normal distribution, if it is not excluded; and if chance does not explain it:
3 of 1,000 normal samples have as many."""
_ROUNDS = 40
_QUANTILE = 1.96
"""Standard deviations by which the logarithm of the width may be larger than the likeliest one."""
_PLACES = np.sinh(np.linspace(-9.0, 3.0, 481))
"""Capacities over which the loss is averaged, in widths of the distribution."""


@dataclass(frozen=True)
class Tails:
    """Tails that are heavier than a normal distribution's."""

    freedom: float
    """Degrees of freedom of Student's distribution with the heaviest tails that the trials do not exclude."""
    gain: float
    """Nats by which the likeliest of these distributions is likelier than the normal one."""
    share: float
    """The critical load with these tails, as wide as they may be, as a share of that with the normal distribution."""

    @property
    def are_seen(self) -> bool:
        """Whether chance does not explain the tails."""
        return self.gain > _SEEN

    @classmethod
    def of(cls, residuals: Array, posterior: Posterior) -> Tails | None:
        """What residuals of independent trials leave open, beside the likeliest curve; None: no heavy tails."""
        number, variance = len(residuals), np.full(_FREEDOM.shape, residuals.var())
        normal = -0.5 * number * (np.log(2.0 * np.pi * residuals.var()) + 1.0)
        middle: Array = np.full(_FREEDOM.shape, np.median(residuals))
        for _ in range(_ROUNDS):
            # The likeliest by expectation and maximization: what is far from the middle counts less.
            weight = (_FREEDOM + 1.0) / (_FREEDOM + (residuals - middle) ** 2 / variance)
            middle = np.average(np.broadcast_to(residuals, weight.shape), axis=1, weights=weight, keepdims=True)
            variance = np.mean(weight * (residuals - middle) ** 2, axis=1, keepdims=True)
        half, gammaln = 0.5 * (_FREEDOM + 1.0), scipy.special.gammaln
        each = gammaln(half) - gammaln(half - 0.5) - 0.5 * np.log(_FREEDOM * np.pi * variance)
        each = each - half * np.log1p((residuals - middle) ** 2 / (_FREEDOM * variance))
        gain = each.sum(axis=1) - normal
        is_open = gain > np.append(np.full(len(gain) - 1, _EXCLUDED), _SEEN)
        if not is_open.any():
            return None
        heaviest = int(np.argmax(is_open))
        freedom, width = float(_FREEDOM[heaviest, 0]), float(np.sqrt(variance[heaviest, 0]))
        width *= np.exp(_QUANTILE * np.sqrt(0.5 * (freedom + 3.0) / (freedom * number)))
        capacities = float(middle[heaviest, 0]) + width * _PLACES
        weights = (1.0 + _PLACES**2 / freedom) ** (-0.5 * (freedom + 1.0)) * np.gradient(_PLACES)
        return cls(freedom, float(gain.max()), _share(posterior, capacities, weights / weights.sum()))


def _share(posterior: Posterior, places: Array, weights: Array) -> float:
    """The critical load of the likeliest curve with capacities at these places, as a share of that with normal ones."""
    mode, target, function = posterior.mode, posterior.question.target_loss_ratio, posterior.function
    mrr, spread, deviation = (np.array([value]) for value in (mode.mrr, mode.spread, mode.deviation))
    normal = float(critical_load(Curves(function, spread, deviation), posterior.question, mrr)[0])
    capacity = np.maximum(mrr + deviation * places, spread)

    def excess(share: float) -> float:
        load = np.array([share * normal])
        ratio = np.minimum(np.exp(function.log_loss_rate(load, capacity, spread)) / load, 1.0)
        return float(weights @ ratio / target) - 1.0

    least = posterior.question.min_load / normal
    if least >= 1.0 or excess(1.0) <= 0.0:
        return 1.0
    return least if excess(least) >= 0.0 else float(scipy.optimize.brentq(excess, least, 1.0, xtol=1e-8))
