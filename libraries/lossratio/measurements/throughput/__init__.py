"""Conditional throughput, found by MLRsearch."""

from lossratio.measurements.throughput.compliance import ComplianceStatement, compliance_of
from lossratio.measurements.throughput.demand import require_throughput
from lossratio.measurements.throughput.frame_sizes import FrameSizeSeries, by_tests, draw_frame_sizes, frame_size_series
from lossratio.measurements.throughput.goal_reports import goal_to_follow
from lossratio.measurements.throughput.goal_sets import goal_set_from
from lossratio.measurements.throughput.goals import NdrPdrGoals, goal_from
from lossratio.measurements.throughput.loss_picture import draw_loss
from lossratio.measurements.throughput.measure import DEFAULT_TIMEOUT, SearchRequest, find_conditional_throughput
from lossratio.measurements.throughput.repetition import repeat_search
from lossratio.measurements.throughput.search_picture import (
    by_mark,
    draw_search,
    goal_colour,
    search_picture,
    trial_hint,
)
from lossratio.measurements.throughput.spectrum import draw_spectra

__all__ = [
    "DEFAULT_TIMEOUT",
    "ComplianceStatement",
    "FrameSizeSeries",
    "NdrPdrGoals",
    "SearchRequest",
    "by_mark",
    "by_tests",
    "compliance_of",
    "draw_frame_sizes",
    "draw_loss",
    "draw_search",
    "draw_spectra",
    "find_conditional_throughput",
    "frame_size_series",
    "goal_colour",
    "goal_from",
    "goal_set_from",
    "goal_to_follow",
    "repeat_search",
    "require_throughput",
    "search_picture",
    "trial_hint",
]
