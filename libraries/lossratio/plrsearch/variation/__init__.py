"""Variation: how the capacity varies where the quadrature's model does not describe it.

- `sample`: what each trial shows about its own capacity;
- `findings`: tests of a sample's shape and order;
- `shapes`: distributions of the capacity over trials: normal, heavy tails, slow trials;
- `integral`: the posterior of a shape's parameters;
- `order`: drift, and correlation of successive trials;
- `averaging`: how long trials should be, by the Allan deviation;
- `inference`: the critical load with all of these.
"""

from lossratio.plrsearch.variation.averaging import Averaging, averaging_of
from lossratio.plrsearch.variation.findings import excess_kurtosis, rank_correlation, skewness
from lossratio.plrsearch.variation.inference import Distribution, ShapeEstimate, Variation, variation_of
from lossratio.plrsearch.variation.order import NO_ORDER, Order
from lossratio.plrsearch.variation.sample import Capacities
