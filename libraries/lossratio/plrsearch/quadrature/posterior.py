"""The posterior's distribution of the critical load: cumulative probability, density and quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lossratio.plrsearch.model import Array, CriticalLoadQuestion, FittingFunction
from lossratio.plrsearch.quadrature.panels import (
    ORDER,
    WEIGHTS,
    Moments,
    Panels,
    crossings,
    masses_of,
    moments_of,
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
class Posterior:
    """The posterior of one fitting function, and its distribution of the critical load."""

    function: FittingFunction
    """The fitting function."""
    question: CriticalLoadQuestion
    """Target and limits."""
    panels: Panels
    """The posterior's nodes."""
    constant: float
    """The likelihood's constant."""
    error: float = 0.0
    """About the share of the mass by which the integral may be wrong; infinite if it is less than it must be."""

    @cached_property
    def moments(self) -> Moments:
        """Mean and standard deviation of the critical load and of its logarithm."""
        return moments_of(self.panels)

    @property
    def log_evidence(self) -> float:
        """Logarithm of the probability of all counts, averaged over the prior."""
        return self.moments.log_mass + self.constant

    @cached_property
    def p_at_min(self) -> float:
        """Probability that the critical load is the minimum load or less."""
        return float(np.sum(self.masses[self.panels.critical_load[:, ORDER // 2] <= self.question.min_load]))

    @cached_property
    def p_at_max(self) -> float:
        """Probability that the critical load is the maximum load or more."""
        return float(np.sum(self.masses[self.panels.critical_load[:, ORDER // 2] >= self.question.max_load]))

    @cached_property
    def mode(self) -> Mode:
        """Parameters of the node with the highest density."""
        panels = self.panels
        panel, node = np.unravel_index(int(np.argmax(panels.log_density)), panels.log_density.shape)
        return Mode(
            mrr=float(np.exp(panels.log_mrr[panel, node])),
            spread=float(np.exp(panels.log_spread[panel])),
            deviation=float(panels.deviation[panel]),
        )

    @cached_property
    def masses(self) -> Array:
        """Normalized posterior mass of each node of the panels."""
        return masses_of(self.panels)[0]

    def cumulative_and_density(self, load: Array) -> tuple[Array, Array]:
        """Probability that the critical load is below each load between the limits, and its density there.

        Args:
            load: In frames per second, shape (loads,). The density is per frame per second.
        """
        shares, density = self.shares_and_density(load)
        return shares.sum(axis=1), density

    def quantiles(self, probabilities: Sequence[float]) -> Array:
        """Loads in frames per second; the critical load is below each with the given probability."""
        return mixture_quantiles([self], [1.0], probabilities)

    def shares_and_density(self, load: Array) -> tuple[Array, Array]:
        """Mass of each panel below each load, shape (loads, panels), and the density at each load.

        Within a panel the critical load increases with m, and is as smooth as the density.
        """
        panels = self.panels
        column, first, last = load[:, None], panels.critical_load[:, 0], panels.critical_load[:, -1]
        shares = np.where(column >= last, self.masses.sum(axis=1), 0.0)
        at_load, cut = np.nonzero((column > first) & (column < last))
        position, slope = crossings(panels.critical_load[cut], load[at_load])
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
    """
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
    loads = np.concatenate([posterior.panels.critical_load.ravel() for posterior in posteriors])
    masses = [weight * posterior.masses.ravel() for weight, posterior in zip(weights, posteriors, strict=True)]
    order = np.argsort(loads, kind="stable")
    cumulative = np.cumsum(np.concatenate(masses)[order])
    return np.asarray(loads[order][np.minimum(np.searchsorted(cumulative, wanted), len(loads) - 1)])
