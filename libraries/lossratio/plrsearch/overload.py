"""Trials in overload, where a count shows the capacity: at which load they are, and whether more are needed."""

from __future__ import annotations

import math

import numpy as np

from lossratio.plrsearch.model import CriticalLoadQuestion
from lossratio.plrsearch.variation import Description
from lossratio.plrsearch.verifying import clamped, grid_step

_BEYOND = 5.0
"""Overload begins this far above the mrr, in widths of the knee and standard deviations of the capacity."""
_ABOVE = 0.01
"""The same as a share of the forwarding rate, if no curve is known."""
_STEP = 0.004
"""Largest step between loads in overload, as a share. Equal loads show whether the capacity varies."""
_SURPRISING, _OF_RANGE, _UNCLEAR = 0.03, 0.5, 8
"""If an overload trial loses far more or fewer frames than all before, this many overload trials come next. They show
whether the SUT has changed, or its capacity varies. The first two numbers say how far beyond the others the trial must
be: as a share of their largest loss, and as a share of the range of their losses."""
_BY_CHANCE = 5.0
"""How far beyond the others it must be in standard deviations of a count, too."""
_NOTHING = np.inf, 0.0
"""Least and most lost frames of no trials."""
_RETESTED = 2
"""Number of further trials at a load that was in overload and is no longer."""
_FARTHER = 2.0
"""How much farther beyond the forwarding rate the next load is."""
_MUCH_FARTHER = 10.0
"""The same if a load that lost frames loses nothing any more."""
_LITTLE = 0.1
"""Losses of less than this share of the largest loss at a load are little. If a larger loss follows, the capacity
varies, and does not only rise."""


class Overload:
    """Chooses the load of trials in overload.

    It stays the same while it loses frames, because equal trials show whether the SUT has changed. Each such trial must
    be recorded once, in order.

    Attributes:
        trials: Number of trials that were in overload.
        more: Number of further trials that are needed at once.
    """

    def __init__(self, question: CriticalLoadQuestion) -> None:
        """Begins without trials. The question has the limits."""
        self._question = question
        self._load: float | None = None
        self._lossy = self._quiet = 0
        self._is_little = False
        self._range = self._usual = _NOTHING
        self._reach = 1.0
        self.trials = self.more = 0

    @property
    def repeated(self) -> float | None:
        """The load, if two trials lost frames there, so that a shorter trial can show a bucket; otherwise None."""
        if self._lossy != 2:
            return None
        return self._load

    def record(self, lost: float) -> None:
        """Takes in the number of frames that a trial lost. Without loss, another load may be necessary.

        If the load lost frames before, two more trials show whether the SUT has become faster. If the loss is very
        different from all before, more trials come next, until one of them loses as little or as much as before.
        """
        self.more = max(self.more - 1, 0)
        least, most = self._range
        self._range = min(least, lost), max(most, lost)
        beyond = max(least - lost, lost - most)
        by_chance = _BY_CHANCE * np.sqrt(most)
        if most and beyond > max(_SURPRISING * most, _OF_RANGE * (most - least), by_chance):
            self.more = _UNCLEAR
            self._usual = least - by_chance, most + by_chance
        elif self.more and self._usual[0] <= lost <= self._usual[1]:
            # The SUT has not changed.
            self.more = 0

        is_little = lost < _LITTLE * most
        varies = self._is_little and not is_little
        self._is_little = is_little
        if lost or self._load == self._question.max_load:
            self.trials += 1
            self._lossy += 1
            self._quiet = 0
        else:
            self._quiet += 1
        if self._lossy and self._quiet > _RETESTED and not self.more:
            # The SUT has become faster. Nothing is known about overload, so the next trial shows it.
            self._leave()
            self._reach *= _MUCH_FARTHER
            self.more = 1
        elif varies or not self._lossy:
            self._leave()
            self._reach *= _FARTHER

    def begin_again(self) -> None:
        """Forgets the trials before a change of the SUT."""
        self._leave()
        self._reach = 1.0
        self.trials = self.more = 0

    def load(self, known: Description, forwarding_rate: float) -> float:
        """The load of the next trial, in frames per second.

        Args:
            known: The description of the trials.
            forwarding_rate: The latest known forwarding rate, in frames per second.
        """
        if self._load is not None:
            return self._load

        load = (1.0 + _ABOVE * self._reach) * forwarding_rate
        if known.local is None:
            mode = known.best.mode
            mrr = float(mode.mrr)
            width = _BEYOND * float(np.hypot(2.0 * mode.spread, mode.deviation))
            load = max(mrr + self._reach * width, (1.0 + 0.5 * _ABOVE * self._reach) * mrr)
        load = clamped(load, self._question)
        step = grid_step(_STEP * load)
        self._load = clamped(step * math.ceil(load / step), self._question)
        return self._load

    def _leave(self) -> None:
        self._load = None
        self._lossy = self._quiet = 0
        self._is_little = False
        self._range = _NOTHING
