"""The posterior's distribution of the critical load: moments, cumulative probability, density and quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, Indices, root
from lossratio.plrsearch.quadrature.panels import (
    WEIGHTS,
    crossings,
    mean_and_variance,
    partial_integrals,
)

_EXACT = 1e-5
"""The smallest scale of steps towards a quantile, as a share of the quantile; see `root`."""


@dataclass(frozen=True)
class Distribution:
    """A distribution of the critical load, as points with masses; arrays of shape (points,)."""

    question: CriticalLoadQuestion
    """Target and limits."""
    critical_load: Array
    """Critical loads, in frames per second."""
    mass: Array
    """Masses; their sum is 1."""
    order: int
    """This many successive points form a panel, within which everything is a polynomial; 1: there are only points."""

    @classmethod
    def mixed(cls, parts: Sequence[Distribution], weights: Sequence[float]) -> Distribution:
        """The mixture of distributions of the same order, with these weights."""
        masses = [weight * part.mass for weight, part in zip(weights, parts, strict=True)]
        loads = [part.critical_load for part in parts]
        return Distribution(
            parts[0].question, np.concatenate(loads), np.concatenate(masses), parts[0].order
        )

    @cached_property
    def mean(self) -> float:
        """Mean critical load, in frames per second."""
        return mean_and_variance(self.critical_load, self.mass)[0]

    @cached_property
    def stdev(self) -> float:
        """Its standard deviation."""
        return float(np.sqrt(mean_and_variance(self.critical_load, self.mass)[1]))

    @cached_property
    def p_at_min(self) -> float:
        """Probability that the critical load is the minimum load or less. Panels end where it reaches this load."""
        return float(self._masses[self._middles <= self.question.min_load].sum())

    @cached_property
    def p_at_max(self) -> float:
        """Probability that the critical load is the maximum load or more."""
        return float(self._masses[self._middles >= self.question.max_load].sum())

    @property
    def _masses(self) -> Array:
        return self.mass.reshape(-1, self.order)

    @property
    def _middles(self) -> Array:
        return self.critical_load.reshape(-1, self.order)[:, self.order // 2]

    @cached_property
    def _cumulated(self) -> tuple[Array, Array]:
        """Critical loads in order, and the probability up to each."""
        order = np.argsort(self.critical_load, kind="stable")
        return self.critical_load[order], np.cumsum(self.mass[order])

    def shares_and_density(self, load: Array) -> tuple[Array, Array]:
        """Mass of each panel below each load, shape (loads, panels), and the density at each load.

        Within a panel, the critical load increases with m, and is as smooth as the density.
        """
        loads = self.critical_load.reshape(-1, self.order)
        column = load[:, None]
        first = loads[:, 0]
        last = loads[:, -1]
        shares = np.where(column >= last, self._masses.sum(axis=1), 0.0)
        at_load, cut = np.nonzero((column > first) & (column < last))
        position, slope = crossings(loads[cut], load[at_load])
        integrals, values = partial_integrals(self._masses[cut] / WEIGHTS, position)
        shares[at_load, cut] = np.maximum(integrals, 0.0)
        density = np.zeros(len(load))
        np.add.at(density, at_load, np.maximum(values, 0.0) / slope)
        return shares, density

    def rough_quantiles(self, probabilities: Sequence[float]) -> Array:
        """Quantiles as if each point's mass were at the point."""
        places, until = self._cumulated
        return places[np.minimum(np.searchsorted(until, probabilities), len(places) - 1)]

    def quantiles(self, probabilities: Sequence[float]) -> Array:
        """The quantiles of the critical load at these probabilities, in frames per second.

        A quantile at a limit is the limit itself.

        Raises:
            SearchError: If a probability is not between 0 and 1.
        """
        if not all(0.0 < probability < 1.0 for probability in probabilities):
            raise SearchError(
                f"A probability must be between 0 and 1, exclusive, not {probabilities!r}."
            )
        wanted = np.asarray(probabilities, dtype=float)
        (least, most) = (self.question.min_load, self.question.max_load)
        loads = np.where(wanted <= self.p_at_min, least, most)
        between = (wanted > self.p_at_min) & (wanted < 1.0 - self.p_at_max)
        wanted = wanted[between]
        (places, until) = self._cumulated
        if self.order == 1:
            loads[between] = np.interp(wanted, until - 0.5 * np.diff(until, prepend=0.0), places)
            return loads

        def excess(load: Array, which: Indices) -> tuple[Array, Array]:
            shares, density = self.shares_and_density(load)
            return shares.sum(axis=1) - wanted[which], np.maximum(density, 1e-300)

        start = self.rough_quantiles(wanted.tolist())
        scale = np.maximum(self.stdev, _EXACT * start)
        loads[between] = root(
            excess, start, np.full_like(start, least), np.full_like(start, most), scale
        )
        return loads

    def quantile(self, probability: float) -> float:
        """The quantile of the critical load at this probability, in frames per second."""
        return float(self.quantiles([probability])[0])

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads in frames per second that enclose the critical load with this probability, with equal tails."""
        low, high = self.quantiles([0.5 - 0.5 * probability, 0.5 + 0.5 * probability]).tolist()
        return low, high


@dataclass(frozen=True, kw_only=True)
class Posterior(Distribution):
    """The posterior of one fitting function; arrays of shape (points,)."""

    curves: Curves
    """The curves of the points."""
    likeliest: int
    """Index of the point with the highest density."""
    log_evidence: float
    """Logarithm of the probability of all counts, averaged over the prior."""
    error: float = 0.0
    """The approximate error of the integral: of its logarithm, and of the mean in standard deviations."""

    @property
    def mode(self) -> Curves:
        """The point with the highest density: one curve, whose arrays are numbers."""
        return self.curves.at(np.intp(self.likeliest))

    @property
    def name(self) -> str:
        """Name of the fitting function."""
        return self.curves.function.name

    def loss_ratio(self, loads: Sequence[float]) -> Array:
        """The mean loss ratio of the likeliest curve at these loads, in frames per second."""
        load = np.asarray(loads, dtype=float)
        point = self.curves.at(np.full(len(load), self.likeliest)).loss(load)
        return np.asarray(np.minimum(np.exp(point.log_rate - np.log(load)), 1.0))
