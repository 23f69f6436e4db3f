"""The expected information of a trial: by how much it reduces the variance of the critical load.

The posterior is a cloud of points, each with its critical load c. A trial measures a quantity y that differs from point
to point. If y is correlated with log c, the trial reduces the variance of log c: by linear regression, by
cov(log c, y)^2 / (var(y) + noise). There are three such y: the logarithm of the mean loss, whether there is any loss,
and in overload the capacity, of which many trials show mean and deviation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from lossratio.plrsearch.model import Array, FittingFunction
from lossratio.plrsearch.quadrature import Posterior

_POINTS = 256
_MODEL_ERROR = 0.03
"""Relative error of the curve itself: no trial counts as more precise."""


@dataclass(frozen=True)
class Cloud:
    """Equally probable points of a posterior; arrays of shape (points,), in frames per second.

    Attributes:
        function: The fitting function.
        mrr: Limiting forwarding rates.
        spread: Widths of the knee.
        deviation: Standard deviations of the capacity.
        log_load: Logarithms of the critical loads.
    """

    function: FittingFunction
    mrr: Array
    spread: Array
    deviation: Array
    log_load: Array

    @classmethod
    def of(cls, posterior: Posterior) -> Cloud:
        """Points at equal steps of the posterior's mass."""
        panels = posterior.panels
        steps = (np.arange(_POINTS) + 0.5) / _POINTS
        node = np.minimum(np.searchsorted(np.cumsum(posterior.masses), steps), posterior.masses.size - 1)
        panel = node // posterior.masses.shape[1]
        return cls(
            posterior.function,
            np.exp(panels.log_mrr.ravel()[node]),
            np.exp(panels.log_spread[panel]),
            panels.deviation[panel],
            np.log(panels.critical_load.ravel()[node]),
        )

    def gains_of_counts(self, loads: Array, duration: float, own_noise: float) -> Array:
        """Expected reduction of the variance of log c by a trial's count, if counts are near their mean.

        Args:
            loads: Possible loads of the trial, in frames per second; shape (loads,).
            duration: The trial's duration, in seconds.
            own_noise: Squared relative scatter of counts in addition to Poisson's.
        """
        loss = self.function.log_loss(loads[:, None], self.mrr, self.spread)
        scatter = (loss.slope * self.deviation).mean(axis=1) ** 2
        poisson = np.exp(np.clip(-loss.log_rate.mean(axis=1), -300.0, 300.0)) / duration
        gains = self._regression(loss.log_rate, poisson + scatter + own_noise + _MODEL_ERROR**2)
        return np.where(scatter > 1.0, 0.0, gains)

    def gains_of_loss(self, loads: Array, duration: float) -> Array:
        """Expected reduction by whether the trial loses any frame: large where few capacities are below the load."""
        place = self.function.explaining_mrr(loads[:, None], np.log(0.7 / duration), self.spread)
        share = ndtr((place - self.mrr) / np.hypot(self.deviation, 0.5 * self.spread))
        mean = share.mean(axis=1)
        return self._regression(share, mean * (1.0 - mean) - share.var(axis=1))

    def gain_of_overload(self) -> float:
        """Expected reduction by a trial far in overload, which shows one capacity of a normal distribution."""
        if not self.deviation.any():
            return 0.0
        spread = float(np.mean(self.deviation))
        parameters = np.stack([self.mrr / spread, self.deviation / spread, np.log(self.spread)])
        parameters = parameters - parameters.mean(axis=1, keepdims=True)
        covariance = parameters @ parameters.T / len(self.mrr) + 1e-12 * np.eye(3)
        influence = np.linalg.solve(covariance, parameters @ (self.log_load - self.log_load.mean()) / len(self.mrr))
        after = np.linalg.inv(np.linalg.inv(covariance) + np.diag([1.0, 2.0, 0.0]))
        return float(influence @ (covariance - after) @ influence)

    def _regression(self, values: Array, noise: Array) -> Array:
        """Gains by measured values of shape (loads, points), with these variances of noise."""
        centred = values - values.mean(axis=1, keepdims=True)
        covariance = centred @ self.log_load / len(self.log_load)
        return np.asarray(covariance**2 / np.maximum(np.mean(centred**2, axis=1) + noise, 1e-300))
