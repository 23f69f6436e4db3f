"""Laplace's method for trials whose capacity varies: integrals over each trial's own capacity, from the likeliest one.

The integrand is the Poisson probability of the trial's count, given its capacity, times the normal density of that.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from lossratio.plrsearch.likelihood.constant_capacity import poisson_deviance
from lossratio.plrsearch.model import Array, FittingFunction

_NEAR = 0.3
"""Distance from the likeliest capacity, in standard deviations, from which its neighbourhood is expanded."""
_ITERATIONS = 12
"""Steps towards the likeliest capacity; what is still far from it then is improbable, and stays so."""
_TINY = 1e-300


@dataclass(frozen=True)
class Cells:
    """Trials at parameters: arrays that broadcast against each other, loads and capacities in frames per second.

    Attributes:
        load: Offered load.
        lost: Lost frames.
        log_exposure: Logarithm of the exposure.
        mrr: The capacities' mean.
        spread: Width of the knee.
        deviation: The capacities' standard deviation.
        capacity: About the capacity that is likeliest, given count and mean; between `low` and `high`.
        low: Smallest capacity that may be likeliest.
        high: Largest one.
    """

    load: Array
    lost: Array
    log_exposure: Array
    mrr: Array
    spread: Array
    deviation: Array
    capacity: Array
    low: Array
    high: Array

    def chosen(self, which: NDArray[np.bool_]) -> Cells:
        """Some of the cells, one by one: arrays of shape (cells,)."""
        return Cells(*(np.broadcast_to(getattr(self, name), which.shape)[which] for name in _FIELDS))


_FIELDS = tuple(each.name for each in fields(Cells))


@dataclass(frozen=True)
class _Expansion:
    """Integrals of cells as seen from their capacities, and where better ones are; arrays of one shape.

    Attributes:
        integrals: Logarithm of the integral, its derivative with respect to the mrr, and the second one's negative.
        near: Whether the capacity is so near to the likeliest one that these are good.
        step: From the capacity to about the likeliest one, in frames per second.
    """

    integrals: tuple[Array, Array, Array]
    near: NDArray[np.bool_]
    step: Array

    @classmethod
    def of(cls, cells: Cells, function: FittingFunction) -> _Expansion:
        log_probability, pull, bend = _expanded_probability(cells, function)
        offset = (cells.capacity - cells.mrr) / np.maximum(cells.deviation, _TINY)
        stiffness = 1.0 + cells.deviation**2 * bend
        push = cells.deviation * pull - offset
        gain = push**2 / stiffness
        near = gain <= _NEAR**2
        value = log_probability + 0.5 * (np.where(near, gain, 0.0) - offset**2 - np.log(stiffness))
        slope = (pull + bend * cells.deviation * offset) / stiffness
        return cls((np.minimum(value, 0.0), slope, bend / stiffness), near, cells.deviation * push / stiffness)


def integrals(cells: Cells, function: FittingFunction, wanted: NDArray[np.bool_]) -> Array:
    """Logarithm, its derivative with respect to the mrr and the second one's negative, shape (3, *cells).

    Args:
        cells: The cells, with a first guess of their likeliest capacities, which mostly is good enough.
        function: The fitting function.
        wanted: For which cells the likeliest capacity is to be found if it is not; broadcasts against the cells.
    """
    # All cells together: what only rows or only trials differ in is then computed once for each of these.
    expansion = _Expansion.of(cells, function)
    found = np.stack(expansion.integrals)
    flat, far = found.reshape(3, -1), ~expansion.near & wanted
    open_ones, step = np.flatnonzero(far), expansion.step[far]
    cells = cells.chosen(far)
    for iteration in range(_ITERATIONS - 1):
        if not len(open_ones):
            break
        cells = _moved(cells, step, bisect=iteration % 3 == 2)
        expansion = _Expansion.of(cells, function)
        flat[:, open_ones] = expansion.integrals
        far, step = ~expansion.near, expansion.step
        cells, open_ones, step = cells.chosen(far), open_ones[far], step[far]
    return found


def _moved(cells: Cells, step: Array, *, bisect: bool) -> Cells:
    """The cells with capacities nearer to the likeliest ones: by the steps, if these keep to the bracket."""
    low = np.where(step > 0, cells.capacity, cells.low)
    high = np.where(step > 0, cells.high, cells.capacity)
    target = cells.capacity + step
    inside = (target > low) & (target < high) & (not bisect)
    return replace(cells, capacity=np.where(inside, target, 0.5 * (low + high)), low=low, high=high)


def _expanded_probability(cells: Cells, function: FittingFunction) -> tuple[Array, Array, Array]:
    """Logarithm of the count's probability at the capacity, its derivative, and the second one's negative.

    The probability is relative to that of a count which is the mean.
    """
    loss = function.log_loss(cells.load, cells.capacity, cells.spread)
    log_mean = loss.log_rate + cells.log_exposure
    mean = np.exp(log_mean)
    excess = cells.lost - mean
    curvature = function.curvature(cells.load, cells.capacity, cells.spread, loss)
    bend = np.maximum(mean * loss.slope**2 - excess * curvature, 0.0)
    surprise = log_mean - np.log(np.maximum(cells.lost, 1.0))
    log_probability = np.where(cells.lost > 0, -cells.lost * poisson_deviance(surprise), -mean)
    return log_probability, excess * loss.slope, bend
