"""The RFC's own code, in exact fractions: what the package's classification has to agree with."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from lossratio.mlrsearch import SearchGoal
from lossratio.trials.trial import TrialResult


def exact(value: float) -> Fraction:
    """A float as the decimal that people wrote."""
    return Fraction(repr(float(value)))


def reference_bound(goal: SearchGoal, results: Iterable[TrialResult]) -> str:
    """Load classification, RFC 9971."""
    sums = {(full, low): Fraction(0) for full in (True, False) for low in (True, False)}
    for result in results:
        full = result.duration >= goal.final_trial_duration
        sums[full, result.loss_ratio <= goal.loss_ratio] += exact(result.effective_duration)
    exceed = exact(goal.exceed_ratio)
    balancing = sums[False, True] * exceed / (1 - exceed)
    high = sums[True, False] + max(Fraction(0), sums[False, False] - balancing)
    whole = max(sums[True, True] + high, exact(goal.duration_sum))
    optimistic = high <= whole * exceed
    pessimistic = whole - sums[True, True] <= whole * exceed
    if optimistic and pessimistic:
        return "lower"
    return "undecided" if optimistic or pessimistic else "upper"


def reference_throughput(goal: SearchGoal, load: float, results: Iterable[TrialResult]) -> float:
    """Conditional throughput, RFC 9971."""
    full_length = sorted(
        (result for result in results if result.duration >= goal.final_trial_duration), key=lambda r: r.loss_ratio
    )
    total = sum((exact(result.effective_duration) for result in full_length), Fraction(0))
    remaining = max(exact(goal.duration_sum), total) * (1 - exact(goal.exceed_ratio))
    quantile = None
    for result in full_length:
        if quantile is None or remaining > 0:
            quantile = result.loss_ratio
            remaining -= exact(result.effective_duration)
    if quantile is None or remaining > 0:
        quantile = 1.0
    return load * (1.0 - quantile)


def reference_bounds(goal: SearchGoal, results: Iterable[TrialResult]) -> tuple[float | None, float | None]:
    """Relevant lower and upper bound, RFC 9971."""
    by_load: dict[float, list[TrialResult]] = {}
    for result in results:
        by_load.setdefault(result.load, []).append(result)
    kinds = {load: reference_bound(goal, trials) for load, trials in by_load.items()}
    upper = min((load for load, kind in kinds.items() if kind == "upper"), default=None)
    lowers = (load for load, kind in kinds.items() if kind == "lower" and (upper is None or load < upper))
    return max(lowers, default=None), upper
