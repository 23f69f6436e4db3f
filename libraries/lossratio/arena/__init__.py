"""Studies: comparisons of search algorithms on simulated SUTs with a known truth."""

from lossratio.arena.algorithms import ALGORITHMS, ORACLES, OURS, PEER
from lossratio.arena.figures import at_overhead, decision_time_growth, figures, hint_figures
from lossratio.arena.nights import CHANGES, HINT_ALGORITHMS
from lossratio.arena.peer import why_not_installed
from lossratio.arena.promises import PROMISES, promises_kept
from lossratio.arena.search import GOAL_SETS
from lossratio.arena.study import FAMILY_SETS, NO_OVERHEAD, OVERHEADS, Store, Study, run_study
from lossratio.arena.tables import (
    algorithm_table,
    family_tables,
    figure_table,
    group_table,
    hint_family_tables,
    promise_table,
)

__all__ = [
    "ALGORITHMS",
    "CHANGES",
    "FAMILY_SETS",
    "GOAL_SETS",
    "HINT_ALGORITHMS",
    "NO_OVERHEAD",
    "ORACLES",
    "OURS",
    "OVERHEADS",
    "PEER",
    "PROMISES",
    "Store",
    "Study",
    "algorithm_table",
    "at_overhead",
    "decision_time_growth",
    "family_tables",
    "figure_table",
    "figures",
    "group_table",
    "hint_family_tables",
    "hint_figures",
    "promise_table",
    "promises_kept",
    "run_study",
    "why_not_installed",
]
