"""The maxima of rows so smooth that they are nearly Gaussian there, found by Newton's method without any bracket."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.plrsearch.likelihood import RowDensity
from lossratio.plrsearch.model import Array

_NEWTON_STEPS = 2


@dataclass(frozen=True)
class Peaks:
    """The maxima of smooth rows; arrays of shape (rows,).

    Attributes:
        mode: Log m of the maximum.
        width: Standard deviation in log m of the Gaussian that is as curved.
        height: Logarithm of the density.
    """

    mode: Array
    width: Array
    height: Array

    @classmethod
    def near(cls, rows: RowDensity, starts: Array) -> Peaks:
        """The maxima, if they are within some widths of the starts (log m, one for each row)."""
        mode = starts
        for _ in range(_NEWTON_STEPS):
            score = rows.score(mode[:, None])
            width = 1.0 / np.sqrt(score.information[:, 0])
            mode = mode + np.clip(score.slope[:, 0] * width**2, -3.0 * width, 3.0 * width)
        return cls(mode, width, score.value[:, 0])

    def ends(self, reach: float) -> tuple[Array, Array]:
        """Log m below and above the maxima, so many widths away."""
        return self.mode - reach * self.width, self.mode + reach * self.width
