"""Variation: which description the trials have, and how the capacity varies in it.

- `replicates`: what trials at equal loads show without any model, and how far they are from a curve;
- `order`: drift, and correlation of successive trials;
- `inference`: the description, with the posteriors of both functions.
"""

from lossratio.plrsearch.variation.inference import Description, described
from lossratio.plrsearch.variation.order import (
    ENOUGH,
    FEW_CYCLES,
    Capacities,
    CapacityVariation,
    Order,
)
from lossratio.plrsearch.variation.replicates import AfterOverload, LackOfFit, Replicates
