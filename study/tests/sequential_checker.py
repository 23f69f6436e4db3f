"""A second implementation of the tests of sequential goals, in exact fractions."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from lossratio.trials import TrialResult
from lossratio_study.sequential import SequentialGoal


def shown_by(goal: SequentialGoal, trials: Sequence[TrialResult]) -> tuple[float | None, float | None, bool]:
    """The bounds that the trials show, in the order measured, and whether only the limit of trials decided one."""
    lower: float | None = None
    upper: float | None = None
    first_chooses = goal.first_duration == goal.final_trial_duration
    chosen = set()
    order = []
    unsure = set()
    counts: dict[float, list[int]] = {}
    full = [
        trial
        for trial in trials
        if trial.duration == goal.final_trial_duration and (trial.loss_ratio > goal.loss_ratio or not trial.is_early)
    ]
    block = _block(goal, full)

    for trial in full:
        load = trial.load
        if not ((lower is None or load > lower) and (upper is None or load < upper)):
            continue
        if first_chooses and load not in chosen:
            chosen.add(load)
            continue
        if load not in counts:
            counts[load] = [0, 0]
            order.append(load)
        counts[load][trial.loss_ratio > goal.loss_ratio] += 1
        low, high = counts[load]
        sides = _sides(goal, low, high)
        # A load's share of the goal's error, by its place in the order of tests.
        pair = order.index(load) // 2
        share = Fraction(3, 10)
        if pair > 0:
            share = Fraction(4, 10) / (2 * pair * (pair + 1))
        needed = (1 / (_written(goal.error) * share)) ** block

        if all(side < needed for side in sides) and low + high >= goal.most_trials:
            unsure.add(load)
            sides = (Fraction(0), needed)
            if high <= _written(goal.exceed_ratio) * (low + high):
                sides = (needed, Fraction(0))
        if sides[0] >= needed:
            lower = load
        elif sides[1] >= needed:
            upper = load

    return lower, upper, bool(unsure & {lower, upper})


def _block(goal: SequentialGoal, trials: Sequence[TrialResult]) -> int:
    """How many successive trials count as one, by the runs of equal outcomes at each load."""
    outcomes: dict[float, list[bool]] = {}
    for trial in trials:
        outcomes.setdefault(trial.load, []).append(trial.loss_ratio > goal.loss_ratio)
    expected = Fraction(0)
    variance = Fraction(0)
    changes = 0

    for lossy in outcomes.values():
        trials_here = len(lossy)
        pairs = 2 * sum(lossy) * (len(lossy) - sum(lossy))
        if pairs:
            expected += Fraction(pairs, trials_here)
            variance += Fraction(pairs * (pairs - trials_here), trials_here**2 * (trials_here - 1))
            changes += sum(before != after for before, after in pairwise(lossy))

    is_alike = expected > changes and 4 * (expected - changes) ** 2 > 25 * variance
    return math.ceil(expected / changes) if is_alike else 1


def _sides(goal: SequentialGoal, low: int, high: int) -> tuple[Fraction, Fraction]:
    """How many times as probable the trials are on the verdict's side: for a lower and for an upper bound."""
    exceed = _written(goal.exceed_ratio)
    indifference = _written(goal.indifference)
    if indifference == 0:
        at_exceed = exceed**high * (1 - exceed) ** low
        below = _integral(high, low, exceed)
        return below / exceed / at_exceed, (_integral(high, low, Fraction(1)) - below) / (1 - exceed) / at_exceed
    good = max(Fraction(0), exceed - indifference)
    bad = exceed + indifference
    if good == 0 and high > 0:
        return Fraction(0), Fraction(math.factorial(200))
    ratio = (good / bad) ** high * ((1 - good) / (1 - bad)) ** low
    return ratio, 1 / ratio


def _integral(high: int, low: int, end: Fraction) -> Fraction:
    """The integral of q**high * (1 - q)**low from 0 to an end."""
    total = Fraction(0)
    for k in range(low + 1):
        power = high + k + 1
        total += math.comb(low, k) * (-1) ** k * end**power / power
    return total


def _written(ratio: float) -> Fraction:
    """A ratio as it is written in decimals."""
    return Fraction(str(float(ratio)))
