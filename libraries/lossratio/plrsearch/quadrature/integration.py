"""Posteriors of both fitting functions from counts."""

from lossratio.plrsearch.likelihood import (
    GeometricLikelihood,
    Model,
    PoissonLikelihood,
    Prior,
    VaryingCapacityLikelihood,
)
from lossratio.plrsearch.model import FUNCTIONS, CriticalLoadQuestion, LikelihoodName, TrialCounts
from lossratio.plrsearch.quadrature import constant_capacity, sampling
from lossratio.plrsearch.quadrature.posterior import PanelPosterior, Posterior


def posteriors(
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    likelihood: LikelihoodName,
    *,
    for_selection: bool = False,
    share: float = 1.0,
) -> tuple[Posterior, ...]:
    """The posterior of each fitting function.

    Args:
        counts: The trials.
        question: Target and limits.
        likelihood: How counts are distributed.
        for_selection: Whether a rough posterior is enough: to choose a load, not to report.
        share: Each trial counts as this share of one; for a varying capacity only.
    """
    prior = Prior(question.max_load / 2.0)
    if likelihood is LikelihoodName.VARYING:
        varying = VaryingCapacityLikelihood(counts, share)
        effort = sampling.ROUGH if for_selection else sampling.EXACT
        return tuple(sampling.sampled(Model(function, varying, prior), question, effort) for function in FUNCTIONS)
    bound = PoissonLikelihood(counts) if likelihood is LikelihoodName.POISSON else GeometricLikelihood(counts)
    accuracy = constant_capacity.ROUGH if for_selection else constant_capacity.EXACT
    return tuple(
        PanelPosterior.of(
            function,
            question,
            constant_capacity.integrate(Model(function, bound, prior), question, accuracy),
            bound.constant,
        )
        for function in FUNCTIONS
    )
