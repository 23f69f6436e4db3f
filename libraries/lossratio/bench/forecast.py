"""How long a search will take yet: its controller's copy goes on, on a SUT that behaves as expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from statistics import fmean

from lossratio.mlrsearch import MLRsearch
from lossratio.report.bounds import GoalBounds, Interval
from lossratio.trial import TrialOutput, TrialResult

MOST_TRIALS = 1000
"""Trials after which looking ahead ends; a search that needs more takes at least so long."""


def seconds_left(controller: MLRsearch, bounds: Sequence[GoalBounds]) -> float:
    """Estimates what the rest of a search takes, in seconds, its timeout included.

    Each load is expected to meet the goals whose bounds, as far as the trials so far point at them, lie above it. What
    a trial takes besides its duration is expected to stay the mean of what it took so far.

    Args:
        controller: The search; it stays as it is.
        bounds: The bounds of its goals so far.
    """
    ahead = deepcopy(controller)
    overhead = fmean(result.elapsed - result.duration for result in controller.evidence)
    limits = sorted((each.goal.loss_ratio, _limit(each.leaning, controller)) for each in bounds)
    spent = 0.0
    for _ in range(MOST_TRIALS):
        trial = ahead.next_trial()
        if trial is None:
            break
        elapsed = max(0.0, trial.duration + overhead)
        ahead.record(TrialResult(trial, TrialOutput(_expected_loss_ratio(trial.load, limits), elapsed=elapsed)))
        spent += elapsed
    return spent


def _limit(interval: Interval, controller: MLRsearch) -> float:
    """The load up to which a goal is expected to be met, in frames per second."""
    if interval.upper is None:
        return controller.max_load
    return math.sqrt((interval.lower or controller.min_load) * interval.upper)


def _expected_loss_ratio(load: float, limits: Sequence[tuple[float, float]]) -> float:
    """The loss ratio of the strictest goal that a load is expected to meet; of an overloaded SUT if there is none."""
    for loss_ratio, limit in limits:
        if load <= limit:
            return loss_ratio
    loss_ratio, limit = limits[-1]
    return 1.0 - limit / load * (1.0 - loss_ratio)
