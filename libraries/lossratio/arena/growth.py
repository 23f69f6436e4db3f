"""Whether decisions take longer in long searches."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lossratio.arena.outcome import Outcome, searched
from lossratio.arena.suts import Overhead, Subject
from lossratio.mlrsearch import NDR, PDR, MLRsearch
from lossratio.simulation import SharpKnee

SHORT_SUM, LONG_SUM = 61.0, 661.0
"""Duration sums, in seconds, that take some 100 and some 1,000 trials to prove NDR and PDR."""

ATTEMPTS = 5
"""Of so many searches the fastest counts: the others were disturbed."""


@dataclass(frozen=True)
class Growth:
    """Decisions of a short and of a long search on the same SUT.

    Attributes:
        short_trials: Trials of the short search.
        long_trials: Trials of the long search.
        ratio: Processor time per decision in the long search, as a multiple of that in the short one.
    """

    short_trials: int
    long_trials: int
    ratio: float


def decision_time_growth() -> Growth:
    """Measures how much more processor time a decision takes in a long search."""
    # Turn by turn, so that a busy machine slows both down alike.
    pairs = [(_search(SHORT_SUM), _search(LONG_SUM)) for _ in range(ATTEMPTS)]
    short, long = (min(outcomes, key=_decision_time) for outcomes in zip(*pairs, strict=True))
    return Growth(len(short.trials), len(long.trials), _decision_time(long) / _decision_time(short))


def _search(duration_sum: float) -> Outcome:
    subject = Subject("sharp knee", 0, SharpKnee(4.321e6), 9001.0, 14_880_952.0)
    goals = [replace(goal, duration_sum=duration_sum) for goal in (NDR, PDR)]
    return searched(MLRsearch(goals, subject.min_load, subject.max_load), subject.measurer(Overhead(0.0)))


def _decision_time(outcome: Outcome) -> float:
    return outcome.controller_seconds / len(outcome.trials)
