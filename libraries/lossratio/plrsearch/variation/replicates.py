"""What trials at equal loads show without any model: whether the SUT is the same from trial to trial."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import TrialCounts
from lossratio.plrsearch.quadrature import Posterior

_ENOUGH = 5
"""Degrees of freedom with which counts at equal loads decide."""
_ALIKE = 1.5
"""Largest chi-squared per degree of freedom of counts that differ by chance only."""
_IMPROBABLE = 1e-3
"""Largest probability of counts that chance does not explain."""
_LARGEST = 0.2
"""Share of the trials at a load of which bursts may be."""
_LEAST_MEAN = 1.0
"""Mean lost frames at a load, at least: scatter of fewer shows little, and is not that of a chi-squared."""
_LEAST_EXPECTED = 5.0
"""Expected lost frames of a load that is compared with a curve by itself; others are added up, but for improbable
ones: what is lost at one load would be hidden among the many of another."""
_BLUR = 2.0
"""Frames in the longest trial by which loads may differ from the curve's: no knee is narrower than 1 frame/s."""
_PARAMETERS = 2
_OVERLOAD = 1e-3
"""Mean loss ratio of a load that is overload, at least; and ten targets."""
_OF_USUAL = 0.3
"""The same, as a share of what the usual trial of such a load loses: so loads that lose frames only after overload are
none themselves."""
_AFTER = (1, 2, 3, 4, 6, 8)
"""How many trials after one in overload may differ from others."""
_BY_CHANCE = 2e-5
"""Largest probability of pairs that chance does not explain, for each of these."""


@dataclass(frozen=True)
class Replicates:
    """How counts of lost frames scatter at equal loads."""

    chi_squared: float = 0.0
    """Pearson's chi-squared around the mean of each load."""
    freedom: int = 0
    """Its degrees of freedom: trials less loads, of those with lost frames."""

    @classmethod
    def of(cls, counts: TrialCounts) -> Replicates:
        """The scatter of trials at equal loads."""
        _, group, trials = np.unique(counts.load, return_inverse=True, return_counts=True)
        lost, exposure = (np.bincount(group, column) for column in (counts.lost, counts.exposure))
        used = (trials > 1) & (lost >= _LEAST_MEAN * trials)
        expected = ((lost / exposure)[group] * counts.exposure)[used[group]]
        chi_squared = float(np.sum((counts.lost[used[group]] - expected) ** 2 / expected))
        return cls(chi_squared, int((trials - 1)[used].sum()))

    @classmethod
    def without_largest(cls, counts: TrialCounts) -> Replicates:
        """The scatter without the fifth of the trials at each load, and one at least, that lost most."""
        _, group, trials = np.unique(counts.load, return_inverse=True, return_counts=True)
        order = np.lexsort((-counts.lost / counts.exposure, group))
        rank = np.arange(len(counts)) - (np.cumsum(trials) - trials)[group[order]]
        return cls.of(counts.at(order[rank >= np.ceil(_LARGEST * trials)[group[order]]]))

    @property
    def ratio(self) -> float | None:
        """Chi-squared per degree of freedom: about 1 where counts differ by chance only; None if it is not known."""
        if self.freedom:
            return self.chi_squared / self.freedom
        return None

    @property
    def differ(self) -> bool:
        """Whether chance does not explain how trials at equal loads differ."""
        surprising = scipy.special.chdtrc(max(self.freedom, 1), self.chi_squared) < _IMPROBABLE
        return bool(surprising) and self.chi_squared > _ALIKE * self.freedom

    @property
    def are_alike(self) -> bool:
        """Whether trials at equal loads are enough, and do not differ by more than chance: none is seen to vary."""
        return self.freedom >= _ENOUGH and not self.differ


@dataclass(frozen=True)
class AfterOverload:
    """Trials soon after one in overload lose more than, or less than, others at their loads.

    Neighbours in time among the trials at a load are compared in pairs, of which one is such a trial: so neither a
    capacity that changes slowly nor a curve is mistaken for an effect of the trials before.
    """

    trials: int
    """How many trials after overload are such trials."""
    follows: NDArray[np.bool_]
    """Which trials, in the order of measurement, are such trials."""
    more: int
    """Pairs in which the trial after overload lost more."""
    less: int
    """Pairs in which it lost less."""

    @classmethod
    def of(cls, counts: TrialCounts, target: float) -> AfterOverload | None:
        """What pairs show beyond chance (sign test) for a target loss ratio; None if they do not.

        Of several numbers of trials it is the least after which the others are alike; else the one that is clearest.
        """
        _, group = np.unique(counts.load, return_inverse=True)
        ratio = (
            np.bincount(group, counts.lost) / np.bincount(group, counts.load * counts.exposure)
        )[group]
        much = ratio > max(_OVERLOAD, 10.0 * target)
        usual = np.median(ratio[much]) if much.any() else 0.0
        overloads = np.append(0, np.cumsum(much & (ratio > _OF_USUAL * usual)))
        found: list[tuple[float, AfterOverload]] = []

        for trials in _AFTER:
            follows = overloads[:-1] > overloads[np.maximum(np.arange(len(counts)) - trials, 0)]
            pairs = _pairs(group, counts, follows)
            chance = float(2.0 * scipy.special.bdtr(min(pairs), sum(pairs), 0.5))
            if chance < _BY_CHANCE:
                found.append((chance, cls(trials, follows, *pairs)))

        alike = (after for _, after in found if not Replicates.of(after.rested(counts)).differ)
        return next(alike, min(found, key=itemgetter(0))[1] if found else None)

    def rested(self, counts: TrialCounts) -> TrialCounts:
        """The other trials."""
        return counts.at(~self.follows)

    def __str__(self) -> str:
        """What the pairs show, in one line."""
        way = "more" if self.more > self.less else "less"
        which = "the trial" if self.trials == 1 else f"each of {self.trials} trials"
        return (
            f"{which} after one in overload loses {way} (in {max(self.more, self.less)} of {self.more + self.less} "
            f"pairs at equal loads): the other {np.sum(~self.follows)} are described"
        )


def _pairs(
    group: NDArray[np.int_], counts: TrialCounts, follows: NDArray[np.bool_]
) -> tuple[int, int]:
    """In how many pairs of neighbours at a load the trial that follows lost more, and less.

    They count only if it mostly lost more, or less, both as the later one of two and as the earlier one: by a drift it
    loses more as one of these, and less as the other.
    """
    signs: list[bool] = []
    later = earlier = 0.0
    order = np.argsort(group, kind="stable")

    for at in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        ways = np.diff(follows[at].astype(float))
        change = np.diff(counts.lost[at] / counts.exposure[at]) * ways
        later += np.sign(change[ways > 0.0]).sum()
        earlier += np.sign(change[ways < 0.0]).sum()
        free = 0

        for first in np.flatnonzero(change):
            if first >= free:
                free = first + 2
                signs.append(bool(change[first] > 0.0))

    if later * earlier > 0.0:
        return (sum(signs), len(signs) - sum(signs))
    return (0, 0)


@dataclass(frozen=True)
class LackOfFit:
    """How far lost frames at each load are from the likeliest curve."""

    deviance: float
    """Deviance of the counts, a chi-squared."""
    freedom: int
    """Its degrees of freedom: loads less parameters, and at least 1, as not all parameters are probable."""

    @classmethod
    def of(cls, posterior: Posterior, counts: TrialCounts) -> LackOfFit:
        """The distance from a posterior's likeliest curve."""
        loads = np.unique(counts.load, return_inverse=True)
        lost, exposure = (
            np.bincount(loads[1], column) for column in (counts.lost, counts.exposure)
        )
        near = loads[0] + _BLUR / counts.exposure.max() * np.array([[-1.0], [0.0], [1.0]])
        least, expected, most = (
            np.exp(posterior.mode.log_loss_rate(np.maximum(near, 1e-9))) * exposure
        )
        few = expected < _LEAST_EXPECTED
        few &= scipy.special.gammainc(np.maximum(lost, 1e-9), most) > _IMPROBABLE
        seen = np.append(lost[~few], lost[few].sum())
        least, most = (
            np.maximum(np.append(column[~few], column[few].sum()), 1e-9) for column in (least, most)
        )
        mean = np.clip(seen, least, most)
        deviance = 2.0 * float(np.sum(scipy.special.xlogy(seen, seen / mean) - seen + mean))

        return cls(deviance, max(int(np.sum(~few)) + bool(few.any()) - _PARAMETERS, 1))

    @property
    def is_certain(self) -> bool:
        """Whether chance does not explain the distance."""
        return bool(scipy.special.chdtrc(self.freedom, self.deviance) < _IMPROBABLE)
