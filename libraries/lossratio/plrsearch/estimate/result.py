"""The result of PLRsearch: the estimate of the critical load, from trials that any search chose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from lossratio.plrsearch.estimate.combined import CombinedEstimate, FunctionEstimate, evidence_weights
from lossratio.plrsearch.estimate.misfit import Misfit, check
from lossratio.plrsearch.model import (
    CriticalLoadQuestion,
    LikelihoodName,
    StopReason,
    TrialCounts,
    Weighting,
    chosen,
    collect,
)
from lossratio.plrsearch.quadrature import posteriors
from lossratio.trials import TrialResult

_LIMIT_SHARE = 0.025
"""With a larger probability beyond a limit the limit is part of the answer: the 95 % interval ends there."""


@dataclass(frozen=True)
class IntervalAfterTrial:
    """The estimate after a trial of a search; loads in frames per second.

    Estimates during a search are approximate, to choose loads and to show progress; the final one is exact.

    Attributes:
        trials: How many trials it is made of.
        elapsed: Seconds that these trials took.
        mean: Mean critical load.
        low: Lower end of the 95 % interval.
        high: Its upper end.
    """

    trials: int
    elapsed: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class CriticalLoadEstimate:
    """The result of PLRsearch. All loads in frames per second and per interface, as trial loads are.

    Attributes:
        target_loss_ratio: Loss ratio at the critical load.
        min_load: Smallest possible answer.
        max_load: Largest possible answer.
        likelihood: How counts are distributed in the model.
        weighting: How `mean`, `stdev` and `interval` combine the functions.
        functions: Estimates of the fitting functions, by name.
        counts: The trials it is made of, in the order in which they were measured.
        stopped_by: Why the search ended; None if it goes on, or if there was no search.
        history: The estimates during the search, if there was one.
    """

    target_loss_ratio: float
    min_load: float
    max_load: float
    likelihood: LikelihoodName
    weighting: Weighting
    functions: Mapping[str, FunctionEstimate]
    counts: TrialCounts = field(repr=False)
    stopped_by: StopReason | None = None
    history: tuple[IntervalAfterTrial, ...] = field(default=(), repr=False)

    @cached_property
    def combinations(self) -> Mapping[Weighting, CombinedEstimate]:
        """Both ways to combine the functions."""
        functions = tuple(self.functions.values())
        equal = tuple(1.0 / len(functions) for _ in functions)
        by_evidence = evidence_weights([function.log_evidence for function in functions])
        return MappingProxyType(
            {
                Weighting.EVIDENCE: CombinedEstimate.of(functions, by_evidence),
                Weighting.EQUAL: CombinedEstimate.of(functions, equal),
            }
        )

    @cached_property
    def misfit(self) -> Misfit:
        """Whether the model fits the trials, and if not, why."""
        own = tuple(function.posterior for function in self.functions.values())
        poisson = own
        if self.likelihood is not LikelihoodName.POISSON:
            poisson = posteriors(self.counts, own[0].question, LikelihoodName.POISSON, for_selection=True)
        return check(own, poisson, self.counts, self.likelihood)

    @property
    def combined(self) -> CombinedEstimate:
        """The functions combined by `weighting`."""
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
        cannot distinguish two loads at which it sends the same number of frames.
        """
        low, high = self.combined.interval(probability)
        resolution = 1.0 / self.counts.exposure.max() if len(self.counts) else 0.0
        return max(low - resolution, self.min_load), min(high + resolution, self.max_load)

    @property
    def is_at_least_max_load(self) -> bool:
        """Whether the critical load may well be above the maximum load: then the mean is "at least" only."""
        return self.combined.p_at_max > _LIMIT_SHARE

    @property
    def is_at_most_min_load(self) -> bool:
        """Whether the critical load may well be below the minimum load: then the mean is "at most" only."""
        return self.combined.p_at_min > _LIMIT_SHARE

    @property
    def limits(self) -> str | None:
        """A sentence about each limit that the critical load may be at or beyond; None if it is well between them."""
        sentences = [
            f"The critical load is {relation} the {name} load, {load:,.10g} frames/s, with probability {share:.3g}."
            for applies, relation, name, load, share in (
                (self.is_at_least_max_load, "at least", "maximum", self.max_load, self.combined.p_at_max),
                (self.is_at_most_min_load, "at most", "minimum", self.min_load, self.combined.p_at_min),
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

    Only the check for a trend depends on the order of the trials.

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
    return CriticalLoadEstimate(
        target_loss_ratio=question.target_loss_ratio,
        min_load=question.min_load,
        max_load=question.max_load,
        likelihood=likelihood,
        weighting=weighting,
        functions=MappingProxyType(
            {
                posterior.function.name: FunctionEstimate.of(posterior)
                for posterior in posteriors(counts, question, likelihood)
            }
        ),
        counts=counts,
    )
