"""Load classification and conditional throughput, as RFC 9971 defines them.

Durations are added up as whole nanoseconds and compared as whole numbers, so neither the order of the trials nor
binary fractions (twenty-one times 0.1 s is not 2.1 s in floating point) can change a classification.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from lossratio.errors import SearchError
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.trials import TrialResult
from lossratio.values import NotNegative, checked


class Bound(Enum):
    """The classification of a load for a goal, from the trials measured there."""

    LOWER = "lower bound"
    UPPER = "upper bound"
    UNDECIDED = "undecided"


def nanoseconds(seconds: float) -> int:
    """A duration in whole nanoseconds. A positive duration is at least 1, so that no high-loss trial vanishes."""
    return max(round(seconds * 1e9), 1 if seconds > 0.0 else 0)


@dataclass(frozen=True)
class Criterion:
    """The part of a goal that classifies loads, ready for computation."""

    trial_duration: float
    """Seconds; trials of at least this duration are full-length."""
    loss_ratio: float
    """Trials that lose a larger share are high-loss trials."""
    duration_sum: int
    """Nanoseconds."""
    exceed: tuple[int, int]
    """The exceed ratio as the fraction that its decimal digits denote: numerator and denominator."""

    @classmethod
    def make(cls, goal: SearchGoal, trial_duration: float, duration_sum: float) -> Criterion:
        """The criterion of a goal with another trial duration and duration sum.

        Args:
            goal: The goal, whose ratios are also those of the criterion.
            trial_duration: Seconds; trials of at least this duration are full-length.
            duration_sum: Seconds; full-length trials that add up to this sum always classify a load.
        """
        exceed = Fraction(repr(float(goal.exceed_ratio)))
        return cls(
            trial_duration,
            goal.loss_ratio,
            nanoseconds(duration_sum),
            (exceed.numerator, exceed.denominator),
        )

    @classmethod
    def of(cls, goal: SearchGoal) -> Criterion:
        """The criterion of the goal itself."""
        return cls.make(goal, goal.final_trial_duration, goal.duration_sum)


@dataclass
class Tally:
    """Sums of effective durations at one load, in nanoseconds, by trial duration and loss."""

    full_low: int = 0
    """Full-length trials with low loss."""
    full_high: int = 0
    """Full-length trials with high loss."""
    short_low: int = 0
    """Shorter trials with low loss."""
    short_high: int = 0
    """Shorter trials with high loss."""
    full_trials: int = 0
    """How many full-length trials there are (not a duration)."""

    def add(self, criterion: Criterion, result: TrialResult) -> None:
        """Counts a trial, unless its early verdict leaves open whether it is a low-loss or a high-loss trial."""
        effective = nanoseconds(result.effective_duration)
        low = result.loss_ratio <= criterion.loss_ratio
        if low and result.is_early:
            return
        if result.duration >= criterion.trial_duration:
            self.full_trials += 1
            if low:
                self.full_low += effective
            else:
                self.full_high += effective
        elif low:
            self.short_low += effective
        else:
            self.short_high += effective

    def classify(self, criterion: Criterion) -> Bound:
        """The classification of the load (RFC 9971, load classification code).

        With e = p / q, both sides of each comparison are multiplied by q * (q - p), so that all numbers are whole.
        """
        p, q = criterion.exceed
        rest = q - p
        full_low = self.full_low * rest
        high = self.full_high * rest + max(0, self.short_high * rest - self.short_low * p)
        whole = max(full_low + high, criterion.duration_sum * rest)
        optimistic = high * q <= whole * p
        pessimistic = (whole - full_low) * q <= whole * p
        if pessimistic:
            return Bound.LOWER
        if optimistic:
            return Bound.UNDECIDED
        return Bound.UPPER


@checked(SearchError)
def conditional_throughput(
    goal: SearchGoal, load: NotNegative, results: Iterable[TrialResult]
) -> float:
    """The typical forwarding rate at a load, in frames per second (RFC 9971, conditional throughput code).

    Args:
        goal: The search goal.
        load: The load, in frames per second; normally the relevant lower bound.
        results: All trials measured at that load, in any order. Only full-length trials matter. Without full-length
            trials, the rate is 0.

    Raises:
        SearchError: If an argument makes no sense.
    """
    p, q = Criterion.of(goal).exceed
    full_length = sorted(
        # The loss in the missing rest of such a trial is not known, so its forwarding rate is not used.
        (1.0 if result.is_early else result.loss_ratio, nanoseconds(result.effective_duration))
        for result in map(goal.seen, results)
        if result.duration >= goal.final_trial_duration
        and not (result.is_early and result.loss_ratio <= goal.loss_ratio)
    )
    whole = max(nanoseconds(goal.duration_sum), sum(effective for _, effective in full_length))
    remaining = whole * (q - p)
    quantile = None

    for loss_ratio, effective in full_length:
        if quantile is not None and remaining <= 0:
            break
        quantile = loss_ratio
        remaining -= effective * q

    if quantile is None or remaining > 0:
        quantile = 1.0
    return load * (1.0 - quantile)
