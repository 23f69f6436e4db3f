"""Studies: comparisons of search algorithms on simulated SUTs with a known truth."""

from lossratio.arena.algorithms import (
    ALGORITHMS as ALGORITHMS,
    OURS as OURS,
    PEER as PEER,
    Algorithm as Algorithm,
    Goals as Goals,
)
from lossratio.arena.figures import (
    at_overhead as at_overhead,
    decision_time_growth as decision_time_growth,
    figures as figures,
    hint_figures as hint_figures,
)
from lossratio.arena.nights import CHANGES as CHANGES, HINT_ALGORITHMS as HINT_ALGORITHMS
from lossratio.arena.outcome import Outcome as Outcome, searched as searched
from lossratio.arena.peer import why_not_installed as why_not_installed
from lossratio.arena.promises import PROMISES as PROMISES, promises_kept as promises_kept
from lossratio.arena.search import GOAL_SETS as GOAL_SETS
from lossratio.arena.study import (
    FAMILY_SETS as FAMILY_SETS,
    NO_OVERHEAD as NO_OVERHEAD,
    OVERHEADS as OVERHEADS,
    Store as Store,
    Study as Study,
    algorithm_named as algorithm_named,
    families_of as families_of,
    run_study as run_study,
)
from lossratio.arena.suts import Subject as Subject
from lossratio.arena.tables import (
    algorithm_table as algorithm_table,
    bounds_table as bounds_table,
    family_tables as family_tables,
    figure_table as figure_table,
    group_table as group_table,
    hint_family_tables as hint_family_tables,
    promise_table as promise_table,
)
