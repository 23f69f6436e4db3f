"""Older and simpler searches to compare MLRsearch with: same protocol, same kind of results."""

from lossratio.arena.baselines.bisection import RFC2544Bisection, TST009Bisection
from lossratio.arena.baselines.mlrsearch_2019 import MLRsearch2019
from lossratio.arena.baselines.mlrsearch_2021 import MLRsearch2021
