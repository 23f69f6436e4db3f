"""The doubt about losses that the load does not explain, and neither does the time."""

import math
from collections.abc import Iterator
from functools import partial
from itertools import accumulate, groupby
from operator import attrgetter
from statistics import NormalDist
from typing import NamedTuple

from lossratio.results.doubts import TIME_SIGNIFICANCE, drift, spells
from lossratio.results.model import TestResult
from lossratio.results.note import NoteKind, doubt
from lossratio.results.trials import Trial
from lossratio.trials import USUAL_BATCH
from lossratio.values import format_ratio

LEAST_FALL = 0.15
"""Minimum difference of loss ratios that the load must explain. Near its limit, a SUT whose capacity differs by a few
per cent from trial to trial loses nothing or a few per cent."""


class _Fall(NamedTuple):
    """Two trials of one length, of which the one whose load is not higher lost more."""

    weak: Trial
    strong: Trial

    @property
    def size(self) -> float:
        """The difference of their loss ratios."""
        return _lost_share(self.weak) - _lost_share(self.strong)

    @property
    def deviations(self) -> float:
        """The difference in standard deviations of a SUT that loses batches of `USUAL_BATCH` frames by chance."""
        sent = [(trial.sent_frames or 0) / USUAL_BATCH for trial in self]
        lost = sum(trial.missing.lost_by_sut for trial in self) / USUAL_BATCH
        # Formula: the variance of a difference of two shares, if batches are lost independently and seldom.
        return self.size / math.sqrt(lost / sum(sent) * sum(1.0 / batches for batches in sent))


def _unexplained_loss(result: TestResult) -> str | None:
    """Finds that the load does not explain the loss: it differs at one load, or falls as the load grows.

    Each trial is compared with the trial of the same length, at the same or a smaller load, that lost most.
    """
    falls: list[_Fall] = []
    whole = (
        trial for trial in result.evidence if trial.decided_after_s is None and trial.sent_frames
    )
    for _, alike in groupby(sorted(whole, key=_by_fall), attrgetter("duration_s")):
        group = list(alike)
        falls += map(_Fall, accumulate(group, partial(max, key=_lost_share)), group)

    large = [fall for fall in falls if fall.size >= LEAST_FALL]
    fall = max(large, key=attrgetter("deviations"), default=None)
    if fall is None:
        return None
    # Any two trials could have been these.
    chance = TIME_SIGNIFICANCE / len(falls) ** 2
    if fall.deviations < NormalDist().inv_cdf(1.0 - chance):
        return None
    lost = format_ratio(_lost_share(fall.weak))
    less = format_ratio(_lost_share(fall.strong))
    load = result.written(fall.weak.load_per_interface_fps)
    larger = result.written(fall.strong.load_per_interface_fps)
    if load == larger:
        return f"trials at {load} lost from {less} to {lost} of the frames"
    return f"a trial at {load} lost {lost} of the frames, and one at {larger} only {less}"


def _by_fall(trial: Trial) -> tuple[float, float, float]:
    """Sorts trials by length and load. At one load, the largest loss comes first, because any order is as good."""
    return trial.duration_s, trial.load_per_interface_fps, -_lost_share(trial)


def _lost_share(trial: Trial) -> float:
    return trial.missing.lost_by_sut / max(1, trial.sent_frames or 0)


@doubt(
    NoteKind.ERRATIC,
    f"Of trials of one length, one lost at least {100.0 * LEAST_FALL:.0f} percentage points more than another at the "
    "same or a higher load. A SUT that loses batches of frames by chance shows this in fewer than one in "
    f"{1.0 / TIME_SIGNIFICANCE:,.0f} measurements.",
)
def erratic(result: TestResult) -> Iterator[str]:
    """The load does not explain the loss, and neither does the time, which would be told as drift or spells."""
    found = _unexplained_loss(result)
    if found is not None and not any(drift(result)) and not any(spells(result)):
        yield (
            f"{found}: something other than the load decides, and another measurement may end elsewhere. Look for what "
            "takes the device's time now and then, such as other programs on its CPUs or power saving"
        )
