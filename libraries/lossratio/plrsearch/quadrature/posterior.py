"""The posterior's distribution of the critical load: moments, cumulative probability, density and quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, FittingFunction
from lossratio.plrsearch.quadrature.panels import (
    ORDER,
    WEIGHTS,
    Moments,
    Panels,
    crossings,
    masses_of,
    moments_of_masses,
    partial_integrals,
)

_ITERATIONS = 60


@dataclass(frozen=True)
class Mode:
    """The likeliest parameters of a posterior, all in frames per second."""

    mrr: float
    """Limiting forwarding rate."""
    spread: float
    """Width of the knee."""
    deviation: float
    """Standard deviation of the capacity between trials; 0 if the capacity is constant."""


@dataclass(frozen=True)
class Nodes:
    """A posterior as points with masses; arrays of shape (points,), loads and rates in frames per second."""

    mrr: Array
    """Limiting forwarding rates."""
    spread: Array
    """Widths of the knee."""
    deviation: Array
    """Standard deviations of the capacity."""
    critical_load: Array
    """Critical loads."""
    mass: Array
    """Masses; their sum is 1."""
    likeliest: int
    """Index of the point with the highest density."""


@dataclass(frozen=True)
class Posterior:
    """The posterior of one fitting function, as points, and its distribution of the critical load."""

    function: FittingFunction
    """The fitting function."""
    question: CriticalLoadQuestion
    """Target and limits."""
    nodes: Nodes
    """The points."""
    log_evidence: float
    """Logarithm of the probability of all counts, averaged over the prior."""
    error: float = 0.0
    """About the error of the integral: of its logarithm, and of the mean in standard deviations."""

    @cached_property
    def moments(self) -> Moments:
        """Mean and standard deviation of the critical load and of its logarithm."""
        return moments_of_masses(self.nodes.critical_load, self.nodes.mass)

    @cached_property
    def p_at_min(self) -> float:
        """Probability that the critical load is the minimum load or less."""
        return float(self.nodes.mass[self.nodes.critical_load <= self.question.min_load].sum())

    @cached_property
    def p_at_max(self) -> float:
        """Probability that the critical load is the maximum load or more."""
        return float(self.nodes.mass[self.nodes.critical_load >= self.question.max_load].sum())

    @property
    def mode(self) -> Mode:
        """Parameters of the point with the highest density."""
        nodes, best = self.nodes, self.nodes.likeliest
        return Mode(float(nodes.mrr[best]), float(nodes.spread[best]), float(nodes.deviation[best]))

    @property
    def name(self) -> str:
        """Name of the fitting function."""
        return self.function.name

    @property
    def mean(self) -> float:
        """Mean critical load, in frames per second."""
        return self.moments.mean

    @property
    def stdev(self) -> float:
        """Its standard deviation."""
        return self.moments.stdev

    def loss_ratio(self, loads: Sequence[float]) -> Array:
        """The likeliest curve: the mean loss ratio that it has at these loads, in frames per second."""
        load, mode = np.asarray(loads, dtype=float), self.mode
        curves = Curves(self.function, np.full(len(load), mode.spread), np.full(len(load), mode.deviation))
        point = curves.at(load, np.full(len(load), mode.mrr), np.arange(len(load)))
        return np.asarray(np.minimum(np.exp(point.log_rate - np.log(load)), 1.0))

    @cached_property
    def _cumulated(self) -> tuple[Array, Array]:
        """Critical loads in order, and the probability below each."""
        order = np.argsort(self.nodes.critical_load, kind="stable")
        mass = self.nodes.mass[order]
        return self.nodes.critical_load[order], np.cumsum(mass) - 0.5 * mass

    def cumulative_and_density(self, load: Array) -> tuple[Array, Array]:
        """Probability that the critical load is below each load between the limits, and its density there."""
        places, below = self._cumulated
        above = np.clip(np.searchsorted(places, load), 1, len(places) - 1)
        density = (below[above] - below[above - 1]) / np.maximum(places[above] - places[above - 1], 1e-300)
        return np.interp(load, places, below), density

    def quantile(self, probability: float) -> float:
        """The load in frames per second that the critical load is below with this probability."""
        return float(mixture_quantiles([self], [1.0], [probability])[0])

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads in frames per second that enclose the critical load with this probability, tails being equal."""
        return self.quantile(0.5 - 0.5 * probability), self.quantile(0.5 + 0.5 * probability)


@dataclass(frozen=True)
class PanelPosterior(Posterior):
    """A posterior that panels integrate: within each of them everything is a polynomial."""

    panels: Panels | None = None
    """The panels."""

    @classmethod
    def of(
        cls, function: FittingFunction, question: CriticalLoadQuestion, panels: Panels, constant: float
    ) -> PanelPosterior:
        """The posterior that panels integrate, with the likelihood's constant."""
        masses, log_mass = masses_of(panels)
        nodes = Nodes(
            np.exp(panels.log_mrr.ravel()),
            np.repeat(np.exp(panels.log_spread), ORDER),
            np.zeros(masses.size),
            panels.critical_load.ravel(),
            masses.ravel(),
            int(np.argmax(panels.log_density)),
        )
        return cls(function, question, nodes, log_mass + constant, 0.0, panels)

    @cached_property
    def masses(self) -> Array:
        """Mass of each node of the panels."""
        return self.nodes.mass.reshape(-1, ORDER)

    @cached_property
    def p_at_min(self) -> float:
        """See `Posterior.p_at_min`; a panel ends where critical loads become the minimum load."""
        return float(np.sum(self.masses[self._middles <= self.question.min_load]))

    @cached_property
    def p_at_max(self) -> float:
        """See `Posterior.p_at_max`."""
        return float(np.sum(self.masses[self._middles >= self.question.max_load]))

    @property
    def _middles(self) -> Array:
        return self.nodes.critical_load.reshape(-1, ORDER)[:, ORDER // 2]

    def cumulative_and_density(self, load: Array) -> tuple[Array, Array]:
        """See `Posterior.cumulative_and_density`."""
        shares, density = self.shares_and_density(load)
        return shares.sum(axis=1), density

    def shares_and_density(self, load: Array) -> tuple[Array, Array]:
        """Mass of each panel below each load, shape (loads, panels), and the density at each load.

        Within a panel the critical load increases with m, and is as smooth as the density.
        """
        loads = self.nodes.critical_load.reshape(-1, ORDER)
        column, first, last = load[:, None], loads[:, 0], loads[:, -1]
        shares = np.where(column >= last, self.masses.sum(axis=1), 0.0)
        at_load, cut = np.nonzero((column > first) & (column < last))
        position, slope = crossings(loads[cut], load[at_load])
        integrals, values = partial_integrals(self.masses[cut] / WEIGHTS, position)
        shares[at_load, cut] = np.maximum(integrals, 0.0)
        density = np.zeros(len(load))
        np.add.at(density, at_load, np.maximum(values, 0.0) / slope)
        return shares, density


def mixture_quantiles(
    posteriors: Sequence[Posterior], weights: Sequence[float], probabilities: Sequence[float]
) -> Array:
    """Quantiles of a weighted mixture of posteriors, in frames per second.

    Newton's method on the cumulative probability, within a bracket. A quantile that is at a limit is the limit itself.

    Raises:
        SearchError: If a probability is not between 0 and 1.
    """
    if not all(0.0 < probability < 1.0 for probability in probabilities):
        raise SearchError(f"A probability must be between 0 and 1, exclusive, not {probabilities!r}.")
    question = posteriors[0].question
    wanted = np.asarray(probabilities, dtype=float)
    at_min = sum(weight * posterior.p_at_min for weight, posterior in zip(weights, posteriors, strict=True))
    at_max = sum(weight * posterior.p_at_max for weight, posterior in zip(weights, posteriors, strict=True))
    loads = np.where(wanted <= at_min, question.min_load, question.max_load)
    open_ones = (wanted > at_min) & (wanted < 1.0 - at_max)
    if not open_ones.any():
        return loads
    wanted = wanted[open_ones]
    load = quantiles_of_nodes(posteriors, weights, wanted)
    low, high = np.full(load.shape, question.min_load), np.full(load.shape, question.max_load)
    for _ in range(_ITERATIONS):
        below, density = np.zeros(load.shape), np.zeros(load.shape)
        for weight, posterior in zip(weights, posteriors, strict=True):
            shares, slopes = posterior.cumulative_and_density(load)
            below, density = below + weight * shares, density + weight * slopes
        low, high = np.where(below < wanted, load, low), np.where(below < wanted, high, load)
        moved = load + (wanted - below) / np.maximum(density, 1e-300)
        moved = np.where((moved >= low) & (moved <= high), moved, 0.5 * (low + high))
        done = np.abs(moved - load) <= 1e-10 * load
        load = moved
        if done.all():
            break
    loads[open_ones] = load
    return loads


def quantiles_of_nodes(posteriors: Sequence[Posterior], weights: Sequence[float], wanted: Array) -> Array:
    """Rough quantiles, as if each node's mass were at the node."""
    loads = np.concatenate([posterior.nodes.critical_load for posterior in posteriors])
    masses = [weight * posterior.nodes.mass for weight, posterior in zip(weights, posteriors, strict=True)]
    order = np.argsort(loads, kind="stable")
    cumulative = np.cumsum(np.concatenate(masses)[order])
    return np.asarray(loads[order][np.minimum(np.searchsorted(cumulative, wanted), len(loads) - 1)])
