"""The certificate: the time that an oracle which knows a search's result takes to prove it.

No search can be much faster than this, as its last trials are such a proof. The oracle measures only the relevant
bounds, with the trial durations that prove them soonest, until RFC 9971 classifies each load for each goal. On a noisy
SUT the proof may contradict the result of a lucky search. Its time counts nevertheless, and the certificate is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lossratio.arena.baselines.checker import DurationSums
from lossratio.mlrsearch import Bound, SearchGoal, SearchResult
from lossratio.trials import Measurer, TrialInput, TrialResult

REHEARSALS = 5
"""Number of proofs that are tried with each trial duration, to find the fastest."""


@dataclass(frozen=True)
class Certificate:
    """The cost of a proof.

    Attributes:
        elapsed: Seconds that its trials took in all, on the measurer's clock.
        trials: Number of its trials.
        proved: Whether every load was classified as in the result.
    """

    elapsed: float
    trials: int
    proved: bool


def certificate(result: SearchResult, measurer: Callable[[int], Measurer]) -> Certificate:
    """Proves a result again.

    Args:
        result: A search's result. Of an irregular result with one bound, that bound is proved.
        measurer: Makes a measurer of the same SUT from a seed, with the same overheads. Each load gets new ones.
    """
    proofs = [
        _best_proof(load, claims, measurer, seed=number * (REHEARSALS + 1))
        for number, (load, claims) in enumerate(_claims(result).items())
    ]
    return Certificate(
        sum(proof.elapsed for proof in proofs),
        sum(proof.trials for proof in proofs),
        all(proof.proved for proof in proofs),
    )


def _claims(result: SearchResult) -> Mapping[float, list[tuple[SearchGoal, Bound]]]:
    """The bounds of the result, by load."""
    claims: dict[float, list[tuple[SearchGoal, Bound]]] = {}
    for goal, goal_result in result.items():
        lower, upper = goal_result.relevant_lower_bound, goal_result.relevant_upper_bound
        if lower is not None:
            claims.setdefault(lower, []).append((goal, Bound.LOWER))
        if upper is not None and upper != lower:
            claims.setdefault(upper, []).append((goal, Bound.UPPER))
    return claims


def _best_proof(
    load: float, claims: list[tuple[SearchGoal, Bound]], measurer: Callable[[int], Measurer], seed: int
) -> Certificate:
    """Proves a load with trials of the duration that proves it soonest on average."""
    durations = _durations(claims)
    if len(durations) == 1:
        return _proof(TrialInput(durations[0], load), claims, measurer(seed))

    def rehearse(duration: float) -> tuple[int, float]:
        """Number of failed proofs with trials of a duration, and the time of all proofs."""
        trial = TrialInput(duration, load)
        proofs = [_proof(trial, claims, measurer(seed + number)) for number in range(1, REHEARSALS + 1)]
        return sum(not proof.proved for proof in proofs), sum(proof.elapsed for proof in proofs)

    return _proof(TrialInput(min(durations, key=rehearse), load), claims, measurer(seed))


def _durations(claims: Iterable[tuple[SearchGoal, Bound]]) -> list[float]:
    """Trial durations that can prove all claims: only full-length trials prove a lower bound."""
    full = [goal.final_trial_duration for goal, bound in claims if bound is Bound.LOWER]
    if full:
        return [max(full)]
    return sorted({duration for goal, _ in claims for duration in (goal.first_duration, goal.final_trial_duration)})


def _proof(trial: TrialInput, claims: list[tuple[SearchGoal, Bound]], measurer: Measurer) -> Certificate:
    longest = max(goal.duration_sum for goal, _ in claims)
    sums = [(DurationSums(goal), bound is Bound.UPPER) for goal, bound in claims]
    counted, elapsed, trials = 0.0, 0.0, 0
    while counted < longest:
        result = TrialResult(trial, measurer.measure(trial))
        counted, elapsed, trials = counted + result.effective_duration, elapsed + result.elapsed, trials + 1
        for duration_sums, _ in sums:
            duration_sums.add(result)
        if all(duration_sums.is_bound(upper=True) or duration_sums.is_bound(upper=False) for duration_sums, _ in sums):
            break
    return Certificate(elapsed, trials, all(duration_sums.is_bound(upper=upper) for duration_sums, upper in sums))
