"""The doubt about losses that the load does not explain, and neither does the time."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from lossratio.results.doubts import TIME_SIGNIFICANCE, drift, spells
from lossratio.results.model import TestResult
from lossratio.results.note import NoteKind, doubt
from lossratio.results.trials import Trial
from lossratio.trials import USUAL_BATCH
from lossratio.units import format_ratio

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


def _unexplained_loss(result: TestResult) -> str | None:
    """Finds that the load does not explain the loss: it differs at one load, or falls as the load grows.

    The losses of trials of each length are compared with those that never fall as the load grows and fit best
    (isotonic regression). The deviations must be larger than if a SUT lost batches of `USUAL_BATCH` frames by chance.
    """
    squares = 0.0
    freedom = 0
    falls: list[_Fall] = []
    whole = (
        trial for trial in result.evidence if trial.decided_after_s is None and trial.sent_frames
    )
    for _, alike in groupby(sorted(whole, key=_by_fall), attrgetter("duration_s")):
        group = list(alike)
        shares = list(map(_lost_share, group))
        batches = [(trial.sent_frames or 0) / USUAL_BATCH for trial in group]
        expected = _never_falling(shares, batches)
        freedom += len(group) - len(set(expected))
        for share, fit, sent in zip(shares, expected, batches, strict=True):
            squares += ((share - fit) * sent) ** 2 / max(1.0, fit * sent)
        weak = group[0]
        for trial in group:
            weak = max(weak, trial, key=_lost_share)
            falls.append(_Fall(weak, trial))

    fall = max(falls, key=attrgetter("size"), default=None)
    if fall is None or fall.size < LEAST_FALL:
        return None
    # Imported here because the import is slow, and most runs do not need it.
    from scipy.special import chdtrc

    if chdtrc(freedom, squares) > TIME_SIGNIFICANCE:
        return None
    lost = format_ratio(_lost_share(fall.weak))
    less = format_ratio(_lost_share(fall.strong))
    load = result.written(fall.weak.load_per_interface_fps)
    larger = result.written(fall.strong.load_per_interface_fps)
    if load == larger:
        return f"trials at {load} lost from {less} to {lost} of the frames"
    return f"a trial at {load} lost {lost} of the frames, and one at {larger} only {less}"


def _by_fall(trial: Trial) -> tuple[float, float, float]:
    """Sorts trials by length and load. At one load, the largest loss comes first, so that such losses are pooled."""
    return trial.duration_s, trial.load_per_interface_fps, -_lost_share(trial)


def _lost_share(trial: Trial) -> float:
    return trial.missing.lost_by_sut / max(1, trial.sent_frames or 0)


def _never_falling(values: Iterable[float], weights: Iterable[float]) -> list[float]:
    """The values that never fall and are closest to given ones, by pooling neighbours that do."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] >= pool[0]:
            mean, sum_of_weights, count = pools.pop()
            whole = sum_of_weights + pool[1]
            pool = ((mean * sum_of_weights + pool[0] * pool[1]) / whole, whole, count + pool[2])
        pools.append(pool)
    return [mean for mean, _, count in pools for _ in range(count)]


@doubt(
    NoteKind.ERRATIC,
    f"Of trials of one length, one lost at least {100.0 * LEAST_FALL:.0f} percentage points more than another at the "
    "same or a higher load. A SUT that loses batches of frames by chance shows this in less than one of "
    f"{1.0 / TIME_SIGNIFICANCE:,.0f} measurements.",
)
def erratic(result: TestResult) -> Iterator[str]:
    """The load does not explain the loss, and neither does the time, which would be told as drift or spells."""
    found = _unexplained_loss(result)
    if found is not None and not any(drift(result)) and not any(spells(result)):
        yield (
            f"{found}: something other than the load decides, and another measurement may end elsewhere. Look for what "
            "takes the device's time now and then, such as other work on its CPUs or power saving"
        )
