"""A Monte Carlo integrator of the draft's kind (section 5.5), to compare with: one sample at a time, in plain Python.

Importance sampling: samples come from a bivariate Gaussian over (-1, 1)^2, with the moments of the samples so far and
eight times their covariance. Unlike FD.io CSIT's integrator, this one runs alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_WIDER = 8.0


@dataclass(frozen=True)
class MonteCarlo:
    """What it found."""

    mean: float
    """Mean critical load, in frames per second."""
    samples_per_second: float
    """How many samples it took per second."""


def monte_carlo(
    trials: Sequence[tuple[float, float, int]], target: float, max_load: float, seconds: float, seed: int
) -> MonteCarlo:
    """Integrates the posterior of the stretch function under the Poisson likelihood for some seconds.

    Args:
        trials: Load, exposure and lost frames of each trial.
        target: Target loss ratio.
        max_load: Prior scale is half of it, in frames per second.
        seconds: CPU time.
        seed: Seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    centre, covariance = np.zeros(2), np.eye(2)
    total, mean, weight_mean, weight_covariance = -math.inf, 0.0, np.zeros(2), np.eye(2)
    started, samples = time.process_time(), 0
    while time.process_time() - started < seconds:
        root = np.linalg.cholesky(_WIDER * covariance + 1e-24 * np.eye(2))
        inverse = np.linalg.inv(root)
        for _ in range(50):
            normal = rng.standard_normal(2)
            point = centre + root @ normal
            if np.abs(point).max() >= 1.0:
                continue
            samples += 1
            log_bias = -0.5 * float(np.sum((inverse @ (point - centre)) ** 2))
            mrr = 1.0 + 0.5 * max_load * (2.0 / (1.0 - float(point[0])) - 1.0)
            spread = mrr ** (0.5 * (1.0 + float(point[1])))
            log_weight = _log_likelihood(trials, mrr, spread) - log_bias
            if log_weight > total + 1.0:
                total = 0.5 * (total + log_weight) if math.isfinite(total) else log_weight
                log_weight = total
            highest = max(total, log_weight)
            share = math.exp(log_weight - highest) / (math.exp(total - highest) + math.exp(log_weight - highest))
            total = highest + math.log(math.exp(total - highest) + math.exp(log_weight - highest))
            mean += share * (_critical_load(mrr, spread, target) - mean)
            step = point - weight_mean
            weight_mean = weight_mean + share * step
            weight_covariance = (1.0 - share) * (weight_covariance + share * np.outer(step, step))
        centre, covariance = weight_mean, weight_covariance
    return MonteCarlo(mean, samples / seconds)


def _log_likelihood(trials: Sequence[tuple[float, float, int]], mrr: float, spread: float) -> float:
    total = 0.0
    for load, exposure, lost in trials:
        log_mean = _log_loss_rate(load, mrr, spread) + math.log(exposure)
        total += lost * log_mean - math.exp(min(log_mean, 700.0)) - math.lgamma(lost + 1.0)
    return total


def _log_loss_rate(load: float, mrr: float, spread: float) -> float:
    x = (load - mrr) / spread
    return math.log(spread) + (x if x < -37.0 else math.log(max(x, 0.0) + math.log1p(math.exp(-abs(x)))))


def _critical_load(mrr: float, spread: float, target: float) -> float:
    """By Newton's method on the logarithm of the ratio."""
    load = mrr
    for _ in range(100):
        x = (load - mrr) / spread
        softplus = max(x, 0.0) + math.log1p(math.exp(-abs(x)))
        slope = (1.0 if x < -37.0 else -math.expm1(-softplus) / softplus) / spread - 1.0 / load
        step = (_log_loss_rate(load, mrr, spread) - math.log(target * load)) / max(slope, 1e-300)
        load = max(load - step, 1.0)
        if abs(step) < 1e-9 * load:
            break
    return load
