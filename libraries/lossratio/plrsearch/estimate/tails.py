"""Whether capacities may have heavier tails than a normal distribution's, and how low the critical load is then.

A loss ratio of 1e-7 is deep in the tail: with Student's distribution of 5 degrees of freedom it is four times as far
from the middle. So such distributions compete with the normal one by evidence, and the heaviest that the trials leave
open says how low the critical load may be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import scipy

from lossratio.plrsearch.model import Array, CriticalLoadQuestion, critical_load
from lossratio.plrsearch.quadrature import Posterior

_FREEDOM = 44.0 / (np.arange(16) + 0.5)[:, None]
"""Degrees of freedom of Student's distributions, from 88 to 2.8: their reciprocals are evenly apart."""
_NORMAL = 0.6
"""Probability of the normal distribution before the trials; these share the rest."""
OPEN_TAILS = 0.09
"""Probability of heavier tails below which the trials speak against them: 1 of 12 samples have it that have 16
degrees of freedom."""
_SEEN = 0.95
"""Probability of heavier tails that are certain: fewer than 1 of 500 normal samples have it."""
_NATS = 0.365
"""Nats by which tails that count may be less probable than the likeliest, by the square of the interval's standard
deviations: 1.4 for 95 %."""
_ROUNDS = 40
_PLACES = np.sinh(np.linspace(-9.0, 3.0, 241))
"""Capacities over which the loss is averaged, in standard deviations of the likeliest curve."""
_LOWER = np.geomspace(1.0, 1e-7, 97)
"""How much lower than with the normal distribution the critical load may be, as shares of the way to the least load."""


@dataclass(frozen=True)
class Tails:
    """Critical loads with tails that are heavier than a normal distribution's, and how probable they are."""

    probability: float
    """That the tails are heavier."""
    shares: Array
    """These loads, as shares of that with the normal distribution, from the lightest tails to the heaviest."""
    lack: Array
    """Nats by which each of these is less probable than the likeliest, or than the normal distribution."""
    skew: float
    """By how much the critical load is higher, as a share, if not the capacity but its logarithm is normal."""

    @property
    def are_seen(self) -> bool:
        """Whether the tails are certain to be heavier."""
        return self.probability > _SEEN

    def widened(
        self,
        low: float,
        stated: float,
        high: float,
        question: CriticalLoadQuestion,
        probability: float = 0.95,
    ) -> tuple[float, float]:
        """The ends of an interval around the stated load, within the limits, with these tails, too.

        They count if the trials do not speak against heavier ones: down to the heaviest that is not much less probable
        than the likeliest. Trials show no skew, so it moves the upper end in any case.
        """
        counted = self.lack <= _NATS * NormalDist().inv_cdf(0.5 + 0.5 * probability) ** 2
        if self.probability >= OPEN_TAILS and counted.any():
            low = min(low, max(float(self.shares[counted].min()) * stated, question.min_load))
        return low, min(high + self.skew * stated, question.max_load)

    @classmethod
    def of(cls, residuals: Array, posterior: Posterior) -> Tails:
        """What residuals of independent trials show, beside the likeliest curve."""
        number = len(residuals)
        deviation = residuals.std()
        middle = np.full(_FREEDOM.shape, np.median(residuals))
        width = np.full(_FREEDOM.shape, deviation)

        for _ in range(_ROUNDS):
            # The likeliest by expectation and maximization: what is far from the middle counts less.
            weight = (_FREEDOM + 1.0) / (_FREEDOM + ((residuals - middle) / width) ** 2)
            middle = np.sum(weight * residuals, axis=-1, keepdims=True) / weight.sum(
                axis=-1, keepdims=True
            )
            width = np.sqrt(np.mean(weight * (residuals - middle) ** 2, axis=-1, keepdims=True))

        # Evidence beside the normal distribution's, both by Laplace's method over middle and width.
        normal = -0.5 * number * (np.log(2.0 * np.pi * deviation**2) + 1.0)
        gain = _log_density(residuals, middle, width).sum(axis=-1, keepdims=True) - normal
        gain += np.log(width / deviation * (_FREEDOM + 3.0) / np.sqrt(_FREEDOM * (_FREEDOM + 1.0)))
        prior = np.log(_NORMAL / (1.0 - _NORMAL) * len(_FREEDOM))
        probability = float(scipy.special.softmax(np.append(prior, gain))[1:].sum())
        weights = np.exp(_log_density(_PLACES, middle, width)) * np.gradient(_PLACES)
        shares, skew = _shares(posterior, weights)

        return cls(probability, shares, max(gain.max(), 0.0) - gain.ravel(), skew)


def _log_density(values: Array, middle: Array, width: Array) -> Array:
    """Of Student's distributions."""
    half = 0.5 * (_FREEDOM + 1.0)
    gammaln = scipy.special.gammaln
    constant = gammaln(half) - gammaln(half - 0.5) - 0.5 * np.log(_FREEDOM * np.pi)
    return np.asarray(
        constant - np.log(width) - half * np.log1p(((values - middle) / width) ** 2 / _FREEDOM)
    )


def _shares(posterior: Posterior, weights: Array) -> tuple[Array, float]:
    """Critical loads of the likeliest curve by weights of its capacities, as shares of that with normal ones.

    And the share by which it is higher with lognormal ones: exp(-x) is 1 - x + x^2 / 2.
    """
    curve = posterior.curves.at(np.array([posterior.likeliest]))
    question = posterior.question
    mrr = curve.mrr
    spread = curve.spread
    deviation = curve.deviation
    normal = critical_load(curve, question)
    constant = critical_load(replace(curve, deviation=0.0 * deviation), question)
    loads = normal - _LOWER * (normal - question.min_load)
    rates = np.exp(
        curve.function.log_loss_rate(
            loads, np.maximum(mrr + deviation * _PLACES, spread)[:, None], spread
        )
    )
    ratios = weights / weights.sum(axis=-1, keepdims=True) @ np.minimum(rates / loads, 1.0)
    target = np.log(question.target_loss_ratio)
    lower = [np.interp(target, row, np.log(_LOWER)) for row in np.log(np.maximum(ratios, 1e-300))]
    shares = 1.0 - np.exp(lower) * (1.0 - question.min_load / normal)

    return shares, 0.5 * float((1.0 - normal / constant).item() ** 2)
