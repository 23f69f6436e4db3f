"""Studies: comparisons of search algorithms on simulated SUTs with a known truth."""

from lossratio.arena.algorithms import ALGORITHMS, OURS, PEER, Algorithm, Goals
from lossratio.arena.figures import at_overhead, decision_time_growth, figures, hint_figures
from lossratio.arena.nights import CHANGES, HINT_ALGORITHMS
from lossratio.arena.outcome import Outcome, searched
from lossratio.arena.peer import why_not_installed
from lossratio.arena.promises import PROMISES, promises_kept
from lossratio.arena.search import GOAL_SETS
from lossratio.arena.study import (
    FAMILY_SETS,
    NO_OVERHEAD,
    OVERHEADS,
    Store,
    Study,
    algorithm_named,
    families_of,
    run_study,
)
from lossratio.arena.suts import Subject
from lossratio.arena.tables import (
    algorithm_table,
    bounds_table,
    family_tables,
    figure_table,
    group_table,
    hint_family_tables,
    promise_table,
)
