"""The prior of the draft, section 5.4: mrr Lomax distributed, spread a random power of the mrr."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.plrsearch.model.functions import Array

_FLOOR = 0.01
"""Below this log m the density's factor 1 / log m is constant, to have no pole: mrrs under 1.01 frames per second."""


@dataclass(frozen=True)
class Prior:
    """Density over (log a, log m), where 0 < log a < log m.

    m - 1 is Lomax distributed with alpha 1, and a = m^u with u uniform on (0, 1). The draft leaves the scale of m
    open; it is half the maximum load, as in FD.io CSIT's code.

    Attributes:
        scale: Scale of the mrr, in frames per second.
    """

    scale: float

    def log_density(self, log_mrr: Array) -> Array:
        """Logarithm of the density per unit of log a and of log m."""
        reach = self._log_reach(log_mrr)
        return np.asarray(np.log(self.scale) + log_mrr - 2.0 * reach - np.log(np.maximum(log_mrr, _FLOOR)))

    def slope(self, log_mrr: Array) -> Array:
        """Derivative of `log_density` with respect to log m."""
        pole = np.where(log_mrr > _FLOOR, 1.0 / np.maximum(log_mrr, _FLOOR), 0.0)
        return np.asarray(1.0 - 2.0 * np.exp(log_mrr - self._log_reach(log_mrr)) - pole)

    def highest_log_mrr(self, drop: float) -> float:
        """The log m beyond which the prior has less than exp(-drop) of its mass."""
        return max(float(np.log(self.scale)), 1.0) + drop

    def _log_reach(self, log_mrr: Array) -> Array:
        return np.log(self.scale + np.expm1(log_mrr))
