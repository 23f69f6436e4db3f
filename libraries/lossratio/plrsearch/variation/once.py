"""Losses that come once in each trial, no matter how long it takes.

The first frames of a trial may be lost while a device learns its flows, and the last ones may wait for others in a
buffer. In a trial that takes ten times as long, such losses are not ten times as many. They say nothing about the loss
ratio in the long run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lossratio.plrsearch.model import TrialCounts
from lossratio.plrsearch.variation.rare import SeenCapacity
from lossratio.units import format_about

_BELOW, _FAR_BELOW = 0.97, 0.8
"""Trials at less than the first share of the forwarding rate show such losses, because others are close to overload. If
trials at less than the second share lose frames, too, long trials are needed."""
_ALIKE = 3.0
"""The mean loss at the higher of these loads is at most this many times the mean loss at the lower one. A loss that
comes once is at most this many times the largest loss there."""
_LOSSY = 2.0 / 3.0
"""Minimum share of the trials there that lose frames."""
_USUAL, _LONG = 3, 2
"""Number of trials of the usual length, and of long ones, that are compared at one load."""
_NEAR = 0.25
"""Trials at loads that are lower than those of long trials by less than this share are compared with these."""
_SURE = 2.0
"""Standard deviations by which long trials must lose fewer frames than if losses grew with time."""
_MOST = 2.0
"""A long trial loses at most this many times the largest loss of the others."""
_MARGIN = 1.25
"""Other trials may lose this many times the largest loss so far."""


@dataclass(frozen=True)
class Asked:
    """A trial that may show whether losses come once in each trial."""

    load: float
    """In frames per second."""
    is_long: bool
    """Whether it is long."""


@dataclass(frozen=True)
class OnceLost:
    """Frames that each trial loses once."""

    most: float
    """The largest number of frames that a trial lost once."""
    highest_load: float
    """At this load in frames per second, and above, losses may also come from overload."""
    usual_s: float
    """Seconds of the trials of the usual length."""
    long_s: float
    """Seconds of the longest trial."""

    @classmethod
    def of(cls, usual: TrialCounts, long: TrialCounts) -> OnceLost | None:
        """What long trials show, compared with others at the same load or less; None: losses grow with time.

        None also if there are too few trials.
        """
        highest = _BELOW * SeenCapacity.of(usual).mean
        shown = long.at(long.load < highest)
        if len(shown) < _LONG or not np.isfinite(highest):
            return None
        below = usual.at(usual.load < highest)
        # Trials with more load may lose more because of it.
        is_near = (below.load <= shown.load.max()) & (below.load > (1.0 - _NEAR) * shown.load.min())
        near = below.at(is_near)
        if len(near) < _USUAL or np.mean(near.lost > 0.0) < _LOSSY:
            return None

        times = float(shown.duration.sum() / np.median(near.duration))
        expected = times * float(near.lost.mean())
        variance = float(near.lost.var(ddof=1)) * (times + times**2 / len(near))
        is_less = expected - float(shown.lost.sum()) > _SURE * np.sqrt(variance)
        if not is_less or shown.lost.max() > _MOST * near.lost.max():
            return None
        # A much larger loss has another cause.
        is_alike = below.lost <= _ALIKE * near.lost.max()
        most = max(below.lost[is_alike].max(), shown.lost.max())
        usual_s = float(np.median(near.duration))
        return cls(float(most), highest, usual_s, float(shown.duration.max()))

    def without(self, counts: TrialCounts) -> TrialCounts:
        """The trials without the frames that may have been lost once."""
        return replace(counts, lost=np.maximum(counts.lost - self.frames, 0.0))

    def confirming(self, long: TrialCounts) -> TrialCounts:
        """The long trials that may confirm a load. Those far below overload only showed what is lost once."""
        return self.without(long.at(long.load >= _FAR_BELOW / _BELOW * self.highest_load))

    @property
    def frames(self) -> float:
        """So many lost frames of a trial do not count, because later trials may lose slightly more than others did."""
        return _MARGIN * self.most

    def __str__(self) -> str:
        """The losses, in a few words."""
        return (
            f"each trial loses up to {format_about(self.most)} frames, whether it takes {self.usual_s:g} s or "
            f"{self.long_s:g} s; these are not counted, so other losses of this size would not be seen"
        )


def asked(usual: TrialCounts, long: TrialCounts) -> Asked | None:
    """The next trial that may show such losses; None: there is no sign of them, or it is known."""
    rate = SeenCapacity.of(usual).mean
    high = usual.at((usual.load < _BELOW * rate) & (usual.load >= _FAR_BELOW * rate))
    low = usual.at((usual.load < _FAR_BELOW * rate) & (usual.lost > 0.0))
    if not np.isfinite(rate) or not len(high) or not len(low):
        return None

    load = float(low.load.max())
    there = usual.at(usual.load == load)
    is_lossy = all(np.mean(trials.lost > 0.0) >= _LOSSY for trials in (high, there))
    if not is_lossy or high.lost.mean() > _ALIKE * there.lost.mean():
        return None
    if len(there) < _USUAL:
        return Asked(load, is_long=False)
    shown = long.at(long.load < _BELOW * rate)
    if len(shown) >= _LONG or shown.lost.max(initial=0.0) > _MOST * there.lost.max():
        return None
    return Asked(load, is_long=True)
