"""The certificate: how long it takes to prove a search's result for somebody who knows it already.

No search can be much faster than this: its last trials are such a proof. An oracle that knows the SUT measures nothing
but the relevant bounds, with the trial durations that prove them soonest, until RFC 9971 classifies each load for each
goal. Where the SUT is noisy and the search was lucky, that may not be what the result says: the time is spent all the
same, and the certificate says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lossratio.arena.baselines.checker import DurationSums
from lossratio.mlrsearch import Bound, SearchGoal, SearchResult
from lossratio.trials import Measurer, TrialInput, TrialResult

REHEARSALS = 5
"""How often each way to prove a load is tried, to know the fastest."""


@dataclass(frozen=True)
class Certificate:
    """What a proof took.

    Attributes:
        elapsed: Seconds that its trials took in all, as the measurer's clock told them.
        trials: How many they were.
        proved: Whether every load was classified as the result says.
    """

    elapsed: float
    trials: int
    proved: bool


def certificate(result: SearchResult, measurer: Callable[[int], Measurer]) -> Certificate:
    """Proves a result once more.

    Args:
        result: What a search found; an irregular result's single bound is proved alone.
        measurer: Makes a measurer of the same SUT from a seed, with the same overheads; each load gets fresh ones.
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
    """What the result says about each load."""
    claims: dict[float, list[tuple[SearchGoal, Bound]]] = {}
    for goal, found in result.items():
        lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
        if lower is not None:
            claims.setdefault(lower, []).append((goal, Bound.LOWER))
        if upper is not None and upper != lower:
            claims.setdefault(upper, []).append((goal, Bound.UPPER))
    return claims


def _best_proof(
    load: float, claims: list[tuple[SearchGoal, Bound]], measurer: Callable[[int], Measurer], seed: int
) -> Certificate:
    """Proves a load in trials of the duration that proves it soonest on average."""
    durations = _durations(claims)
    if len(durations) == 1:
        return _proof(TrialInput(durations[0], load), claims, measurer(seed))

    def rehearse(duration: float) -> tuple[int, float]:
        """How often trials of a duration prove nothing, and how long they take in all."""
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
        for each, _ in sums:
            each.add(result)
        if all(each.is_bound(upper=True) or each.is_bound(upper=False) for each, _ in sums):
            break
    return Certificate(elapsed, trials, all(each.is_bound(upper=upper) for each, upper in sums))
