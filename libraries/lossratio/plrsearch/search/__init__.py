"""The search: which trial comes next.

- `selection`: the rule of the draft, and the rule that maximizes the expected information;
- `gains`: the expected information of a trial;
- `tracking`: the posteriors of a search, kept up to date with each trial.
"""

from lossratio.plrsearch.search.selection import Choice, DraftSelection, PosteriorSelection, Selection
from lossratio.plrsearch.search.tracking import Tracker

__all__ = [
    "Choice",
    "DraftSelection",
    "PosteriorSelection",
    "Selection",
    "Tracker",
]
