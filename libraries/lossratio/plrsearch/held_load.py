"""The load that the search by counts holds: what fails sends it down, and what is verified sends it up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lossratio.plrsearch.bounds import LossBounds
from lossratio.plrsearch.bracketing import HALF, bracket
from lossratio.plrsearch.counting import FINE, NEAR, Evidence
from lossratio.plrsearch.losses import (
    FixedPause,
    SeenBucketRate,
    fixed_pause,
    is_near_knee,
    seen_bucket,
)
from lossratio.plrsearch.statement import LEAST_TRIALS

_STEP = 0.0025
"""Half of the first step down, as a share of the load. Each further step is twice as long."""
_EVENT_DOWNS = 3
"""Where events, and not the load, lose frames, the first step down is as long as the third one elsewhere."""
_FEW = 5
"""Short trials at a load before a long one."""
_TAIL = 8.0
"""Where the capacity varies, this many standard deviations below its mean are held. A normal capacity with a mean loss
of 1e-7 is about 5 of them above the load, and three trials estimate them with an error of half."""


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
    ceiling: float = math.inf
    """The lowest load above it that failed; infinite: none did."""
    downs: int = 0
    """Steps down since a load was verified."""
    bucket: SeenBucketRate | None = None
    """A bucket that lost frames in a long trial."""
    pause: FixedPause | None = None
    """The pauses in which frames were lost."""

    def hold_first(self, evidence: Evidence, goodputs: Sequence[float], reference: float) -> None:
        """Holds the highest load that passed.

        Args:
            evidence: The trials.
            goodputs: Frames per second that trials in one overload forwarded.
            reference: The load of this overload.
        """
        floor, ceiling = bracket(evidence)
        self.ceiling = ceiling or math.inf
        if len(goodputs) > 1 and evidence.varies(reference):
            below = _TAIL * float(np.std(goodputs, ddof=1))
            self.highest = self.clamped(float(np.mean(goodputs)) - below)
        self.load = min(self.clamped(floor or 0.0), self.highest)

    def wants_long(self, evidence: Evidence, goodputs: Sequence[float]) -> bool:
        """Whether a long trial at the load is due: after a few short ones, and again if a bucket may lose frames."""
        usual, long = self.lengths
        at_held = evidence.counts.duration[evidence.within(self.load, self.load)]
        longs = int(np.count_nonzero(at_held > usual))
        most = 1 + is_near_knee(self.load, goodputs)
        is_open = longs < most and not evidence.passed_long(self.load, usual)
        return long > usual and len(at_held) >= _FEW and is_open

    def next_load(self, evidence: Evidence, goodputs: Sequence[float], left: float) -> float:
        """The load of the next trial: lower than the held one if that failed, higher if it is verified.

        Args:
            evidence: The trials.
            goodputs: Frames per second that trials in one overload forwarded.
            left: How many more trials there is time for.
        """
        here = evidence.at(self.load)
        if self._is_failed(here, evidence.target, left):
            is_event = here.lossy <= HALF * here.trials
            return self._lowered(evidence, goodputs, is_event=is_event)
        if evidence.is_verified(self.load):
            return self._raised(evidence)
        return self.load

    def _is_failed(self, here: LossBounds, target: float, left: float) -> bool:
        """Whether a load loses too much, or half of the remaining trials without loss would be too few to verify it."""
        if here.least > target or here.lost <= target * here.frames:
            return here.least > target
        clumps = LossBounds.most_of(here.lost / here.burst)
        frames = here.burst * clumps / target - here.frames
        return frames > HALF * left * here.frames / here.trials

    def _lowered(self, evidence: Evidence, goodputs: Sequence[float], *, is_event: bool) -> float:
        """The next load: what a bucket or pauses leave, a verified load or half of the way to it, or a step down."""
        self.ceiling = self.load
        self.bucket = seen_bucket(evidence, self.load, goodputs, self.lengths) or self.bucket
        self.pause = fixed_pause(evidence.counts) or self.pause
        for seen in (self.bucket, self.pause):
            if seen is not None:
                self.highest = min(self.highest, self.clamped(seen.free_load))
        if self.highest < self.load:
            self.load = self.highest
            return self.load

        verified = evidence.highest_verified(self.highest)
        if verified is not None:
            self.load = verified
            return self._raised(evidence)
        self.downs += 1
        if is_event:
            self.downs = max(self.downs, _EVENT_DOWNS)
        self.load = self.clamped(self.load * (1.0 - min(_STEP * 2.0**self.downs, 2.0 * NEAR)))
        return self.load

    def _raised(self, evidence: Evidence) -> float:
        """The load of the next trial after a verified one: the middle of the bracket, or its ends if it is narrow."""
        self.downs = 0
        if self.ceiling <= self.load:
            self.ceiling = math.inf
        ceiling = min(self.ceiling, self.highest)
        if ceiling > (1.0 + FINE) * self.load:
            self.load = self.clamped(HALF * (self.load + ceiling))
            return self.load

        higher = self.clamped((1.0 + FINE) * self.load)
        if self.load >= self.highest:
            return self.load
        above = evidence.at(higher)
        enough = max(LEAST_TRIALS, HALF * evidence.at(self.load).trials)
        if above.least <= evidence.target and above.trials < enough:
            return higher
        if evidence.is_verified(higher):
            self.load = higher
        return self.load
