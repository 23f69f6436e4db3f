"""Conditional throughput, found by MLRsearch."""

from lossratio.measurements.throughput.failed_search import (
    require_lower_bounds as require_lower_bounds,
)
from lossratio.measurements.throughput.goals import (
    GoalSet as GoalSet,
    NdrPdrGoals as NdrPdrGoals,
    duration_after_search as duration_after_search,
    goal_from as goal_from,
    goal_set_from as goal_set_from,
    goals_from as goals_from,
)
from lossratio.measurements.throughput.measure import (
    GoalSearch as GoalSearch,
    Throughput as Throughput,
    add_telemetry as add_telemetry,
    find_conditional_throughput as find_conditional_throughput,
)
from lossratio.measurements.throughput.nightly import Nightly as Nightly
from lossratio.measurements.throughput.replay import replayed as replayed
from lossratio.measurements.throughput.request import (
    HOW_TO_SEARCH as HOW_TO_SEARCH,
    SearchRequest as SearchRequest,
)
from lossratio.measurements.throughput.requirement import require_throughput as require_throughput
from lossratio.measurements.throughput.result import (
    Goal as Goal,
    GoalsResult as GoalsResult,
    ThroughputResult as ThroughputResult,
)
