"""All nights of a soak test together: the critical load that they share, and the steps between them.

A night contributes a normal distribution of the logarithm of its critical load. The nights of an unchanged device have
one level, and differ from it by chance and by the variation from night to night (a hierarchical normal model: Gelman et
al., *Bayesian Data Analysis*, 5.4). The prior of this variation is DuMouchel's, whose scale is the nights' own
uncertainty (DuMouchel and Normand 2000). If the nights agree, this is the product of their posteriors.

Steps are found by a two-sided CUSUM of log-likelihood ratios. Each night is judged by what earlier nights predict.
"""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import scipy

from lossratio.history.series import Series
from lossratio.units import Unit, counted, range_in_words

Array = npt.NDArray[np.float64]

STEP = 0.0005
"""The step that the CUSUM looks for, relative to the load; steps of less than half of this are never found."""
_NIGHTS_PER_ALARM = 730.0
"""Mean number of nights between false alarms, if the level were known. It is estimated, so they are up to twice as
frequent: one in a year, or fewer."""
_LEAST_BEFORE = 3
"""A night is judged by this many earlier nights or more."""
_LAG = 2
"""The nights directly before a night do not judge it, because they may already be after the step."""
_FAR = 4.0
"""A night that is this many standard deviations off predicts no other night, unless a step explains it."""
_SPEAKING = 2
"""Number of nights that must speak for a step."""
_OVERSHOOT = 1.166
"""Mean excess of a sum over its limit, in standard deviations, on both sides (Siegmund 1985)."""
_CLOCK = 10e-6
"""Minimum half-width of an interval, as a share of the load: all nights have the same clock."""
_RATIOS = np.geomspace(1e-2, 1e4, 100)
"""Possible variations from night to night, as multiples of the nights' own uncertainty."""
_Z = 1.96
"""Half the width of a 95 % interval, in standard deviations."""


@dataclass(frozen=True)
class AllNights:
    """The critical load of several nights together."""

    load: float
    """Its median, in the unit of the series."""
    least_95: float
    """Lower end of its 95 % interval."""
    most_95: float
    """Upper end of its 95 % interval."""
    nights: int
    """Number of nights."""
    since: datetime
    """When the first of these nights began."""
    between_ratio: float
    """Standard deviation of the variation from night to night, as a share of the load (the median of its posterior)."""
    nights_for_step: int
    """After how many nights a step of `STEP` shows, on average."""

    def in_words(self, unit: Unit) -> str:
        """The load with its interval, and how soon a step would show."""
        nights = f"{counted(self.nights, 'night')} since {self.since:%Y-%m-%d}"
        interval = range_in_words(f"{self.least_95:,.1f}", f"{self.most_95:,.1f}") + ", 95 %"
        step = f"a step of {100 * STEP:g} % shows in about {counted(self.nights_for_step, 'night')}"
        return f"{nights} together: {self.load:,.1f} {unit.name} ({interval}); {step}"


@dataclass(frozen=True)
class _Level:
    """The level of some nights: a mixture of normal distributions, one for each possible variation between nights."""

    mass: Array
    """Probability of each variation."""
    between: Array
    """The variations: standard deviations in nats."""
    mean: Array
    """Mean of the level, in nats, for each variation."""
    variance: Array
    """Variance of the level."""

    @classmethod
    def of(cls, centres: Array, chances: Array) -> "_Level":
        """The level of nights with these centres (logarithms of loads) and standard deviations in nats."""
        scale = float(np.mean(chances**-2.0)) ** -0.5
        between = scale * _RATIOS
        variances = chances[:, None] ** 2 + between**2
        weights = 1.0 / variances
        precision = weights.sum(axis=0)
        mean = (weights * centres[:, None]).sum(axis=0) / precision
        squares = (weights * (centres[:, None] - mean) ** 2).sum(axis=0)
        nats = -0.5 * (np.log(variances).sum(axis=0) + np.log(precision) + squares)
        # The prior's density, for points that are evenly spaced by logarithm.
        nats += np.log(_RATIOS) - 2.0 * np.log1p(_RATIOS)
        mass = np.exp(nats - nats.max())
        return cls(mass / mass.sum(), between, mean, 1.0 / precision)

    def score(self, centre: float, chance: float) -> float:
        """How many standard deviations of a normal distribution a night is away from what the level predicts."""
        away = (centre - self.mean) / np.sqrt(chance**2 + self.between**2 + self.variance)
        below = float(self.mass @ scipy.special.ndtr(away))
        above = float(self.mass @ scipy.special.ndtr(-away))
        if below < above:
            return float(scipy.special.ndtri(below))
        return float(-scipy.special.ndtri(above))

    def size_of_step(self, chance: float) -> float:
        """The score that a step of `STEP` adds to a night with this standard deviation."""
        return self.score(float(self.mass @ self.mean) + STEP, chance)

    def quantile(self, probability: float) -> float:
        """A quantile of the level, in nats."""
        deviations = np.sqrt(self.variance)
        least, most = (self.mean - 9.0 * deviations).min(), (self.mean + 9.0 * deviations).max()

        def excess(level: float) -> float:
            below = self.mass @ scipy.special.ndtr((level - self.mean) / deviations)
            return float(below) - probability

        return float(scipy.optimize.brentq(excess, least, most, xtol=1e-9))


class _Cusum:
    """The evidence for a step in one direction, in nats."""

    def __init__(self, sign: float, first: int) -> None:
        self._sign = sign
        self.evidence = 0.0
        self.began = first
        self._speaking = 0

    def alarms(self, night: int, score: float, size: float) -> bool:
        """Whether there is a step, after a night with this score.

        Args:
            night: Number of the night.
            score: Its score.
            size: The step that is looked for, in standard deviations of the night.
        """
        most = max(_FAR, size)
        off = float(np.clip(self._sign * score, -most, most))
        self.evidence += size * (off - 0.5 * size)
        self._speaking += off > 0.5 * size
        if self.evidence <= 0.0:
            self.evidence, self.began, self._speaking = 0.0, night + 1, 0
        return self.evidence >= _limit(size) and self._speaking >= _SPEAKING


def _limit(size: float) -> float:
    """The evidence of an alarm, in nats, for the number of nights between two false ones (Siegmund 1985, 2.5)."""
    # Half of the false alarms come from each direction.
    wanted = 2.0 * _NIGHTS_PER_ALARM * 0.5 * size**2
    evidence = np.log1p(wanted)
    for _ in range(20):
        evidence = np.log1p(wanted + evidence)
    return max(float(evidence) - _OVERSHOOT * size, 0.0)


def _nights_for(size: float) -> int:
    """After how many nights a step of this many standard deviations shows, on average."""
    return max(_SPEAKING, int(np.ceil(_limit(size) / (0.5 * size**2) + _OVERSHOOT / size)))


@dataclass(frozen=True)
class _Segment:
    """Nights between two steps."""

    first: int
    """Number of its first night."""
    alike: tuple[int, ...]
    """Numbers of the nights that agree."""


def _segments(centres: Array, chances: Array) -> list[_Segment]:
    """The nights, divided at each step."""
    done: list[_Segment] = []
    first = 0
    alike: list[int] = []
    directions = (_Cusum(1.0, 0), _Cusum(-1.0, 0))
    for night, (centre, chance) in enumerate(zip(centres, chances, strict=True)):
        before = alike[:-_LAG]
        if len(before) < _LEAST_BEFORE:
            alike.append(night)
            continue

        level = _Level.of(centres[before], chances[before])
        score = level.score(centre, chance)
        size = level.size_of_step(chance)
        alarms = [one.alarms(night, score, size) for one in directions]
        if abs(score) < _FAR:
            alike.append(night)
        if any(alarms):
            began = directions[alarms.index(True)].began
            done.append(_Segment(first, tuple(one for one in alike if one < began)))
            first = began
            alike = list(range(began, night + 1))
            directions = (_Cusum(1.0, night + 1), _Cusum(-1.0, night + 1))

    return [*done, _Segment(first, tuple(alike))]


def night_starts(series: Series, indices: npt.NDArray[np.intp]) -> list[int]:
    """The positions, in these indices, of the first night of each level."""
    return [segment.first for segment in _segments(*_nights(series, indices))]


def all_nights(series: Series) -> AllNights | None:
    """The critical load of the nights since the last step, with the newest version of the device.

    Args:
        series: The series of estimates, of one device.

    Returns:
        The load; None: there is only one night.
    """
    centres, chances = _nights(series, np.arange(len(series.times)))
    builds = series["build"]
    alike = [
        night for night in _segments(centres, chances)[-1].alike if builds[night] == builds[-1]
    ]
    if len(alike) < 2:
        return None

    level = _Level.of(centres[alike], chances[alike])
    median = level.quantile(0.5)
    # What the nights share is uncertain for all of them together, too. A night counts as much as it does in the level.
    middle = np.searchsorted(np.cumsum(level.mass), 0.5)
    weights = 1.0 / (chances[alike] ** 2 + level.between[middle] ** 2)
    shared_by_night = [series["estimate_shared"][night] for night in alike]
    shared = _Z * float(np.average(shared_by_night, weights=weights))
    below = max(float(np.hypot(median - level.quantile(0.025), shared)), _CLOCK)
    above = max(float(np.hypot(level.quantile(0.975) - median, shared)), _CLOCK)

    usual_chance = float(np.median(chances[alike]))
    size = level.size_of_step(usual_chance)
    load, least, most = np.exp([median, median - below, median + above]).tolist()
    return AllNights(
        load=load,
        least_95=least,
        most_95=most,
        nights=len(alike),
        since=series.times[alike[0]],
        between_ratio=float(level.between[middle]),
        nights_for_step=_nights_for(size),
    )


def _nights(series: Series, indices: npt.NDArray[np.intp]) -> tuple[Array, Array]:
    """Logarithms of the estimates, and their standard deviations by chance, each of them at least that of the clock."""
    chances = np.array([series["estimate_chance"][index] for index in indices], dtype=float)
    return np.log(series.values[indices]), np.maximum(chances, _CLOCK / _Z)
