"""A posterior as quadrature nodes: panels in log m, each in a row of fixed other parameters.

Each answer about a posterior is a sum over these nodes. One more trial adds one term at each node.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.polynomial.legendre import Legendre, legder, legvander
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array

ORDER = 20
"""Nodes of a panel, so that smooth densities need two panels, one on each side of the mode."""


_LEGENDRE = Legendre.basis(ORDER - 1)
NODES: Array = np.concatenate([[-1.0], np.sort(_LEGENDRE.deriv().roots().real), [1.0]])
"""Those of Gauss-Lobatto quadrature: both ends are nodes, so that a step at an end is not missed."""
WEIGHTS: Array = 2.0 / (ORDER * (ORDER - 1) * _LEGENDRE(NODES) ** 2)
_TO_LEGENDRE = np.linalg.inv(legvander(NODES, ORDER - 1))
_DERIVATIVE = legder(np.eye(ORDER), axis=0)
_ITERATIONS = 60


def roughness(values: Array) -> Array:
    """About the relative error of the integral over each panel, from the values at its nodes (last axis).

    Legendre coefficients show how fast the series converges. Quadrature is exact to twice the degree of the
    polynomial, so its error is about the last coefficient, extrapolated to twice the degree at the same rate.
    """
    last, middle, largest = _coefficient_sizes(values)
    return np.asarray(last / largest * np.minimum(last / middle, 1.0) ** 2)


def interpolation_roughness(values: Array) -> Array:
    """About the relative error of integrals that end within the panel: they are exact to the polynomial's degree."""
    last, _, largest = _coefficient_sizes(values)
    return np.asarray(last / largest / ORDER)


def _coefficient_sizes(values: Array) -> tuple[Array, Array, Array]:
    """Sizes of the last, the middle and the largest Legendre coefficients."""
    sizes = np.maximum(np.abs(values @ _TO_LEGENDRE.T), 1e-300)
    middle = sizes[..., ORDER // 2 - 2 : ORDER // 2 + 2]
    return sizes[..., -2:].max(axis=-1), middle.max(axis=-1), sizes.max(axis=-1)


def partial_integrals(values: Array, until: Array) -> tuple[Array, Array]:
    """Integrals of the polynomials through the nodes' values from -1 to `until`, and their values there; by panels."""
    coefficients = values @ _TO_LEGENDRE.T
    legendre = legvander(until, ORDER)
    primitive = (legendre[:, 2:] - legendre[:, :-2]) / (2.0 * np.arange(1, ORDER) + 1.0)
    integrals = coefficients[:, 0] * (until + 1.0) + np.sum(primitive * coefficients[:, 1:], axis=1)
    return integrals, np.sum(legendre[:, :-1] * coefficients, axis=1)


def crossings(values: Array, level: Array) -> tuple[Array, Array]:
    """Where in [-1, 1] the polynomials through increasing values reach a level, and their slopes there; by panels."""
    coefficients = values @ _TO_LEGENDRE.T
    derivative = coefficients @ _DERIVATIVE.T
    low, high = np.full(level.shape, -1.0), np.ones(level.shape)
    x = 2.0 * (level - values[:, 0]) / (values[:, -1] - values[:, 0]) - 1.0
    for _ in range(_ITERATIONS):
        legendre = legvander(x, ORDER - 1)
        excess = np.sum(legendre * coefficients, axis=1) - level
        slope = np.maximum(np.sum(legendre[:, :-1] * derivative, axis=1), 1e-300)
        low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
        # Where the polynomial is flat, the step leads out of the panel.
        with np.errstate(over="ignore"):
            moved = x - excess / slope
        moved = np.where((moved >= low) & (moved <= high), moved, 0.5 * (low + high))
        if np.all(np.abs(moved - x) < 1e-12):
            break
        x = moved
    return x, slope


@dataclass(frozen=True)
class Panels:
    """The panels of a posterior. Arrays are of shape (panels,), or (panels, ORDER) for what differs between nodes."""

    row: NDArray[np.intp]
    """Index of each panel's row: panels of one row share all parameters but the mrr."""
    log_spread: Array
    """Log a of the panel's row."""
    low: Array
    """Log m where the panel begins."""
    high: Array
    """Log m where it ends."""
    log_weight: Array
    """Logarithm of the row's weight in the integral over the other parameters."""
    log_density: Array
    """Logarithm of the posterior density, without the likelihood's constant."""
    critical_load: Array
    """Critical loads in frames per second."""

    @property
    def log_mrr(self) -> Array:
        """Log m of the nodes."""
        return node_positions(self.low, self.high)

    def log_masses(self) -> Array:
        """Logarithm of the unnormalized posterior mass of each node."""
        return self.log_density + (np.log(0.5 * (self.high - self.low)) + self.log_weight)[:, None] + np.log(WEIGHTS)

    def chosen(self, which: NDArray[np.bool_]) -> Panels:
        """Some of the panels."""
        return Panels(*(getattr(self, field.name)[which] for field in fields(self)))

    def joined(self, *others: Panels) -> Panels:
        """These and other panels."""
        parts = (self, *others)
        return Panels(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(self)))


def node_positions(low: Array, high: Array) -> Array:
    """Nodes of panels between `low` and `high`, shape (panels, ORDER), where -1 is `low` and 1 is `high`."""
    return np.asarray((0.5 * (low + high))[:, None] + (0.5 * (high - low))[:, None] * NODES)


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of the critical load and of its logarithm."""

    mean: float
    """In frames per second."""
    stdev: float
    """In frames per second."""
    mean_log: float
    """Of the natural logarithm."""
    stdev_log: float
    """Of the natural logarithm."""


def masses_of(panels: Panels) -> tuple[Array, float]:
    """Normalized masses of the nodes, and the logarithm of their sum before."""
    log_masses = panels.log_masses()
    top = float(log_masses.max())
    masses = np.exp(log_masses - top)
    total = float(masses.sum())
    return masses / total, top + float(np.log(total))


def moments_of_masses(loads: Array, masses: Array) -> Moments:
    """Moments: sums of differences from the heaviest point's load, so that sharp posteriors keep digits."""
    return Moments(*_mean_and_stdev(loads, masses), *_mean_and_stdev(np.log(loads), masses))


def _mean_and_stdev(values: Array, masses: Array) -> tuple[float, float]:
    centre = values.flat[int(np.argmax(masses))]
    mean = centre + float(np.sum((values - centre) * masses))
    return float(mean), float(np.sqrt(np.sum((values - mean) ** 2 * masses)))
