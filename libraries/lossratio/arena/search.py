"""One search of a study: an algorithm on a SUT, and the rows that report it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from lossratio.arena.algorithms import Algorithm
from lossratio.arena.baselines.certificate import certificate
from lossratio.arena.baselines.checker import faults
from lossratio.arena.goal_sets import GoalSet
from lossratio.arena.suts import Overhead, Subject
from lossratio.errors import SearchError
from lossratio.mlrsearch import GoalResult, SearchGoal, SearchGoalWarning

SEARCH_STREAM, PROOF_STREAM = 0, 1
"""Streams of random numbers: searches and certificates must not share random numbers."""


@dataclass(frozen=True)
class Row:
    """The result of a search for one goal. Loads are in frames per second, times in seconds.

    Attributes:
        goal_set: Name of the goal set.
        family: Name of the SUT's family.
        seed: Seed of the SUT's parameters.
        repeat: Number of the search on this SUT.
        overhead: The overhead of each trial.
        counted: Whether that counted towards the duration sums.
        algorithm: Name of the algorithm.
        goal: Name of the goal.
        goal_number: Its place in the goal set. The attributes below, up to `faults`, are the same for all goals of a
            search.
        elapsed: Search time: sum of durations and overheads of all trials; NaN for a search that failed.
        trials: Number of trials.
        controller_seconds: Processor time of all decisions.
        certificate: Time in which an oracle proves the result again; NaN for all but the first search on a SUT.
        faults: Faults of the result by the independent checker; empty if there are none, or for a result that need not
            follow RFC 9971.
        lower: Relevant lower bound; NaN if there is none.
        upper: Relevant upper bound; NaN if there is none.
        throughput: Conditional throughput; NaN if there is none.
        regular: Whether the goal's result is regular.
        truth: The result of a perfect search; NaN where the SUT has no truth, or the truth is outside of the searched
            loads.
    """

    goal_set: str
    family: str
    seed: int
    repeat: int
    overhead: float
    counted: bool
    algorithm: str
    goal: str
    goal_number: int
    elapsed: float
    trials: int
    controller_seconds: float
    certificate: float
    faults: str
    lower: float
    upper: float
    throughput: float
    regular: bool
    truth: float


def search_rows(
    goal_set: GoalSet, subject: Subject, overhead: Overhead, algorithm: Algorithm, repeat: int
) -> Iterator[Row]:
    """Runs one search, and yields a row for each goal. A failed search has its error as fault, and no numbers."""
    outcome, checked, proof_time = None, "", math.nan
    tonight = algorithm.tonight(subject)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SearchGoalWarning)
            outcome = algorithm.search(goal_set.goals, subject, tonight.measurer(overhead, repeat, SEARCH_STREAM))
    except SearchError as error:
        checked = f"failed: {error}"
    else:
        if algorithm.follows_rfc9971:
            loads = {"min_load": subject.min_load, "max_load": subject.max_load}
            checked = "; ".join(faults(outcome.result, outcome.trials, **loads))
        if repeat == 0:
            proof_time = certificate(
                outcome.result, lambda seed: tonight.measurer(overhead, repeat, PROOF_STREAM, seed)
            ).elapsed
    for number, goal in enumerate(goal_set.goals):
        goal_result = GoalResult(goal, False, None, None, None) if outcome is None else outcome.result[goal]
        yield Row(
            goal_set=goal_set.name,
            family=subject.family,
            seed=subject.seed,
            repeat=repeat,
            overhead=overhead.seconds,
            counted=overhead.counted,
            algorithm=algorithm.name,
            goal=str(goal),
            goal_number=number,
            elapsed=math.nan if outcome is None else math.fsum(trial.elapsed for trial in outcome.trials),
            trials=0 if outcome is None else len(outcome.trials),
            controller_seconds=0.0 if outcome is None else outcome.controller_seconds,
            certificate=proof_time,
            faults=checked,
            lower=_or_nan(goal_result.relevant_lower_bound),
            upper=_or_nan(goal_result.relevant_upper_bound),
            throughput=_or_nan(goal_result.conditional_throughput),
            regular=goal_result.regular,
            truth=_truth(goal, tonight),
        )


@lru_cache
def _truth(goal: SearchGoal, subject: Subject) -> float:
    truth = subject.sut.truth(
        loss_ratio=goal.loss_ratio, duration=goal.final_trial_duration, exceed_ratio=goal.exceed_ratio
    )
    return truth if truth is not None and subject.min_load < truth < subject.max_load else math.nan


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number
