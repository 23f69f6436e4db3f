"""The result of PLRsearch: the critical load of each fitting function and of both together, from any trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.estimate.guard import Guard, Verdict, guard
from lossratio.plrsearch.estimate.misfit import Misfit, check
from lossratio.plrsearch.model import (
    Array,
    CriticalLoadQuestion,
    Curves,
    LikelihoodName,
    StopReason,
    TrialCounts,
    Weighting,
    chosen,
    collect,
)
from lossratio.plrsearch.quadrature import Mode, Posterior, mixture_quantiles, posteriors
from lossratio.plrsearch.variation import Averaging, Capacities, Description, averaging_of, described
from lossratio.trials import TrialResult
from lossratio.units import format_target

_LIMIT_SHARE = 0.025
"""With a larger probability beyond a limit the limit is part of the answer: the 95 % interval ends there."""


@dataclass(frozen=True)
class FunctionEstimate:
    """The critical load under one fitting function; loads in frames per second."""

    name: str
    """Name of the fitting function."""
    mean: float
    """Mean critical load."""
    stdev: float
    """Its standard deviation."""
    mean_log: float
    """Mean of the critical load's natural logarithm."""
    stdev_log: float
    """Standard deviation of that."""
    log_evidence: float
    """Natural logarithm of the probability of all counts, averaged over the prior."""
    p_at_min: float
    """Probability that the critical load is the minimum load or less."""
    p_at_max: float
    """Probability that it is the maximum load or more."""
    posterior: Posterior = field(repr=False)
    """The posterior itself."""

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

    @property
    def mode(self) -> Mode:
        """The likeliest parameters, in frames per second."""
        return self.posterior.mode

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
        load, mode = np.asarray(loads, dtype=float), self.mode
        curves = Curves(self.posterior.function, np.full(len(load), mode.spread), np.full(len(load), mode.deviation))
        point = curves.at(load, np.full(len(load), mode.mrr), np.arange(len(load)))
        return np.asarray(np.minimum(np.exp(point.log_rate - np.log(load)), 1.0))


@dataclass(frozen=True)
class CombinedEstimate:
    """The critical load under several fitting functions together; loads in frames per second."""

    functions: tuple[FunctionEstimate, ...] = field(repr=False)
    """The estimates that are combined."""
    weights: tuple[float, ...]
    """Their weights; the sum is 1."""
    mean: float
    """Mean critical load."""
    stdev: float
    """Its standard deviation, the functions' disagreement included."""
    log_mean: float
    """Middle of exp(mean of log -/+ stdev of log), as FD.io CSIT reports it."""
    log_stdev: float
    """Half the distance between these."""

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


@dataclass(frozen=True)
class Pace:
    """How long trials took, on average."""

    period: float
    """Seconds from one trial to the next."""
    duration: float
    """Seconds of traffic in a trial."""


@dataclass(frozen=True)
class IntervalAfterTrial:
    """The estimate after a trial of a search; loads in frames per second.

    Estimates during a search are approximate, to choose loads and to show progress; the final one is exact.
    """

    trials: int
    """How many trials it is made of."""
    elapsed: float
    """Seconds that these trials took."""
    mean: float
    """Mean critical load."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Its upper end."""

    def widened(self, factor: float, question: CriticalLoadQuestion) -> IntervalAfterTrial:
        """The same with an interval that is wider by a factor on both sides of the mean, but within the limits."""
        mean = min(max(self.mean, self.low), self.high)
        low = max(mean - factor * (mean - self.low), question.min_load)
        high = min(mean + factor * (self.high - mean), question.max_load)
        return self if factor == 1.0 else replace(self, low=low, high=high)


@dataclass(frozen=True)
class CsitEstimate:
    """What CSIT's code reports; loads in frames per second."""

    trials: int
    """The trials that it is made of."""
    mean: float
    """Middle of exp(mean of log -/+ stdev of log), both functions having half the weight."""
    stdev: float
    """Half the distance between these."""
    stretch_mean: float
    """Exponential of the mean of the logarithm, under CSIT's stretch function."""
    erf_mean: float
    """The same under its erf function."""
    samples: int
    """Samples of the Monte Carlo, for each function."""


@dataclass(frozen=True)
class CriticalLoadEstimate:
    """The result of PLRsearch. All loads in frames per second and per interface, as trial loads are."""

    question: CriticalLoadQuestion
    """Target and limits."""
    likelihood: LikelihoodName
    """How counts are distributed in the model."""
    weighting: Weighting
    """How `mean`, `stdev` and `interval` combine the functions."""
    counts: TrialCounts = field(repr=False)
    """The trials it is made of, in the order in which they were measured."""
    description: Description = field(repr=False)
    """How the trials are described: which of them, and whether the capacity varies, drifts, or is alike for long."""
    stopped_by: StopReason | None = None
    """Why the search ended; None if it goes on, or if there was no search."""
    history: tuple[IntervalAfterTrial, ...] = field(default=(), repr=False)
    """The estimates during the search, if there was one."""
    csit: CsitEstimate | None = None
    """What FD.io CSIT's code reports, if its way of selection chose the loads."""
    stopping_factor: float = 1.0
    """How much wider `interval` is for the search having been able to end when it was narrow."""
    pace: Pace | None = None
    """How long trials took; None: only the exposure is known."""

    @cached_property
    def functions(self) -> Mapping[str, FunctionEstimate]:
        """Estimates of the fitting functions, by name."""
        found = (FunctionEstimate.of(posterior) for posterior in self.description.posteriors)
        return MappingProxyType({function.name: function for function in found})

    @cached_property
    def combinations(self) -> Mapping[Weighting, CombinedEstimate]:
        """Both ways to combine the functions."""
        functions = tuple(self.functions.values())
        equal = tuple(1.0 / len(functions) for _ in functions)
        return MappingProxyType(
            {
                Weighting.EVIDENCE: CombinedEstimate.of(functions, self.description.weights),
                Weighting.EQUAL: CombinedEstimate.of(functions, equal),
            }
        )

    @cached_property
    def guard(self) -> Guard:
        """What frames at and just below the mean say without any model."""
        return guard(self.counts, self.question, self.mean, self.interval(0.95)[0])

    @cached_property
    def averaging(self) -> Averaging | None:
        """How the capacity's noise averages out, and how long trials should be; None if the trials do not show it."""
        best, counts = self.description.best, self.description.counts
        if self.description.likelihood is not LikelihoodName.VARYING or not counts.lost.any():
            return None
        capacities = Capacities.of(best.function, best.mode, self.counts)
        exposure = float(self.counts.exposure.mean())
        pace = self.pace or Pace(exposure, exposure)
        return averaging_of(capacities, self.description.order, pace.period, pace.duration)

    @cached_property
    def misfit(self) -> Misfit:
        """Whether the model fits the trials, and if not, why.

        Below the minimum load no model is needed: the trials there show the loss. Then nothing speaks against it.
        """
        poisson = self.description.posteriors
        if self.description.likelihood is not LikelihoodName.POISSON:
            poisson = posteriors(self.counts, self.question, LikelihoodName.POISSON, for_selection=True)
        misfit = check(self.description, poisson, self.counts)
        if self.is_surely_at_most_min_load:
            return replace(misfit, reasons=(), provisional=None)
        if self.guard.verdict is Verdict.CONTRADICTED:
            return replace(misfit, reasons=(f"The reported load is {self.guard}.", *misfit.reasons))
        return misfit

    @property
    def combined(self) -> CombinedEstimate:
        """The functions combined by `weighting`: the distribution of the critical load."""
        return self.combinations[self.weighting]

    @property
    def mean(self) -> float:
        """Mean critical load."""
        return self.combined.mean

    @property
    def stdev(self) -> float:
        """Standard deviation of the critical load."""
        return self.combined.stdev

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads that enclose the critical load with this probability, tails being equal.

        Each end is farther out than in the model by one frame in the longest trial, but within the limits: a trial
        cannot distinguish two loads at which it sends the same number of frames. `stopping_factor` widens it, too.
        """
        low, high = self.combined.interval(probability)
        if self.stopping_factor != 1.0:
            middle = self.combined.quantile(0.5)
            low, high = middle - self.stopping_factor * (middle - low), middle + self.stopping_factor * (high - middle)
        resolution = 1.0 / self.counts.exposure.max() if len(self.counts) else 0.0
        return max(low - resolution, self.question.min_load), min(high + resolution, self.question.max_load)

    @property
    def is_beyond_trials(self) -> bool:
        """Whether the trials are too few to show the target: then the prior decides about the limits, not the SUT.

        So it is where no frame was lost, or the critical load may be above the maximum load, unless frames near the
        maximum load verify that the loss ratio is below the target there.
        """
        unseen = self.combined.p_at_max > _LIMIT_SHARE or not self.counts.lost.any()
        return unseen and self.guard.verdict is Verdict.EXTRAPOLATED and self.guard.extrapolation > 1.0

    @property
    def is_at_least_max_load(self) -> bool:
        """Whether the critical load may well be above the maximum load: then the mean is "at least" only."""
        return self.combined.p_at_max > _LIMIT_SHARE and not self.is_beyond_trials

    @property
    def is_at_most_min_load(self) -> bool:
        """Whether the critical load may well be below the minimum load: then the mean is "at most" only."""
        return self.combined.p_at_min > _LIMIT_SHARE and not self.is_beyond_trials

    @property
    def is_surely_at_most_min_load(self) -> bool:
        """Whether the trials show without any model that more than the target is lost at the minimum load."""
        at_min = self.combined.p_at_min > 1.0 - _LIMIT_SHARE
        is_refuted = (
            self.guard.verdict is Verdict.VERIFIED and self.guard.bounds.least > self.question.target_loss_ratio
        )
        return at_min and is_refuted

    @property
    def limits(self) -> str | None:
        """A sentence about each limit that the critical load may be at or beyond; None if it is well between them."""
        if self.is_beyond_trials:
            target = format_target(self.question.target_loss_ratio)
            return f"The target loss ratio {target} is beyond the trials: {self.guard.in_short}."
        sentences = [
            f"The critical load is {relation} the {name} load, {load:,.10g} frames/s, with probability {share:.3g}."
            for applies, relation, name, load, share in (
                (self.is_at_least_max_load, "at least", "maximum", self.question.max_load, self.combined.p_at_max),
                (self.is_at_most_min_load, "at most", "minimum", self.question.min_load, self.combined.p_at_min),
            )
            if applies
        ]
        return " ".join(sentences) or None


def estimate(
    results: Iterable[TrialResult],
    *,
    target_loss_ratio: float,
    min_load: float,
    max_load: float,
    likelihood: LikelihoodName | str = LikelihoodName.VARYING,
    weighting: Weighting | str = Weighting.EVIDENCE,
) -> CriticalLoadEstimate:
    """Estimates the critical load from trial results; the same results always give the same estimate.

    The order of the trials matters only where the capacity drifts, or successive trials are alike.

    Args:
        results: Trials with counts of sent and lost frames, at any loads.
        target_loss_ratio: Loss ratio at the critical load, between 0 and 1, exclusive.
        min_load: Smallest possible answer, in frames per second.
        max_load: Largest possible answer, in frames per second. Half of it is the prior's scale.
        likelihood: How counts are distributed.
        weighting: How the fitting functions are combined.

    Raises:
        SearchError: If an argument makes no sense, or a trial cannot be used.
    """
    return estimate_from_counts(
        collect(results),
        CriticalLoadQuestion(target_loss_ratio, min_load, max_load),
        chosen(LikelihoodName, likelihood, "likelihood"),
        chosen(Weighting, weighting, "weighting"),
    )


def estimate_from_counts(
    counts: TrialCounts, question: CriticalLoadQuestion, likelihood: LikelihoodName, weighting: Weighting
) -> CriticalLoadEstimate:
    """`estimate` from counts and options that are already checked."""
    return CriticalLoadEstimate(question, likelihood, weighting, counts, described(counts, question, likelihood))
