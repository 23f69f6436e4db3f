"""Quadrature: the integral of the posterior density, and the distribution of the critical load.

- `integration`: the posteriors of both fitting functions from counts, integrated anew or with some trials more;
- `constant_capacity`: the integral over two parameters, by adaptive panels in rows that are polynomials;
- `varying_capacity`: the integral over three parameters, by fixed nodes in their `support`;
- `few_trials`: the same of few trials, by adaptive blocks and panels; `scouting`: where its peaks are;
- `rows`: densities over log m with all other parameters fixed, their maxima and ends;
- `panels`: the quadrature nodes that represent a posterior, and their sums;
- `posterior`: cumulative probability, density and quantiles of the critical load.
"""

from lossratio.plrsearch.quadrature.integration import posteriors, updated
from lossratio.plrsearch.quadrature.posterior import Mode, Posterior, mixture_quantiles, quantiles_of_nodes
