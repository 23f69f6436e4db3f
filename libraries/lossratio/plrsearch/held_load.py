"""The load that the search by counts holds: what fails sends it down, and what is verified sends it up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from lossratio.plrsearch.bracketing import FEW, HALF, bracket
from lossratio.plrsearch.counting import FINE, NEAR, Evidence
from lossratio.plrsearch.losses import FixedPause, SeenBucketRate, fixed_pause, seen_bucket

_STEP = 0.04
"""A step down, as a share of the load."""
_TAIL, _DOUBT = 5.0, 0.1
"""At most this many standard deviations below the mean rate in overload is held: there, a normal capacity has a mean
loss of about 1e-7. The deviation is a bound, from the rates that are seen, that the true one exceeds with this
probability."""


@dataclass
class HeldLoad:
    """The load that is held until counts verify it. All loads are in frames per second."""

    clamped: Callable[[float], float]
    """The load that the generator can send, and that is allowed, for any load."""
    lengths: tuple[float, float]
    """Seconds of a usual trial, and of a long one."""
    highest: float
    """Higher loads are not stated, whatever the trials say about them."""
    load: float = 0.0
    """The load; 0: no load is held yet."""
    bucket: SeenBucketRate | None = None
    """A bucket that lost frames in a long trial."""
    pause: FixedPause | None = None
    """The pauses in which frames were lost."""

    def hold_first(self, evidence: Evidence) -> None:
        """Holds the highest load that passed."""
        self.load = self.clamped(bracket(evidence)[0] or 0.0)

    def _keep_below_scatter(self, evidence: Evidence) -> None:
        """Keeps the load below what a capacity that varies forwards at its slowest, but at most 10 % below the mean."""
        if not evidence.has_scatter:
            return
        rates = evidence.goodputs
        mean = float(np.mean(rates))
        freedom = len(rates) - 1
        squares = freedom * float(np.var(rates, ddof=1))
        deviation = math.sqrt(squares / scipy.special.chdtri(freedom, 1.0 - _DOUBT))
        lowest = max(mean - _TAIL * deviation, (1.0 - NEAR) * mean)
        self.highest = min(self.highest, self.clamped(lowest))
        self.load = min(self.load, self.highest)

    def _keep_below_pauses(self, evidence: Evidence) -> None:
        """Keeps the load below the rates at which pauses lose frames."""
        self.pause = fixed_pause(evidence.counts) or self.pause
        if self.pause is not None:
            self.highest = min(self.highest, self.clamped(self.pause.free_load))

    def wants_long(self, evidence: Evidence) -> bool:
        """Whether a long trial at the load is due: after a few short ones, and again if it loses frames."""
        at_held = evidence.counts.duration[evidence.within(self.load, self.load)]
        is_due = len(at_held) >= FEW and np.count_nonzero(at_held >= self.lengths[1]) < 2
        return bool(is_due) and evidence.longest_passed(self.load) < self.lengths[1]

    def next_load(self, evidence: Evidence, left: float) -> float:
        """The load of the next trial: lower than the held one if that failed, higher if it is verified.

        Args:
            evidence: The trials.
            left: How many more trials there is time for.
        """
        self._keep_below_scatter(evidence)
        here = evidence.at(self.load)
        is_hopeless = here.trials * (here.most / evidence.target - 1.0) > HALF * left
        if here.least > evidence.target or (here.ratio > evidence.target and is_hopeless):
            self._lower(evidence)
        if evidence.is_verified(self.load):
            return self._raised(evidence)
        return self.load

    def _lower(self, evidence: Evidence) -> None:
        """Goes down: to what a bucket or pauses leave, or by a step."""
        self.bucket = seen_bucket(evidence, self.load, self.lengths) or self.bucket
        if self.bucket is not None:
            self.highest = min(self.highest, self.clamped(self.bucket.free_load))
        self._keep_below_pauses(evidence)
        if self.highest < self.load:
            self.load = self.highest
            return

        self.load = self.clamped((1.0 - _STEP) * self.load)

    def _raised(self, evidence: Evidence) -> float:
        """The load of the next trial after a verified one: slightly higher, until that is verified or contradicted."""
        higher = self.clamped((1.0 + FINE) * self.load)
        above = evidence.at(higher)
        is_open = above.least <= evidence.target and higher <= self.highest
        if is_open and evidence.is_verified(higher):
            self.load = higher
        elif is_open and above.trials < HALF * evidence.at(self.load).trials:
            return higher
        return self.load
