"""Tests of a sample's shape and order, as in `scipy.stats`, whose import takes long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from lossratio.plrsearch.model import Array


@dataclass(frozen=True)
class Finding:
    """The outcome of a test of a sample's shape or order."""

    value: float
    """Skewness, excess kurtosis, or correlation of ranks."""
    probability: float
    """Probability that a normal sample in no order has a value as far from the expected one, either side."""
    above: bool
    """Whether the value is above the expected one."""

    @classmethod
    def _of_normal(cls, value: float, deviations: float) -> Finding:
        return cls(value, float(2.0 * scipy.special.ndtr(-abs(deviations))), deviations > 0.0)


def skewness(sample: Array) -> Finding:
    """Tests the third moment of at least 8 values that are not all the same (D'Agostino 1970)."""
    n = len(sample)
    value = _standard_moment(sample, 3)
    standard = value * np.sqrt((n + 1.0) * (n + 3.0) / (6.0 * (n - 2.0)))
    kurtosis_of_it = 3.0 * (n * n + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0)
    kurtosis_of_it /= (n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0)
    variance = np.sqrt(2.0 * (kurtosis_of_it - 1.0)) - 1.0
    scale = np.sqrt(2.0 / (variance - 1.0))
    return Finding._of_normal(value, float(np.arcsinh(standard / scale) / np.sqrt(0.5 * np.log(variance))))


def excess_kurtosis(sample: Array) -> Finding:
    """Tests the fourth moment of at least 20 values that are not all the same (Anscombe and Glynn 1983)."""
    n = len(sample)
    value = _standard_moment(sample, 4)
    expected = 3.0 * (n - 1.0) / (n + 1.0)
    variance = 24.0 * n * (n - 2.0) * (n - 3.0) / ((n + 1.0) ** 2 * (n + 3.0) * (n + 5.0))
    skew = 6.0 * (n * n - 5.0 * n + 2.0) / ((n + 7.0) * (n + 9.0))
    skew *= np.sqrt(6.0 * (n + 3.0) * (n + 5.0) / (n * (n - 2.0) * (n - 3.0)))
    freedom = 6.0 + 8.0 / skew * (2.0 / skew + np.sqrt(1.0 + 4.0 / skew**2))
    base = 1.0 + (value - expected) / np.sqrt(variance) * np.sqrt(2.0 / (freedom - 4.0))
    root = np.cbrt((1.0 - 2.0 / freedom) / base)
    deviations = (1.0 - 2.0 / (9.0 * freedom) - root) / np.sqrt(2.0 / (9.0 * freedom))
    return Finding._of_normal(value - 3.0, float(deviations))


def rank_correlation(first: Array, second: Array) -> Finding:
    """Tests whether two samples, neither all the same, rise and fall together (Spearman 1904, Student's t)."""
    value = float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])
    freedom = len(first) - 2.0
    t = abs(value) * np.sqrt(freedom / max(1.0 - value * value, 1e-300))
    return Finding(value, float(2.0 * scipy.special.stdtr(freedom, -t)), value > 0.0)


def _standard_moment(sample: Array, power: int) -> float:
    centred = sample - sample.mean()
    return float(np.mean(centred**power) / np.mean(centred**2) ** (0.5 * power))


def _ranks(sample: Array) -> Array:
    """Ranks from 1; equal values have the mean of their ranks."""
    _, which, times = np.unique(sample, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(times) - 0.5 * (times - 1.0))[which])
