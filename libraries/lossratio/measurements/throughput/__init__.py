"""Conditional throughput, found by MLRsearch."""

from lossratio.measurements.throughput.evidence import EARLY_VERDICT, replayed
from lossratio.measurements.throughput.goals import (
    GoalSet,
    NdrPdrGoals,
    duration_after_search,
    goal_from,
    goal_set_from,
)
from lossratio.measurements.throughput.measure import (
    DEFAULT_TIMEOUT,
    SearchRequest,
    Throughput,
    find_conditional_throughput,
    repeat_search,
    require_lower_bounds,
    require_throughput,
)
from lossratio.measurements.throughput.result import Goal, ThroughputResult, search_goal

KIND = Throughput
"""The class of the kind, for the registry."""

__all__ = [
    "DEFAULT_TIMEOUT",
    "EARLY_VERDICT",
    "KIND",
    "Goal",
    "GoalSet",
    "NdrPdrGoals",
    "SearchRequest",
    "Throughput",
    "ThroughputResult",
    "duration_after_search",
    "find_conditional_throughput",
    "goal_from",
    "goal_set_from",
    "repeat_search",
    "replayed",
    "require_lower_bounds",
    "require_throughput",
    "search_goal",
]
