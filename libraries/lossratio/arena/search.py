"""One search of a study: an algorithm on a SUT, and everything that is reported about it."""

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
"""Streams of random numbers: searches and certificates must not see the same luck."""


@dataclass(frozen=True)
class Row:
    """What a search found for one goal. Loads are in frames per second, times in seconds.

    Attributes:
        goal_set: Name of the goal set.
        family: Name of the SUT's family.
        seed: What the SUT's parameters were drawn with.
        repeat: Number of the search on this SUT.
        overhead: What each trial took besides its traffic.
        counted: Whether that counted towards the duration sums.
        algorithm: Name of the algorithm.
        goal: Name of the goal.
        goal_number: Its place in the goal set; what follows up to `faults` is the same for all goals of a search.
        elapsed: Search time: sum of durations and overheads of all trials; not a number for a search that failed.
        trials: Number of trials.
        controller_seconds: Processor time of all decisions.
        certificate: What proving the result again took an oracle; not a number for all but the first search on a SUT.
        faults: What the independent checker has against the result; empty if nothing, or if it is no RFC 9971 result.
        lower: Relevant lower bound; not a number without one.
        upper: Relevant upper bound; not a number without one.
        throughput: Conditional throughput; not a number without one.
        regular: Whether the goal's result is regular.
        truth: What a perfect search would find; not a number where the SUT has none, or the searched loads do not
            include it.
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
    """Runs one search; a row for each goal. A search that fails has its error for a fault, and no numbers."""
    outcome, found, proof_time = None, "", math.nan
    tonight = algorithm.tonight(subject)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SearchGoalWarning)
            outcome = algorithm.search(goal_set.goals, subject, tonight.measurer(overhead, repeat, SEARCH_STREAM))
    except SearchError as error:
        found = f"failed: {error}"
    else:
        if algorithm.follows_rfc9971:
            loads = {"min_load": subject.min_load, "max_load": subject.max_load}
            found = "; ".join(faults(outcome.result, outcome.trials, **loads))
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
            faults=found,
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
