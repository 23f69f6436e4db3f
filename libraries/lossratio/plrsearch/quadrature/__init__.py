"""Quadrature: the integral of the posterior density, and the distribution of the critical load.

- `integration`: the posteriors of both fitting functions from counts;
- `constant_capacity`: the integral over two parameters, by adaptive panels in rows that are polynomials;
- `sampling`: the integral over three parameters, where the capacity varies, by points that follow its ridge;
- `rows`: densities over log m with all other parameters fixed, their maxima and ends;
- `panels`: the quadrature nodes that represent a posterior, and their sums;
- `posterior`: cumulative probability, density and quantiles of the critical load.
"""

from lossratio.plrsearch.quadrature.integration import posteriors
from lossratio.plrsearch.quadrature.posterior import Mode, Nodes, Posterior, mixture_quantiles, quantiles_of_nodes
from lossratio.plrsearch.quadrature.sampling import even_points
