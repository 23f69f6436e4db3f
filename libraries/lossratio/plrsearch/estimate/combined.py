"""The critical load of each fitting function, and of both together, as mean, interval and quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.model import Array, Curves
from lossratio.plrsearch.quadrature import Posterior, mixture_quantiles


@dataclass(frozen=True)
class FunctionEstimate:
    """The critical load under one fitting function; loads in frames per second.

    Attributes:
        name: Name of the fitting function.
        mean: Mean critical load.
        stdev: Its standard deviation.
        mean_log: Mean of the critical load's natural logarithm.
        stdev_log: Standard deviation of that.
        log_evidence: Natural logarithm of the probability of all counts, averaged over the prior.
        p_at_min: Probability that the critical load is the minimum load or less.
        p_at_max: Probability that it is the maximum load or more.
        posterior: The posterior itself.
    """

    name: str
    mean: float
    stdev: float
    mean_log: float
    stdev_log: float
    log_evidence: float
    p_at_min: float
    p_at_max: float
    posterior: Posterior = field(repr=False)

    @classmethod
    def of(cls, posterior: Posterior) -> FunctionEstimate:
        """The estimate of a posterior."""
        moments = posterior.moments
        return cls(
            name=posterior.function.name,
            mean=moments.mean,
            stdev=moments.stdev,
            mean_log=moments.mean_log,
            stdev_log=moments.stdev_log,
            log_evidence=posterior.log_evidence,
            p_at_min=posterior.p_at_min,
            p_at_max=posterior.p_at_max,
            posterior=posterior,
        )

    def quantile(self, probability: float) -> float:
        """The load in frames per second that the critical load is below with this probability."""
        return _quantiles([self], [1.0], [probability])[0]

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads in frames per second that enclose the critical load with this probability, tails being equal."""
        return _interval([self], [1.0], probability)

    def density(self, loads: Sequence[float]) -> Array:
        """Probability density of the critical load at these loads, per frame per second.

        Probability beyond the limits is in `p_at_min` and `p_at_max`, not here.
        """
        return self.posterior.cumulative_and_density(np.asarray(loads, dtype=float))[1]

    def loss_ratio(self, loads: Sequence[float]) -> Array:
        """The likeliest curve: the mean loss ratio that it has at these loads, in frames per second."""
        load, mode = np.asarray(loads, dtype=float), self.posterior.mode
        curves = Curves(self.posterior.function, np.full(len(load), mode.spread), np.full(len(load), mode.deviation))
        point = curves.at(load, np.full(len(load), mode.mrr), np.arange(len(load)))
        return np.asarray(np.minimum(np.exp(point.log_rate - np.log(load)), 1.0))


@dataclass(frozen=True)
class CombinedEstimate:
    """The critical load under several fitting functions together; loads in frames per second.

    Attributes:
        functions: The estimates that are combined.
        weights: Their weights; the sum is 1.
        mean: Mean critical load.
        stdev: Its standard deviation, the functions' disagreement included.
        log_mean: Middle of exp(mean of log -/+ stdev of log), as FD.io CSIT reports it.
        log_stdev: Half the distance between these.
    """

    functions: tuple[FunctionEstimate, ...] = field(repr=False)
    weights: tuple[float, ...]
    mean: float
    stdev: float
    log_mean: float
    log_stdev: float

    @classmethod
    def of(cls, functions: tuple[FunctionEstimate, ...], weights: tuple[float, ...]) -> CombinedEstimate:
        """Mixes the posteriors."""
        mean, stdev = _mixed([(function.mean, function.stdev) for function in functions], weights)
        mean_log, stdev_log = _mixed([(function.mean_log, function.stdev_log) for function in functions], weights)
        upper, lower = np.exp(mean_log + stdev_log), np.exp(mean_log - stdev_log)
        return cls(functions, weights, mean, stdev, float(0.5 * (upper + lower)), float(0.5 * (upper - lower)))

    def quantile(self, probability: float) -> float:
        """The load in frames per second that the critical load is below with this probability."""
        return _quantiles(self.functions, self.weights, [probability])[0]

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads in frames per second that enclose the critical load with this probability, tails being equal."""
        return _interval(self.functions, self.weights, probability)

    @property
    def p_at_min(self) -> float:
        """Probability that the critical load is the minimum load or less."""
        return sum(weight * function.p_at_min for weight, function in zip(self.weights, self.functions, strict=True))

    @property
    def p_at_max(self) -> float:
        """Probability that it is the maximum load or more."""
        return sum(weight * function.p_at_max for weight, function in zip(self.weights, self.functions, strict=True))

    def density(self, loads: Sequence[float]) -> Array:
        """Probability density of the critical load at these loads, per frame per second (see `FunctionEstimate`)."""
        parts = [
            weight * function.density(loads) for weight, function in zip(self.weights, self.functions, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))


def evidence_weights(log_evidences: Sequence[float]) -> tuple[float, ...]:
    """Weights in proportion to evidences, from their logarithms."""
    shares = np.exp(np.asarray(log_evidences) - max(log_evidences))
    return tuple(float(share) for share in shares / shares.sum())


def _mixed(parts: list[tuple[float, float]], weights: tuple[float, ...]) -> tuple[float, float]:
    """Mean and standard deviation of a mixture, around the first mean so that no digits are lost."""
    centre = parts[0][0]
    shift = sum(weight * (mean - centre) for weight, (mean, _) in zip(weights, parts, strict=True))
    mean = centre + shift
    variance = sum(weight * (stdev**2 + (own - mean) ** 2) for weight, (own, stdev) in zip(weights, parts, strict=True))
    return mean, float(np.sqrt(variance))


def _quantiles(
    functions: Iterable[FunctionEstimate], weights: Iterable[float], probabilities: list[float]
) -> list[float]:
    if not all(0.0 < probability < 1.0 for probability in probabilities):
        raise SearchError(f"A probability must be between 0 and 1, exclusive, not {probabilities!r}.")
    loads = mixture_quantiles([function.posterior for function in functions], list(weights), probabilities)
    return [float(load) for load in loads]


def _interval(
    functions: Iterable[FunctionEstimate], weights: Iterable[float], probability: float
) -> tuple[float, float]:
    tail = 0.5 * (1.0 - probability)
    low, high = _quantiles(functions, weights, [tail, 1.0 - tail])
    return low, high
