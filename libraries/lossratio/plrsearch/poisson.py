"""PLRsearch's estimate as its Internet draft has it (draft-vpolak-bmwg-plrsearch-02): two functions, Poisson counts.

The posterior of each fitting function is an integral over log a and log m. Zooming finds where it is, along log a and,
for each log a, along log m. There, Gauss-Legendre panels sum it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from lossratio.plrsearch.counts import Array, TrialCounts
from lossratio.plrsearch.functions import FUNCTIONS, FittingFunction
from lossratio.plrsearch.options import CriticalLoadQuestion

_DEPTH = 28.0
"""A support ends this many nats below the maximum; 1e-12 of the mass lies beyond."""
_PLACES, _NEAR_SHARE, _ROUNDS = 40, 0.35, 60
"""Places of each round of zooming, and the share of them near the maximum that is enough."""
_PANELS, _ORDER = 12, 12
"""Panels of each support, and nodes of each panel."""
_HALVINGS = 50
"""The critical load is known to 1e-14 of the range of its logarithm."""
_LOG_MRR_FLOOR = 0.01
"""Below this log m (mrrs under 1.01 frames per second), the prior's factor 1 / log m is constant, to avoid a pole."""
_NODES, _WEIGHTS = leggauss(_ORDER)


class _Distribution(ABC):
    """A distribution of the critical load."""

    question: CriticalLoadQuestion

    @abstractmethod
    def below(self, load: float) -> float:
        """Probability that the critical load is lower, or equal."""

    def quantile(self, probability: float) -> float:
        """The quantile of the critical load at this probability, in frames per second."""
        low, high = self.question.min_load, self.question.max_load
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.below(middle) < probability else (low, middle)
        return high

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads in frames per second that enclose the critical load with this probability, with equal tails."""
        tail = 0.5 - 0.5 * probability
        return self.quantile(tail), self.quantile(1.0 - tail)


@dataclass(frozen=True)
class FunctionEstimate(_Distribution):
    """The critical load under one fitting function."""

    question: CriticalLoadQuestion
    """Target and limits."""
    function: FittingFunction
    """The function."""
    mrr: float
    """The likeliest limiting forwarding rate, in frames per second."""
    spread: float
    """The likeliest width of the knee, in frames per second."""
    loads: Array = field(repr=False)
    """Critical loads in frames per second: a row for each width of the knee, in which they rise with the rate."""
    masses: Array = field(repr=False)
    """Their probabilities."""

    @cached_property
    def mean(self) -> float:
        """Mean critical load, in frames per second."""
        return float((self.masses * self.loads).sum())

    @cached_property
    def stdev(self) -> float:
        """Its standard deviation."""
        return float(np.sqrt((self.masses * (self.loads - self.mean) ** 2).sum()))

    def below(self, load: float) -> float:
        """See `_Distribution.below`."""
        if load >= self.question.max_load:
            return 1.0
        return float(sum(np.interp(load, *row) for row in self._inside))

    @cached_property
    def _inside(self) -> list[tuple[Array, Array, float, float]]:
        """For each row, the loads below the limit, and the probability up to each, before them and after them."""
        rows = []
        for loads, masses in zip(self.loads, self.masses, strict=True):
            own = masses[loads < self.question.max_load]
            if len(own):
                rows.append((loads[: len(own)], np.cumsum(own) - 0.5 * own, 0.0, own.sum()))
        return rows

    def loss_ratio(self, loads: Sequence[float]) -> Array:
        """The mean loss ratio of the likeliest curve at these loads, in frames per second."""
        load = np.asarray(loads, dtype=float)
        rate = self.function.log_loss_rate(load, np.array(self.mrr), np.array(self.spread))
        return np.asarray(np.minimum(np.exp(rate - np.log(load)), 1.0))


@dataclass(frozen=True)
class PoissonEstimate(_Distribution):
    """The critical load by PLRsearch's draft: both functions together, half each (5.3)."""

    question: CriticalLoadQuestion
    """Target and limits."""
    functions: tuple[FunctionEstimate, ...]
    """The functions one by one."""

    @cached_property
    def mean(self) -> float:
        """Mean critical load, in frames per second."""
        return float(np.mean([one.mean for one in self.functions]))

    @cached_property
    def stdev(self) -> float:
        """Its standard deviation."""
        variances = [one.stdev**2 + (one.mean - self.mean) ** 2 for one in self.functions]
        return float(np.sqrt(np.mean(variances)))

    def below(self, load: float) -> float:
        """See `_Distribution.below`."""
        return float(np.mean([one.below(load) for one in self.functions]))


def poisson_estimate(counts: TrialCounts, question: CriticalLoadQuestion) -> PoissonEstimate:
    """The critical load by PLRsearch's draft from the trials that count."""
    functions = tuple(_estimate(function, counts, question) for function in FUNCTIONS)
    return PoissonEstimate(question, functions)


def _estimate(
    function: FittingFunction, counts: TrialCounts, question: CriticalLoadQuestion
) -> FunctionEstimate:
    density = _Density(function, counts, 0.5 * question.max_load)
    log_spread, spread_weight = (row[0] for row in _nodes(*density.spread_support()))
    log_mrr, mrr_weight = _nodes(*density.mrr_support(log_spread))
    log_density = density.at(log_spread[:, None], log_mrr)
    mass = np.exp(log_density - log_density.max()) * mrr_weight * spread_weight[:, None]

    mrr, spread = np.exp(log_mrr), np.exp(log_spread)
    loads = _critical_loads(function, question, mrr, spread[:, None])
    row, column = np.unravel_index(np.argmax(log_density), mass.shape)
    likeliest = float(mrr[row, column]), float(spread[row])
    return FunctionEstimate(question, function, *likeliest, loads, mass / mass.sum())


class _Density:
    """Logarithm of prior times likelihood over log a and log m, without the likelihood's constant.

    The prior is the draft's (5.4): m - 1 is Lomax distributed with alpha 1, and a = m^u with u uniform on (0, 1). Its
    scale, which the draft leaves open, is half the maximum load, as in FD.io CSIT's code. Losses at one load are added
    up, which is sufficient for Poisson counts.
    """

    def __init__(self, function: FittingFunction, counts: TrialCounts, scale: float) -> None:
        self._function, self._log_scale = function, float(np.log(scale))
        self._load, group = np.unique(counts.load, return_inverse=True)
        self._exposure = np.bincount(group, counts.exposure, len(self._load))
        self._lost = np.bincount(group, counts.lost, len(self._load))
        self._log_own = np.log(np.maximum(self._lost, 1.0) / self._exposure)

    def at(self, log_spread: Array, log_mrr: Array) -> Array:
        """The logarithm at some points, in one shape."""
        prior = self._log_scale + log_mrr - np.log(np.maximum(log_mrr, _LOG_MRR_FLOOR))
        prior -= 2.0 * np.log(np.exp(self._log_scale) + np.expm1(log_mrr))
        if not len(self._load):
            return np.asarray(prior + 0.0 * log_spread)

        mrr, spread = np.exp(log_mrr)[..., None], np.exp(log_spread)[..., None]
        log_rate = self._function.log_loss_rate(self._load, mrr, spread)
        # A deviance, because the terms of a trial with 1e10 losses are 1e11, while their sum is about 1.
        lossy = self._lost > 0.0
        over = np.minimum(log_rate[..., lossy] - self._log_own[lossy], 700.0)
        deviance = (np.expm1(over) - over) @ self._lost[lossy]
        expected = np.exp(np.minimum(log_rate[..., ~lossy], 700.0)) @ self._exposure[~lossy]
        return np.asarray(prior - deviance - expected)

    def mrr_support(self, log_spread: Array) -> tuple[Array, Array]:
        """Log m between which the density is, for each log a."""
        places, heights = self._rows(log_spread)
        ends = [_ends(*row, _DEPTH) for row in zip(places, heights, strict=True)]
        low, high = np.array(ends).T
        return low, high

    def spread_support(self) -> tuple[Array, Array]:
        """Log a between which the density is."""

        def row_masses(log_spread: Array) -> Array:
            places, heights = self._rows(log_spread[0])
            top = heights.max(axis=1, keepdims=True)
            areas = np.trapezoid(np.exp(heights - top), places, axis=1)
            return np.asarray(top[:, 0] + np.log(areas))[None]

        places, heights = _zoomed(row_masses, np.zeros(1), np.full(1, self._highest))
        low, high = _ends(places[0], heights[0], _DEPTH)
        return np.array([low]), np.array([high])

    @property
    def _highest(self) -> float:
        """The log m beyond which the prior has no mass."""
        return max(self._log_scale, 1.0) + _DEPTH

    def _rows(self, log_spread: Array) -> tuple[Array, Array]:
        high = np.maximum(self._highest, log_spread + 1.0)
        return _zoomed(lambda log_mrr: self.at(log_spread[:, None], log_mrr), log_spread, high)


def _zoomed(evaluate: Callable[[Array], Array], low: Array, high: Array) -> tuple[Array, Array]:
    """Places in each row and the heights there, until enough of them are near the row's maximum."""
    steps = np.linspace(0.0, 1.0, _PLACES)
    for _ in range(_ROUNDS):
        places = low[:, None] + (high - low)[:, None] * steps
        heights = evaluate(places)
        is_near = heights > heights.max(axis=1, keepdims=True) - _DEPTH
        if (is_near.mean(axis=1) >= _NEAR_SHARE).all():
            break
        ends = [_ends(*row, _DEPTH) for row in zip(places, heights, strict=True)]
        low, high = np.array(ends).T
    return places, heights


def _ends(places: Array, heights: Array, depth: float) -> tuple[float, float]:
    """The places around all places that are near the maximum."""
    which: NDArray[np.intp] = np.flatnonzero(heights > heights.max() - depth)
    return float(places[max(which[0] - 1, 0)]), float(places[min(which[-1] + 1, len(places) - 1)])


def _nodes(low: Array, high: Array) -> tuple[Array, Array]:
    """Nodes and weights of the panels between the ends of each row."""
    edges = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _PANELS + 1)
    half = 0.5 * np.diff(edges, axis=1)[:, :, None]
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    nodes, weights = middle[:, :, None] + half * _NODES, half * _WEIGHTS
    return nodes.reshape(len(low), -1), weights.reshape(len(low), -1)


def _critical_loads(
    function: FittingFunction, question: CriticalLoadQuestion, mrr: Array, spread: Array
) -> Array:
    """The loads at which the mean loss ratio is the target, within the limits."""
    log_target = np.log(question.target_loss_ratio)

    def is_lossy(log_load: Array) -> NDArray[np.bool_]:
        rate = function.log_loss_rate(np.exp(log_load), mrr, spread)
        return np.asarray(rate - log_load > log_target)

    low = np.full(mrr.shape, np.log(question.min_load))
    high = np.full(mrr.shape, np.log(question.max_load))
    beyond = np.where(is_lossy(low), question.min_load, question.max_load)
    inside = ~is_lossy(low) & is_lossy(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        lossy = is_lossy(middle)
        low, high = np.where(lossy, low, middle), np.where(lossy, middle, high)
    return np.where(inside, np.exp(low), beyond)
