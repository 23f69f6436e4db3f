"""The posterior of one fitting function if the capacity varies: a sum over points that follow its ridge.

The posterior over (log m, log a, log s) is a bent ridge, and may be a thousand times narrower where s is small.
Laplace's method for each trial (`rough_rows`) shows approximately where the ridge is, and how wide it is. Points that
fill the unit cube evenly are moved to the ridge, by the quantiles of log s, of log a at this log s, and of log m at
both. Each point's weight is the exact density, divided by the density of the points (importance sampling). No
randomness is involved: the same trials give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood import (
    MEAN_OF_NONE,
    Bumps,
    Line,
    Model,
    VaryingCapacityLikelihood,
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
from lossratio.plrsearch.quadrature.zoom import ends_of, zoomed

_SLICES, _SPREADS = 13, 15
"""Number of values of log s, and of log a at each of them, in one round of the search for the ridge."""
_MANY, _MOST_OF_FEW = 60, 6.0
"""With fewer trials there are more points, in inverse proportion, but at most this many times as many."""
_DEPTH = 14.0
"""Nats below its maximum where the ridge ends."""
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
_TINY = 1e-300

EXACT, ROUGH = 600, 250
"""Number of points of the sum with many trials: for results, and for choosing loads."""


def deviation_bounds(counts: TrialCounts) -> tuple[float, float]:
    """The prior's bounds in log s: 1e-6 and 0.1 of the median forwarding rate of trials that lost frames."""
    lossy = counts.lost > 0
    forwarded = counts.forwarding_rate[lossy]
    forwarded = forwarded[forwarded > 0]
    scale = float(np.median(forwarded)) if len(forwarded) else float(counts.load.max(initial=1e6))
    return float(np.log(1e-6 * scale)), float(np.log(0.1 * scale))


def sampled(
    models: Sequence[Model[VaryingCapacityLikelihood]], question: CriticalLoadQuestion, points: int
) -> tuple[Posterior, ...]:
    """The posteriors of models of the same trials.

    They are rough for models that are improbable compared with the best.
    """
    ridges = [_Ridge(model) for model in models]
    least = max(ridge.height for ridge in ridges) - _IMPROBABLE
    found = []
    for model, ridge in zip(models, ridges, strict=True):
        number = points if ridge.height > least else min(points, ROUGH)
        few = _MANY / max(len(model.likelihood.groups), 1)
        number = round(number * min(max(few, 1.0), _MOST_OF_FEW))
        found.append(_summed(model, question, ridge, number))
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

    every_bump = likelihood.bumps(model.function, log_spread)
    for piece in _pieces(number, model):
        bumps = every_bump.at(piece)
        mode, width, _ = rough_rows(model, log_spread[piece], deviation[piece], bumps)
        log_mrr[piece], log_density = _placed(log_spread[piece], even[piece, 2], mode, width)
        log_area[piece] -= log_density
        near = np.abs(log_mrr[piece] - mode) < _HOPELESS * width
        columns = (
            np.exp(column[piece][near, None]) for column in (log_mrr, log_spread, log_deviation)
        )
        exact = likelihood.log_probability(Curves(model.function, *columns), bumps.at(near))
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


class _Ridge:
    """Where the posterior approximately is in log s and log a, as tables of quantiles.

    Attributes:
        bounds: Smallest and largest log s.
        height: Approximate logarithm of the highest slice's integral.
    """

    def __init__(self, model: Model[VaryingCapacityLikelihood]) -> None:
        """Looks for the ridge, first everywhere, then more closely."""
        self._model = model
        self.bounds = deviation_bounds(model.likelihood.groups)
        low, high = np.array(self.bounds)[:, None]
        places, heights = zoomed(self._slices, low, high, _SLICES, _DEPTH)
        self._log_deviation: Array = places[0]
        self._deviations = _quantiles(places[0], heights[0])
        self.height = float(heights.max())

    def _slices(self, log_deviation: Array, _: Indices) -> Array:
        """Logarithms of the integrals at each log s, shape (1, slices). The quantiles of log a there are kept."""
        deviation = np.exp(log_deviation[0])
        model = self._model

        def heights(log_spread: Array, which: Indices) -> Array:
            own = np.repeat(deviation[which], log_spread.shape[1])
            bumps = model.likelihood.bumps(model.function, log_spread.ravel())
            rows = [
                rough_rows(model, log_spread.ravel()[piece], own[piece], bumps.at(piece))[2]
                for piece in _pieces(len(own), model)
            ]
            return np.concatenate(rows).reshape(log_spread.shape)

        ceiling = np.full(len(deviation), model.prior.highest_log_mrr(20.0))
        places, found = zoomed(heights, np.zeros(len(deviation)), ceiling, _SPREADS, _DEPTH)
        self._spreads = np.stack(list(map(_quantiles, places, found)))
        top = found.max(axis=1)
        masses = _trapezia(places, np.exp(found - top[:, None])).sum(axis=1)
        return np.asarray(top + np.log(masses))[None]

    def at(self, deviation: Array, spread: Array) -> tuple[Array, Array, Array]:
        """Log s and log a of points in the unit square, and the logarithm of the area that each point represents."""
        log_deviation, log_area = _between(deviation, lambda at: self._deviations[at])
        places = self._log_deviation
        above = np.clip(np.searchsorted(places, log_deviation), 1, len(places) - 1)
        share = (log_deviation - places[above - 1]) / (places[above] - places[above - 1])
        log_spread, more = _between(
            spread,
            lambda at: (
                (1.0 - share) * self._spreads[above - 1, at] + share * self._spreads[above, at]
            ),
        )
        return log_deviation, log_spread, log_area + more


def _trapezia(x: Array, density: Array) -> Array:
    """Areas between neighbouring places (last axis)."""
    return 0.5 * np.diff(x) * (density[..., 1:] + density[..., :-1])


def _quantiles(x: Array, log_density: Array) -> Array:
    """Quantiles of the points' distribution."""
    ends = ends_of(x, log_density > log_density.max() - _DEEP)
    inside = (x >= ends[0]) & (x <= ends[1])
    x, log_density = x[inside], log_density[inside]
    cumulative = np.zeros(len(x))
    for share, power in _POWERS:
        parts = np.cumsum(_trapezia(x, np.exp(power * (log_density - log_density.max()))))
        cumulative[1:] += share * parts / parts[-1]
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
    # The groups are in the order of their losses.
    lost, trials = likelihood.groups.lost, likelihood.trials
    quiet, few = np.searchsorted(lost, (0.0, _FEW_LOST), "right")

    if quiet == len(trials):
        edge = np.log(bumps.place.max(axis=1, initial=1.0))
        mode = np.maximum(np.maximum(edge, log_spread) + 0.5, np.log(prior.scale))
        return mode, np.ones(len(mode)), prior.log_density(mode)

    width = 1.0 / (bumps.steepness * np.sqrt(np.maximum(lost, 1.0)))
    scale = deviation[:, None] ** 2 + width**2
    weight = trials / scale
    pull = weight * bumps.place
    total, firm = weight[:, quiet:].sum(axis=1), weight[:, few:].sum(axis=1)
    best = pull[:, quiet:].sum(axis=1) / total
    mean = pull[:, few:].sum(axis=1) / np.maximum(firm, _TINY)
    height = -0.5 * np.sum(weight[:, few:] * (bumps.place[:, few:] - mean[:, None]) ** 2, axis=1)
    height += 0.5 * np.log(width[:, few:] ** 2 / scale[:, few:]) @ trials[few:]
    skewed = _SkewedBumps(lost[:few], bumps, deviation[:, None])

    for _ in range(_ITERATIONS):
        value, slope, curvature = (terms @ trials[:few] for terms in skewed.at(best[:, None]))
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

    def __init__(self, lost: Array, bumps: Bumps, deviation: Array) -> None:
        few = slice(0, len(lost))
        self._place, self._steepness = bumps.place[:, few], bumps.steepness[:, few]
        self._log_own_mean = np.log(np.where(lost > 0, lost, MEAN_OF_NONE))
        self._line = Line(lost, (deviation * self._steepness) ** -2)
        self._steps = np.nonzero((lost == 0.0) & (self._line.stiffness < _SHARP))
        self._scale = np.hypot(deviation, 1.0 / self._steepness)[self._steps]

    def at(self, mrr: Array) -> tuple[Array, Array, Array]:
        """The logarithms of the integrals over the capacity, their slopes, and the curvatures by which they fall."""
        line = self._line
        below = self._steepness * (self._place - mrr)
        mean = line.likeliest_mean(below + self._log_own_mean)
        move = mean - line.pull
        share = 1.0 / (1.0 + mean)
        value = (
            line.lost * (1.0 + below - move)
            - line.stiffness * (0.5 * move * move + mean)
            + 0.5 * np.log(share)
        )
        half = 0.5 * share * share
        slope = (line.stiffness * move + mean * half) * self._steepness
        curvature = mean * share * self._steepness**2
        curvature *= line.stiffness + (1.0 - mean) * share * half

        distance = np.minimum((mrr - self._place)[self._steps] / self._scale, _FAR)
        hazard = np.sqrt(2.0 / np.pi) / scipy.special.erfcx(-np.sqrt(0.5) * distance)
        value[self._steps] = -0.5 * distance**2 - np.log(np.sqrt(2.0 * np.pi) * hazard)
        slope[self._steps] = hazard / self._scale
        curvature[self._steps] = hazard * (hazard + distance) / self._scale**2

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
