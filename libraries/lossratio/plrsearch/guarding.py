"""Guard trials: a share of the trials is at and just below the load that is about to be reported.

That load moves while the search goes on, and a trial above it guards nothing. So the trials that are there count, not
those that once were meant to be: if the load falls, more follow, up to a limit.
"""

from dataclasses import replace

import numpy as np

from lossratio.plrsearch.estimate import NEAR
from lossratio.plrsearch.model import CriticalLoadQuestion, Curves, critical_load
from lossratio.plrsearch.quadrature import Posterior

_SHARE, _MOST = 0.15, 0.2
"""Share of the trials that are at and just below the reported load, and of those that were meant to be, at most."""
_KNOWN = 0.02
"""Largest standard deviation of the critical load, as a share of its mean, with which it is guarded."""
_JUST_BELOW = 0.1
"""Share of the target that the likeliest curve loses just below the reported load."""


class Guarding:
    """Chooses guard trials. It gets each trial once, in order.

    Attributes:
        load: The load about to be reported, in frames per second; None: it is not known well enough to be guarded.
    """

    def __init__(self, question: CriticalLoadQuestion) -> None:
        """Begins without trials; the question has target and limits."""
        self._question = question
        self._rows: list[tuple[float, float, float]] = []
        self._given = 0
        self._posterior: Posterior | None = None
        self.load: float | None = None
        self._guards: tuple[float, float] = (0.0, 0.0)

    def record(self, row: tuple[float, float, float]) -> None:
        """Takes in a trial: load, exposure and lost frames."""
        self._rows.append(row)

    def wanted(self, best: Posterior) -> float | None:
        """The load of the next trial, if it is to be a guard trial; None if another one is needed more.

        Args:
            best: The posterior of the function that fits best.
        """
        if best is not self._posterior:
            self._posterior = best
            self._place(best)
        trials = len(self._rows)
        if self.load is None or self._given >= _MOST * trials or self._guarding() >= _SHARE * trials:
            return None
        self._given += 1
        return self._guards[self._given % 2]

    def _guarding(self) -> int:
        """How many trials are at and just below the load."""
        load = self.load or 0.0
        return sum((1.0 - NEAR) * load <= own <= load for own, _, _ in self._rows)

    def _place(self, posterior: Posterior) -> None:
        """The load to guard, and those of guard trials: one standard deviation below it, and where loss is rare.

        They are on a grid, so that equal loads are frequent.
        """
        moments, mode = posterior.moments, posterior.mode
        share = moments.stdev / moments.mean
        self.load = None
        if share > _KNOWN:
            return
        self.load = moments.mean
        curves = Curves(posterior.function, np.array([mode.spread]), np.array([mode.deviation]))
        stricter = replace(self._question, target_loss_ratio=_JUST_BELOW * self._question.target_loss_ratio)
        ratios = [critical_load(curves, asked, np.array([mode.mrr]))[0] for asked in (self._question, stricter)]
        stdev = max(share, 1e-9) * self.load
        step = 2.0 ** np.floor(np.log2(stdev))
        near, below = (
            float(step * np.floor(load / step)) for load in (self.load - stdev, self.load * ratios[1] / ratios[0])
        )
        self._guards = near, min(near, below)
