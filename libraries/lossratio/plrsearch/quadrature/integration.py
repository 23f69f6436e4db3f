"""Posteriors of both fitting functions from counts, by the quadrature that the likelihood needs."""

from __future__ import annotations

from lossratio.plrsearch import nested, posterior
from lossratio.plrsearch.capacity import VaryingCapacityLikelihood
from lossratio.plrsearch.counts import TrialCounts
from lossratio.plrsearch.critical import CriticalLoadQuestion
from lossratio.plrsearch.density import Model
from lossratio.plrsearch.distribution import Posterior
from lossratio.plrsearch.functions import FUNCTIONS, FittingFunction
from lossratio.plrsearch.likelihood import GeometricLikelihood, Likelihood, PoissonLikelihood
from lossratio.plrsearch.options import LikelihoodName
from lossratio.plrsearch.prior import Prior


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
        resolution = nested.ROUGH if for_selection else nested.EXACT

        def with_varying(function: FittingFunction) -> Posterior:
            panels = nested.integrate_varying(Model(function, varying, prior), varying, question, resolution)
            return Posterior(function, question, panels, varying.constant)

        return tuple(with_varying(function) for function in FUNCTIONS)
    bound = bound_likelihood(counts, likelihood)
    accuracy = posterior.ROUGH if for_selection else posterior.EXACT

    def constant(function: FittingFunction) -> Posterior:
        panels = posterior.integrate(Model(function, bound, prior), question, accuracy)
        return Posterior(function, question, panels, bound.constant)

    return tuple(constant(function) for function in FUNCTIONS)


def bound_likelihood(counts: TrialCounts, likelihood: LikelihoodName) -> Likelihood:
    """The likelihood of these counts."""
    if likelihood is LikelihoodName.VARYING:
        return VaryingCapacityLikelihood(counts)
    return PoissonLikelihood(counts) if likelihood is LikelihoodName.POISSON else GeometricLikelihood(counts)
