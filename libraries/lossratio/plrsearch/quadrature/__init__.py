"""Quadrature: the integral of the posterior density, and the distribution of the critical load.

- `constant_capacity`: the integral over two parameters, by adaptive panels in rows that are polynomials;
- `sampling`: the integral over three parameters, where the capacity varies, by points that follow its ridge;
- `rows`: densities over log m with all other parameters fixed, their maxima and ends;
- `zoom`: where a density is, for both integrals;
- `panels`: the quadrature nodes that represent a posterior, and their sums;
- `posterior`: cumulative probability, density and quantiles of the critical load.
"""

from lossratio.plrsearch.likelihood import (
    GeometricLikelihood,
    Model,
    PoissonLikelihood,
    Prior,
    VaryingCapacityLikelihood,
)
from lossratio.plrsearch.model import FUNCTIONS, CriticalLoadQuestion, LikelihoodName, TrialCounts
from lossratio.plrsearch.quadrature import constant_capacity, sampling
from lossratio.plrsearch.quadrature.posterior import (
    Distribution as Distribution,
    Posterior as Posterior,
)
from lossratio.plrsearch.quadrature.sampling import even_points as even_points


def posteriors(
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    likelihood: LikelihoodName,
    *,
    for_selection: bool = False,
) -> tuple[Posterior, ...]:
    """The posterior of each fitting function, or a rough one to choose a load."""
    prior = Prior(question.max_load / 2.0)
    if likelihood is LikelihoodName.VARYING:
        varying = VaryingCapacityLikelihood(counts)
        models = [Model(function, varying, prior) for function in FUNCTIONS]
        return sampling.sampled(
            models, question, sampling.ROUGH if for_selection else sampling.EXACT
        )

    bound = (
        PoissonLikelihood(counts)
        if likelihood is LikelihoodName.POISSON
        else GeometricLikelihood(counts)
    )
    tolerance = constant_capacity.ROUGH if for_selection else constant_capacity.EXACT
    return tuple(
        constant_capacity.integrate(Model(function, bound, prior), question, tolerance)
        for function in FUNCTIONS
    )
