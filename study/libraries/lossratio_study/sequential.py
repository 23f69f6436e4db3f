"""Sequential goals: loads are tested until the verdict is sure enough, with a promised probability of a wrong bound.

This is not RFC 9971's load classification. In the RFC, a duration sum says how much is measured at a load, no matter
what the trials show. Here, the trials themselves say when to stop, and the probability of a wrong bound is chosen
beforehand.

A trial is lossy if it loses more than the goal loss ratio. A load has an unknown probability of lossy trials. The load
is *good* if this probability is at most the exceed ratio minus the indifference, and *bad* if it is at least the exceed
ratio plus the indifference. In between, either verdict is right.

The evidence for a verdict is a likelihood ratio (A. Wald, Sequential Analysis, 1947), or, where there is no zone of
indifference, its mean over all probabilities on the verdict's side (a mixture; A. Ramdas et al., Game-theoretic
statistics and safe anytime-valid inference, 2023). Both are e-processes: on a load of the other side, the probability
that they ever reach 1 / x is at most x (Ville's inequality), no matter when the test is read.

The error is promised for the search as a whole, over all loads that it tests. The loads share the error by their order,
so that all shares add up to the error. A load is either good or bad, so its verdict can be wrong in only one way, and
both bounds are in the same sum. There are two conditions: trials are independent, and larger loads are lossy at least
as often. The order of the outcomes is a check of the first condition: if successive trials are alike, several of them
count as one. If trials that are `n` apart are independent, the mean of the nth root of their likelihood ratio is still
at most 1 (by Hoelder's inequality).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lossratio.errors import SearchError
from lossratio.mlrsearch import (
    Bound,
    Criterion,
    Evidence,
    GoalResult,
    GoalView,
    IrregularReason,
    MLRsearch,
    SearchGoal,
    Stage,
    Tally,
    Target,
)
from lossratio.trials import TrialResult
from lossratio.values import checked

FIRST_SHARE = 0.3
"""Share of the error for each of the first two tested loads: in most searches, these are the bounds."""

LIMIT = 50
"""After this many times the number of trials that a load without loss needs, the trials so far decide about a load.

Example: a load is lossy in exactly half of its trials. It needs no verdict, and a mixture would never reach one.
"""

ALIKE = 2.5
"""Trials count as alike if outcomes change less often than independent outcomes would, by this many standard
deviations."""

SMALLEST_INDIFFERENCE = 0.001
"""A smaller indifference needs thousands of trials at each load; 0 means that there is none."""
_ROUNDING = 1e-9


class Support(NamedTuple):
    """How strongly trials support each verdict: natural logarithms of e-processes."""

    lower: float
    """For a lower bound."""
    upper: float
    """For an upper bound."""


@checked(SearchError)
@dataclass(frozen=True, kw_only=True)
class SequentialGoal(SearchGoal):
    """A search goal whose loads are tested until the verdict is sure enough; not a goal of RFC 9971.

    Attributes:
        loss_ratio: A trial that loses more is a lossy trial. At least 0, below 1.
        exceed_ratio: The share of trials that may be lossy. At least 0, below 1.
        indifference: A verdict can only be wrong if the load's share of lossy trials is at least this far from the
            exceed ratio. 0: any verdict on the wrong side is wrong, and the closer a load is to the exceed ratio, the
            longer its test takes.
        error: Promised probability that a bound of the result is wrong, over both bounds. Above 0, at most 0.5.
        width: How far apart the bounds may be, relative to the upper one. Above 0, below 1.
        final_trial_duration: Seconds of each trial of a test. Longer and shorter trials do not count.
        duration_sum: Seconds of trials that a load without lossy trials needs. It follows from the other attributes.
        initial_trial_duration: Seconds of the first trials, as for other goals.
        name: What reports call the goal.
        stream: The stream whose loss counts, as for other goals.

    Raises:
        SearchError: If a value is out of range.
    """

    final_trial_duration: float = 1.0
    duration_sum: float = field(init=False, default=0.0)
    width: float = 0.005
    indifference: float = 0.2
    error: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration_sum", self.final_trial_duration)
        super().__post_init__()
        self._check("error", 0.0 < self.error <= 0.5, "above 0 and at most 0.5")

        self._check(
            "indifference",
            0.0 <= self.indifference < 1.0 - self.exceed_ratio,
            f"at least 0, and below 1 minus the exceed ratio ({self.exceed_ratio:g})",
        )
        self._check(
            "indifference",
            self.indifference == 0.0 or self.indifference >= SMALLEST_INDIFFERENCE,
            f"0, or at least {SMALLEST_INDIFFERENCE:g}: a smaller one needs too many trials at a load",
        )
        self._check(
            "indifference", self.indifference > 0.0 or self.exceed_ratio > 0.0, "above 0 where no trial may be lossy"
        )
        object.__setattr__(self, "duration_sum", self.least_trials * self.final_trial_duration)

    @property
    def least_trials(self) -> int:
        """Number of trials after which a load without lossy trials is a lower bound, if it is the first load tested."""
        needed = self.support_needed(1)
        trials = 1
        while self.support(trials, 0).lower < needed:
            trials += 1
        return trials

    @property
    def most_trials(self) -> int:
        """Number of trials after which the trials so far decide about a load."""
        return LIMIT * self.least_trials

    def support(self, low: int, high: int) -> Support:
        """How strongly trials at a load speak for each verdict.

        Args:
            low: Number of trials that were not lossy.
            high: Number of lossy trials.
        """
        if self.indifference > 0.0:
            return _likelihood_ratio(self.exceed_ratio, self.indifference, low, high)
        return _mixture(self.exceed_ratio, low, high)

    def support_needed(self, place: int) -> float:
        """The support that a verdict on a load needs (natural logarithm).

        Args:
            place: The load's place in the order of the loads that are tested, from 1.
        """
        pair = (place - 1) // 2
        share = FIRST_SHARE if pair == 0 else (1.0 - 2.0 * FIRST_SHARE) / (2.0 * pair * (pair + 1))
        return -math.log(self.error * share)


@dataclass
class Order:
    """The order in which the trials at a load were lossy or not."""

    low: int = 0
    """Number of trials that were not lossy."""
    high: int = 0
    """Number of lossy trials."""
    changes: int = 0
    """How often the outcome of a trial differed from the previous one."""
    _was_low: bool | None = None

    def add(self, is_low: bool) -> None:
        """Counts the next trial."""
        self.changes += self._was_low is not None and is_low is not self._was_low
        self.low += is_low
        self.high += not is_low
        self._was_low = is_low


def trials_alike(orders: Iterable[Order]) -> int:
    """How many successive trials show as much as a single trial; 1 if nothing speaks against independent trials.

    This uses the runs test (A. Wald, J. Wolfowitz, 1940) over all loads together: if trials are independent, all orders
    of the outcomes at a load are equally likely.
    """
    expected = variance = 0.0
    changes = 0
    for order in orders:
        trials = order.low + order.high
        pairs = 2.0 * order.low * order.high
        if pairs:
            expected += pairs / trials
            variance += pairs * (pairs - trials) / (trials * trials * (trials - 1))
            changes += order.changes
    if expected - changes <= ALIKE * math.sqrt(variance) + _ROUNDING:
        return 1
    return math.ceil(expected / changes - _ROUNDING)


@lru_cache(maxsize=4096)
def _likelihood_ratio(exceed_ratio: float, indifference: float, low: int, high: int) -> Support:
    """The support if there is a zone of indifference (Wald's sequential probability ratio test)."""
    good = max(0.0, exceed_ratio - indifference)
    bad = exceed_ratio + indifference
    if good == 0.0 and high > 0:
        return Support(-math.inf, math.inf)
    lower = low * math.log((1.0 - good) / (1.0 - bad)) + (high * math.log(good / bad) if high else 0.0)
    return Support(lower, -lower)


@lru_cache(maxsize=4096)
def _mixture(exceed_ratio: float, low: int, high: int) -> Support:
    """The support without such a zone: the mean likelihood ratio over all probabilities on the verdict's side.

    The integral of q**high * (1 - q)**low from 0 to the exceed ratio equals the integral from 0 to 1, times the
    probability that more than `high` out of `low + high + 1` trials are lossy.
    """
    trials = low + high + 1
    logs = [_log_chance(exceed_ratio, lossy, trials) for lossy in range(trials + 1)]
    whole = math.lgamma(high + 1) + math.lgamma(low + 1) - math.lgamma(trials + 1)
    at_exceed_ratio = high * math.log(exceed_ratio) + low * math.log1p(-exceed_ratio)

    more = whole + float(np.logaddexp.reduce(logs[high + 1 :]))
    not_more = whole + float(np.logaddexp.reduce(logs[: high + 1]))

    return Support(
        more - at_exceed_ratio - math.log(exceed_ratio), not_more - at_exceed_ratio - math.log1p(-exceed_ratio)
    )


def _log_chance(exceed_ratio: float, lossy: int, trials: int) -> float:
    """The natural logarithm of the chance that this many of the trials are lossy."""
    ways = math.lgamma(trials + 1) - math.lgamma(lossy + 1) - math.lgamma(trials - lossy + 1)
    return ways + lossy * math.log(exceed_ratio) + (trials - lossy) * math.log1p(-exceed_ratio)


@dataclass
class _Test:
    """A load under test: its place in the order of tests, and its trials since the test began."""

    place: int
    low: int = 0
    high: int = 0


class SequentialEvidence(Evidence):
    """The tests of all loads for one sequential goal.

    Unless shorter trials come first, the first trial at a load is not part of its test, because a trial that selects
    the load to test is no fair evidence. A verdict stands. Trials at loads outside of the relevant bounds do not count,
    because they can no longer change the result. If successive trials turn out to be alike, several of them count as
    one. All trials are then judged again, and a verdict may fall.
    """

    def __init__(self, goal: SequentialGoal) -> None:
        super().__init__(Criterion.of(goal))
        self.unsure: set[float] = set()
        self.short_trials_refute = False
        self._goal = goal
        self._first_chooses = goal.first_duration == goal.final_trial_duration
        self._seen: set[float] = set()
        self._tests: dict[float, _Test] = {}
        self._trials: list[TrialResult] = []
        self._orders: dict[float, Order] = {}
        self._block = 1

    def add(self, result: TrialResult) -> bool:
        """Counts a trial; returns whether that changed the classification of any load."""
        self._tallies.setdefault(result.load, Tally()).add(self._criterion, result)
        is_low = result.loss_ratio <= self._goal.loss_ratio
        if result.duration != self._goal.final_trial_duration or (is_low and result.is_early):
            return False

        self._trials.append(result)
        self._orders.setdefault(result.load, Order()).add(is_low)
        block = trials_alike(self._orders.values())
        if block == self._block:
            return self._judge(result)

        self._block = block
        for loads in self._sorted.values():
            loads.clear()
        for sums in (self._bounds, self.unsure, self._seen, self._tests):
            sums.clear()
        for earlier in self._trials:
            self._judge(earlier)

        return True

    def missing(self, load: float, bound: Bound) -> float:
        """Seconds of trials of the expected kind that a load still needs to be such a bound."""
        test = self._tests.get(load) or _Test(len(self._tests) + 1)
        needed = self._block * self._goal.support_needed(test.place)
        is_lower = bound is Bound.LOWER
        low, high = test.low, test.high
        while low + high < self._goal.most_trials and self._goal.support(low, high)[not is_lower] < needed:
            low += is_lower
            high += not is_lower
        return (low + high - test.low - test.high) * self._goal.final_trial_duration

    def _classified(self, result: TrialResult) -> Bound:
        goal, load = self._goal, result.load
        lower, upper = self.relevant_bounds()
        is_low = result.loss_ratio <= goal.loss_ratio
        is_outside = (lower is not None and load <= lower) or (upper is not None and load >= upper)
        if is_outside:
            return self.bound(load)
        if self._first_chooses and load not in self._seen:
            self._seen.add(load)
            return Bound.UNDECIDED

        test = self._tests.setdefault(load, _Test(len(self._tests) + 1))
        test.low += is_low
        test.high += not is_low
        support = goal.support(test.low, test.high)
        needed = self._block * goal.support_needed(test.place)
        if support.lower >= needed:
            return Bound.LOWER
        if support.upper >= needed:
            return Bound.UPPER
        if test.low + test.high < goal.most_trials:
            return Bound.UNDECIDED

        self.unsure.add(load)
        is_good = test.high <= goal.exceed_ratio * goal.most_trials
        return Bound.LOWER if is_good else Bound.UPPER


def _targets(goal: SearchGoal) -> Sequence[Target]:
    """The coarser targets. A test ends as soon as possible, so no target with less evidence comes before it."""
    first, final = goal.first_duration, goal.final_trial_duration
    durations = (first, math.sqrt(first * final)) if first < final else (final,)
    return [Target(duration, duration, Criterion.make(goal, duration, duration)) for duration in durations]


class SequentialView(GoalView):
    """The knowledge about a sequential goal. Its trials are not planned."""

    def __init__(self, goal: SequentialGoal, *args: Any, **settings: Any) -> None:
        super().__init__(goal, *args, **settings)
        self.plan = None
        self.tests = SequentialEvidence(goal)
        target = Target(goal.final_trial_duration, goal.duration_sum, Criterion.of(goal))
        coarser = (Stage(each, Evidence(each.criterion)) for each in _targets(goal))
        self.stages = (*coarser, Stage(target, self.tests))
        self.intervals = self._intervals()


class SequentialSearch(MLRsearch):
    """Searches for sequential goals. A result with a bound that the limit of trials decided is irregular: a coin."""

    view = SequentialView

    def _goal_result(self, view: GoalView) -> GoalResult:
        result = super()._goal_result(view)
        bounds = {result.relevant_lower_bound, result.relevant_upper_bound}
        if result.regular and isinstance(view, SequentialView) and view.tests.unsure & bounds:
            return replace(result, regular=False, reason=IrregularReason.COIN)
        return result
