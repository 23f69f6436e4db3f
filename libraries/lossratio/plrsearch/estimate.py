"""The critical load estimate: what PLRsearch concludes from trials, whoever chose them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from types import MappingProxyType

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.capacity import VaryingCapacityLikelihood
from lossratio.plrsearch.counts import TrialCounts, collect
from lossratio.plrsearch.critical import CriticalLoadQuestion
from lossratio.plrsearch.density import Model
from lossratio.plrsearch.distribution import Posterior, mixture_quantiles
from lossratio.plrsearch.functions import FUNCTIONS
from lossratio.plrsearch.likelihood import GeometricLikelihood, Likelihood, PoissonLikelihood
from lossratio.plrsearch.nested import integrate_varying
from lossratio.plrsearch.posterior import integrate
from lossratio.plrsearch.prior import Prior
from lossratio.trial import TrialResult


class LikelihoodName(str, Enum):
    """How a trial's count of lost frames is distributed around the fitting function's mean."""

    VARYING = "varying"
    """Poisson, around a capacity that varies normally from trial to trial; by how much is inferred. How often its
    intervals cover the truth has not been measured yet."""
    POISSON = "poisson"
    """Poisson (draft 4.3.1): right and sharp for a SUT that never varies, much too sure of itself for others."""
    GEOMETRIC = "geometric"
    """Geometric (FD.io CSIT's code): however many frames a trial loses, it tells its mean to 100 % only."""


class Weighting(str, Enum):
    """How the two fitting functions are combined."""

    EVIDENCE = "evidence"
    """By the probability of the trials under each: the function that fits better prevails."""
    EQUAL = "equal"
    """Half each (draft 5.3): their difference stays in the estimate as a systematic error."""


class StopReason(str, Enum):
    """Why a search is over."""

    TIMEOUT = "timeout"
    PRECISION = "precision"


@dataclass(frozen=True)
class FunctionEstimate:
    """What one fitting function makes of the trials; loads in frames per second.

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
        """Sums up a posterior."""
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
        """The load that the critical load undershoots with this probability, in frames per second."""
        return _quantiles([self], [1.0], [probability])[0]

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads in frames per second that enclose the critical load with this probability, tails being equal."""
        return _interval([self], [1.0], probability)


@dataclass(frozen=True)
class CombinedEstimate:
    """What several fitting functions make of the trials together; loads in frames per second.

    Attributes:
        functions: The estimates that are combined.
        weights: Their weights; the sum is 1.
        mean: Mean critical load.
        stdev: Its standard deviation, the functions' disagreement included.
        log_mean: Middle of exp(mean of log -/+ stdev of log), which is what FD.io CSIT reports.
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
        mean, stdev = _mixed([(each.mean, each.stdev) for each in functions], weights)
        mean_log, stdev_log = _mixed([(each.mean_log, each.stdev_log) for each in functions], weights)
        upper, lower = np.exp(mean_log + stdev_log), np.exp(mean_log - stdev_log)
        return cls(functions, weights, mean, stdev, float(0.5 * (upper + lower)), float(0.5 * (upper - lower)))

    def quantile(self, probability: float) -> float:
        """The load that the critical load undershoots with this probability, in frames per second."""
        return _quantiles(self.functions, self.weights, [probability])[0]

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads in frames per second that enclose the critical load with this probability, tails being equal."""
        return _interval(self.functions, self.weights, probability)


@dataclass(frozen=True)
class CriticalLoadEstimate:
    """The result of PLRsearch. All loads in frames per second and per interface, as trial loads are.

    Attributes:
        target_loss_ratio: Loss ratio at the critical load.
        min_load: Smallest load that could be the answer.
        max_load: Largest load that could be the answer.
        likelihood: How counts were taken to be distributed.
        weighting: How the functions were combined to `mean`, `stdev` and `interval`.
        functions: Estimates of the fitting functions, by name.
        counts: The trials it is made of.
        finished: Why the search ended; None if it did not, or if there was none.
    """

    target_loss_ratio: float
    min_load: float
    max_load: float
    likelihood: LikelihoodName
    weighting: Weighting
    functions: Mapping[str, FunctionEstimate]
    counts: TrialCounts = field(repr=False)
    finished: StopReason | None = None

    @cached_property
    def combinations(self) -> Mapping[Weighting, CombinedEstimate]:
        """Both ways to combine the functions."""
        functions = tuple(self.functions.values())
        equal = tuple(1.0 / len(functions) for _ in functions)
        evidence = np.array([each.log_evidence for each in functions])
        evidence = np.exp(evidence - evidence.max())
        by_evidence = tuple(float(weight) for weight in evidence / evidence.sum())
        return MappingProxyType(
            {
                Weighting.EVIDENCE: CombinedEstimate.of(functions, by_evidence),
                Weighting.EQUAL: CombinedEstimate.of(functions, equal),
            }
        )

    @property
    def mean(self) -> float:
        """Mean critical load."""
        return self.combinations[self.weighting].mean

    @property
    def stdev(self) -> float:
        """Standard deviation of the critical load."""
        return self.combinations[self.weighting].stdev

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads that enclose the critical load with this probability, tails being equal."""
        return self.combinations[self.weighting].interval(probability)


def estimate(
    results: Iterable[TrialResult],
    *,
    target_loss_ratio: float,
    min_load: float,
    max_load: float,
    likelihood: LikelihoodName | str = LikelihoodName.GEOMETRIC,
    weighting: Weighting | str = Weighting.EVIDENCE,
) -> CriticalLoadEstimate:
    """Estimates the critical load from trial results, in any order; the same results always give the same estimate.

    Args:
        results: Trials with counts of sent and lost frames, at any loads.
        target_loss_ratio: Loss ratio at the critical load, between 0 and 1, exclusive.
        min_load: Smallest load that can be the answer, in frames per second. The critical load is clamped to it.
        max_load: Largest load that can be the answer, in frames per second. Half of it is the prior's scale.
        likelihood: How counts are distributed.
        weighting: How the fitting functions are combined.

    Raises:
        SearchError: If an argument makes no sense, or a trial cannot be used.
    """
    question = CriticalLoadQuestion(target_loss_ratio, min_load, max_load)
    return estimate_from_counts(collect(results), question, likelihood_name(likelihood), weighting_name(weighting))


def estimate_from_counts(
    counts: TrialCounts, question: CriticalLoadQuestion, likelihood: LikelihoodName, weighting: Weighting
) -> CriticalLoadEstimate:
    """The same from what was already checked."""
    return summed_up(posteriors(counts, question, likelihood), counts, question, likelihood, weighting)


def posteriors(
    counts: TrialCounts, question: CriticalLoadQuestion, likelihood: LikelihoodName
) -> tuple[Posterior, ...]:
    """The posterior of each fitting function."""
    prior = Prior(question.max_load / 2.0)
    if likelihood is LikelihoodName.VARYING:
        varying = VaryingCapacityLikelihood(counts)
        return tuple(
            Posterior(
                function,
                question,
                integrate_varying(Model(function, varying, prior), varying, question),
                varying.constant,
            )
            for function in FUNCTIONS
        )
    bound: Likelihood = (
        PoissonLikelihood(counts) if likelihood is LikelihoodName.POISSON else GeometricLikelihood(counts)
    )
    return tuple(
        Posterior(function, question, integrate(Model(function, bound, prior), question), bound.constant)
        for function in FUNCTIONS
    )


def summed_up(
    found: tuple[Posterior, ...],
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    likelihood: LikelihoodName,
    weighting: Weighting,
) -> CriticalLoadEstimate:
    """The estimate from posteriors."""
    return CriticalLoadEstimate(
        target_loss_ratio=question.target_loss_ratio,
        min_load=question.min_load,
        max_load=question.max_load,
        likelihood=likelihood,
        weighting=weighting,
        functions=MappingProxyType({each.function.name: FunctionEstimate.of(each) for each in found}),
        counts=counts,
    )


def likelihood_name(given: LikelihoodName | str) -> LikelihoodName:
    """Checks the name of a likelihood.

    Raises:
        SearchError: If there is no such likelihood.
    """
    try:
        return LikelihoodName(given)
    except ValueError as error:
        raise SearchError(
            f"No likelihood {given!r}: choose one of {[each.value for each in LikelihoodName]}."
        ) from error


def weighting_name(given: Weighting | str) -> Weighting:
    """Checks the name of a weighting.

    Raises:
        SearchError: If there is no such weighting.
    """
    try:
        return Weighting(given)
    except ValueError as error:
        raise SearchError(f"No weighting {given!r}: choose one of {[each.value for each in Weighting]}.") from error


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
    loads = mixture_quantiles([each.posterior for each in functions], list(weights), probabilities)
    return [float(load) for load in loads]


def _interval(
    functions: Iterable[FunctionEstimate], weights: Iterable[float], probability: float
) -> tuple[float, float]:
    tail = 0.5 * (1.0 - probability)
    low, high = _quantiles(functions, weights, [tail, 1.0 - tail])
    return low, high
