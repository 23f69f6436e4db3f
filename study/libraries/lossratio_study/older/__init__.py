"""Older and simpler searches, as algorithms of a study.

For instance: lossratio-study --algorithm lossratio --algorithm 'RFC 2544 bisection' --goals G6
"""

from collections.abc import Callable

from lossratio.mlrsearch import SearchGoal, SearchResult
from lossratio.trials import Measurer
from lossratio_study.algorithms import Algorithm, Goals
from lossratio_study.older.bisection import RFC2544Bisection, TST009Bisection
from lossratio_study.older.mlrsearch_2019 import MLRsearch2019
from lossratio_study.older.mlrsearch_2021 import MLRsearch2021
from lossratio_study.outcome import Outcome, searched
from lossratio_study.suts import Subject


def _one_trial_each(goals: Goals) -> bool:
    """Whether one full-length trial decides about a load, for all goals."""
    return all(goal.duration_sum <= goal.final_trial_duration and goal.exceed_ratio == 0.0 for goal in goals)


def _two_trials_each(goals: Goals) -> bool:
    """Whether all goals accept loss as real if two trials show it."""
    return all(goal.exceed_ratio == 0.5 and goal.duration_sum == 2 * goal.final_trial_duration for goal in goals)


def _ndr_and_pdr(goals: Goals) -> bool:
    return _one_trial_each(goals) and len(goals) == 2 and min(goal.loss_ratio for goal in goals) == 0.0


def _search_with_2021(goals: Goals, subject: Subject, measurer: Measurer) -> Outcome:
    return searched(MLRsearch2021(goals, subject.min_load, subject.max_load, timeout=None), measurer)


def _search_with_2019(goals: Goals, subject: Subject, measurer: Measurer) -> Outcome:
    return searched(MLRsearch2019(goals, subject.min_load, subject.max_load), measurer)


def _one_after_another(
    bisection: Callable[[SearchGoal, float, float], TST009Bisection],
) -> Callable[[Goals, Subject, Measurer], Outcome]:
    """A bisection for each goal, one after the other, as a single search."""

    def search(goals: Goals, subject: Subject, measurer: Measurer) -> Outcome:
        parts = [searched(bisection(goal, subject.min_load, subject.max_load), measurer) for goal in goals]
        results = [part.result for part in parts]
        together = SearchResult(
            [of_goal for result in results for of_goal in result.values()],
            finished=all(result.finished for result in results),
            elapsed=sum(result.elapsed for result in results),
            trials=sum(result.trials for result in results),
        )
        trials = tuple(trial for part in parts for trial in part.trials)
        return Outcome(together, trials, sum(part.controller_seconds for part in parts))

    return search


MLRSEARCH_2021 = Algorithm("MLRsearch 2021", _search_with_2021, _one_trial_each, follows_rfc9971=False)
MLRSEARCH_2019 = Algorithm("MLRsearch 2019", _search_with_2019, _ndr_and_pdr, follows_rfc9971=False)
RFC_2544 = Algorithm("RFC 2544 bisection", _one_after_another(RFC2544Bisection), _one_trial_each, follows_rfc9971=False)
TST009 = Algorithm("TST009 bisection", _one_after_another(TST009Bisection), _two_trials_each, follows_rfc9971=False)
