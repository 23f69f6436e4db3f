"""A posterior as quadrature nodes: panels in log m, each in a row of fixed other parameters.

Each answer about a posterior is a sum over these nodes. One more trial adds one term at each node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import Legendre, legder, legvander
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, Columns, Indices, root

ORDER = 20
"""Nodes of a panel. With this many, smooth densities need only two panels, one on each side of the mode."""


_LEGENDRE = Legendre.basis(ORDER - 1)
NODES: Array = np.concatenate([[-1.0], np.sort(_LEGENDRE.deriv().roots().real), [1.0]])
"""The nodes of Gauss-Lobatto quadrature. Both ends are nodes, so that a step at an end is not missed."""
WEIGHTS: Array = 2.0 / (ORDER * (ORDER - 1) * _LEGENDRE(NODES) ** 2)
_TO_LEGENDRE = np.linalg.inv(legvander(NODES, ORDER - 1))


def roughness(values: Array) -> Array:
    """The approximate relative error of the integral over each panel, from the values at its nodes (last axis).

    Legendre coefficients show how fast the series converges. Quadrature is exact to twice the degree of the
    polynomial, so its error is about the last coefficient, extrapolated to twice the degree at the same rate.
    """
    sizes = np.maximum(np.abs(values @ _TO_LEGENDRE.T), 1e-300)
    middle = sizes[..., ORDER // 2 - 2 : ORDER // 2 + 2].max(axis=-1)
    last = sizes[..., -2:].max(axis=-1)
    return np.asarray(last / sizes.max(axis=-1) * np.minimum(last / middle, 1.0) ** 2)


def partial_integrals(values: Array, until: Array) -> tuple[Array, Array]:
    """Integrals of the polynomials through the nodes' values from -1 to `until`, and values at `until`; by panels."""
    series = values @ _TO_LEGENDRE.T
    legendre = legvander(until, ORDER)
    primitive = (legendre[:, 2:] - legendre[:, :-2]) / (2.0 * np.arange(1, ORDER) + 1.0)
    integrals = series[:, 0] * (until + 1.0) + np.sum(primitive * series[:, 1:], axis=1)
    return integrals, np.sum(legendre[:, :-1] * series, axis=1)


def crossings(values: Array, level: Array) -> tuple[Array, Array]:
    """Where in [-1, 1] the polynomials through increasing values reach a level, and their slopes there; by panels."""
    series = values @ _TO_LEGENDRE.T
    slopes = legder(series, axis=1)

    def excess(x: Array, which: Indices) -> tuple[Array, Array]:
        legendre = legvander(x, ORDER - 1)
        slope = np.maximum(np.sum(legendre[:, :-1] * slopes[which], axis=1), 1e-300)
        return np.sum(legendre * series[which], axis=1) - level[which], slope

    ends = np.ones(level.shape)
    start = 2.0 * (level - values[:, 0]) / (values[:, -1] - values[:, 0]) - 1.0
    with np.errstate(over="ignore"):
        x = root(excess, start, -ends, ends, 1e-3 * ends)
    return x, excess(x, np.arange(len(x)))[1]


@dataclass(frozen=True)
class Panels(Columns):
    """The panels of a posterior. Arrays have the shape (panels,), or (panels, ORDER) if values differ between nodes."""

    row: NDArray[np.intp]
    """Index of each panel's row. Panels of one row share all parameters but the mrr."""
    log_spread: Array
    """Log a of the panel's row."""
    low: Array
    """Log m where the panel begins."""
    high: Array
    """Log m where the panel ends."""
    log_weight: Array
    """Logarithm of the row's weight in the integral over the other parameters."""
    log_density: Array
    """Logarithm of the posterior density, without the likelihood's constant."""
    critical_load: Array
    """Critical loads in frames per second."""

    def log_masses(self) -> Array:
        """Logarithm of the unnormalized posterior mass of each node."""
        return (
            self.log_density
            + (np.log(0.5 * (self.high - self.low)) + self.log_weight)[:, None]
            + np.log(WEIGHTS)
        )

    def joined(self, *others: Panels) -> Panels:
        """These and other panels."""
        return Panels(
            *map(
                np.concatenate, zip(*(vars(part).values() for part in (self, *others)), strict=True)
            )
        )


def node_positions(low: Array, high: Array) -> Array:
    """Nodes of panels between `low` and `high`, shape (panels, ORDER), where -1 is `low` and 1 is `high`."""
    return np.asarray((0.5 * (low + high))[:, None] + (0.5 * (high - low))[:, None] * NODES)


def masses_of(panels: Panels) -> tuple[Array, float]:
    """Normalized masses of the nodes, and the logarithm of their sum before normalization."""
    log_masses = panels.log_masses()
    top = float(log_masses.max())
    masses = np.exp(log_masses - top)
    total = float(masses.sum())
    return masses / total, top + float(np.log(total))


def mean_and_variance(values: Array, masses: Array) -> tuple[float, float]:
    """Sums of differences from the heaviest point's value, so that sharp posteriors keep digits."""
    centre = values.flat[int(np.argmax(masses))]
    mean = centre + float(np.sum((values - centre) * masses))
    return float(mean), float(np.sum((values - mean) ** 2 * masses))
