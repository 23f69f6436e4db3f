"""Likelihoods: the probability of the trials' counts, given a fitting function and its parameters.

- `constant_capacity`: Poisson and geometric counts, whose mean depends on the load only;
- `varying_capacity`: Poisson counts around a capacity that differs from trial to trial;
- `density`: the prior, and the posterior density, prior times likelihood, at many points at once.
"""

from lossratio.plrsearch.likelihood.constant_capacity import (
    GeometricLikelihood,
    Likelihood,
    PoissonLikelihood,
    Score,
)
from lossratio.plrsearch.likelihood.density import Model, Prior, RowDensity
from lossratio.plrsearch.likelihood.varying_capacity import (
    MEAN_OF_NONE,
    Bumps,
    Line,
    VaryingCapacityLikelihood,
)
