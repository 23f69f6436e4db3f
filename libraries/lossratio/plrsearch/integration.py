"""Posteriors of both fitting functions from counts, by the quadrature that the likelihood needs."""

from __future__ import annotations

from lossratio.plrsearch.capacity import VaryingCapacityLikelihood
from lossratio.plrsearch.counts import TrialCounts
from lossratio.plrsearch.critical import CriticalLoadQuestion
from lossratio.plrsearch.density import Model
from lossratio.plrsearch.distribution import Posterior
from lossratio.plrsearch.functions import FUNCTIONS, FittingFunction
from lossratio.plrsearch.likelihood import GeometricLikelihood, Likelihood, PoissonLikelihood
from lossratio.plrsearch.nested import RESOLUTION, integrate_varying
from lossratio.plrsearch.options import LikelihoodName
from lossratio.plrsearch.posterior import EXACT, ROUGH, integrate
from lossratio.plrsearch.prior import Prior

_ROUGH_RESOLUTION = 8
"""What posteriors that only choose loads are computed with, where the capacity varies."""


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
        varying, resolution = VaryingCapacityLikelihood(counts), _ROUGH_RESOLUTION if for_selection else RESOLUTION

        def with_varying(function: FittingFunction) -> Posterior:
            panels = integrate_varying(Model(function, varying, prior), varying, question, resolution)
            return Posterior(function, question, panels, varying.constant)

        return tuple(with_varying(function) for function in FUNCTIONS)
    bound = bound_likelihood(counts, likelihood)
    accuracy = ROUGH if for_selection else EXACT
    return tuple(
        Posterior(function, question, integrate(Model(function, bound, prior), question, accuracy), bound.constant)
        for function in FUNCTIONS
    )


def bound_likelihood(counts: TrialCounts, likelihood: LikelihoodName) -> Likelihood:
    """The likelihood of these counts."""
    if likelihood is LikelihoodName.VARYING:
        return VaryingCapacityLikelihood(counts)
    return PoissonLikelihood(counts) if likelihood is LikelihoodName.POISSON else GeometricLikelihood(counts)
