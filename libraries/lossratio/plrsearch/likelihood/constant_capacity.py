"""The two likelihoods of a constant capacity: a trial's mean loss depends only on its load.

Trials with the same sufficient statistics are one group, and a likelihood is a sum over groups. With lambda, the mean
count of losses of a group by the fitting function, the logarithms are

- Poisson (draft 4.3.1): k log lambda - lambda - log k!, written as a deviance, because the terms of a trial with 1e10
  losses are 1e11, while their sum is about 1.
- geometric with mean lambda (FD.io CSIT's code; in no draft): -k log(1 + 1/lambda) - log(1 + lambda). No matter how
  many losses a trial has, lambda is uncertain by about 100 %.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy

from lossratio.plrsearch.model import Array, FittingFunction, TrialCounts, merged


@dataclass(frozen=True)
class Score:
    """A log likelihood with its derivatives, for Newton's method. All arrays have the same shape."""

    value: Array
    """The logarithm."""
    slope: Array
    """Its derivative with respect to the mrr, per frame per second."""
    information: Array
    """Approximately the negative second derivative: slope / information is a good step towards the maximum."""


class Likelihood(ABC):
    """The probability of the counts, given a fitting function and its parameters."""

    groups: TrialCounts
    """The trials, sorted. Trials that share the likelihood's sufficient statistics are added up."""
    trials: Array
    """How many trials each group has."""
    constant: float
    """The constant to add to `value` for the logarithm of the counts' probability."""

    def value(self, function: FittingFunction, mrr: Array, spread: Array) -> Array:
        """Log likelihood without the constant, shape (rows, points).

        Args:
            function: The fitting function.
            mrr: Limiting forwarding rates in frames per second, shape (rows, points, 1): the last axis is for trials.
            spread: Widths of the knee in frames per second, shape (rows, 1, 1).
        """
        return self._value(function.log_loss_rate(self.groups.load, mrr, spread))

    @abstractmethod
    def score(self, function: FittingFunction, mrr: Array, spread: Array) -> Score:
        """`value` with derivatives."""

    @abstractmethod
    def _value(self, log_rate: Array) -> Array:
        """`value` from the logarithms of mean loss rates."""


class PoissonLikelihood(Likelihood):
    """Independent losses; the sufficient statistics are sums per distinct load."""

    def __init__(self, counts: TrialCounts) -> None:
        self.groups, trials = merged(counts)
        order = np.argsort(self.groups.lost > 0, kind="stable")
        self.trials = trials[order]
        self.groups = self.groups.at(order)
        self._lossless = int(np.sum(self.groups.lost == 0))
        self._lost = self.groups.lost[self._lossless :]
        self._log_exposure = np.log(self.groups.exposure)
        self._log_observed_rate = np.log(self._lost) - self._log_exposure[self._lossless :]
        self.constant = _log_probability_at_group_means(counts)

    def _value(self, log_rate: Array) -> Array:
        lossless = log_rate[..., : self._lossless]
        lossy = log_rate[..., self._lossless :]
        expected = np.exp(lossless + self._log_exposure[: self._lossless])
        deviance = poisson_deviance(lossy - self._log_observed_rate) @ self._lost
        return np.asarray(-expected.sum(axis=-1) - deviance)

    def score(self, function: FittingFunction, mrr: Array, spread: Array) -> Score:
        """See `Likelihood.score`.

        With this information, a Newton step is a step in the logarithm of all means together. Far from the maximum,
        where means differ from counts by orders of magnitude, Newton's own step would be far too short or too long.
        """
        loss = function.log_loss(self.groups.load, mrr, spread)
        expected = np.exp(loss.log_rate + self._log_exposure)
        pulls = expected * loss.slope
        pull_up = -pulls.sum(axis=-1)
        pull_down = -(loss.slope[..., self._lossless :] @ self._lost)
        information = np.sum(pulls * loss.slope, axis=-1)
        both = (pull_up > 0) & (pull_down > 0)
        ratio = np.clip(np.where(both, pull_up, 1.0) / np.where(both, pull_down, 1.0), 1e-12, 1e12)
        near = np.abs(ratio - 1.0) < 1e-6
        logarithm = np.where(near, 1.0, np.log(ratio) / np.where(near, 1.0, ratio - 1.0))
        information = information / np.where(both, ratio * logarithm, 1.0)
        return Score(self._value(loss.log_rate), pull_up - pull_down, information)


class GeometricLikelihood(Likelihood):
    """Counts with a spread as large as their mean; sufficient statistics are sums per distinct load and exposure."""

    constant = 0.0

    def __init__(self, counts: TrialCounts) -> None:
        self.groups, self.trials = merged(counts, "exposure")
        self._log_exposure = np.log(self.groups.exposure / np.maximum(self.trials, 1.0))
        self._both = self.groups.lost + self.trials

    def _value(self, log_rate: Array) -> Array:
        log_mean = log_rate + self._log_exposure
        near = np.log1p(np.exp(-np.abs(log_mean))) @ self._both
        below = np.maximum(-log_mean, 0.0) @ self.groups.lost
        above = np.maximum(log_mean, 0.0) @ self.trials
        return -(near + below + above)

    def score(self, function: FittingFunction, mrr: Array, spread: Array) -> Score:
        """See `Likelihood.score`."""
        loss = function.log_loss(self.groups.load, mrr, spread)
        log_mean = loss.log_rate + self._log_exposure
        small = np.exp(-np.abs(log_mean))
        share = np.where(log_mean > 0, 1.0, small) / (1.0 + small)
        rest = np.where(log_mean > 0, small, 1.0) / (1.0 + small)
        slope = np.sum((self.groups.lost * rest - self.trials * share) * loss.slope, axis=-1)
        information = np.sum(self._both * share * rest * loss.slope**2, axis=-1)
        return Score(self._value(loss.log_rate), slope, information)


def poisson_deviance(difference: Array) -> Array:
    """Computes exp(s) - 1 - s.

    Times a count k, its error is about 1e-16 k s, which is negligible, as k s^2 is not large.
    """
    return np.asarray(np.expm1(difference) - difference)


def _log_probability_at_group_means(counts: TrialCounts) -> float:
    """The likelihood's constant: the log probability of all trials, each at the mean rate of its load's trials."""
    counts = counts.sorted()
    _, group = np.unique(counts.load, return_inverse=True)
    rate = np.bincount(group, counts.lost) / np.bincount(group, counts.exposure)
    mean = counts.exposure * rate[group]
    lossy = counts.lost > 0
    lost = counts.lost[lossy]
    own = log_poisson_at_mean(lost) - lost * poisson_deviance(np.log(mean[lossy] / lost))
    return float(np.sum(own) - np.sum(mean[~lossy]))


def log_poisson_at_mean(lost: Array) -> Array:
    """Log probability of a positive count that equals its mean, by Stirling's series if the terms would cancel."""
    # Formula: Stirling's series.
    stirling = (
        -0.5 * np.log(2 * np.pi * lost)
        - 1 / (12 * lost)
        + 1 / (360 * lost**3)
        - 1 / (1260 * lost**5)
    )
    few = np.minimum(lost, 20.0)
    return np.where(
        lost > 20.0, stirling, few * np.log(few) - few - scipy.special.gammaln(few + 1.0)
    )
