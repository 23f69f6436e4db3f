"""Shapes of the capacity's distribution over trials: normal, two with heavier tails, and two with some slow trials.

Capacities are in shares of a reference capacity, less 1. A shape has parameters in an array of shape (points,
parameters): the first two are the centre and the logarithm of the width; all others are between bounds, with flat
priors. All methods take capacities that broadcast against arrays of shape (points, 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from lossratio.plrsearch.model import Array

_LOG_ROOT_TAU = 0.5 * float(np.log(2.0 * np.pi))
WIDTHS = (float(np.log(1e-6)), float(np.log(0.1)))
"""Bounds of the logarithm of the width, as a share of the capacity: those of the model's standard deviation."""
_SHARES = (float(np.log(1e-3)), float(np.log(0.5)))
"""Bounds of the logarithm of the share of slow trials."""
_DEPTHS = (float(np.log(1e-4)), float(np.log(0.7)))
"""Bounds of the logarithm of how much slower slow trials are, as a share of the capacity."""
_SCATTERS = (float(np.log(0.01)), 0.0)
"""Bounds of the logarithm of the slow trials' own standard deviation, as a share of how much slower they are."""
_FREEDOMS = (float(np.log(1.3)), float(np.log(60.0)))
"""Bounds of the logarithm of Student's degrees of freedom: a mean needs more than 1, and 60 are nearly normal."""


@dataclass(frozen=True)
class Shortfall:
    """Parts of the mean loss: a knee whose place is normally distributed, and the rest."""

    share: Array
    """Share of the trials whose capacity is normally distributed around the centre."""
    deviation: Array
    """Standard deviation of these capacities."""
    rest: Array
    """What capacities of all other trials lack to a load, on average over all trials."""


class Shape(Protocol):
    """A distribution of capacities."""

    name: str
    """Its name in results."""
    bounds: tuple[tuple[float, float], ...]
    """Bounds of the parameters after the first."""
    parameters: tuple[str, ...]
    """Names of all parameters, in results."""

    def log_density(self, capacity: Array, blur: Array, at: Array) -> Array:
        """Logarithm of the density at capacities that are known to a standard deviation of `blur`."""

    def log_above(self, capacity: Array, blur: Array, at: Array) -> Array:
        """Logarithm of the probability of a larger capacity."""

    def below(self, capacity: Array, blur: Array, at: Array) -> Array:
        """Probability of a smaller capacity."""

    def shortfall(self, load: Array, at: Array) -> Shortfall:
        """What capacities lack to a load, a share of the reference less 1, of shape (points,)."""

    def described(self, at: Array) -> tuple[float, ...]:
        """The values of `parameters` at one point, in the units of results."""


def _column(at: Array, index: int) -> Array:
    return at[:, index, None]


def _normal_log_density(distance: Array, width: Array) -> Array:
    return np.asarray(-0.5 * (distance / width) ** 2 - np.log(width) - _LOG_ROOT_TAU)


def _normal_lack(distance: Array, width: Array) -> Array:
    """Mean of max(distance - z width, 0)."""
    u = distance / width
    return np.asarray(distance * scipy.special.ndtr(u) + width * np.exp(-0.5 * u * u - _LOG_ROOT_TAU))


def _log_slow_tail(distance: Array, width: Array, size: Array) -> Array:
    """Logarithm of the probability that only an exponentially distributed slowness makes a capacity so small."""
    steps = width / size
    log_tail = scipy.special.log_ndtr(-distance / width - steps)
    return np.asarray(np.minimum(distance / size + 0.5 * steps**2 + log_tail, 0.0))


class NormalShape:
    """The shape that the model has from the start."""

    name = "normal"
    bounds: tuple[tuple[float, float], ...] = (WIDTHS,)
    parameters: tuple[str, ...] = ("capacity_per_interface_fps", "deviation_ratio")

    def log_density(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_density`."""
        return _normal_log_density(capacity - _column(at, 0), np.hypot(np.exp(_column(at, 1)), blur))

    def log_above(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_above`."""
        width = np.hypot(np.exp(_column(at, 1)), blur)
        return np.asarray(scipy.special.log_ndtr((_column(at, 0) - capacity) / width))

    def below(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.below`."""
        width = np.hypot(np.exp(_column(at, 1)), blur)
        return np.asarray(scipy.special.ndtr((capacity - _column(at, 0)) / width))

    def shortfall(self, load: Array, at: Array) -> Shortfall:
        """See `Shape.shortfall`."""
        return Shortfall(np.ones(len(at)), np.exp(at[:, 1]), np.zeros(len(at)))

    def described(self, at: Array) -> tuple[float, ...]:
        """See `Shape.described`."""
        return float(1.0 + at[0]), float(np.exp(at[1]))


class StudentShape:
    """Student's t: heavy tails on both sides."""

    name = "heavy tails"
    bounds: tuple[tuple[float, float], ...] = (WIDTHS, _FREEDOMS)
    parameters: tuple[str, ...] = ("capacity_per_interface_fps", "width_ratio", "degrees_of_freedom")

    def log_density(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_density`."""
        width, freedom = np.hypot(np.exp(_column(at, 1)), blur), np.exp(_column(at, 2))
        return self._log_density((capacity - _column(at, 0)) / width, freedom) - np.log(width)

    def _log_density(self, distance: Array, freedom: Array) -> Array:
        half = 0.5 * (freedom + 1.0)
        norm = scipy.special.gammaln(half) - scipy.special.gammaln(half - 0.5) - 0.5 * np.log(freedom * np.pi)
        return np.asarray(norm - half * np.log1p(distance**2 / freedom))

    def log_above(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_above`."""
        return np.asarray(np.log(np.maximum(self._below(_column(at, 0) - capacity, blur, at), 1e-300)))

    def below(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.below`."""
        return self._below(capacity - _column(at, 0), blur, at)

    def _below(self, distance: Array, blur: Array, at: Array) -> Array:
        width = np.hypot(np.exp(_column(at, 1)), blur)
        return np.asarray(scipy.special.stdtr(np.exp(_column(at, 2)), distance / width))

    def shortfall(self, load: Array, at: Array) -> Shortfall:
        """See `Shape.shortfall`; no capacity is below 0."""
        lack = self._lack(load, at) - self._lack(np.full_like(load, -1.0), at)
        return Shortfall(np.ones(len(at)), np.zeros(len(at)), np.maximum(lack, 0.0))

    def _lack(self, load: Array, at: Array) -> Array:
        width, freedom = np.exp(at[:, 1]), np.exp(at[:, 2])
        u = (load - at[:, 0]) / width
        density = np.exp(self._log_density(u, freedom))
        return np.asarray(width * (u * scipy.special.stdtr(freedom, u) + (freedom + u * u) / (freedom - 1.0) * density))

    def described(self, at: Array) -> tuple[float, ...]:
        """See `Shape.described`."""
        return float(1.0 + at[0]), float(np.exp(at[1])), float(np.exp(at[2]))


class ExponentialTailsShape:
    """Normal, plus an exponentially distributed part, slower or faster: the tails of Laplace's distribution."""

    name = "exponential tails"
    bounds: tuple[tuple[float, float], ...] = (WIDTHS, _DEPTHS)
    parameters: tuple[str, ...] = ("capacity_per_interface_fps", "deviation_ratio", "tail_ratio")

    def log_density(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_density`."""
        distance, width, size = self._terms(capacity, blur, at)
        slow, fast = _log_slow_tail(distance, width, size), _log_slow_tail(-distance, width, size)
        return np.asarray(np.logaddexp(slow, fast) - np.log(2.0 * size))

    def log_above(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_above`."""
        distance, width, size = self._terms(capacity, blur, at)
        return np.asarray(np.log(np.maximum(self._below(-distance, width, size), 1e-300)))

    def below(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.below`."""
        return self._below(*self._terms(capacity, blur, at))

    @staticmethod
    def _below(distance: Array, width: Array, size: Array) -> Array:
        slow, fast = _log_slow_tail(distance, width, size), _log_slow_tail(-distance, width, size)
        return np.asarray(scipy.special.ndtr(distance / width) + 0.5 * (np.exp(slow) - np.exp(fast)))

    def shortfall(self, load: Array, at: Array) -> Shortfall:
        """See `Shape.shortfall`; no capacity is below 0."""
        lack = self._lack(load, at) - self._lack(np.full_like(load, -1.0), at)
        return Shortfall(np.ones(len(at)), np.zeros(len(at)), np.maximum(lack, 0.0))

    @staticmethod
    def _lack(load: Array, at: Array) -> Array:
        distance, width, size = load - at[:, 0], np.exp(at[:, 1]), np.exp(at[:, 2])
        slow, fast = _log_slow_tail(distance, width, size), _log_slow_tail(-distance, width, size)
        return np.asarray(_normal_lack(distance, width) + 0.5 * size * (np.exp(slow) + np.exp(fast)))

    @staticmethod
    def _terms(capacity: Array, blur: Array, at: Array) -> tuple[Array, Array, Array]:
        return capacity - _column(at, 0), np.hypot(np.exp(_column(at, 1)), blur), np.exp(_column(at, 2))

    def described(self, at: Array) -> tuple[float, ...]:
        """See `Shape.described`."""
        return float(1.0 + at[0]), *(float(value) for value in np.exp(at[1:]))


class SlowTrialsShape:
    """Normal, but for a share of slow trials, whose loss of capacity is exponentially distributed."""

    name = "slow trials"
    bounds: tuple[tuple[float, float], ...] = (WIDTHS, _SHARES, _DEPTHS)
    parameters: tuple[str, ...] = (
        "capacity_per_interface_fps",
        "deviation_ratio",
        "slow_trials_ratio",
        "slow_by_ratio",
    )

    def log_density(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_density`."""
        distance, width, log_share, size = self._terms(capacity, blur, at)
        slow = _log_slow_tail(distance, width, size) - np.log(size)
        usual = _normal_log_density(distance, width)
        return np.asarray(np.logaddexp(np.log1p(-np.exp(log_share)) + usual, log_share + slow))

    def log_above(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_above`."""
        return np.asarray(np.log(np.maximum(1.0 - self.below(capacity, blur, at), 1e-300)))

    def below(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.below`."""
        distance, width, log_share, size = self._terms(capacity, blur, at)
        usual = scipy.special.ndtr(distance / width)
        return np.asarray(usual + np.exp(log_share + _log_slow_tail(distance, width, size)))

    def shortfall(self, load: Array, at: Array) -> Shortfall:
        """See `Shape.shortfall`; no capacity is below 0."""
        lack = self._lack(load, at) - self._lack(np.full_like(load, -1.0), at)
        share = np.exp(at[:, 2])
        return Shortfall(1.0 - share, np.exp(at[:, 1]), share * np.maximum(lack, 0.0))

    def _lack(self, load: Array, at: Array) -> Array:
        distance, width, size = load - at[:, 0], np.exp(at[:, 1]), np.exp(at[:, 3])
        tail = np.exp(_log_slow_tail(distance, width, size)) + scipy.special.ndtr(distance / width)
        return np.asarray(_normal_lack(distance, width) + size * tail)

    def _terms(self, capacity: Array, blur: Array, at: Array) -> tuple[Array, Array, Array, Array]:
        width = np.hypot(np.exp(_column(at, 1)), blur)
        return capacity - _column(at, 0), width, _column(at, 2), np.exp(_column(at, 3))

    def described(self, at: Array) -> tuple[float, ...]:
        """See `Shape.described`."""
        return float(1.0 + at[0]), *(float(value) for value in np.exp(at[1:]))


class SlowLevelShape:
    """Normal, but for a share of trials at a slower level, with a scatter of its own."""

    name = "slow level"
    bounds: tuple[tuple[float, float], ...] = (WIDTHS, _SHARES, _DEPTHS, _SCATTERS)
    parameters: tuple[str, ...] = (
        "capacity_per_interface_fps",
        "deviation_ratio",
        "slow_trials_ratio",
        "slow_by_ratio",
        "slow_deviation_ratio",
    )

    def log_density(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_density`."""
        distance, width, share, size, slow_width = self._terms(at, capacity, blur)
        return np.asarray(
            np.logaddexp(
                np.log1p(-share) + _normal_log_density(distance, width),
                np.log(share) + _normal_log_density(distance + size, slow_width),
            )
        )

    def log_above(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.log_above`."""
        distance, width, share, size, slow_width = self._terms(at, capacity, blur)
        usual = (1.0 - share) * scipy.special.ndtr(-distance / width)
        slow = share * scipy.special.ndtr(-(distance + size) / slow_width)
        return np.asarray(np.log(np.maximum(usual + slow, 1e-300)))

    def below(self, capacity: Array, blur: Array, at: Array) -> Array:
        """See `Shape.below`."""
        distance, width, share, size, slow_width = self._terms(at, capacity, blur)
        usual = (1.0 - share) * scipy.special.ndtr(distance / width)
        return np.asarray(usual + share * scipy.special.ndtr((distance + size) / slow_width))

    def shortfall(self, load: Array, at: Array) -> Shortfall:
        """See `Shape.shortfall`."""
        distance, width, share, size, slow_width = (part[:, 0] for part in self._terms(at, load[:, None], np.zeros(())))
        return Shortfall(1.0 - share, width, share * _normal_lack(distance + size, slow_width))

    @staticmethod
    def _terms(at: Array, capacity: Array, blur: Array) -> tuple[Array, Array, Array, Array, Array]:
        own, size = np.exp(_column(at, 1)), np.exp(_column(at, 3))
        width, slow = np.hypot(own, blur), np.hypot(own, np.exp(_column(at, 4)) * size)
        return capacity - _column(at, 0), width, np.exp(_column(at, 2)), size, np.hypot(slow, blur)

    def described(self, at: Array) -> tuple[float, ...]:
        """See `Shape.described`."""
        width, share, size, scatter = (float(value) for value in np.exp(at[1:]))
        return float(1.0 + at[0]), width, share, size, float(np.hypot(width, scatter * size))


SHAPES: tuple[Shape, ...] = (
    NormalShape(),
    StudentShape(),
    ExponentialTailsShape(),
    SlowTrialsShape(),
    SlowLevelShape(),
)
