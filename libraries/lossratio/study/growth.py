"""Whether decisions take longer in long searches."""

from __future__ import annotations

from dataclasses import replace

from lossratio.mlrsearch import NDR, PDR, MLRsearch
from lossratio.simulation import SharpKnee
from lossratio.study.outcome import searched
from lossratio.study.suts import Overhead, Subject

SHORT_SUM, LONG_SUM = 41.0, 501.0
"""Duration sums, in seconds, that take some 100 and some 1,000 trials to prove NDR and PDR."""

ATTEMPTS = 3
"""The fastest of so many counts: others were disturbed."""


def decision_time_growth() -> float:
    """Processor time per decision in a search of some 1,000 trials, as a multiple of that in one of some 100."""
    return _decision_time(LONG_SUM) / _decision_time(SHORT_SUM)


def _decision_time(duration_sum: float) -> float:
    subject = Subject("sharp knee", 0, SharpKnee(4.321e6), 9001.0, 14_880_952.0)
    goals = [replace(goal, duration_sum=duration_sum) for goal in (NDR, PDR)]
    outcomes = [
        searched(MLRsearch(goals, subject.min_load, subject.max_load), subject.measurer(Overhead(0.0)))
        for _ in range(ATTEMPTS)
    ]
    return min(outcome.controller_seconds / len(outcome.trials) for outcome in outcomes)
