"""The algorithms of a study: how each algorithm is run, and for which goals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lossratio.mlrsearch import MLRsearch, SearchGoal, SearchResult
from lossratio.trials import Measurer
from lossratio_study.outcome import Outcome, searched
from lossratio_study.peer import PEER_VERSION, search_with_peer
from lossratio_study.sequential import SequentialGoal, SequentialSearch
from lossratio_study.suts import Overhead, Subject, named

OURS = "lossratio"
EARLY = f"{OURS}, early verdicts"
SEQUENTIAL = "sequential goals"
PEER = f"MLRsearch {PEER_VERSION}"
Goals = Sequence[SearchGoal]


def _any_goals(goals: Goals) -> bool:
    return True


def _as_it_is(subject: Subject) -> Subject:
    return subject


@dataclass(frozen=True)
class Algorithm:
    """One way to search."""

    name: str
    """Its name in tables."""
    search: Callable[[Goals, Subject, Measurer], Outcome]
    """Runs one search."""
    applies: Callable[[Goals], bool] = _any_goals
    """Whether it can search for these goals."""
    follows_rfc9971: bool = True
    """Whether its results must be as RFC 9971 defines them. If so, the independent checker checks them."""
    tonight: Callable[[Subject], Subject] = _as_it_is
    """Makes the SUT that the algorithm searches on."""
    early_verdict: bool = False
    """Whether its trials may end as soon as their verdict is certain."""
    overhead: Overhead | None = None
    """The overhead that each of its trials has in every study; None: the overhead of the study."""
    knows_the_sut: bool = False
    """Whether it must know the SUT's model, so that it cannot search on a testbed."""


def search_with_ours(goals: Goals, subject: Subject, measurer: Measurer, **settings: Any) -> Outcome:
    """Runs one search of our controller as users run it, except for these settings of `MLRsearch`."""
    settings = {"fail_fast": False, **settings}
    return searched(MLRsearch(goals, subject.min_load, subject.max_load, **settings), measurer)


def _search_with_sequential_goals(goals: Goals, subject: Subject, measurer: Measurer) -> Outcome:
    """Searches for sequential goals with the same loss ratios, exceed ratios and widths, and the default error."""
    tests = [
        SequentialGoal(
            goal.loss_ratio,
            goal.exceed_ratio,
            final_trial_duration=goal.final_trial_duration,
            width=goal.width,
            name=str(goal),
        )
        for goal in goals
    ]

    outcome = searched(SequentialSearch(tests, subject.min_load, subject.max_load, fail_fast=False), measurer)
    found = outcome.result
    results = [replace(found[test], goal=goal) for test, goal in zip(tests, goals, strict=True)]
    result = SearchResult(results, finished=found.finished, elapsed=found.elapsed, trials=found.trials)
    return replace(outcome, result=result)


def _short_trials(goals: Goals) -> bool:
    """Whether all goals have trials of 1 s, and half of the trials may be lossy."""
    return all(goal.exceed_ratio == 0.5 and goal.final_trial_duration == 1.0 for goal in goals)


ALGORITHMS: Mapping[str, Algorithm] = named(
    Algorithm(OURS, search_with_ours),
    Algorithm(EARLY, partial(search_with_ours, early_verdict=True), early_verdict=True),
    Algorithm(SEQUENTIAL, _search_with_sequential_goals, _short_trials, follows_rfc9971=False),
    Algorithm(PEER, search_with_peer),
)
"""All algorithms by name."""
