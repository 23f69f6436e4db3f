"""The posterior of a shape's parameters: importance sampling from points that fill space evenly, without chance.

The points are those of a Kronecker sequence, so that the same trials make the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy

from lossratio.plrsearch.model import Array
from lossratio.plrsearch.variation.sample import Capacities
from lossratio.plrsearch.variation.shapes import Shape

_POINTS = 400
"""Points of a round that looks for the posterior."""
_LAST_POINTS = 1200
"""Points of the last round."""
_ROUNDS = 30
_USED = 0.25
"""Share of the points of a round that count: the posterior is flattened so far."""
_WIDER = 3.0
"""Factor of the variance of a third of the points: tails of the posterior are not missed."""
_FAR = 1.0 / 3.0
_START = 1.7
"""Standard deviation of a logistic distribution: by it a parameter between bounds is flat."""
_MOST = 30.0


@dataclass(frozen=True)
class ShapePosterior:
    """The posterior of a shape's parameters."""

    shape: Shape
    """The shape."""
    at: Array
    """Parameters, shape (points, parameters)."""
    weight: Array
    """Weights of the points; their sum is 1."""
    log_evidence: float
    """Logarithm of the trials' probability, averaged over the prior; the centre's prior is flat and not normalized, so
    only differences between shapes mean something."""

    @property
    def mean(self) -> Array:
        """Mean parameters."""
        return np.asarray(self.weight @ self.at)


def shape_posterior(shape: Shape, capacities: Capacities, share: float) -> ShapePosterior:
    """The posterior of a shape's parameters.

    Args:
        shape: The shape.
        capacities: What the trials show.
        share: Each trial counts as this share of one: less than 1 if successive trials are alike.
    """
    seen, unseen = capacities.grouped()

    def log_density(latent: Array) -> Array:
        at, log_prior = _parameters(shape, latent)
        log_seen = shape.log_density(seen[0], seen[1], at) @ seen[2]
        log_unseen = shape.log_above(unseen[0], unseen[1], at) @ unseen[2]
        return np.asarray(share * (log_seen + log_unseen) + log_prior)

    sample = capacities.place[capacities.certain]
    centre, width = float(np.median(sample)), _width(sample)
    low, high = shape.bounds[0]
    at_width = np.clip((np.log(width) - low) / (high - low), 0.02, 0.98)
    mean = np.zeros(1 + len(shape.bounds))
    mean[0], mean[1] = centre, np.log(at_width / (1.0 - at_width))
    deviations = np.full(len(mean), _START)
    deviations[0], deviations[1] = width, 0.5
    latent, log_weight = _sampled(log_density, mean, np.diag(deviations**2))
    top = float(log_weight.max())
    weight = np.exp(log_weight - top)
    return ShapePosterior(
        shape, _parameters(shape, latent)[0], weight / weight.sum(), top + float(np.log(weight.mean()))
    )


def _width(sample: Array) -> float:
    """Standard deviation of the middle of a sample."""
    quartiles = np.quantile(sample, [0.25, 0.75])
    return float(max((quartiles[1] - quartiles[0]) / 1.349, 1e-6))


def _parameters(shape: Shape, latent: Array) -> tuple[Array, Array]:
    """Parameters at points of all real numbers, and the logarithm of the prior there."""
    at, log_prior = latent.copy(), np.zeros(len(latent))
    for index, (low, high) in enumerate(shape.bounds, start=1):
        value = np.clip(latent[:, index], -_MOST, _MOST)
        at[:, index] = low + (high - low) * scipy.special.expit(value)
        log_prior -= np.abs(value) + 2.0 * np.log1p(np.exp(-np.abs(value)))
    return at, log_prior


def _sampled(log_density: Callable[[Array], Array], mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Points, and the logarithms of their weights, after the proposal has come to the posterior step by step."""
    settled = 0
    for _ in range(_ROUNDS):
        points, log_proposal = _proposed(mean, covariance, _POINTS)
        log_weight = log_density(points) - log_proposal
        power = _flattening(log_weight)
        weight = np.exp(power * (log_weight - log_weight.max()))
        weight /= weight.sum()
        mean = weight @ points
        centred = points - mean
        covariance = (weight * centred.T) @ centred
        covariance += np.diag(1e-6 * np.diag(covariance) + 1e-30)
        settled = settled + 1 if power == 1.0 else 0
        if settled == 2:
            break
    points, log_proposal = _proposed(mean, covariance, _LAST_POINTS)
    return points, log_density(points) - log_proposal


def _flattening(log_weight: Array) -> float:
    """The largest power of the weights, at most 1, with which enough points count."""

    def used(power: float) -> float:
        weight = np.exp(power * (log_weight - log_weight.max()))
        return float(weight.sum() ** 2 / np.sum(weight**2) / len(weight))

    if used(1.0) >= _USED:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if used(middle) >= _USED else (low, middle)
    return low


def _proposed(mean: Array, covariance: Array, number: int) -> tuple[Array, Array]:
    """Points of a mixture of two normal distributions, and the logarithm of its density there."""
    root = np.linalg.cholesky(covariance)
    standard = np.array(_normal_points(number, len(mean)))
    far = np.arange(number) % 3 == 0
    standard[far] *= np.sqrt(_WIDER)
    squares = np.sum(standard**2, axis=1)
    dimensions = len(mean)
    log_near = np.log(1.0 - _FAR) - 0.5 * squares
    log_far = np.log(_FAR) - 0.5 * squares / _WIDER - 0.5 * dimensions * np.log(_WIDER)
    log_norm = 0.5 * dimensions * np.log(2.0 * np.pi) + float(np.sum(np.log(np.diag(root))))
    return mean + standard @ root.T, np.logaddexp(log_near, log_far) - log_norm


@cache
def _normal_points(number: int, dimensions: int) -> Array:
    """Points with a normal distribution in each dimension, evenly spread (a Kronecker sequence)."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1.0))
    steps = ratio ** -np.arange(1.0, dimensions + 1.0)
    points = scipy.special.ndtri((0.5 + np.arange(1.0, number + 1.0)[:, None] * steps) % 1.0)
    points.flags.writeable = False
    return np.asarray(points)
