"""One search of a study: its goals, an algorithm on a SUT, the rows that report it, and its certificate.

The certificate is the time in which an oracle, which knows the search's result, proves this result. No search can be
much faster than the certificate, because its last trials are such a proof. The oracle measures only the relevant
bounds, with the trial durations that prove them soonest, until RFC 9971 classifies each load for each goal. On a noisy
SUT the proof may contradict the result of a lucky search. Its time counts nevertheless, and the certificate is marked.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from lossratio import mlrsearch
from lossratio.errors import SearchError
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, Bound, GoalResult, SearchGoal, SearchResult
from lossratio.trials import Measurer, TrialInput, TrialResult
from lossratio_study.algorithms import Algorithm
from lossratio_study.checker import DurationSums, faults
from lossratio_study.outcome import Outcome
from lossratio_study.suts import Overhead, Subject, named

SEARCH_STREAM = 0
"""Stream of random numbers of searches."""
PROOF_STREAM = 1
"""Stream of certificates, which must not share random numbers with searches."""
REHEARSALS = 5
"""Number of proofs that are tried with each trial duration, to find the fastest."""


@dataclass(frozen=True)
class GoalSet:
    """The goals of one search."""

    name: str
    """Short name for tables."""
    title: str
    """Description."""
    goals: tuple[SearchGoal, ...]
    """The search goals."""
    countable_overhead: bool = True
    """Whether the overhead of a trial may count towards the goals' duration sums. False if a trial of 60 s would count
    60.5 s of a sum of 120 s: a single trial would decide, and verify no loss."""


def _one_trial(loss_ratio: float) -> SearchGoal:
    return SearchGoal(loss_ratio, 0.0, 30.0, 30.0, 0.005, 1.0, name=f"loss {loss_ratio * 100:g} %, one trial")


def _csit(loss_ratio: float) -> SearchGoal:
    with warnings.catch_warnings():
        # Goals with a width below the loss ratio are compared here on purpose.
        warnings.simplefilter("ignore", mlrsearch.SearchGoalWarning)
        return SearchGoal(loss_ratio, 0.5, 1.0, 21.0, 0.005, 1.0, name=f"loss {loss_ratio * 100:g} %")


# Table: each set on a line.
GOAL_SETS: Mapping[str, GoalSet] = named(
    GoalSet("G1", "NDR and PDR of CSIT", (NDR, PDR)),
    GoalSet("G2", "RFC 2544", (RFC2544,)),
    GoalSet("G3", "TST009", (TST009,), countable_overhead=False),
    GoalSet("G4", "quick NDR", (SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01, 1.0, name="quick NDR"),)),
    GoalSet("G5", "loss 0, 0.1, 0.5, 1 %", (_csit(0.0), _csit(0.001), _csit(0.005), _csit(0.01))),
    GoalSet("G6", "NDR and PDR by single trials, as CSIT had them first", (_one_trial(0.0), _one_trial(0.005))),
)
"""All goal sets by name."""


@dataclass(frozen=True)
class Row:
    """The result of a search for one goal. Loads are in frames per second, times in seconds."""

    goal_set: str
    """Name of the goal set."""
    family: str
    """Name of the SUT's family."""
    seed: int
    """Seed of the SUT's parameters."""
    repeat: int
    """Number of the search on this SUT."""
    overhead: float
    """The overhead of each trial."""
    counted: bool
    """Whether the overhead counted towards the duration sums."""
    algorithm: str
    """Name of the algorithm."""
    goal: str
    """Name of the goal."""
    goal_number: int
    """Its place in the goal set. The attributes below, up to `faults`, are the same for all goals of a search."""
    elapsed: float
    """Search time: sum of durations and overheads of all trials; NaN for a search that failed."""
    trials: int
    """Number of trials."""
    controller_seconds: float
    """Processor time of all decisions."""
    certificate: float
    """Time in which an oracle proves the result again; NaN for all but the first search on a SUT."""
    faults: str
    """Faults that the independent checker found in the result; empty if there are none, or for a result that need not
    follow RFC 9971."""
    lower: float
    """Relevant lower bound; NaN if there is none."""
    upper: float
    """Relevant upper bound; NaN if there is none."""
    throughput: float
    """Conditional throughput; NaN if there is none."""
    regular: bool
    """Whether the goal's result is regular."""
    truth: float
    """The result of a perfect search; NaN where the SUT has no truth, or the truth is outside of the searched loads."""


@dataclass(frozen=True)
class Done:
    """A search that has ended."""

    outcome: Outcome | None
    """Its result and its cost; None: it has failed."""
    faults: str
    """The faults that the independent checker found, or why the search failed; empty if there are none."""


def search(goal_set: GoalSet, subject: Subject, algorithm: Algorithm, measurer: Measurer) -> Done:
    """Runs one search, and checks its result if it must be as RFC 9971 defines it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mlrsearch.SearchGoalWarning)
            outcome = algorithm.search(goal_set.goals, subject, measurer)
    except SearchError as error:
        return Done(None, f"failed: {error}")
    if not algorithm.follows_rfc9971:
        return Done(outcome, "")
    found = faults(outcome.result, outcome.trials, min_load=subject.min_load, max_load=subject.max_load)
    return Done(outcome, "; ".join(found))


def search_rows(
    goal_set: GoalSet, subject: Subject, overhead: Overhead, algorithm: Algorithm, repeat: int
) -> Iterator[Row]:
    """Runs one search on a model, and yields a row for each goal.

    A failed search has its error as fault, and no numbers.
    """
    tonight = algorithm.tonight(subject)

    def proving(seed: int) -> Measurer:
        return tonight.measurer(overhead, repeat, PROOF_STREAM, seed)

    done = search(goal_set, subject, algorithm, tonight.measurer(overhead, repeat, SEARCH_STREAM))
    proof_time = math.nan
    if repeat == 0 and done.outcome is not None:
        certain_above = None
        if algorithm.early_verdict:
            certain_above = max(goal.loss_ratio for goal in goal_set.goals)
        proof_time = certificate(done.outcome.result, proving, certain_above).elapsed
    yield from rows_of(done, goal_set, tonight, overhead, algorithm, repeat, proof_time)


def rows_of(
    done: Done,
    goal_set: GoalSet,
    subject: Subject,
    overhead: Overhead,
    algorithm: Algorithm,
    repeat: int,
    proof_time: float = math.nan,
) -> Iterator[Row]:
    """Yields a row for each goal of a search.

    Args:
        done: The search.
        goal_set: Its goals.
        subject: The SUT as it was during the search.
        overhead: The overhead of its trials.
        algorithm: The algorithm.
        repeat: Number of the search on this SUT, from 0.
        proof_time: Seconds in which an oracle proves the result again; NaN: not known.
    """
    outcome = done.outcome
    elapsed = math.nan
    trials = 0
    controller_seconds = 0.0
    if outcome is not None:
        elapsed = math.fsum(trial.elapsed for trial in outcome.trials)
        trials = len(outcome.trials)
        controller_seconds = outcome.controller_seconds

    for number, goal in enumerate(goal_set.goals):
        goal_result = GoalResult(goal, False, None, None, None) if outcome is None else outcome.result[goal]
        # Record: each field on a line.
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
            elapsed=elapsed,
            trials=trials,
            controller_seconds=controller_seconds,
            certificate=proof_time,
            faults=done.faults,
            lower=_or_nan(goal_result.relevant_lower_bound),
            upper=_or_nan(goal_result.relevant_upper_bound),
            throughput=_or_nan(goal_result.conditional_throughput),
            regular=goal_result.regular,
            truth=_truth(goal, subject),
        )


@lru_cache
def _truth(goal: SearchGoal, subject: Subject) -> float:
    if subject.sut is None:
        return math.nan
    truth = subject.sut.truth(
        loss_ratio=goal.loss_ratio, duration=goal.final_trial_duration, exceed_ratio=goal.exceed_ratio
    )
    return truth if truth is not None and subject.min_load < truth < subject.max_load else math.nan


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number


@dataclass(frozen=True)
class Certificate:
    """The cost of a proof."""

    elapsed: float
    """Seconds that its trials took in all, on the measurer's clock."""
    trials: int
    """Number of its trials."""
    proved: bool
    """Whether every load was classified as in the result."""


def certificate(
    result: SearchResult, measurer: Callable[[int], Measurer], certain_above: float | None = None
) -> Certificate:
    """Proves a result again; for an irregular result with one bound, this bound.

    Each load gets measurers of other seeds. Trials may end early above a loss ratio; None: they take their whole
    duration.
    """
    claims: dict[float, list[tuple[SearchGoal, Bound]]] = {}
    for goal, goal_result in result.items():
        lower = goal_result.relevant_lower_bound
        upper = goal_result.relevant_upper_bound
        if lower is not None:
            claims.setdefault(lower, []).append((goal, Bound.LOWER))
        if upper is not None and upper != lower:
            claims.setdefault(upper, []).append((goal, Bound.UPPER))

    proofs = [
        _best_proof(load, of_load, measurer, number * (REHEARSALS + 1), certain_above)
        for number, (load, of_load) in enumerate(claims.items())
    ]
    return Certificate(
        sum(proof.elapsed for proof in proofs),
        sum(proof.trials for proof in proofs),
        all(proof.proved for proof in proofs),
    )


def _best_proof(
    load: float,
    claims: list[tuple[SearchGoal, Bound]],
    measurer: Callable[[int], Measurer],
    seed: int,
    certain_above: float | None,
) -> Certificate:
    """Proves a load with trials of the duration that proves it soonest on average."""
    durations = _durations(claims)
    if len(durations) == 1:
        return _proof(TrialInput(durations[0], load, certain_above=certain_above), claims, measurer(seed))

    def rehearse(duration: float) -> tuple[int, float]:
        """Number of failed proofs with trials of a duration, and the time of all proofs."""
        trial = TrialInput(duration, load, certain_above=certain_above)
        proofs = [_proof(trial, claims, measurer(seed + number)) for number in range(1, REHEARSALS + 1)]
        return sum(not proof.proved for proof in proofs), sum(proof.elapsed for proof in proofs)

    return _proof(TrialInput(min(durations, key=rehearse), load, certain_above=certain_above), claims, measurer(seed))


def _durations(claims: Iterable[tuple[SearchGoal, Bound]]) -> list[float]:
    """Trial durations that can prove all claims: only full-length trials prove a lower bound."""
    full = [goal.final_trial_duration for goal, bound in claims if bound is Bound.LOWER]
    if full:
        return [max(full)]
    return sorted({duration for goal, _ in claims for duration in (goal.first_duration, goal.final_trial_duration)})


def _proof(trial: TrialInput, claims: list[tuple[SearchGoal, Bound]], measurer: Measurer) -> Certificate:
    longest = max(goal.duration_sum for goal, _ in claims)
    sums = [(DurationSums(goal), bound is Bound.UPPER) for goal, bound in claims]
    counted = 0.0
    elapsed = 0.0
    trials = 0

    while counted < longest:
        result = TrialResult(trial, measurer.measure(trial))
        counted += result.effective_duration
        elapsed += result.elapsed
        trials += 1
        for duration_sums, _ in sums:
            duration_sums.add(result)
        if all(duration_sums.is_bound(upper=True) or duration_sums.is_bound(upper=False) for duration_sums, _ in sums):
            break
    return Certificate(elapsed, trials, all(duration_sums.is_bound(upper=upper) for duration_sums, upper in sums))
