"""The search: which trial comes next.

- `selection`: the rule of the draft, and the rule that maximizes the expected information;
- `gains`: the expected information of a trial;
- `tracking`: the posteriors of a search, kept up to date with each trial;
- `warm_start`: the loads of the first trials, where the SUT is known.
"""

from lossratio.plrsearch.search.selection import Choice, DraftSelection, PosteriorSelection, Selection
from lossratio.plrsearch.search.tracking import Tracker
from lossratio.plrsearch.search.warm_start import WarmStart, warm_loads

__all__ = [
    "Choice",
    "DraftSelection",
    "PosteriorSelection",
    "Selection",
    "Tracker",
    "WarmStart",
    "warm_loads",
]
