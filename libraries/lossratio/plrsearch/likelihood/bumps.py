"""Gauss quadrature with the weight of a Poisson probability, as a function of the logarithm of the mean.

The probability of k losses, as a function of the mean, is the density of a gamma distribution; so is, for k = 0, the
density of the mean at which a SUT stops to lose nothing. In the logarithm of the mean it is a bump, skewed to the left.
"""

from __future__ import annotations

import numpy as np

from lossratio.plrsearch.model import Array

MAX_COUNT = 16
"""Largest count that has a rule of its own."""
_ORDER = 8


def _rule(shape: int) -> tuple[Array, Array]:
    """Nodes and weights for the logarithm of a gamma distributed variable: Stieltjes' procedure on a fine grid."""
    x = np.linspace(np.log(shape) - 45.0 / shape - 3.0, np.log(shape + 12.0 * np.sqrt(shape) + 30.0), 4001)
    log_density = shape * x - np.exp(x)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    last, polynomial = np.zeros_like(x), np.ones_like(x)
    diagonal, products = np.zeros(_ORDER), np.ones(_ORDER)
    last_norm = 1.0
    for degree in range(_ORDER):
        norm = float(np.sum(density * polynomial**2))
        diagonal[degree] = np.sum(density * x * polynomial**2) / norm
        products[degree] = norm / last_norm if degree else 0.0
        last, polynomial = polynomial, (x - diagonal[degree]) * polynomial - products[degree] * last
        last_norm = norm
    off_diagonal = np.sqrt(products[1:])
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1))
    return nodes, vectors[0] ** 2


_RULES = [_rule(max(count, 1)) for count in range(MAX_COUNT + 1)]
NODES = np.stack([nodes for nodes, _ in _RULES])
"""Logarithms of the mean at the nodes, shape (counts, nodes)."""
WEIGHTS = np.stack([weights for _, weights in _RULES])
"""Their weights, shape (counts, nodes); each count's sum is 1."""
