"""The posterior of one fitting function if the capacity varies: a sum over points that follow its ridge.

The posterior over (log m, log a, log s) is a bent ridge, and may be a thousand times narrower where s is small.
Laplace's method for each trial (`rough_rows`) shows approximately where the ridge is, and how wide it is. Points that
fill the unit cube evenly are moved to the ridge, by the quantiles of log s, of log a at this log s, and of log m at
both. Each point's weight is the exact density, divided by the density of the points (importance sampling). No
randomness is involved: the same trials give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood import (
    GRID,
    Bumps,
    Model,
    VaryingCapacityLikelihood,
    wright_omega,
)
from lossratio.plrsearch.model import (
    Array,
    CriticalLoadQuestion,
    Curves,
    Indices,
    TrialCounts,
    critical_load,
)
from lossratio.plrsearch.quadrature.posterior import Posterior

_SLICES, _SPREADS = 11, 17
"""Number of values of log s, and of log a at each of them, in one round of the search for the ridge."""
_FEW, _SLICES_OF_FEW = 6, 25
"""Up to this many trials count as few, and require this many values of log s, because the ridge's width may change a
thousandfold."""
_MANY, _MOST_OF_FEW = 60, 6.0
"""With fewer trials there are more points, in inverse proportion, but at most this many times as many."""
_ZOOMS = 6
_DEPTH, _TOP = 14.0, 4.0
"""Nats below a maximum where the ridge ends, and where its highest part ends."""
_FINE = 0.35
"""Share of these values that are on the ridge, if they are close enough to each other."""
_DEEP = 60.0
"""There are no points this many nats below a maximum. The highest part may be missed by less."""
_POWERS = ((0.75, 1.0), (0.15, 0.25), (0.1, 0.0))
"""Shares of points that follow the ridge, a flatter ridge, or no ridge, so that no shoulder of the posterior is
missed."""
_ANYWHERE, _REACH = 0.1, 2.0
"""Share of points whose log m is anywhere above log a, and their mean distance from log a: about that of the prior."""
_TABLE = np.linspace(0.0, 1.0, 129)
"""Probabilities whose quantiles are tabulated."""
_FREEDOM = 4.0
"""Degrees of freedom of Student's t, the points' distribution in log m."""
_ITERATIONS = 6
_NEAR = 0.1
"""Standard deviations of a row by which its maximum may be missed."""
_CELLS_AT_ONCE = 1 << 14
_NO_MASS = 25.0
"""A point that is this many nats lighter than the heaviest point has no mass."""
_IMPROBABLE = 40.0
"""If a model is less probable than the best model by about this many nats, its posterior need not be exact."""
_FEW_LOST = 1000.0
"""If a trial lost more than this, its probability over its capacity is nearly a Gaussian."""
_FIRM = 0.25
"""Minimum share of the Gaussians' stiffness in the search for a row's maximum, so that no step is far too long."""
_SHARP = 0.05
"""Square of a step's width in deviations of the capacity. A narrower step is as good as sharp."""
_FAR = 30.0
"""Deviations above a step beyond which its hazard is 0."""
_HOPELESS = 60.0
"""Distance from a row's mode, in widths of the row, beyond which a point has no mass."""


EXACT = (850, 0.02)
"""For results: the number of points of the sum with many trials, and the error above which there are four times as many
points."""
ROUGH = (300, np.inf)
"""For choosing loads: the same."""


def deviation_bounds(counts: TrialCounts) -> tuple[float, float]:
    """The prior's bounds in log s: 1e-6 and 0.1 of the median forwarding rate of trials that lost frames."""
    lossy = counts.lost > 0
    forwarded = counts.load[lossy] - counts.lost[lossy] / counts.exposure[lossy]
    forwarded = forwarded[forwarded > 0]
    scale = float(np.median(forwarded)) if len(forwarded) else float(counts.load.max(initial=1e6))
    return float(np.log(1e-6 * scale)), float(np.log(0.1 * scale))


def sampled(
    models: Sequence[Model[VaryingCapacityLikelihood]],
    question: CriticalLoadQuestion,
    points: int,
    error: float = np.inf,
) -> tuple[Posterior, ...]:
    """The posteriors of models of the same trials.

    They are rough for models that are improbable compared with the best.
    """
    ridges = [_Ridge.of(model) for model in models]
    least = max(ridge.height for ridge in ridges) - _IMPROBABLE
    found = []
    for model, ridge in zip(models, ridges, strict=True):
        own_points, own_error = (points, error) if ridge.height > least else ROUGH
        number = round(
            own_points * min(max(_MANY / max(len(model.likelihood.groups), 1), 1.0), _MOST_OF_FEW)
        )
        one = _summed(model, question, ridge, number)
        found.append(one if one.error <= own_error else _summed(model, question, ridge, 4 * number))
    return tuple(found)


def _summed(
    model: Model[VaryingCapacityLikelihood],
    question: CriticalLoadQuestion,
    ridge: _Ridge,
    number: int,
) -> Posterior:
    """The posterior, from a number of points."""
    likelihood = model.likelihood
    even = even_points(number, 3)
    log_deviation, log_spread, log_area = ridge.at(even[:, 0], even[:, 1])
    # Points with about the same log a are computed together, because they share everything that only depends on log a.
    order = np.argsort(log_spread, kind="stable")
    even = even[order]
    log_deviation = log_deviation[order]
    log_spread = log_spread[order]
    log_area = log_area[order]
    log_mrr = np.empty(number)
    log_mass = np.full(number, -np.inf)
    deviation = np.exp(log_deviation)

    for piece in _pieces(number, model):
        bumps = likelihood.bumps(model.function, log_spread[piece])
        mode, width, _ = rough_rows(model, log_spread[piece], deviation[piece], bumps)
        log_mrr[piece], log_density = _placed(log_spread[piece], even[piece, 2], mode, width)
        log_area[piece] -= log_density
        near = np.abs(log_mrr[piece] - mode) < _HOPELESS * width
        columns = (
            np.exp(column[piece][near, None]) for column in (log_mrr, log_spread, log_deviation)
        )
        bumps = Bumps(bumps.place[near], bumps.width[near])
        exact = likelihood.log_probability(Curves(model.function, *columns), bumps)
        log_mass[piece.start + np.flatnonzero(near)] = exact

    log_mass += model.prior.log_density(log_mrr)
    likeliest = int(np.argmax(log_mass))
    log_mass += log_area - np.log(number * (ridge.bounds[1] - ridge.bounds[0]))
    log_mass[log_mrr <= log_spread] = -np.inf
    kept = np.flatnonzero((log_mass > log_mass.max() - _NO_MASS) | (np.arange(number) == likeliest))
    curves = Curves(
        model.function, *(np.exp(values[kept]) for values in (log_mrr, log_spread, log_deviation))
    )
    loads = critical_load(curves, question)
    log_total = float(scipy.special.logsumexp(log_mass))
    masses = np.exp(log_mass[kept] - log_total)

    return Posterior(
        question,
        loads,
        masses / masses.sum(),
        1,
        curves=curves,
        likeliest=int(np.searchsorted(kept, likeliest)),
        log_evidence=log_total + likelihood.constant,
        error=_error(loads, masses, order[kept] % 2 == 0),
    )


def _pieces(number: int, model: Model[VaryingCapacityLikelihood]) -> list[slice]:
    """Pieces of rows that are computed at once: they fit into the processor's cache."""
    size = max(1, _CELLS_AT_ONCE // max(1, len(model.likelihood.groups)))
    return [slice(at, at + size) for at in range(0, number, size)]


def _error(loads: Array, masses: Array, even: NDArray[np.bool_]) -> float:
    """The approximate error, from every second point: half of the difference of mass, and of the mean in deviations."""
    half = 2.0 * masses[even].sum() - 1.0
    mean = masses @ loads / masses.sum()
    deviation = float(np.sqrt(masses @ (loads - mean) ** 2))
    if abs(half) >= 1.0:
        return np.inf
    other = masses[even] @ loads[even] / masses[even].sum()
    return float(0.5 * max(abs(half), abs(other - mean) / max(deviation, 1e-12 * mean)))


def _placed(log_spread: Array, even: Array, mode: Array, width: Array) -> tuple[Array, Array]:
    """One log m at each log a, and the logarithm of its density: on the ridge, or anywhere above log a."""
    z = scipy.special.stdtrit(_FREEDOM, np.maximum(even - _ANYWHERE, 1e-9) / (1.0 - _ANYWHERE))
    above = -_REACH * np.log1p(-np.minimum(even / _ANYWHERE, 1.0 - 1e-9))
    log_mrr = np.where(even < _ANYWHERE, log_spread + above, mode + width * z)
    log_mrr = np.maximum(log_mrr, log_spread)
    z = (log_mrr - mode) / width
    half = 0.5 * _FREEDOM
    log_student = (
        scipy.special.gammaln(half + 0.5)
        - scipy.special.gammaln(half)
        - 0.5 * np.log(np.pi * _FREEDOM)
    )
    log_student = log_student - (half + 0.5) * np.log1p(z * z / _FREEDOM) - np.log(width)
    log_anywhere = -(log_mrr - log_spread) / _REACH - np.log(_REACH)

    return log_mrr, np.logaddexp(
        np.log(1.0 - _ANYWHERE) + log_student, np.log(_ANYWHERE) + log_anywhere
    )


@dataclass(frozen=True)
class _Ridge:
    """Where the posterior approximately is in log s and log a, as tables of quantiles."""

    bounds: tuple[float, float]
    """Smallest and largest log s."""
    log_deviation: Array
    """Log s of the slices, increasing."""
    deviations: Array
    """Quantiles of log s."""
    spreads: Array
    """Quantiles of log a of each slice, shape (slices, quantiles)."""
    height: float
    """Approximate logarithm of the highest slice's integral."""

    @classmethod
    def of(cls, model: Model[VaryingCapacityLikelihood]) -> _Ridge:
        """Looks for the ridge, first everywhere, then more closely."""
        bounds = deviation_bounds(model.likelihood.groups)
        ceiling = model.prior.highest_log_mrr(20.0)
        found: list[_Slice] = []
        few = len(model.likelihood.groups) < _FEW
        slices = _SLICES_OF_FEW if few else _SLICES
        low, high = bounds

        for _ in range(_ZOOMS):
            new = np.setdiff1d(np.linspace(low, high, slices), [one.log_deviation for one in found])
            # A peak of few trials is so narrow at small log s that it is found only from the next larger log s.
            for some in new[::-1, None] if few else [new]:
                found = sorted(
                    [*found, *_slices(model, some, found, ceiling)], key=attrgetter("log_deviation")
                )
            places, heights = np.array([(one.log_deviation, one.log_mass) for one in found]).T
            first, last, number = _extent(heights, _DEPTH)
            if number >= _FINE * slices:
                break
            low, high = places[first], places[last]

        tables = np.stack([_quantiles(one.log_spread, one.height) for one in found])
        return cls(bounds, places, _quantiles(places, heights), tables, float(heights.max()))

    def at(self, deviation: Array, spread: Array) -> tuple[Array, Array, Array]:
        """Log s and log a of points in the unit square, and the logarithm of the area that each point represents."""
        log_deviation, log_area = _between(deviation, lambda at: self.deviations[at])
        above = np.clip(
            np.searchsorted(self.log_deviation, log_deviation), 1, len(self.log_deviation) - 1
        )
        low = self.log_deviation[above - 1]
        high = self.log_deviation[above]
        share = (log_deviation - low) / (high - low)
        log_spread, more = _between(
            spread,
            lambda at: (
                (1.0 - share) * self.spreads[above - 1, at] + share * self.spreads[above, at]
            ),
        )
        return log_deviation, log_spread, log_area + more


@dataclass(frozen=True)
class _Slice:
    """The approximate posterior at one log s."""

    log_deviation: float
    log_spread: Array
    """Places in log a, increasing: from 0 to the ceiling."""
    height: Array
    """Approximate logarithms of the rows' integrals there."""

    @property
    def log_mass(self) -> float:
        """Logarithm of the slice's integral."""
        density = np.exp(self.height - self.height.max())
        area = np.sum(0.5 * np.diff(self.log_spread) * (density[1:] + density[:-1]))
        return float(self.height.max() + np.log(area))

    @property
    def top(self) -> tuple[float, float]:
        """Log a around the highest part of the ridge."""
        first, last, _ = _extent(self.height, _TOP)
        return float(self.log_spread[first]), float(self.log_spread[last])


def _slices(
    model: Model[VaryingCapacityLikelihood],
    log_deviation: Array,
    known: Sequence[_Slice],
    ceiling: float,
) -> list[_Slice]:
    """The slices at each log s, in finer and finer steps: first everywhere, or around the tops of known slices."""
    everywhere = GRID * np.round(np.linspace(0.0, ceiling, _SPREADS) / GRID)
    places = np.tile(everywhere, (len(log_deviation), 1))
    if known:
        ends = np.array([one.top for one in known])
        low, high = (
            np.interp(log_deviation, [one.log_deviation for one in known], column)
            for column in ends.T
        )
        inner = low[:, None] + (high - low)[:, None] * np.linspace(-0.6, 1.6, _SPREADS)
        places = np.column_stack([places, np.clip(inner, 0.0, ceiling)])

    found = [_Slice(float(one), np.zeros(0), np.zeros(0)) for one in log_deviation]
    which = list(range(len(found)))
    for _ in range(2 * _ZOOMS):
        deviations = np.repeat(np.exp(log_deviation[which]), places.shape[1])
        heights = np.empty(places.shape)
        for piece in _pieces(places.size, model):
            bumps = model.likelihood.bumps(model.function, places.ravel()[piece])
            heights.ravel()[piece] = rough_rows(
                model, places.ravel()[piece], deviations[piece], bumps
            )[2]

        for index, place, height in zip(which, places, heights, strict=True):
            place, order = np.unique(
                np.concatenate([found[index].log_spread, place]), return_index=True
            )
            height = np.concatenate([found[index].height, height])[order]
            found[index] = _Slice(found[index].log_deviation, place, height)

        which = [
            index for index in which if _extent(found[index].height, _TOP)[2] < _FINE * _SPREADS
        ]
        if not which:
            break

        ends = np.array([found[index].top for index in which])
        places = ends[:, :1] + np.diff(ends, axis=1) * np.linspace(0.0, 1.0, _SPREADS)

    return found


def _extent(height: Array, depth: float) -> tuple[int, int, int]:
    """The first and last place around all places at most this many nats below the highest, and the number of these."""
    inside = np.flatnonzero(height > height.max() - depth)
    return max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, len(height) - 1), len(inside)


def _quantiles(x: Array, log_density: Array) -> Array:
    """Quantiles of the points' distribution."""
    first, last, _ = _extent(log_density, _DEEP)
    x, log_density = x[first : last + 1], log_density[first : last + 1]
    cumulative = np.zeros(len(x))
    for share, power in _POWERS:
        density = np.exp(power * (log_density - log_density.max()))
        parts = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(x) * (density[1:] + density[:-1]))])
        cumulative += share * parts / parts[-1]
    return np.interp(_TABLE, cumulative, x)


def _between(probability: Array, quantiles: Callable[[Indices], Array]) -> tuple[Array, Array]:
    """Quantiles between the tabulated ones, and the logarithm of their derivative."""
    places = probability * (len(_TABLE) - 1)
    at = np.minimum(places.astype(int), len(_TABLE) - 2)
    low = quantiles(at)
    step = quantiles(at + 1) - low
    return low + step * (places - at), np.log(np.maximum(step, 1e-300) * (len(_TABLE) - 1))


def rough_rows(
    model: Model[VaryingCapacityLikelihood], log_spread: Array, deviation: Array, bumps: Bumps
) -> tuple[Array, Array, Array]:
    """Modes in log m, their widths, and the rows' approximate log masses, if each trial's probability is a Gaussian.

    Trials without loss are steps of the same width. If there are no other trials, only the prior bounds the row above.
    """
    likelihood, prior = model.likelihood, model.prior
    lost = likelihood.groups.lost
    trials = likelihood.trials
    # The groups are in the order of their losses.
    quiet, few = np.searchsorted(lost, (0.0, _FEW_LOST), side="right")

    if quiet == len(lost):
        edge = np.log(bumps.place.max(axis=1, initial=1.0))
        mode = np.maximum(np.maximum(edge, log_spread) + 0.5, np.log(prior.scale))
        return mode, np.ones(len(mode)), prior.log_density(mode)

    deviation = deviation[:, None]
    scale = deviation**2 + bumps.width**2
    weight = trials / scale
    pull = weight * bumps.place
    total, firm = weight[:, quiet:].sum(axis=1), weight[:, few:].sum(axis=1)
    best = pull[:, quiet:].sum(axis=1) / total
    mean = pull[:, few:].sum(axis=1) / np.maximum(firm, 1e-300)
    height = -0.5 * np.sum(weight[:, few:] * (bumps.place[:, few:] - mean[:, None]) ** 2, axis=1)
    height += 0.5 * np.log(bumps.width[:, few:] ** 2 / scale[:, few:]) @ trials[few:]
    skewed = _SkewedBumps(lost[:few], bumps.place[:, :few], bumps.width[:, :few], deviation)
    trials = trials[:few]

    for _ in range(_ITERATIONS):
        value, slope, curvature = (terms @ trials for terms in skewed.at(best[:, None]))
        slope -= firm * (best - mean)
        stiffness = np.maximum(firm + curvature, _FIRM * total)
        move = slope / stiffness
        value += move * (slope - 0.5 * stiffness * move) - 0.5 * firm * (best - mean) ** 2
        best = best + move
        if np.all(move * move * stiffness < _NEAR**2):
            break

    mode = np.maximum(np.log(np.maximum(best, 1.0)), log_spread)
    width = np.minimum(np.exp(-0.5 * np.log(stiffness) - mode), 1.0)
    return mode, width, height + value + np.log(width) + prior.log_density(mode)


class _SkewedBumps:
    """Trials' probabilities over their capacities if losses are few.

    They are exponential where the means are too large. This is Laplace's method for a Poisson count whose mean is
    log-normal. The probability of a trial without loss is a normal distribution's tail if the capacity varies far more
    than the width of the trial's step.
    """

    def __init__(self, lost: Array, place: Array, width: Array, deviation: Array) -> None:
        self.lost, self.place = lost, place
        self.reach = 1.0 / (width * np.sqrt(np.maximum(lost, 1.0)))
        self.stiffness = 1.0 / (deviation * self.reach) ** 2
        pull = lost / self.stiffness
        self.pull, self.constant = pull, np.log(np.maximum(lost, 0.7) / self.stiffness) + pull
        self.steps = np.nonzero((lost == 0.0) & (self.stiffness < _SHARP))
        self.scale = np.hypot(deviation, width)[self.steps]

    def at(self, mrr: Array) -> tuple[Array, Array, Array]:
        """The logarithms of the integrals over the capacity, their slopes, and the curvatures by which they fall."""
        below = self.place - mrr
        distance = np.minimum(-below[self.steps] / self.scale, _FAR)
        below *= self.reach
        lift = wright_omega(below + self.constant)
        move = lift - self.pull
        share = 1.0 / (1.0 + lift)
        value = (
            self.lost * (1.0 + below - move)
            - self.stiffness * (0.5 * move * move + lift)
            + 0.5 * np.log(share)
        )
        half = 0.5 * share * share
        slope = (self.stiffness * move + lift * half) * self.reach
        curvature = lift * share * self.reach**2 * (self.stiffness + (1.0 - lift) * share * half)
        hazard = np.sqrt(2.0 / np.pi) / scipy.special.erfcx(-np.sqrt(0.5) * distance)
        value[self.steps] = -0.5 * distance**2 - np.log(np.sqrt(2.0 * np.pi) * hazard)
        slope[self.steps] = hazard / self.scale
        curvature[self.steps] = hazard * (hazard + distance) / self.scale**2

        return value, slope, np.maximum(curvature, 0.0)


@cache
def even_points(number: int, dimensions: int) -> Array:
    """Points that fill the unit cube evenly (a Kronecker sequence)."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1.0))
    steps = ratio ** -np.arange(1.0, dimensions + 1.0)
    points = (0.5 + np.arange(1.0, number + 1.0)[:, None] * steps) % 1.0
    points.flags.writeable = False
    return np.asarray(points)
