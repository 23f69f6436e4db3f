"""Posteriors of both fitting functions from counts, by the quadrature that the likelihood needs."""

from __future__ import annotations

from lossratio.plrsearch.likelihood import (
    GeometricLikelihood,
    Likelihood,
    Model,
    PoissonLikelihood,
    VaryingCapacityLikelihood,
)
from lossratio.plrsearch.model import (
    FUNCTIONS,
    CriticalLoadQuestion,
    FittingFunction,
    LikelihoodName,
    Prior,
    TrialCounts,
)
from lossratio.plrsearch.quadrature import constant_capacity, varying_capacity
from lossratio.plrsearch.quadrature.posterior import Posterior


def posteriors(
    counts: TrialCounts, question: CriticalLoadQuestion, likelihood: LikelihoodName, *, for_selection: bool = False
) -> tuple[Posterior, ...]:
    """The posterior of each fitting function.

    Args:
        counts: The trials.
        question: What the critical load is.
        likelihood: How counts are distributed.
        for_selection: Whether a rough posterior will do: to choose a load from, not to report.
    """
    prior = Prior(question.max_load / 2.0)
    if likelihood is LikelihoodName.VARYING:
        varying = VaryingCapacityLikelihood(counts)
        resolution = varying_capacity.ROUGH if for_selection else varying_capacity.EXACT

        def with_varying(function: FittingFunction) -> Posterior:
            panels = varying_capacity.integrate_varying(Model(function, varying, prior), varying, question, resolution)
            return Posterior(function, question, panels, varying.constant)

        return tuple(with_varying(function) for function in FUNCTIONS)
    bound = bound_likelihood(counts, likelihood)
    accuracy = constant_capacity.ROUGH if for_selection else constant_capacity.EXACT

    def constant(function: FittingFunction) -> Posterior:
        panels = constant_capacity.integrate(Model(function, bound, prior), question, accuracy)
        return Posterior(function, question, panels, bound.constant)

    return tuple(constant(function) for function in FUNCTIONS)


def bound_likelihood(counts: TrialCounts, likelihood: LikelihoodName) -> Likelihood:
    """The likelihood of these counts."""
    if likelihood is LikelihoodName.VARYING:
        return VaryingCapacityLikelihood(counts)
    return PoissonLikelihood(counts) if likelihood is LikelihoodName.POISSON else GeometricLikelihood(counts)
