"""The critical load estimate: what PLRsearch concludes from trials, whoever chose them."""

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
from lossratio.trial import TrialResult

_LIMIT_SHARE = 0.025
"""Probability beyond a limit from which on the limit is part of the answer: the 95 % interval ends there."""


@dataclass(frozen=True)
class IntervalAfterTrial:
    """The estimate as it was after a trial; loads in frames per second.

    While a search runs its estimates are good enough to choose loads and to be watched; the last one is exact.

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
        min_load: Smallest load that could be the answer.
        max_load: Largest load that could be the answer.
        likelihood: How counts were taken to be distributed.
        weighting: How the functions were combined to `mean`, `stdev` and `interval`.
        functions: Estimates of the fitting functions, by name.
        counts: The trials it is made of, in the order in which they were measured.
        stopped_by: Why the search ended; None if it did not, or if there was none.
        history: The estimates on the way, if there was a search.
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
        by_evidence = evidence_weights([each.log_evidence for each in functions])
        return MappingProxyType(
            {
                Weighting.EVIDENCE: CombinedEstimate.of(functions, by_evidence),
                Weighting.EQUAL: CombinedEstimate.of(functions, equal),
            }
        )

    @cached_property
    def misfit(self) -> Misfit:
        """Whether the model fits the trials at all, and if not, why."""
        found = tuple(each.posterior for each in self.functions.values())
        question = found[0].question
        poisson = found
        if self.likelihood is not LikelihoodName.POISSON:
            poisson = posteriors(self.counts, question, LikelihoodName.POISSON, for_selection=True)
        return check(found, poisson, self.counts, self.likelihood)

    @property
    def combined(self) -> CombinedEstimate:
        """The functions combined as was asked for."""
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

        They are a frame per trial farther apart, either way, than the model says, but within the limits: at loads that
        are no farther from each other the longest of the trials sends the same frames, or one more.
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
        """What a reader must know about the limits, in words; None if the critical load is well between them."""
        said = [
            f"The critical load is {relation} the {name} load, {load:,.10g} frames/s, with probability {share:.3g}."
            for applies, relation, name, load, share in (
                (self.is_at_least_max_load, "at least", "maximum", self.max_load, self.combined.p_at_max),
                (self.is_at_most_min_load, "at most", "minimum", self.min_load, self.combined.p_at_min),
            )
            if applies
        ]
        return " ".join(said) or None


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

    Only the check for a trend looks at the order of the trials.

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
    return estimate_from_counts(
        collect(results),
        CriticalLoadQuestion(target_loss_ratio, min_load, max_load),
        chosen(LikelihoodName, likelihood, "likelihood"),
        chosen(Weighting, weighting, "weighting"),
    )


def estimate_from_counts(
    counts: TrialCounts, question: CriticalLoadQuestion, likelihood: LikelihoodName, weighting: Weighting
) -> CriticalLoadEstimate:
    """The same from what was already checked."""
    found = posteriors(counts, question, likelihood)
    return CriticalLoadEstimate(
        target_loss_ratio=question.target_loss_ratio,
        min_load=question.min_load,
        max_load=question.max_load,
        likelihood=likelihood,
        weighting=weighting,
        functions=MappingProxyType({each.function.name: FunctionEstimate.of(each) for each in found}),
        counts=counts,
    )
