"""Quadrature: the integral of the posterior density, and the distribution of the critical load.

- `integration`: the posteriors of both fitting functions from counts, integrated by
  `constant_capacity` or `varying_capacity`, as the likelihood has two parameters or three;
- `updating`: a posterior with some trials more;
- `panels`: the quadrature nodes that represent a posterior, and their sums;
- `posterior`: cumulative probability, density and quantiles of the critical load.
"""

from lossratio.plrsearch.quadrature.integration import posteriors, updated
from lossratio.plrsearch.quadrature.posterior import Mode, Posterior, mixture_quantiles, quantiles_of_nodes

__all__ = [
    "Mode",
    "Posterior",
    "mixture_quantiles",
    "posteriors",
    "quantiles_of_nodes",
    "updated",
]
