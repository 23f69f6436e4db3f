"""Variation: how the trials are described, and how counts vary.

- `replicates`: what trials at equal loads show without any model;
- `bounded`: the lowest capacity of a SUT whose capacity varies between two bounds;
- `bucket`: what a token bucket or a buffer passes only in short trials;
- `change`: whether the SUT changed during the search;
- `local`: the critical load by a line through trials near it;
- `pauses`: pauses that overflow a ring, by the sizes of losses at several loads;
- `once`: losses that come once in each trial;
- `rare`: losses that do not come from the load;
- `inference`: the description that follows from the replicates.
"""

from lossratio.plrsearch.variation.bucket import Bucket
from lossratio.plrsearch.variation.change import Change
from lossratio.plrsearch.variation.inference import Description, described
from lossratio.plrsearch.variation.local import LocalFit
from lossratio.plrsearch.variation.once import OnceLost
from lossratio.plrsearch.variation.pauses import Pauses
from lossratio.plrsearch.variation.rare import RareLoss, SeenCapacity
from lossratio.plrsearch.variation.replicates import Replicates, Scatter
